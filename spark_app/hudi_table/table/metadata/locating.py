"""What a commit says to the record index: in which file group the keys are that it wrote, and which keys are gone.

Facts (measured on Hudi 0.15.0): an entry is the key's partition and file id; removals are delete blocks. Hudi tells inserted keys
alone; here updated ones are told again, which changes nothing. A key that is told and gone in one commit has moved, and is told.

A delete in a log may leave the row if event time decides, so there the entry stays: one of a key that is gone sends the next
row of that key to a file group that does not hold it, which is right for every merge. Only replaced groups must not be left.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.log_blocks import BlockType, scan_blocks
from hudi_table.codec.log_rows import read_deletes, read_rows
from hudi_table.codec.metadata_entries import record_index_entries
from hudi_table.codec.metadata_records import METADATA_SCHEMA
from hudi_table.codec.parquet import read_batches
from hudi_table.errors import CorruptTableError
from hudi_table.model.commits import CommitMetadata, WriteStat
from hudi_table.model.names import COMMIT_TIME, RECORD_KEY, parse_base_file, parse_log_file
from hudi_table.model.table_config import MergeMode
from hudi_table.table.context import TableContext
from hudi_table.table.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.metadata.merging import latest
from hudi_table.table.metadata.records import Entries
from hudi_table.table.timeline import Timeline
from hudi_table.table.view import FileSlice, FileSystemView

CLUSTER = "CLUSTER"
_REWRITES = frozenset({"COMPACT", "LOG_COMPACT"})
"""Operations that move no key."""


def locations_of(ctx: TableContext, metadata: CommitMetadata, time: str, timeline: Timeline) -> Entries | None:
    """What the commit of the instant `time`, whose snapshot was `timeline`, says to the record index; None if nothing.

    Raises CorruptTableError if a file that it was made of is not there.
    """
    if metadata.compacted or metadata.operation_type in _REWRITES:
        return None
    told = [_told(ctx, stat, time, whole=metadata.operation_type == CLUSTER) for stat in metadata.stats]
    gone = [keys for stat in metadata.stats for keys in _gone(ctx, stat)]
    if metadata.operation_type != CLUSTER:
        gone += _replaced(ctx, metadata, timeline)
    rows = latest([_nothing(), *told])
    deleted = pa.chunked_array(gone, pa.string()).combine_chunks().unique() if gone else pa.array([], pa.string())
    deleted = deleted.filter(pc.invert(pc.is_in(deleted, rows["key"].combine_chunks())))
    if not len(rows) and not len(deleted):
        return None
    return Entries(rows.combine_chunks(), deleted.take(pc.sort_indices(deleted)))


def _nothing() -> pa.Table:
    fields = [pa.field("key", pa.string()), METADATA_SCHEMA.field("type"), METADATA_SCHEMA.field("location")]
    return pa.schema(fields).empty_table()


def _told(ctx: TableContext, stat: WriteStat, time: str, *, whole: bool) -> pa.Table:
    """The locations of the rows that a file got by this commit, or of all of its rows."""
    if parse_base_file(stat.path.rpartition("/")[2]) is not None:
        keys = _base_keys(ctx, stat.path, None if whole else time)
    else:
        keys = _log_keys(ctx, stat.path, deleted=False)
    found = record_index_entries(keys, stat.partition_path, stat.file_id, time)
    return found.cast(_nothing().schema)


def _gone(ctx: TableContext, stat: WriteStat) -> Iterator[pa.Array]:
    """The keys that a file lost."""
    if not stat.num_deletes:
        return
    name = parse_base_file(stat.path.rpartition("/")[2])
    if name is None:
        if ctx.config.merge_mode is MergeMode.COMMIT_TIME:
            yield _log_keys(ctx, stat.path, deleted=True)
        return
    before = _base_keys(ctx, _path_before(ctx, stat), None)
    yield before.filter(pc.invert(pc.is_in(before, _base_keys(ctx, stat.path, None))))


def _path_before(ctx: TableContext, stat: WriteStat) -> str:
    """The base file that this one was made of."""
    _, infos = ctx.storage.list_dir(stat.partition_path)
    for info in infos:
        found = parse_base_file(info.path.rpartition("/")[2])
        if found is not None and (found.file_id, found.instant) == (stat.file_id, stat.prev_commit):
            return info.path
    raise CorruptTableError(
        f"the base file of {stat.prev_commit} that {stat.path} was made of is gone: which keys it held is not known",
        base_path=ctx.base_path,
    )


def _replaced(ctx: TableContext, metadata: CommitMetadata, timeline: Timeline) -> list[pa.Array]:
    """The keys of groups that the commit hides."""
    hidden = {(partition, file_id) for partition, ids in (metadata.replaced or {}).items() for file_id in ids}
    if not hidden:
        return []
    visible = VisibleInstants.of(timeline)
    partitions = sorted({partition for partition, _ in hidden})
    slices = FileSystemView(ctx, timeline).latest_slices(partitions)
    return [_slice_keys(ctx, item, visible) for item in slices if (item.partition, item.file_id) in hidden]


def _slice_keys(ctx: TableContext, item: FileSlice, visible: VisibleInstants) -> pa.Array:
    found = [] if item.base is None else [_base_keys(ctx, item.base.path, None)]
    for block in slice_blocks(ctx.storage, item.logs, visible):
        if block.type is not BlockType.DELETE:
            with ctx.storage.open_read(block.path) as source:
                found.append(_texts(read_rows(source, block, [RECORD_KEY])[RECORD_KEY]))
    return pa.chunked_array(found, pa.string()).combine_chunks()


def _base_keys(ctx: TableContext, path: str, time: str | None) -> pa.Array:
    """The keys of a base file's rows, or of those that the instant `time` wrote."""
    found = []
    with ctx.storage.open_read(path) as source:
        for batch in read_batches(source, [RECORD_KEY, COMMIT_TIME] if time else [RECORD_KEY], path=path):
            keys = batch.column(RECORD_KEY)
            found.append(keys if time is None else keys.filter(pc.equal(batch.column(COMMIT_TIME), time)))
    return _texts(pa.chunked_array(found, pa.string()))


def _log_keys(ctx: TableContext, path: str, *, deleted: bool) -> pa.Array:
    """The keys of a log's rows, or of its delete blocks."""
    found = []
    with ctx.storage.open_read(path) as source:
        for block in scan_blocks(source, path=path):
            if block.type is BlockType.DELETE and deleted:
                found.append(read_deletes(source, block).keys)
            elif block.type in (BlockType.AVRO, BlockType.PARQUET) and not deleted:
                found.append(_texts(read_rows(source, block, [RECORD_KEY])[RECORD_KEY]))
    assert parse_log_file(path.rpartition("/")[2]) is not None
    return pa.chunked_array(found, pa.string()).combine_chunks()


def _texts(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return whole.cast(pa.string())
