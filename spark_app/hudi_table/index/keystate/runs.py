"""Sorted runs of entries (mark of a key, number of a file group), the newest last, as a
log-structured merge tree has them.

A run never changes. A large one lies in files, mapped into memory: the system pages them in and
out. They have no name, so that the system frees them with the process, however it ends; those of a
folder that outlives it have one. Two runs are merged piece by piece, so that memory holds a piece
of each.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
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
_COLUMNS: Final[tuple[tuple[str, Any], ...]] = ((".high", np.uint64), (".low", np.uint64), (".number", np.uint32))
SUFFIXES: Final = tuple(suffix for suffix, _ in _COLUMNS)


@dataclass(frozen=True, slots=True)
class Named:
    """Where a run lies that outlives the process: a file for each column, `stem` with its suffix,
    and the checksum of each."""

    stem: Path
    checksums: tuple[str, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """The file of each column."""
        return tuple(self.stem.with_suffix(suffix) for suffix in SUFFIXES)

    @property
    def is_there(self) -> bool:
        """Whether nobody has removed one."""
        return all(path.is_file() for path in self.files)


@dataclass(frozen=True, slots=True)
class Run:
    """Entries in the order of their marks' high halves. No two have the same mark and number."""

    marks: Marks
    numbers: Numbers
    named: Named | None = None

    @classmethod
    def of(cls, marks: Marks, numbers: Numbers, folder: Path | None = None) -> Run:
        """A run of entries in any order; of equal ones the first stays. A large one lies in the
        folder, if there is one."""
        return _stored([_sorted(marks, numbers)], len(marks), folder)

    @classmethod
    def read(cls, named: Named, count: int) -> Run | None:
        """The run of so many entries in these files; None if one is not what was written."""
        columns = []
        for path, (_, kind), checksum in zip(named.files, _COLUMNS, named.checksums, strict=True):
            if not path.is_file() or path.stat().st_size != count * np.dtype(kind).itemsize:
                return None
            column: npt.NDArray[Any] = np.memmap(path, kind, mode="r") if count else np.empty(0, kind)
            if _checksum(column) != checksum:
                return None
            columns.append(column)
        return cls(Marks(columns[0], columns[1]), columns[2], named)

    def within(self, folder: Path) -> Run:
        """The same run in files of a folder."""
        if self.named is not None and self.named.stem.parent == folder and self.named.is_there:
            return self
        return _in_files([(self.marks, self.numbers)], folder)

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


def merged(older: Run, newer: Run, alive: Flags, folder: Path | None = None, *, last: bool) -> Run:
    """Both runs as one, without what is not alive. `last`: nothing is older, so that nothing is
    left that an entry could take back."""
    return _stored(_pieces(older, newer, alive, last=last), len(older) + len(newer), folder)


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


def _stored(pieces: Any, most: int, folder: Path | None) -> Run:
    """The run of these pieces, of `most` entries or fewer. Raises OSError where the disk is
    full."""
    if most > HELD_ENTRIES:
        return _in_files(pieces, folder)
    found = list(pieces)
    numbers = np.concatenate([np.empty(0, np.uint32), *(part for _, part in found)])
    return Run(Marks.joined([part for part, _ in found]), numbers)


def _in_files(pieces: Any, folder: Path | None) -> Run:
    """In files without a name, or with one in the folder."""
    stem = None if folder is None else folder / secrets.token_hex(16)
    sums = [blake2b(digest_size=32) for _ in _COLUMNS]
    with ExitStack() as opened:
        files = [opened.enter_context(_new_file(stem, suffix)) for suffix in SUFFIXES]
        for marks, numbers in pieces:
            for file, total, column in zip(files, sums, (marks.high, marks.low, numbers), strict=True):
                file.write(column)
                if stem is not None:
                    total.update(np.ascontiguousarray(column).data)
        columns = [_mapped(file, kind) for file, (_, kind) in zip(files, _COLUMNS, strict=True)]
    named = None if stem is None else Named(stem, tuple(total.hexdigest() for total in sums))
    return Run(Marks(columns[0], columns[1]), columns[2], named)


def _new_file(stem: Path | None, suffix: str) -> Any:
    if stem is None:
        return tempfile.TemporaryFile(prefix="hudi-key-state-")
    return open(f"{stem}{suffix}", "xb+", opener=private)


def private(path: str, flags: int) -> int:
    """Opens a file; a new one is for this user alone."""
    return os.open(path, flags, 0o600)


def _mapped(file: Any, kind: Any) -> npt.NDArray[Any]:
    """The file's content as a column, which stays when the file is closed."""
    file.flush()
    if file.tell() == 0:
        return np.empty(0, kind)
    column: npt.NDArray[Any] = np.memmap(file, kind, mode="r")
    return column


def _checksum(column: npt.NDArray[Any]) -> str:
    return blake2b(column.data, digest_size=32).hexdigest()
