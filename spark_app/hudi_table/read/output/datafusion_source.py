"""The DataFusion bridge: a scan as a data set from which DataFusion asks for columns and rows.

Facts (DataFusion 55): it takes a `pyarrow.dataset.Dataset` for a table, asks for one stream of each
of its fragments, and does not check again the conditions that it hands down. `not in` comes as the
negation of `is_in`, which is true of a null in Arrow and of none in SQL.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.types as pt

from hudi_table.errors import InvalidRequestError
from hudi_table.read.files import gone
from hudi_table.read.filter.expression_tree import Call, Constant, Part, Reference, tree
from hudi_table.read.output.duckdb_source import HudiDataset
from hudi_table.read.plan import ScanPlan
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext

_CALLS: dict[str, Callable[..., pc.Expression]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "and_kleene": operator.and_,
    "or_kleene": operator.or_,
    "invert": operator.invert,
    "is_null": lambda part: part.is_null(),
    "is_valid": lambda part: part.is_valid(),
}


class HudiFragments(ds.Dataset):  # type: ignore[misc] # pyarrow has no type information
    """The rows of one plan in one fragment; only what DataFusion calls is there.

    `handed` are whole paths of files that DataFusion reads beside it. It takes a file that is not
    there for one without rows, so each run of a query looks for them here.
    """

    def __init__(self, context: TableContext, planned: Replanned[ScanPlan], handed: Sequence[str] = ()) -> None:
        # Dataset's own constructor forbids itself; there is no C++ data set behind this one.
        self._base = f"{context.base_path}/"
        self._context = context
        self._rows = HudiDataset(context, planned)
        self._handed = handed

    @property
    def schema(self) -> pa.Schema:
        """The columns that there are."""
        return self._rows.schema

    def scanner(self, columns: Sequence[str] | None = None, **_: object) -> _Scanner:
        """The columns that a stream would have; DataFusion asks for them as it makes its plan."""
        names = self.schema.names if columns is None else columns
        return _Scanner(pa.schema([self.schema.field(name) for name in names]), iter(()))

    def get_fragments(self, filter: pc.Expression | None = None) -> list[_Fragment]:  # noqa: A002, ARG002
        """All rows come as one stream, which the scan makes with threads of its own."""
        return [_Fragment(self)]

    def read(self, columns: Sequence[str] | None, condition: pc.Expression | None) -> _Scanner:
        """A stream, once DataFusion has listed the files that it was handed."""
        self._look()
        names = self.schema.names if columns is None else list(columns)
        # A stream without columns has no rows to count: it reads one, and leaves it out.
        read = names or self.schema.names[:1]
        schema, batches = self._rows.rows(read, None if condition is None else in_sql(condition))
        if names:
            return _Scanner(schema, batches)
        return _Scanner(pa.schema([]), (batch.select([]) for batch in batches))

    def _look(self) -> None:
        for path in self._handed:
            if not os.path.exists(path):
                name = path.removeprefix(self._base)
                raise gone(self._context, name.rpartition("/")[0], name)


@dataclass(frozen=True, slots=True)
class _Fragment:
    """All rows, as DataFusion takes them from a `pyarrow.dataset.Fragment`."""

    source: HudiFragments

    def scanner(
        self, _schema: pa.Schema, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: object  # noqa: A002
    ) -> _Scanner:  # fmt: skip
        return self.source.read(columns, filter)


@dataclass(frozen=True, slots=True)
class _Scanner:
    """One stream, as DataFusion takes it from a `pyarrow.dataset.Scanner`."""

    projected_schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def to_batches(self) -> Generator[pa.RecordBatch, None, None]:
        yield from self.batches


def is_handed_down(kind: pa.DataType) -> bool:
    """Whether Arrow's comparisons of columns of this type are those of DataFusion: not of floats,
    for NaN is DataFusion's greatest number."""
    plain = (pt.is_boolean, pt.is_integer, pt.is_string, pt.is_binary, pt.is_date, pt.is_timestamp, pt.is_decimal)
    return any(test(kind) for test in plain)


def in_sql(condition: pc.Expression) -> pc.Expression:
    """The condition, in which null is neither in a list nor out of it."""
    part = tree(condition)
    if part is None and "is_in" in str(condition):
        raise InvalidRequestError(f"the condition {condition} is not understood: give it to the scan as its filter")
    return _expression(part) if _has_lists(part) else condition


def _has_lists(part: Part) -> bool:
    return isinstance(part, Call) and (part.function == "is_in" or any(map(_has_lists, part.parts)))


def _expression(part: Part) -> pc.Expression:
    if isinstance(part, Reference):
        return pc.field(part.name)
    if isinstance(part, Constant):
        return pc.scalar(part.value)
    if part is None or part.function not in (*_CALLS, "is_in"):
        raise InvalidRequestError(f"a condition of DataFusion is not understood: {part}")
    parts = [_expression(each) for each in part.parts]
    if part.function == "is_in" and part.options is not None:
        found = parts[0].isin(part.options["value_set"].values)
        return pc.if_else(parts[0].is_valid(), found, pa.scalar(None, pa.bool_()))
    return _CALLS[part.function](*parts)
