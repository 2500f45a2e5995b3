"""The bytes of a Parquet file that a read needs, asked for before Arrow asks.

Arrow wants one column chunk, waits for it, and then wants the next.

Facts (the Parquet format): a column chunk begins with its dictionary page, if it has one, else with
its first data page, and is as long as its pages are compressed. The footer tells all three.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Range = tuple[int, int]
"""From byte to byte, the second one not included."""
AHEAD_BYTES: Final = 16 << 20
"""Of row groups behind the one that is being read; it itself is asked for as a whole."""
HOLE_MAX: Final = 256 << 10
"""To transfer these takes about as long as another request."""
PART_BYTES: Final = 8 << 20
"""A store sends several parts at once faster than one that is as large as all of them."""


class Fetches(Protocol):
    """A file whose reads may be asked for ahead."""

    def fetch(self, ranges: Sequence[Range], *, piece: int | None = None) -> None:
        """Ask for these at once, without waiting. With `piece` only so many bytes of each; the next
        ones follow when the first are read."""
        ...

    def drop(self, before: int) -> None:
        """Let go of what was asked for and lies before this byte."""
        ...


def groups_ahead(
    source: Fetches,
    metadata: pq.FileMetaData,
    groups: Sequence[int],
    columns: Iterable[str] | None,
    *,
    ahead: int = AHEAD_BYTES,
    piece: int = 0,
) -> Iterator[int]:
    """The row groups, in this order: when one is given, its columns were asked for, and those of
    the groups behind it as far as `ahead` bytes go.

    `piece`: bytes of each column that the reader takes at a time, so that no more are asked for; 0
    if it takes columns as a whole.
    """
    wanted = None if columns is None else frozenset(columns)
    asked: deque[list[Range]] = deque()
    following = 0
    for number, group in enumerate(groups):
        new: list[Range] = []
        while following < len(groups):
            more = chunk_ranges(metadata, groups[following], wanted)
            is_behind = following > number
            if is_behind and (piece or sum(map(_bytes, [*islice(asked, 1, None), more])) > ahead):
                break
            asked.append(more)
            new += more
            following += 1
        if piece:
            source.fetch([found for found in new if found[1] - found[0] > piece], piece=piece)
            new = [found for found in new if found[1] - found[0] <= piece]
        source.fetch(coalesced(new))
        yield group
        source.drop(max((end for _, end in asked.popleft()), default=0))


def _bytes(ranges: Iterable[Range]) -> int:
    return sum(end - start for start, end in ranges)


def chunk_ranges(metadata: pq.FileMetaData, group: int, columns: frozenset[str] | None) -> list[Range]:
    """Where the chunks of these columns (top-level names, or paths; None: all) lie, in the order of
    the columns."""
    found = []
    pages = metadata.row_group(group)
    for number in range(metadata.num_columns):
        chunk = pages.column(number)
        if columns is None or not columns.isdisjoint(_names(chunk.path_in_schema)):
            start = int(chunk.data_page_offset)
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                start = int(chunk.dictionary_page_offset)
            found.append((start, start + int(chunk.total_compressed_size)))
    return found


def _names(path: str) -> Iterator[str]:
    """The path and what is above it. A name may hold dots itself."""
    parts = path.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def coalesced(ranges: Iterable[Range], *, hole: int = HOLE_MAX, part: int = PART_BYTES) -> list[Range]:
    """The ranges in order, as one where no more than `hole` bytes lie between two, and in parts of
    at most `part` bytes."""
    joined: list[list[int]] = []
    for start, end in sorted(ranges):
        if joined and start - joined[-1][1] <= hole:
            joined[-1][1] = max(joined[-1][1], end)
        elif end > start:
            joined.append([start, end])
    return [(at, min(at + part, end)) for start, end in joined for at in range(start, end, part)]
