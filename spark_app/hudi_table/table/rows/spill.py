"""Incoming rows, grouped by a small integer, within a memory budget; past it they lie on disk.

Batches are kept as they came, with the order of their rows by group beside them, so that nothing is
copied until a group is read. When the budget is passed, everything held goes to one Arrow IPC file
(lz4) in a temporary folder, one run of batches per group, and the memory is free again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from hudi_table.codec import large_arrays
from hudi_table.errors import InvariantError
from hudi_table.table.engine.local_engine import LocalEngine

T = TypeVar("T")
Codes = npt.NDArray[np.int32]
_FILE_BATCH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class _Held:
    """One batch in memory: rows of group g are `order[starts[g]:stops[g]]`; no `order` if all rows
    are one group's."""

    batch: pa.RecordBatch
    order: npt.NDArray[Any] | None
    ranges: dict[int, tuple[int, int]]

    def read(self, code: int) -> pa.RecordBatch:
        start, stop = self.ranges[code]
        return self.batch if self.order is None else self.batch.take(pa.array(self.order[start:stop]))


@dataclass(frozen=True, slots=True)
class _Run:
    """Batches of one spill file from the `first` on, and how many rows each has."""

    path: Path
    first: int
    rows: tuple[int, ...]

    def batch(self, number: int) -> pa.RecordBatch:
        with pa.OSFile(str(self.path)) as source:
            return pa.ipc.open_file(source).get_batch(self.first + number)


class GroupedRows:
    """Rows by group. Groups are integers from 0; a code of -1 drops the row. All batches have one
    schema.

    A context manager: its temporary files go when it ends. `add` is not for several threads at
    once, `read` is. So many `threads` write to disk, each a file of its own. After `close`, rows
    are neither taken in nor read: InvariantError.
    """

    def __init__(self, max_bytes: int, threads: int = 1) -> None:
        self._max_bytes = max_bytes
        self._threads = threads
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._runs: dict[int, list[_Run]] = {}
        self._folder: Path | None = None
        self._closed = False
        self.rows: dict[int, int] = {}
        self.bytes_total = 0
        self.spilled_bytes = 0

    def __enter__(self) -> GroupedRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Forget the rows and delete the temporary files."""
        self._closed = True
        self._held.clear()
        self._runs.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @property
    def rows_total(self) -> int:
        """Rows of all groups."""
        return sum(self.rows.values())

    def add(self, batch: pa.RecordBatch, codes: Codes) -> None:
        """Take in one batch whose row i belongs to group `codes[i]`."""
        self._refuse_closed()
        if len(batch) == 0:
            return
        held = _arrange(batch, codes)
        if not held.ranges:
            return
        for code, (start, stop) in held.ranges.items():
            self.rows[code] = self.rows.get(code, 0) + stop - start
        size = batch.nbytes
        self._held.append(held)
        self._held_bytes += size
        self.bytes_total += batch.nbytes
        if self._held_bytes > self._max_bytes:
            self._spill()

    def read(self, code: int, start: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows `start` to `stop` of one group, in the order in which they came."""
        end = self.rows.get(code, 0) if stop is None else stop
        at = 0
        for batch in self._batches(code):
            low, high = max(start - at, 0), min(end - at, len(batch))
            at += len(batch)
            if low < high:
                yield batch if (low, high) == (0, len(batch)) else batch.slice(low, high - low)
            if at >= end:
                return

    def pieces(self, code: int) -> Iterator[tuple[int, Callable[[], pa.RecordBatch]]]:
        """The rows of one group in pieces: how many lie before each, and what reads it, in any
        thread."""
        before = 0
        for rows, read in self._readers(code):
            yield before, partial(self._read, read)
            before += rows

    def _readers(self, code: int) -> Iterator[tuple[int, Callable[[], pa.RecordBatch]]]:
        """How many rows each batch of a group has, and what reads it. A close between two of them
        is not the end of the group."""
        self._refuse_closed()
        for run in self._runs.get(code, ()):
            for number, rows in enumerate(run.rows):
                yield rows, partial(run.batch, number)
        for held in self._held:
            if code in held.ranges:
                start, stop = held.ranges[code]
                yield stop - start, partial(held.read, code)
        self._refuse_closed()

    def _read(self, read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch:
        self._refuse_closed()
        return read()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise InvariantError("grouped rows are asked for after they were closed: their rows are gone")

    def _batches(self, code: int) -> Iterator[pa.RecordBatch]:
        return (read() for _, read in self.pieces(code))

    def flush(self) -> None:
        """Put what is held on disk too, if anything is there already."""
        if self._held and self._folder is not None:
            self._spill()

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="hudi-table-"))
        files = len(list(self._folder.iterdir()))
        shares = [(self._folder / f"{files + number}.arrow", *share) for number, share in enumerate(self._shares())]
        for runs in LocalEngine(self._threads).map(self._write_runs, shares):
            for code, run in runs.items():
                self._runs.setdefault(code, []).append(run)
        self.spilled_bytes += self._held_bytes
        self._held = []
        self._held_bytes = 0
        large_arrays.give_back()

    def _shares(self) -> list[tuple[list[int], list[_Held]]]:
        """What each thread writes: some groups of all that is held, or where there are too few
        groups, all of some of it."""
        codes = sorted({code for held in self._held for code in held.ranges})
        if len(codes) >= self._threads:
            return [(share, self._held) for share in _cut(codes, self._threads)]
        return [(codes, share) for share in _cut(self._held, self._threads)]

    def _write_runs(self, share: tuple[Path, list[int], list[_Held]]) -> dict[int, _Run]:
        path, codes, held = share
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        written, size = 0, max(1, min(_FILE_BATCH_BYTES, self._max_bytes // 4) // self._threads)
        runs = {}
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, held[0].batch.schema, options=options) as out:
            for code in codes:
                rows = []
                for batch in joined((some.read(code) for some in held if code in some.ranges), size):
                    out.write_batch(batch)
                    rows.append(len(batch))
                runs[code] = _Run(path, written, tuple(rows))
                written += len(rows)
        return runs


def _cut(items: list[T], pieces: int) -> list[list[T]]:
    size = max(1, -(-len(items) // pieces))
    return [items[start : start + size] for start in range(0, len(items), size)]


def joined(batches: Iterable[pa.RecordBatch], max_bytes: int) -> Iterator[pa.RecordBatch]:
    """The batches, small ones joined until they have about so many bytes."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if pending and size + batch.nbytes > max_bytes:
            yield _one(pending)
            pending, size = [], 0
        pending.append(batch)
        size += batch.nbytes
    if pending:
        yield _one(pending)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _arrange(batch: pa.RecordBatch, codes: Codes) -> _Held:
    low, high = int(codes.min()), int(codes.max())
    if low == high:
        return _Held(batch, None, {low: (0, len(batch))} if low >= 0 else {})
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    narrow = codes.astype(np.int16) if high < 2**15 else codes
    order = np.argsort(narrow, kind="stable")
    arranged = codes[order]
    firsts = np.flatnonzero(np.r_[True, arranged[1:] != arranged[:-1]])
    ends = np.r_[firsts[1:], len(arranged)]
    ranges = {int(arranged[a]): (int(a), int(b)) for a, b in zip(firsts, ends, strict=True) if arranged[a] >= 0}
    return _Held(batch, order.astype(np.int32) if len(batch) < 2**31 else order, ranges)
