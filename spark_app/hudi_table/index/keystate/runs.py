"""Sorted runs of entries (mark of a key, number of a file group), the newest last, as a
log-structured merge tree has them.

A run never changes. A large one lies in files without a name, mapped into memory: the system pages
them in and out, and frees them with the process, however it ends. Two runs are merged piece by
piece, so that memory holds a piece of each.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hudi_table.index.keystate.marks import Marks

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]

GONE: Final = np.uint32(1 << 31)
"""This bit of an entry's number takes older entries of the same mark and number back."""
HELD_ENTRIES: Final = 1 << 16
"""A run of so many entries stays in memory."""
PIECE_ENTRIES: Final = 1 << 20
"""How many entries of a run are merged at once."""


@dataclass(frozen=True, slots=True)
class Run:
    """Entries in the order of their marks' high halves. No two have the same mark and number."""

    marks: Marks
    numbers: Numbers

    @classmethod
    def of(cls, marks: Marks, numbers: Numbers) -> Run:
        """A run of entries in any order; of equal ones the first stays."""
        return _stored([_sorted(marks, numbers)], len(marks))

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Found:
    """Entries of marks that were looked for: `rows` are positions among these."""

    rows: Places
    numbers: Numbers


def find(runs: list[Run], marks: Marks, alive: Flags) -> Found:
    """The entries of these marks whose number is alive and that no newer one takes back."""
    order = np.argsort(marks.high, kind="stable").astype(np.int64)
    wanted = marks.take(order)
    rows: list[Places] = [np.empty(0, np.int64)]
    numbers: list[Numbers] = [np.empty(0, np.uint32)]
    for run in reversed(runs):
        first = np.searchsorted(run.marks.high, wanted.high, "left")
        counts = np.searchsorted(run.marks.high, wanted.high, "right") - first
        row = np.repeat(np.arange(len(wanted)), counts)
        place = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(len(row))
        number = run.numbers[place]
        counts_too = (run.marks.low[place] == wanted.low[row]) & alive[number & ~GONE]
        rows.append(order[row[counts_too]])
        numbers.append(number[counts_too])
    return _newest(np.concatenate(rows), np.concatenate(numbers))


def _newest(rows: Places, numbers: Numbers) -> Found:
    """Of the entries of one row and number the first, unless it takes them back."""
    _, first = np.unique(rows << 31 | (numbers & ~GONE), return_index=True)
    rows, numbers = rows[first], numbers[first]
    stay = (numbers & GONE) == 0
    return Found(rows[stay], numbers[stay])


def merged(older: Run, newer: Run, alive: Flags, *, last: bool) -> Run:
    """Both runs as one, without what is not alive. `last`: nothing is older, so that nothing is
    left that an entry could take back."""
    return _stored(_pieces(older, newer, alive, last=last), len(older) + len(newer))


def _pieces(older: Run, newer: Run, alive: Flags, *, last: bool) -> Iterator[tuple[Marks, Numbers]]:
    begins = (0, 0)
    while begins != (len(older), len(newer)):
        ends = _ends(older, newer, begins)
        marks = Marks.joined(
            [
                Marks(run.marks.high[begin:end], run.marks.low[begin:end])
                for run, begin, end in zip((newer, older), reversed(begins), reversed(ends), strict=True)
            ]
        )
        numbers = np.concatenate([newer.numbers[begins[1] : ends[1]], older.numbers[begins[0] : ends[0]]])
        begins = ends
        counts = alive[numbers & ~GONE]
        marks, numbers = _sorted(marks.take(counts), numbers[counts])
        if last:
            stay = (numbers & GONE) == 0
            marks, numbers = marks.take(stay), numbers[stay]
        yield marks, numbers


def _ends(older: Run, newer: Run, begins: tuple[int, int]) -> tuple[int, int]:
    """Where the next piece ends in both: behind all entries of one mark's high half."""
    begin = tuple(zip((older, newer), begins, strict=True))
    far = [run.marks.high[at + PIECE_ENTRIES - 1] for run, at in begin if at + PIECE_ENTRIES <= len(run)]
    if not far:
        return len(older), len(newer)
    end = min(far)
    return tuple(int(np.searchsorted(run.marks.high, end, "right")) for run in (older, newer))  # type: ignore[return-value]


def _sorted(marks: Marks, numbers: Numbers) -> tuple[Marks, Numbers]:
    """In order; of entries of one mark and number the first."""
    order = np.argsort(marks.high, kind="stable")
    marks, numbers = marks.take(order), numbers[order]
    same = marks.high[1:] == marks.high[:-1]
    doubted = np.flatnonzero(np.r_[False, same] | np.r_[same, False]) if len(same) else np.empty(0, np.int64)
    if not len(doubted):
        return marks, numbers
    plain = numbers[doubted] & ~GONE
    sorting = np.lexsort((doubted, plain, marks.low[doubted], marks.high[doubted]))
    of_one = [column[sorting] for column in (marks.high[doubted], marks.low[doubted], plain)]
    again = np.r_[False, np.logical_and.reduce([column[1:] == column[:-1] for column in of_one])]
    kept = np.ones(len(numbers), bool)
    kept[doubted[sorting[again]]] = False
    return marks.take(kept), numbers[kept]


def _stored(pieces: Any, most: int) -> Run:
    """The run of these pieces, of `most` entries or fewer. Raises OSError where the disk is
    full."""
    if most <= HELD_ENTRIES:
        found = list(pieces)
        numbers = np.concatenate([np.empty(0, np.uint32), *(part for _, part in found)])
        return Run(Marks.joined([part for part, _ in found]), numbers)
    with (
        tempfile.TemporaryFile(prefix="hudi-key-state-") as high,
        tempfile.TemporaryFile(prefix="hudi-key-state-") as low,
        tempfile.TemporaryFile(prefix="hudi-key-state-") as number,
    ):
        for marks, numbers in pieces:
            for file, column in ((high, marks.high), (low, marks.low), (number, numbers)):
                file.write(column)
        columns = [_mapped(file, kind) for file, kind in ((high, np.uint64), (low, np.uint64), (number, np.uint32))]
    return Run(Marks(columns[0], columns[1]), columns[2])


def _mapped(file: Any, kind: Any) -> npt.NDArray[Any]:
    """The file's content as a column, which stays when the file is closed."""
    file.flush()
    if file.tell() == 0:
        return np.empty(0, kind)
    column: npt.NDArray[Any] = np.memmap(file, kind, mode="r")
    return column
