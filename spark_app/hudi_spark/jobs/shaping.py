"""What happens to the rows of a stream between source and table: expectations, then transforms; and
where those go that are not taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.model.job.positions import Positions
from hudi_table.model.job.shards import ShardPositions
from hudi_table.services.transforming.chain_check import APART
from hudi_table.services.transforming.duckdb import Database
from hudi_table.services.transforming.expectations import Expectations, Failure, OnFail
from hudi_table.services.transforming.steps import Chain, Fault, Transforms
from hudi_table.sources.base import Origin, Rows
from hudi_table.sources.formats.values import errors_most

_PLACE = ("topic", "partition", "offset", "stream", "shard", "sequence")


H = TypeVar("H", Positions, ShardPositions)


@dataclass(frozen=True, slots=True)
class Shaped(Generic[H]):
    """What is to be committed. `messages`: how many were read; `refused`: those for the error
    table; `dropped`: how many are left out."""

    rows: Rows[H]
    messages: int
    refused: pa.Table
    dropped: int


def counting(rows: Rows[H], refused: pa.Table) -> Rows[H]:
    """Rows whose checkpoint counts what is refused beside them."""
    held = rows.checkpoint
    return replace(rows, checkpoint=replace(held, refused=held.refused + len(refused)))


@dataclass(frozen=True, slots=True)
class Chosen:
    """Of those rows at `places` of what `origin` is of."""

    origin: Origin
    places: npt.NDArray[np.int64]

    def place(self, row: int) -> str:
        """See `Origin`."""
        return self.origin.place(int(self.places[row]))

    def refused(self, rows: Sequence[int], reasons: Sequence[str], rules: Sequence[str]) -> pa.Table:
        """See `Origin`."""
        return self.origin.refused([int(self.places[row]) for row in rows], reasons, rules)


class Shaping:
    """Of one ingest. `by_spark`: Spark runs the transforms. Ended by `close`."""

    def __init__(self, work: Mapping[str, Any], *, by_spark: bool = False) -> None:
        self._expectations = Expectations.of(work.get("expectations", ()))
        transforms = Transforms.of(work.get("transform", ()), by_spark=by_spark)
        self.chain = Chain(transforms, work["source"].get("columns"))
        self._ratio = float(work.get("maxErrorRatio", 0.0))
        self._database: Database | None = None

    def shaped(self, rows: Rows[H], known: pa.Schema | None, before: tuple[int, int] = (0, 0)) -> Shaped[H]:
        """`before`: messages that this run has read, and those of them that it has refused. Raises
        InvalidDataError for a row that ends the ingest, and for more refused ones than may be."""
        found = self.judged(rows)
        rows = found.rows
        self.check_counts(found.refused, found.messages, before)
        if self.chain.transforms and rows.count:
            # What fails in a row is to fail before a table is made for it.
            made, refused = self._made(rows, known, found.messages)
            rows = replace(rows, schema=made.schema, batches=made.to_reader())
            found = replace(found, refused=pa.concat_tables([found.refused, refused]))
            self.check_counts(found.refused, found.messages, before)
        return replace(found, rows=counting(rows, found.refused))

    def _made(self, rows: Rows[H], known: pa.Schema | None, messages: int) -> tuple[pa.Table, pa.Table]:
        """What the transforms make of rows, and those of the error table that they cannot take."""
        assert rows.refused is not None
        if not self.chain.transforms.sifts:
            return self.chain.apply(rows.batches, known).read_all(), rows.refused.slice(0, 0)
        assert rows.origin is not None
        made, faults = self.chain.sift(rows.batches.read_all(), known, errors_most(messages, self._ratio))
        words = [told_of_fault(fault) for fault in faults.values()]
        return made, rows.origin.refused(list(faults), [why for _, why in words], [rule for rule, _ in words])

    def judged(self, rows: Rows[H]) -> Shaped[H]:
        """Those rows that meet the expectations; the number is that of before. Raises
        InvalidDataError for one that ends the ingest."""
        assert rows.refused is not None
        refused, dropped, messages = rows.refused, 0, rows.taken + len(rows.refused)
        if self._expectations and rows.count:
            table = rows.batches.read_all()
            failures = self._failures(rows, table)
            quarantined = [each for each in failures if each.on_fail is OnFail.QUARANTINE]
            refused = pa.concat_tables([refused, self._refused(rows, quarantined)])
            dropped = len(failures) - len(quarantined)
            kept = np.ones(len(table), bool)
            kept[[each.row for each in failures]] = False
            table = table.filter(pa.array(kept))
            assert rows.origin is not None
            left = Chosen(rows.origin, np.flatnonzero(kept))
            rows = replace(rows, batches=table.to_reader(), origin=left)
        return Shaped(rows, messages, refused, dropped)

    def check_counts(self, refused: pa.Table, messages: int, before: tuple[int, int]) -> None:
        """Raise InvalidDataError where more of the `messages` of a commit are refused than may
        be."""
        self._check_count(refused, messages, "one commit")
        self._check_count(refused, messages, "this run", before)

    def _check_count(self, refused: pa.Table, messages: int, of: str, before: tuple[int, int] = (0, 0)) -> None:
        messages, count = messages + before[0], len(refused) + before[1]
        if len(refused) and count > errors_most(messages, self._ratio):
            first = refused.slice(0, 1).to_pylist()[0]
            raise InvalidDataError(
                f"{count:,} of {messages:,} messages of {of} are refused, more than maxErrorRatio {self._ratio} lets through; the first now: "
                f"{', '.join(f'{name} {first[name]}' for name in _PLACE if name in first)}: {first['reason']}"
            )

    def close(self) -> None:
        """End the databases."""
        self.chain.close()
        if self._database is not None:
            self._database.close()

    def _failures(self, rows: Rows[H], table: pa.Table) -> list[Failure]:
        if self._database is None:
            self._database = Database()
        most = errors_most(rows.count + (len(rows.refused) if rows.refused is not None else 0), self._ratio)
        found = self._expectations.failures(table, self._database, most)
        fatal = [each for each in found if each.on_fail is OnFail.FAIL]
        if fatal and rows.origin is not None:
            more = f", nor do {len(fatal) - 1:,} more" if len(fatal) > 1 else ""
            words = self._expectations.words(fatal[0])
            raise InvalidDataError(f"{rows.origin.place(fatal[0].row)} does not meet {words}{more}")
        return found

    def _refused(self, rows: Rows[H], failures: list[Failure]) -> pa.Table:
        assert rows.origin is not None
        reasons = [f"it does not meet {self._expectations.words(each)}" for each in failures]
        return rows.origin.refused([each.row for each in failures], reasons, [each.name for each in failures])


def told_of_fault(fault: Fault) -> tuple[str, str]:
    """(rule, reason) of a row that a transform cannot take."""
    return f"transform {fault.step + 1}", f"transform {fault.step + 1} cannot take it: {fault.why}"


def refuse_apart(chain: Sequence[Mapping[str, Any]]) -> None:
    """Raise InvalidRequestError for what only one process does, before anything is read."""
    for number, step in enumerate(chain):
        if step.get("onFail") == APART:
            raise InvalidRequestError(
                f"transform {number + 1} has onFail {APART}, and Spark tells no row that a statement fails on: leave it out, or let the engine be Local"
            )
