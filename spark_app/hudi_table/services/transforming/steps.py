"""A chain of steps between a source and a table: each takes all rows of a commit and gives others.

A step is a mapping as the resource has it: `{"sql": "SELECT … FROM source"}`, `{"flatten":
{"separator": "_"}}`, or `{"function": "NAME"}`, a function of one's own from an Arrow table to
another, found by the entry point NAME of the group `hudi_table.transforms`. With `"onFail":
"Quarantine"` rows that a step cannot take are kept apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from hudi_table.errors import HudiError, InvalidDataError, InvalidRequestError, InvalidSchemaError, InvariantError
from hudi_table.services.transforming.by_row import Places, failing
from hudi_table.services.transforming.chain_check import APART, check_by_row
from hudi_table.services.transforming.dialect import Select, to_duckdb
from hudi_table.services.transforming.duckdb import Database
from hudi_table.services.transforming.shape import Shape, shape_of
from hudi_table.write.incoming import open_stream

GROUP = "hudi_table.transforms"
STEPS_MAX = 8
SEPARATOR = "_"


class Step(Protocol):
    """One of a chain."""

    def keeps(self, names: Iterable[str]) -> set[str]:
        """Which of these columns of the result are columns of the source, as they are."""
        ...

    def apply(self, database: Callable[[], Database], rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The rows that come out."""
        ...


@dataclass(frozen=True, slots=True)
class _Sql:
    select: Select

    def keeps(self, names: Iterable[str]) -> set[str]:
        return self.select.shape.keeps(names)

    def apply(self, database: Callable[[], Database], rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        return database().rows(self.select, rows)


@dataclass(frozen=True, slots=True)
class _OfSpark:
    """A SELECT that Spark runs: here is known which columns it hands on."""

    shape: Shape

    def keeps(self, names: Iterable[str]) -> set[str]:
        return self.shape.keeps(names)

    def apply(self, database: Callable[[], Database], rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        del database, rows
        raise InvariantError("this SELECT is Spark's")


@dataclass(frozen=True, slots=True)
class _Flatten:
    separator: str

    def keeps(self, names: Iterable[str]) -> set[str]:
        return set(names)

    def apply(self, database: Callable[[], Database], rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        del database
        empty = self._flat(rows.schema.empty_table())
        return pa.RecordBatchReader.from_batches(
            empty.schema,
            (batch for each in rows for batch in self._flat(pa.Table.from_batches([each])).to_batches()),
        )

    def _flat(self, table: pa.Table) -> pa.Table:
        columns: list[tuple[str, Any]] = []
        for field, column in zip(table.schema, table.columns, strict=True):
            columns += self._fields(field.name, column)
        names = [name for name, _ in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidSchemaError(
                f"flatten gives column {twice!r} twice: choose another separator, or rename it by SQL before"
            )
        return pa.Table.from_arrays([column for _, column in columns], names=names)

    def _fields(self, name: str, column: Any) -> list[tuple[str, Any]]:
        if not pt.is_struct(column.type):
            return [(name, column)]
        names = [field.name for field in column.type]
        # Of a row without the struct each field is null.
        fields = pa.table({"": column}).flatten().columns if names else []
        return [
            found
            for inner, values in zip(names, fields, strict=True)
            for found in self._fields(f"{name}{self.separator}{inner}", values)
        ]


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    call: Callable[[pa.Table], pa.Table]

    def keeps(self, names: Iterable[str]) -> set[str]:
        del names
        return set()

    def apply(self, database: Callable[[], Database], rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        del database
        try:
            found = self.call(rows.read_all())
        except HudiError:
            raise
        except Exception as error:
            raise InvalidDataError(
                f"transform function {self.name!r} fails: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(found, pa.Table):
            raise InvalidRequestError(
                f"transform function {self.name!r} gives a {type(found).__name__}: it is to give a pyarrow.Table"
            )
        return found.to_reader()


@dataclass(frozen=True, slots=True)
class Transforms:
    """A chain, checked. `keeps_apart`: of which steps a row that one cannot take is kept apart."""

    steps: tuple[Step, ...]
    keeps_apart: tuple[bool, ...] = ()

    @classmethod
    def of(cls, chain: Sequence[Mapping[str, Any]], *, by_spark: bool = False) -> Transforms:
        """`by_spark`: Spark runs the chain; here it is asked what it hands on. Raises
        InvalidRequestError that says which step is wrong, before anything is read."""
        if len(chain) > STEPS_MAX:
            raise InvalidRequestError(f"{len(chain)} transforms are given, at most {STEPS_MAX} are taken")
        if not by_spark:
            check_by_row(chain)
        steps = tuple(_step(each, by_spark=by_spark) for each in chain)
        return cls(steps, tuple(each.get("onFail") == APART for each in chain))

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.steps)

    def hints(self, known: pa.Schema | None) -> pa.Schema | None:
        """Columns of the table that the source has as they are: their types say how a text is
        read."""
        if known is None or not self.steps:
            return known
        names = set(known.names)
        for step in self.steps:
            names &= step.keeps(names)
        return pa.schema([field for field in known if field.name in names])

    def apply(
        self, rows: pa.RecordBatchReader, known: pa.Schema | None, database: Callable[[], Database]
    ) -> pa.RecordBatchReader:
        """The rows that come out of the last step. A column that is null throughout has the type
        that is known, or is left out."""
        for step in self.steps:
            rows = step.apply(database, rows)
        return _typed(rows, known)

    def sift(
        self, rows: pa.Table, known: pa.Schema | None, database: Database, most: int
    ) -> tuple[pa.Table, dict[int, Fault]]:
        """What comes out of the last step of those rows that each step can take, and why others
        cannot be taken, by row. Raises what `apply` does, InvalidDataError also where a step does
        not keep apart what it cannot take, or more than `most` are such."""
        try:
            return self._made(rows, known, database), {}
        except _StepError as error:
            if not self.keeps_apart[error.step]:
                raise InvalidDataError(error.message) from error
        faults: dict[int, Fault] = {}

        def why(places: Places) -> str:
            try:
                self._made(rows.take(pa.array(places)), known, database)
            except _StepError as error:
                if not self.keeps_apart[error.step]:
                    raise InvalidDataError(error.message) from error
                if len(places) == 1:
                    faults[int(places[0])] = Fault(error.step, error.message)
                return error.message
            return ""

        failing(np.arange(len(rows)), why, most)
        kept = np.setdiff1d(np.arange(len(rows)), list(faults))
        try:
            return self._made(rows.take(pa.array(kept)), known, database), faults
        except _StepError as error:
            if not len(kept):
                raise InvalidDataError(
                    f"no row is one that transform {error.step + 1} takes: {error.message}"
                ) from error
            raise InvalidDataError(
                f"transform {error.step + 1} fails on rows together each of which it takes alone, so none can be kept apart: {error.message}"
            ) from error

    @property
    def sifts(self) -> bool:
        """Whether rows that a step cannot take are kept apart."""
        return any(self.keeps_apart)

    @property
    def streams(self) -> bool:
        """Whether rows may come in parts; a function is given all of a commit."""
        return not any(isinstance(step, _Function) for step in self.steps)

    def _made(self, rows: pa.Table, known: pa.Schema | None, database: Database) -> pa.Table:
        """One step after the other. Raises _StepError."""
        for number, step in enumerate(self.steps):
            try:
                rows = step.apply(lambda: database, rows.to_reader()).read_all()
            except InvalidDataError as error:
                raise _StepError(error.message, number) from error
        return _typed(rows.to_reader(), known).read_all()


@dataclass(frozen=True, slots=True)
class Fault:
    """What a row fails by: the number of a step, and why."""

    step: int
    why: str


class _StepError(Exception):
    """A step cannot take some row."""

    def __init__(self, message: str, step: int) -> None:
        super().__init__(message)
        self.message = message
        self.step = step


def _typed(rows: pa.RecordBatchReader, known: pa.Schema | None) -> pa.RecordBatchReader:
    """A column that is null throughout has the type that is known, or is left out."""
    schema = rows.schema
    if not any(pt.is_null(field.type) for field in schema):
        return rows
    names = set(known.names) if known is not None else set()
    wanted = pa.schema(
        [
            known.field(f.name) if pt.is_null(f.type) and known is not None else f
            for f in schema
            if not pt.is_null(f.type) or f.name in names
        ]
    )
    return pa.RecordBatchReader.from_batches(wanted, (batch.select(wanted.names).cast(wanted) for batch in rows))


class Chain:
    """Steps with the databases that they need, a connection each, kept from batch to batch. Ended
    by `close`. `columns`: types of columns of the source, in Spark's words."""

    def __init__(self, transforms: Transforms, columns: Mapping[str, str] | None = None) -> None:
        self.transforms = transforms
        self._databases: list[Database] = []
        self.columns = self._database(0).schema(columns) if columns else pa.schema([])

    def read_as(self, known: pa.Schema | None) -> pa.Schema | None:
        """In which types a text of the source is read, given those of the table."""
        hints = self.transforms.hints(known)
        if not len(self.columns):
            return hints
        others = [field for field in hints or () if field.name not in self.columns.names]
        return pa.schema([*self.columns, *others])

    def apply(self, rows: pa.RecordBatchReader, known: pa.Schema | None) -> pa.RecordBatchReader:
        """See `Transforms.apply`. What it gave before must have been read to its end."""
        if not self.transforms:
            return rows
        numbers = itertools.count()
        return self.transforms.apply(rows, known, lambda: self._database(next(numbers)))

    def sift(self, rows: pa.Table, known: pa.Schema | None, most: int) -> tuple[pa.Table, dict[int, Fault]]:
        """See `Transforms.sift`."""
        return self.transforms.sift(rows, known, self._database(0), most)

    def close(self) -> None:
        """End the databases."""
        while self._databases:
            self._databases.pop().close()

    def _database(self, number: int) -> Database:
        """A connection streams one answer at a time."""
        while len(self._databases) <= number:
            self._databases.append(Database())
        return self._databases[number]


@contextmanager
def transformed(
    data: Any, chain: Sequence[Mapping[str, Any]], known: pa.Schema | None
) -> Iterator[pa.RecordBatchReader]:
    """Whatever exports an Arrow stream, after every step, within the context. `known`: the table's
    columns."""
    with closing(Chain(Transforms.of(chain))) as steps:
        yield steps.apply(open_stream(data), known)


def table_step(raw: Mapping[str, Any]) -> Callable[[pa.Table], pa.Table]:
    """What a step that is no SELECT makes of rows, in any process. Raises as `Transforms.of`."""
    step = _step(raw)
    if isinstance(step, _Sql):
        raise InvalidRequestError("a SELECT needs a database: flatten and functions take rows as they are")

    def database() -> Database:
        raise InvalidRequestError("flatten and functions need no database")

    return lambda rows: step.apply(database, rows.to_reader()).read_all()


def _step(raw: Mapping[str, Any], *, by_spark: bool = False) -> Step:
    known = [name for name in ("sql", "flatten", "function") if raw.get(name) is not None]
    if len(known) != 1 or set(raw) - {"sql", "flatten", "function", "onFail"}:
        raise InvalidRequestError("a transform has sql, flatten or function, one of them")
    if known == ["sql"]:
        sql = str(raw["sql"])
        return _OfSpark(shape_of(sql)) if by_spark else _Sql(to_duckdb(sql))
    if known == ["flatten"]:
        return _Flatten(str(raw["flatten"].get("separator", SEPARATOR)))
    name = str(raw["function"])
    found = [each for each in metadata.entry_points(group=GROUP) if each.name == name]
    if not found:
        there = ", ".join(sorted(each.name for each in metadata.entry_points(group=GROUP))) or "none"
        raise InvalidRequestError(
            f"there is no transform function {name!r} installed: entry points of {GROUP} are {there}"
        )
    return _Function(name, found[0].load())
