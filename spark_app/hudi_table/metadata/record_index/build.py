"""The record index of everything that is committed: which keys there are, and in which file group
each one is.

Keys are read slice by slice and dealt out to shards, on disk where they are many; each shard is
then sorted alone. So memory holds the keys of a few batches, and of one shard. Facts (measured on
Hudi 0.15.0 and 1.1.1): a shard is a file group, a key's shard `abs(hash) mod shards`; the entry of
a key that was there before has the instant of its slice. Of an index by partition the rule for the
number of shards counts the keys of each data partition (measured on 1.1.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.metadata.entries import located_entries, locations
from hudi_table.codec.metadata.keys import file_group_index
from hudi_table.codec.parquet import read_footer
from hudi_table.errors import InvalidDataError, ObjectNotFoundError
from hudi_table.model.metadata_table import MetadataPartition, ShardLimits, data_instant, group_file_id
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.rows.spill import GroupedRows
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.table.view.listing import list_data_files, partitions_in

KEYS_BYTES = 256 << 20
"""Keys that are held in memory before they go to disk."""
FOOTERS_AHEAD = 16
_NUMBER = "slice"
_RECORD_INDEX = MetadataPartition.RECORD_INDEX


def shards_needed(ctx: TableContext, timeline: Timeline, limits: ShardLimits) -> dict[str | None, int]:
    """With how many shards an index of the table is built, by the rows of its base files and the
    sizes of its logs: by data partition, or for all of them under None."""
    counts: dict[str | None, int] = dict.fromkeys(
        partitions_in(list_data_files(ctx.storage)) if limits.by_partition else [None], 0
    )
    if limits.least < limits.most:
        slices = FileSystemView(ctx, timeline).latest_slices()
        rows = LocalEngine(FOOTERS_AHEAD).map(lambda item: _rows(ctx, item), slices)
        for item, count in zip(slices, rows, strict=True):
            of = item.partition if limits.by_partition else None
            counts[of] = counts.get(of, 0) + count
    return {of: limits.shards(count) for of, count in counts.items()}


def recorded_shards(
    ctx: TableContext, timeline: Timeline, shards: Mapping[str | None, int], memory_bytes: int = KEYS_BYTES
) -> Iterator[tuple[str, pa.Table]]:
    """(file id, entries sorted by key) of every shard that has any, one after the other. `shards`:
    how many each data partition has, or all of them together under None.

    Raises InvalidDataError if a key is in two file groups where the index has one place for it.
    UnavailableError if a file was cleaned meanwhile.
    """
    slices = FileSystemView(ctx, timeline).latest_slices()
    places = locations([(item.partition, item.file_id, data_instant(item.instant)) for item in slices])
    ids = [group_file_id(_RECORD_INDEX, number, of) for of, count in shards.items() for number in range(count)]
    with GroupedRows(memory_bytes) as dealt:
        _deal(ctx, timeline, slices, shards, dealt)
        for shard in sorted(dealt.rows):
            found = pa.Table.from_batches(dealt.read(shard)).combine_chunks()
            entries = located_entries(found["key"].combine_chunks(), places, found[_NUMBER].combine_chunks())
            _refuse_twice(ctx, entries)
            yield ids[shard], entries


def _deal(
    ctx: TableContext,
    timeline: Timeline,
    slices: Sequence[FileSlice],
    shards: Mapping[str | None, int],
    into: GroupedRows,
) -> None:
    live = LiveKeys(ctx, timeline)
    begins = dict(zip(shards, accumulate(shards.values(), initial=0), strict=False))
    for number, item in enumerate(slices):
        of = None if None in shards else item.partition
        for keys in live.of(ctx.storage, item):
            numbers = pa.repeat(pa.scalar(number, pa.int32()), len(keys))
            batch = pa.RecordBatch.from_arrays([keys, numbers], names=["key", _NUMBER])
            into.add(batch, begins[of] + file_group_index(keys, shards[of]))


def _refuse_twice(ctx: TableContext, entries: pa.Table) -> None:
    keys = entries["key"].combine_chunks()
    same = np.flatnonzero(np.asarray(pc.equal(keys.slice(1), keys.slice(0, max(0, len(keys) - 1)))))
    if not len(same):
        return
    first, second = (entries.slice(int(same[0]) + step, 1)["location"].combine_chunks() for step in (0, 1))
    where = [found.field("partition")[0].as_py() for found in (first, second)]
    apart = (
        f"partitions {where[0]!r} and {where[1]!r}" if where[0] != where[1] else f"two files of partition {where[0]!r}"
    )
    everywhere = " in the whole table, unless it is by partition" if where[0] != where[1] else ""
    raise InvalidDataError(
        f"record key {keys[int(same[0])].as_py()!r} is in {apart}: a record index has one place for a key{everywhere}; make keys "
        "unique, or use another index",
        base_path=ctx.base_path,
    )


def _rows(ctx: TableContext, item: FileSlice) -> int:
    """About how many keys a slice has: rows of its base file, and of its logs as many as have the
    size of such a row."""
    if item.base is None:
        return sum(log.size for log in item.logs) // _LOG_ROW_BYTES
    try:
        with ctx.storage.open_read(item.base.path) as source:
            return read_footer(source, path=item.base.path).rows
    except ObjectNotFoundError:
        return 0


_LOG_ROW_BYTES = 100
