"""Filters of base files from the metadata table, and key ranges where it has column statistics: a
batch of files in one read of each.

Hudi's option `hoodie.bloom.index.use.metadata`. An entry is found by the file's name, which no
other file ever has. A file without a filter, or with one that cannot be read, is asked for that of
its footer; without a range its filter is asked for every key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa

from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.codec.bounds import values_of
from hudi_table.codec.metadata.keys import bloom_keys, column_stats_keys
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.index.filters import FileFilter, FilterInFooter, Filters, OpenBase
from hudi_table.metadata.reading import PartitionSlices
from hudi_table.metadata.table import UNREADABLE, MetadataTable
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.names import METADATA_TABLE, RECORD_KEY
from hudi_table.table.store import threads
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import BaseFile, FileSlice

FILES_AT_ONCE: Final = 64
"""Base files whose filters are fetched together: 28 MB, where each holds the 60,000 keys that Hudi
sizes it for."""
_BATCHES_KEPT: Final = 2
"""Threads that are at the end of one batch and at the start of the next."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FiltersOfMetadata:
    """Filters and ranges of one listing of the metadata table, fetched by whoever opens files; of
    files that it does not know, the filters of `otherwise`."""

    stored: PartitionSlices
    statistics: PartitionSlices | None
    at_once: int
    otherwise: Filters = field(default_factory=FilterInFooter)

    @classmethod
    def of(cls, ctx: TableContext, timeline: Timeline) -> FiltersOfMetadata | None:
        """For the snapshot `timeline`; None where no filters are ready, or the metadata table
        cannot be read."""
        table = MetadataTable.with_ready(ctx, timeline, MetadataPartition.BLOOM_FILTERS)
        stored = None if table is None else PartitionSlices.of(table, MetadataPartition.BLOOM_FILTERS)
        if table is None or stored is None:
            return None
        ranges = MetadataPartition.COLUMN_STATS
        statistics = PartitionSlices.of(table, ranges) if ranges in table.partitions.ready else None
        return cls(stored, statistics, FILES_AT_ONCE)

    def filters_of(self, slices: Sequence[FileSlice]) -> Callable[[OpenBase], FileFilter]:
        """Filters and ranges are fetched in batches of these slices' order, in which files had
        better be asked for."""
        bases = [item.base for item in slices if item.base is not None]
        otherwise = self.otherwise.filters_of(slices)
        filters = _Batches(bases, self.at_once, partial(_filters, self.stored))
        ranges = None if self.statistics is None else _Batches(bases, self.at_once, partial(_ranges, self.statistics))

        def filter_of(file: OpenBase) -> FileFilter:
            def bloom() -> BloomFilter | None:
                known = _parsed(filters.of(file))
                return otherwise(file).bloom() if known is None else known

            smallest, largest = (None if ranges is None else ranges.of(file)) or (None, None)
            return FileFilter(smallest, largest, bloom)

        return filter_of


def _parsed(entry: Any) -> BloomFilter | None:
    try:
        return None if entry is None else BloomFilter.parse(entry["filter"], entry["type"])
    except (CorruptTableError, UnsupportedTableError):
        return None


class _Batches(Generic[T]):
    """What is stored of each file, of the batches that were asked for last."""

    def __init__(
        self, bases: Sequence[BaseFile], at_once: int, fetch: Callable[[Storage, pa.Array, pa.Array], dict[int, T]]
    ) -> None:
        self._bases, self._at_once, self._fetch = bases, at_once, fetch
        self._places = {base.path: number for number, base in enumerate(bases)}
        self._held: dict[int, dict[int, T]] = {}
        self._lock = threads.lock()

    def of(self, file: OpenBase) -> T | None:
        """What is stored of a file, None if nothing is, or if it cannot be read. Each file is asked
        for once."""
        number, place = divmod(self._places[file.base.path], self._at_once)
        with self._lock:
            if number not in self._held:
                while len(self._held) >= _BATCHES_KEPT:
                    del self._held[next(iter(self._held))]
                self._held[number] = self._fetched(file.storage, number * self._at_once)
            return self._held[number].pop(place, None)

    def _fetched(self, storage: Storage, start: int) -> dict[int, T]:
        bases = self._bases[start : start + self._at_once]
        partitions = pa.array([base.partition for base in bases], pa.string())
        names = pa.array([base.name for base in bases], pa.string())
        try:
            return self._fetch(StorageBelow(storage, METADATA_TABLE), partitions, names)
        except UNREADABLE:
            return {}


def _filters(stored: PartitionSlices, storage: Storage, partitions: pa.Array, names: pa.Array) -> dict[int, Any]:
    """The filter of each file that has one, by its place among `names`."""
    keys = bloom_keys(partitions, names)
    found = stored.read(storage, keys)
    known = dict(zip(found["key"].to_pylist(), found["bloom"].to_pylist(), strict=True))
    entries = enumerate(known.get(key) for key in keys.to_pylist())
    return {place: entry for place, entry in entries if entry is not None and not entry["deleted"]}


def _ranges(
    statistics: PartitionSlices, storage: Storage, partitions: pa.Array, names: pa.Array
) -> dict[int, tuple[str | None, str | None]]:
    """The smallest and the largest key of each file of which they are known, by its place among
    `names`."""
    keys = column_stats_keys(pa.repeat(pa.scalar(RECORD_KEY, pa.string()), len(names)), partitions, names)
    found = statistics.read(storage, keys)
    stats = found["stats"].combine_chunks()
    sides = (values_of(stats.field(side), pa.string()).to_pylist() for side in ("min", "max"))
    known = dict(zip(found["key"].to_pylist(), zip(*sides, strict=True), strict=True))
    return {place: known[key] for place, key in enumerate(keys.to_pylist()) if key in known}
