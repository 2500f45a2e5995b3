"""What is not taken of rows that are no messages: expectations are asked, and transforms made, as
the rows go by, batch by batch, in this process.

A write reads its rows to their end before it commits anything. So the error table is written there:
before the checkpoint passes the rows, and once all of them are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_spark.jobs.shaping import told_of_fault
from hudi_spark.jobs.sifting.error_tables import ErrorTable, keep_refused
from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.error_tables import ROWS
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.services.transforming.duckdb import Database
from hudi_table.services.transforming.expectations import Expectations, Failure, OnFail
from hudi_table.services.transforming.steps import Chain, Transforms
from hudi_table.sources.formats.values import errors_most
from hudi_table.sources.refusing import ERROR_KEY, ERROR_SCHEMA, Place, Refusing

ROW_ERRORS = ErrorTable(ROWS, ERROR_KEY)
REFUSED_BYTES_MAX = 256 << 20
"""Of the rows that one commit refuses, which are kept in memory until all are judged."""
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are taken so far, and of each its place among those that stand together."""

    rows: pa.Table
    spans: tuple[tuple[Place, Places], ...]

    def by_span(self, places: Sequence[int]) -> Iterator[tuple[Place, list[int], list[int]]]:
        """(where, rows there, the same in order of `places`) of some of them."""
        ends = np.cumsum([len(each) for _, each in self.spans])
        wanted = np.asarray(places, np.int64)
        numbers = np.searchsorted(ends, wanted, side="right")
        for number in np.unique(numbers).tolist():
            place, there = self.spans[number]
            order = np.flatnonzero(numbers == number)
            begin = int(ends[number]) - len(there)
            yield place, there[wanted[order] - begin].tolist(), order.tolist()


@dataclass(slots=True)
class Judged:
    """What has come of rows: how many there were, those of the error table, and how many were left
    out."""

    rows: int = 0
    refused: list[pa.Table] = field(default_factory=list)
    dropped: int = 0

    @property
    def size(self) -> int:
        """Bytes of those of the error table."""
        return sum(each.nbytes for each in self.refused)


@dataclass(slots=True)
class Sifting:
    """Of one run of an ingest. `place`: where the batch stands that was read last; what reads sets
    it. Ended by `close`."""

    spec: JobSpec
    place: Place = field(default_factory=lambda: Place("the source"))
    read: int = 0
    refused: int = 0
    dropped: int = 0
    _expectations: Expectations = field(init=False)
    _ratio: float = 0.0
    _chain: Chain | None = None
    _database: Database | None = None

    def __post_init__(self) -> None:
        work = self.spec.work
        if work.get("onUndecodable", "Fail") != "Fail":
            raise InvalidRequestError(
                f"onUndecodable {work['onUndecodable']} goes with a source of type Kafka, Debezium or Kinesis: rows of others are not decoded one by one"
            )
        self._expectations = Expectations.of(work.get("expectations", ()))
        self._ratio = float(work.get("maxErrorRatio", 0.0))

    @property
    def chain(self) -> Chain:
        """The transforms. Raises InvalidRequestError that says which is wrong: of what is written
        for Spark alone none is made."""
        if self._chain is None:
            work = self.spec.work
            self._chain = Chain(Transforms.of(work.get("transform", ())), work["source"].get("columns"))
        return self._chain

    @classmethod
    def checked(cls, spec: JobSpec) -> Sifting:
        """With its transforms made, before anything is read. Raises InvalidRequestError."""
        found = cls(spec)
        found.chain  # noqa: B018
        return found

    def through(self, batches: pa.RecordBatchReader, known: pa.Schema | None, batch: str) -> pa.RecordBatchReader:
        """What comes out of the transforms of those rows that are taken, as a stream. `batch`: name
        of the commit. Once the stream has ended, what is refused is in the error table.

        Raises InvalidDataError, from the stream too, for a row that ends the ingest, and for more
        refused ones than may be.
        """
        if not self.expects and not self.chain.transforms.sifts:
            return self.chain.apply(batches, known)
        commit = Judging(self, self.refusing(batch), batches)
        made = commit.made(known)
        return pa.RecordBatchReader.from_batches(made.schema, commit.to_the_end(made))

    @property
    def expects(self) -> bool:
        """Whether there are expectations."""
        return bool(self._expectations)

    def refusing(self, batch: str) -> Refusing:
        """Of a commit of this name."""
        return Refusing(str(self.spec.work["name"]), self.spec.attempt, batch)

    def figures(self) -> dict[str, float]:
        """Of the run's result."""
        found = {"recordsRefused": float(self.refused), "recordsDropped": float(self.dropped)}
        return {name: number for name, number in found.items() if number}

    def close(self) -> None:
        """End the databases."""
        if self._chain is not None:
            self._chain.close()
        if self._database is not None:
            self._database.close()

    def failures(self, rows: pa.Table) -> list[Failure]:
        """Which rows do not meet an expectation."""
        return self._expectations.failures(rows, self.database(), self.most(len(rows)))

    def words(self, failure: Failure) -> str:
        """See `Expectations.words`."""
        return self._expectations.words(failure)

    def most(self, rows: int) -> int:
        """How many of so many rows may be refused."""
        return errors_most(rows, self._ratio)

    def database(self) -> Database:
        """That which expectations are asked with."""
        if self._database is None:
            self._database = Database()
        return self._database

    def keep(self, judged: Judged) -> None:
        """Write what is refused of a commit into the error table. Raises InvalidDataError where
        that is more of the commit, or of the run, than may be."""
        count = sum(map(len, judged.refused))
        read, refused = self.read + judged.rows, self.refused + count
        if count:
            self._check("one commit", judged.rows, count, judged)
            self._check("this run", read, refused, judged)
        keep_refused(self.spec, pa.concat_tables([ERROR_SCHEMA.empty_table(), *judged.refused]), ROW_ERRORS)
        self.read, self.refused, self.dropped = read, refused, self.dropped + judged.dropped

    def _check(self, of: str, read: int, many: int, judged: Judged) -> None:
        if many > self.most(read):
            first = judged.refused[0].slice(0, 1).to_pylist()[0]
            where = f"row {first['row']:,} of file {first['place']}" if first["row"] else f"a row of {first['place']}"
            raise InvalidDataError(
                f"{many:,} of {counted(read, 'row')} of {of} are refused, more than maxErrorRatio {self._ratio} lets through; "
                f"the first now: {where}: {first['reason']}"
            )


class Judging:
    """The rows of one commit on their way, or a part of them. `judged`: what has come of them."""

    def __init__(self, run: Sifting, refusing: Refusing, batches: pa.RecordBatchReader) -> None:
        self._run = run
        self._refusing = refusing
        self._schema = batches.schema
        self._parts = self._met(batches)
        self.judged = Judged()
        self._error: BaseException | None = None

    def made(self, known: pa.Schema | None) -> pa.RecordBatchReader:
        """What the transforms make of the rows that are taken. Raises what reading them does."""
        chain = self._run.chain
        with _as_raised(self):
            if not chain.transforms.sifts:
                rows = (each for part in self._parts for each in part.rows.to_batches())
                return chain.apply(pa.RecordBatchReader.from_batches(self._schema, rows), known)
            parts = self._sifted(known)
            first = next(parts)
        return pa.RecordBatchReader.from_batches(
            first.schema, (batch for table in _behind(first, parts) for batch in table.to_batches())
        )

    def to_the_end(self, made: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """What was made, and behind it what is refused into the error table."""
        with _as_raised(self):
            yield from made
            # A statement may know without its rows that none comes out.
            for _ in self._parts:
                pass
            self._run.keep(self.judged)

    def _met(self, batches: pa.RecordBatchReader) -> Iterator[Part]:
        """Those rows that meet the expectations."""
        try:
            for batch in batches:
                rows = pa.Table.from_batches([batch])
                yield self.meeting(rows, self._run.place)
        except BaseException as error:
            self._error = error
            raise

    def meeting(self, rows: pa.Table, place: Place) -> Part:
        """Those of some rows, which stand at `place`, that meet the expectations. Raises
        InvalidDataError for one that ends the ingest."""
        run = self._run
        self.judged.rows += len(rows)
        part = Part(rows, ((place, np.arange(len(rows))),))
        failures = run.failures(rows)
        fatal = [each for each in failures if each.on_fail is OnFail.FAIL]
        if fatal:
            more = f", nor do {len(fatal) - 1:,} more" if len(fatal) > 1 else ""
            raise InvalidDataError(f"{place.words(fatal[0].row)} does not meet {run.words(fatal[0])}{more}")
        apart = [each for each in failures if each.on_fail is OnFail.QUARANTINE]
        self._refuse(
            part,
            [each.row for each in apart],
            [f"it does not meet {run.words(each)}" for each in apart],
            [each.name for each in apart],
        )
        self.judged.dropped += len(failures) - len(apart)
        kept = np.setdiff1d(np.arange(len(rows)), [each.row for each in failures])
        return Part(rows.take(pa.array(kept)) if failures else rows, ((place, kept),))

    def _sifted(self, known: pa.Schema | None) -> Iterator[pa.Table]:
        """What the transforms make, of one table at least."""
        chain, schema = self._run.chain, None
        parts = self._parts if chain.transforms.streams else iter([_whole(list(self._parts), self._schema)])
        for part in parts:
            made, faults = chain.sift(part.rows, known, self._run.most(self.judged.rows))
            told = [told_of_fault(fault) for fault in faults.values()]
            self._refuse(part, list(faults), [why for _, why in told], [rule for rule, _ in told])
            schema = made.schema if schema is None else schema
            yield made.cast(schema) if made.schema != schema else made
        if schema is None:
            yield chain.sift(self._schema.empty_table(), known, 0)[0]

    def _refuse(self, part: Part, places: list[int], reasons: list[str], rules: list[str]) -> None:
        if not places:
            return
        held = self._run.database().texts(part.rows.take(pa.array(places)))
        for place, rows, order in part.by_span(places):
            found = self._refusing.table(
                place, rows, held.take(pa.array(order)), [reasons[i] for i in order], [rules[i] for i in order]
            )
            self.judged.refused.append(found)
        if self.judged.size > REFUSED_BYTES_MAX:
            raise InvalidDataError(
                f"the refused rows of one commit are more than {REFUSED_BYTES_MAX >> 20} MiB; {places_words(part, places, reasons)}"
            )

    def original(self) -> BaseException | None:
        """What was raised while rows were judged: DuckDB tells of it in words alone."""
        return self._error


def places_words(part: Part, places: Sequence[int], reasons: Sequence[str]) -> str:
    """The first of refused rows, in words."""
    place, rows, _ = next(part.by_span(places[:1]))
    return f"one of them: {place.words(rows[0])}: {reasons[0]}"


class _as_raised:  # noqa: N801 - reads as a statement: with _as_raised(commit)
    """Raises what was raised while rows were judged, whoever has read them."""

    def __init__(self, commit: Judging) -> None:
        self._commit = commit

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: Any) -> None:
        first = self._commit.original()
        if first is not None and error is not None and error is not first and isinstance(error, Exception):
            raise first


def _behind(first: pa.Table, parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from parts


def _whole(parts: Sequence[Part], schema: pa.Schema) -> Part:
    rows = pa.concat_tables([schema.empty_table(), *(each.rows for each in parts)])
    return Part(rows, tuple(span for each in parts for span in each.spans))


def window(column: str, last: str, upto: str) -> str:
    """Of rows that are read by a column that grows: from which value on, up to which, in words."""
    if not column:
        return "all rows"
    return f"rows with {column} from {last} to {upto}" if last else f"rows with {column} up to {upto}"
