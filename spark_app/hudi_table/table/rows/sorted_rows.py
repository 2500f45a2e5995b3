"""Rows put in order within a memory budget, and cut into runs of about equal size on disk.

Rows are taken in as they come, on disk past the budget; only then is a sample of all of them known.
What fits is sorted at once; else the rows are dealt into parts of neighbouring keys, each of which
fits. Whatever the budget, the order and the cuts are the same: equal keys stay as they came, and
rows weigh whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_table.codec import large_arrays
from hudi_table.codec.dictionaries import SharedDictionaries
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.parts import PARTS_MAX
from hudi_table.table.rows.row_order import FittedOrder, RowOrder, RowSample
from hudi_table.table.rows.spill import Codes, GroupedRows

PIECE_ROWS = 1 << 14
_WHOLE_MAX = 1 << 30
"""Bytes that are sorted at once at most: Arrow's texts of one column may not take 2 GiB."""
_SHARES = 3
"""Of the budget: rows held, their copy in one piece, and what is being written."""
_UNIT = 1 << 10
"""A weight is in thousandths of a byte, so that it can be a whole number."""


@dataclass(frozen=True, slots=True)
class RowWeights:
    """What rows take on disk: so much each, and so much for each byte of a text, learned from the
    files that they come from."""

    each: int
    texts: Mapping[str, int]

    @classmethod
    def of(cls, rows: int, lengths: Mapping[str, int], sizes: Mapping[str, int]) -> RowWeights:
        """From all rows: their number, the bytes of their texts, and how many bytes each column
        took in files."""
        texts = {name: sizes.get(name, length) * _UNIT // length for name, length in lengths.items() if length}
        fixed = sum(size for name, size in sizes.items() if not lengths.get(name))
        return cls(max(1, fixed * _UNIT // max(1, rows)), texts)

    def weigh(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """The weight of each row."""
        found = np.full(len(rows), self.each, dtype=np.int64)
        for name, weight in self.texts.items():
            lengths = pc.fill_null(pc.binary_length(rows.column(name)), 0)
            found += np.asarray(lengths).astype(np.int64) * weight
        return found


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows that lie together, sorted: row `places[i]` of `rows` is the i-th. `ends[i]` is the
    weight up to and with it."""

    rows: pa.Table
    places: npt.NDArray[np.int64] | None
    ends: npt.NDArray[np.int64]

    def pieces(self, start: int, stop: int) -> Iterator[pa.Table]:
        """The rows whose weight ends after `start` and not after `stop`."""
        low, high = (int(np.searchsorted(self.ends, at, side="right")) for at in (start, stop))
        for first in range(low, high, PIECE_ROWS):
            last = min(high, first + PIECE_ROWS)
            if self.places is None:
                yield self.rows.slice(first, last - first)
            else:
                yield self.rows.take(pa.array(self.places[first:last]))


class SortedRows:
    """Rows of one schema. `add` them all, then `finish`, then `run` gives each of the runs; several
    threads may read runs.

    A context manager: its temporary files go when it ends. `max_bytes` is what it may hold,
    `readers` how many runs are read at once.
    """

    def __init__(self, order: RowOrder, max_bytes: int, readers: int = 1) -> None:
        self._order = order
        self._max_bytes = max(1, max_bytes // _SHARES)
        self._readers = readers
        self._taken = GroupedRows(min(self._max_bytes, _WHOLE_MAX), readers)
        self._dealt: GroupedRows | None = None
        self._sample = RowSample(order.columns)
        self._dictionaries = SharedDictionaries()
        self._lengths: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._schema: pa.Schema | None = None
        self._fitted: FittedOrder | None = None
        self._whole: _Part | None = None
        self._weights = RowWeights(1, {})
        self._totals: list[int] = []
        self.rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._whole = None
        self._taken.close()
        if self._dealt is not None:
            self._dealt.close()

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._taken.spilled_bytes + (self._dealt.spilled_bytes if self._dealt else 0)

    def add(self, table: pa.Table) -> None:
        """Take in the next rows; columns may be dictionaries, in some tables and not in others."""
        self._sample.add(table)
        table = self._dictionaries.encoded(table)
        self._schema = table.schema
        for name, column in zip(table.column_names, table.columns, strict=True):
            self._sizes[name] = self._sizes.get(name, 0) + column.nbytes
            if pt.is_string(column.type) or pt.is_binary(column.type):
                self._lengths[name] = self._lengths.get(name, 0) + (pc.sum(pc.binary_length(column)).as_py() or 0)
        self.rows += len(table)
        for batch in table.combine_chunks().to_batches():
            self._taken.add(batch, np.zeros(len(batch), dtype=np.int32))

    def finish(self, sizes: Mapping[str, int]) -> None:
        """All rows are there; `sizes`: bytes that each column took in the files that they come
        from; empty where nobody knows: then those in memory count."""
        if not self.rows:
            return
        sample = self._sample.table()
        self._fitted = self._order.fitted(sample)
        self._weights = RowWeights.of(self.rows, self._lengths, sizes or self._sizes)
        if not self._taken.spilled_bytes:
            self._whole = self._part(self._taken)
            self._taken.close()
            self._totals = [int(self._whole.ends[-1])]
            return
        self._deal(sample)

    def run(self, number: int, runs: int) -> Iterator[pa.Table]:
        """The rows of the `number`-th of so many runs, in their order; nothing if there are fewer
        rows."""
        ends = [0, *accumulate(self._totals)]
        start, stop = (ends[-1] * at // runs for at in (number, number + 1))
        for code, (low, high) in enumerate(pairwise(ends)):
            if low < stop and high > start:
                part = self._whole or self._part(self._dealt, code)
                for piece in part.pieces(max(start, low) - low, min(stop, high) - low):
                    yield self._dictionaries.decoded(piece)
                if self._whole is None:
                    del part
                    large_arrays.give_back()

    def _deal(self, sample: pa.Table) -> None:
        """Into parts of which each reader can hold one."""
        assert self._fitted is not None
        room = max(1, self._max_bytes // self._readers)
        parts = min(PARTS_MAX, max(2, math.ceil(2 * self._taken.bytes_total / room)), max(2, len(sample)))
        boundaries = self._fitted.boundaries(sample, parts)
        totals = np.zeros(parts, dtype=np.int64)
        self._dealt = GroupedRows(self._max_bytes, self._readers)
        deal = partial(self._coded, self._fitted, boundaries)
        for batch, codes, weights in LocalEngine(self._readers).imap(deal, self._taken.pieces(0)):
            np.add.at(totals, codes, weights)
            self._dealt.add(batch, codes)
        self._taken.close()
        self._totals = totals.tolist()

    def _coded(
        self, fitted: FittedOrder, boundaries: pa.Table, item: tuple[int, Callable[[], pa.RecordBatch]]
    ) -> tuple[pa.RecordBatch, Codes, npt.NDArray[np.int64]]:
        """Some rows, the part and the weight of each."""
        first, batch = item[0], item[1]()
        rows = pa.Table.from_batches([batch])
        return batch, fitted.parts(self._dictionaries.decoded(rows), first, boundaries), self._weights.weigh(rows)

    def _part(self, rows: GroupedRows | None, code: int = 0) -> _Part:
        assert rows is not None
        assert self._fitted is not None
        table = pa.Table.from_batches(list(rows.read(code)), schema=self._schema).combine_chunks()
        places = self._fitted.order(self._dictionaries.decoded(table))
        weights = self._weights.weigh(table)
        return _Part(table, places, np.cumsum(weights if places is None else weights[places]))
