"""An object of a store as a file of Arrow.

It is a module of its own because it needs pyarrow, and who only lists does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_table.table.store.ranges.column_chunks import groups_ahead
from hudi_table.table.store.ranges.ranged_reads import RangeFile

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class ObjectFile(pa.PythonFile):  # type: ignore[misc]
    """A random access file, for Arrow to read; what is read next can be asked for before."""

    def __init__(self, ranges: RangeFile) -> None:
        self._ranges = ranges

    def fetch(self, ranges: Sequence[tuple[int, int]], *, piece: int | None = None) -> None:
        """See `RangeFile.fetch`."""
        self._ranges.fetch(ranges, piece=piece)

    def drop(self, before: int) -> None:
        """See `RangeFile.drop`."""
        self._ranges.drop(before)

    def groups_ahead(
        self, metadata: pq.FileMetaData, groups: Sequence[int], columns: Iterable[str] | None, *, piece: int = 0
    ) -> Iterator[int]:
        """See `column_chunks.groups_ahead`."""
        return groups_ahead(self, metadata, groups, columns, piece=piece)
