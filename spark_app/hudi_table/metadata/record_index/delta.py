"""What a commit says to the record index: in which file group the keys are that it wrote, and which
keys are gone.

Facts (measured on Hudi 0.15.0): an entry is the key's partition and file id; removals are delete
blocks. Hudi tells inserted keys alone; here updated ones are recorded again, which changes nothing.
A key that is recorded and gone in one commit has moved, and is recorded.

A delete in a log that has an ordering value may leave the row, so its file group is merged, and the
entry stays where the row does. Hudi 1.1.1 removes the entry of a key that a flagged delete takes,
too, and relies on that: its clustering leaves entries of keys without a row as they are, and its
next row of such a key goes to the group that was replaced, where nobody sees it
(`tests/interop/test_record_index.py`). So no entry may name a replaced group.

Inserts look no key up, and indexes that are not global only in one partition. A key that is in
another file group already would be in two, and the index has one place for it: nothing would follow
from it any more, so it ends with that commit. An index by partition has one in each partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.log.blocks import BlockType, LogBlock, scan_blocks
from hudi_table.codec.log.rows import DeletedKeys, read_deletes, read_rows
from hudi_table.codec.metadata.entries import record_index_entries
from hudi_table.codec.metadata.records import METADATA_SCHEMA
from hudi_table.codec.parquet import read_batches
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.metadata.merging import latest
from hudi_table.metadata.reading import GROUPS_AHEAD
from hudi_table.metadata.record_index.lookup import Located, RecordShards
from hudi_table.metadata.records import Entries
from hudi_table.model.names import COMMIT_TIME, RECORD_KEY, parse_base_file, parse_log_file
from hudi_table.model.table.config import TableConfig, TableType
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.rows.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import schema_behind
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import LogFile, written_logs
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView

CLUSTER = "CLUSTER"
_UPSERT = "UPSERT"
_INSERTS = frozenset({"INSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})
"""Operations that look no key up."""
_REWRITES = frozenset({"COMPACT", "LOG_COMPACT"})
"""Operations that move no key."""


Lost: TypeAlias = tuple[tuple[str, str], pa.Array]
"""A file group, (partition, file id), and record keys that it has no more."""


def locations_of(
    ctx: TableContext, metadata: CommitMetadata, time: str, timeline: Timeline, *, by_partition: bool
) -> list[Entries]:
    """What the commit of the instant `time`, whose snapshot was `timeline`, says to the record
    index; of one by partition, to each data partition that it writes to, which must have shards
    then even if no key is recorded.

    Raises CorruptTableError if a file that it was made of is not there, UnsupportedTableError if a
    key is in two file groups then.
    """
    doubles = False
    if metadata.compacted or metadata.operation_type in _REWRITES:
        locations, lost = [_nothing() for _ in metadata.stats], list(_compacted(ctx, metadata, timeline))
        if not any(len(keys) for _, keys in lost):
            return []
    else:
        whole = metadata.operation_type == CLUSTER
        locations = [_row_locations(ctx, stat, time, whole=whole) for stat in metadata.stats]
        lost = [part for stat in metadata.stats for part in _gone(ctx, stat)]
        lost += _taken(ctx, metadata, time, timeline)
        if not whole or _leaves(ctx.config):
            lost += _replaced(ctx, metadata, timeline)
        doubles = _may_double(ctx.config, metadata.operation_type, by_partition=by_partition)
    shards = RecordShards.load(ctx, timeline) if lost or doubles else None
    written = sorted({stat.partition_path for stat in metadata.stats})
    view = FileSystemView(ctx, timeline)
    slices = view.latest_slices(written if by_partition else None) if doubles and shards is not None else []
    said = _Said(ctx, metadata, timeline, shards, slices, locations, lost)
    if not by_partition:
        found = said.entries(None, doubles=doubles)
        return [found] if len(found.rows) or len(found.deleted) else []
    partitions = sorted({*written, *(partition for (partition, _), _ in lost)})
    return LocalEngine(GROUPS_AHEAD).map(lambda partition: said.entries(partition, doubles=doubles), partitions)


@dataclass(frozen=True, slots=True)
class _Said:
    """What the files of a commit got (`locations`, one for each write stat) and lost, to be said
    where keys are unique. `slices`: those of its snapshot, in the partitions that it writes to at
    least, where a key may be in two file groups now."""

    ctx: TableContext
    metadata: CommitMetadata
    timeline: Timeline
    shards: RecordShards | None
    slices: Sequence[FileSlice]
    locations: list[pa.Table]
    lost: list[Lost]

    def entries(self, of: str | None, *, doubles: bool) -> Entries:
        """That of a data partition, or of all of them together. `doubles`: a key may be in two file
        groups now."""
        pairs = [
            (stat, part)
            for stat, part in zip(self.metadata.stats, self.locations, strict=True)
            if of in (None, stat.partition_path)
        ]
        lost = [(group, keys) for group, keys in self.lost if of in (None, group[0])]
        deleted = _no_more(self.ctx, lost, self.shards)
        if doubles:
            groups = [(stat.partition_path, stat.file_id) for stat, _ in pairs]
            self._refuse_twice(groups, [part for _, part in pairs], deleted, of)
        rows = latest([_nothing(), *(part for _, part in pairs)])
        deleted = deleted.filter(pc.invert(pc.is_in(deleted, rows["key"].combine_chunks())))
        return Entries(rows.combine_chunks(), deleted.take(pc.sort_indices(deleted)), of)

    def _refuse_twice(
        self, of_stats: list[tuple[str, str]], locations: list[pa.Table], gone: pa.Array, of: str | None
    ) -> None:
        """Raise UnsupportedTableError if a key of `locations` of the file group `of_stats` is in
        another one too, of this commit or of its snapshot, and not `gone` there."""
        groups = list(dict.fromkeys(of_stats))
        number = {group: position for position, group in enumerate(groups)}
        keys = pa.chunked_array([part["key"].combine_chunks() for part in locations], pa.string()).combine_chunks()
        mine = np.repeat([number[group] for group in of_stats], [len(part) for part in locations]).astype(np.int64)
        both = pa.table({"key": keys, "group": mine}).group_by("key").aggregate([("group", "min"), ("group", "max")])
        twice = both.filter(pc.not_equal(both["group_min"], both["group_max"]))["key"].combine_chunks()
        if self.shards is not None and not len(twice):
            hidden = set(self.metadata.replaced_groups)
            scoped = (item for item in self.slices if of in (None, item.partition))
            kept = [item for item in scoped if (item.partition, item.file_id) not in hidden]
            places = {(item.partition, item.file_id): number for number, item in enumerate(kept)}
            own = np.array([places.get(group, -1) for group in groups], dtype=np.int64)[mine]
            twice = _elsewhere(
                self.ctx, kept, self.shards.find(self.ctx.storage, keys, _paths(groups, mine)), keys, own, self.timeline
            )
            twice = twice.filter(pc.invert(pc.is_in(twice, value_set=gone)))
        if len(twice):
            raise UnsupportedTableError(
                f"record key {twice[0].as_py()!r} was written and is in two file groups now, and a record index has one place for it: delete "
                "one of the rows, and build it again",
                base_path=self.ctx.base_path,
            )


def _may_double(config: TableConfig, operation: str, *, by_partition: bool) -> bool:
    """Whether an operation may write a key that another file group holds, of its partition in an
    index that is `by_partition`."""
    per_partition = bool(config.partition_by) and not (config.index is not None and config.index.type.is_global)
    return operation in _INSERTS or (operation == _UPSERT and per_partition and not by_partition)


def _elsewhere(
    ctx: TableContext,
    slices: list[FileSlice],
    located: Located,
    keys: pa.Array,
    own: npt.NDArray[np.int64],
    timeline: Timeline,
) -> pa.Array:
    """Those of the keys that a slice holds which is not their own; `own[i]` is the position of the
    slice of key i, -1 for a new one.

    The index may tell of a key that its file group has lost, so the group is asked.
    """
    codes = located.among(slices)
    known = np.asarray(codes.is_valid())
    rows, found = located.rows[known], codes.drop_null().to_numpy().astype(np.int64)
    apart = own[rows] != found
    rows, found = rows[apart], found[apart]
    live, doubled = LiveKeys(ctx, timeline), []
    for number in np.unique(found).tolist():
        wanted = keys.take(pa.array(rows[found == number]))
        for stored in live.of(ctx.storage, slices[number]):
            both = wanted.filter(pc.is_in(wanted, value_set=stored))
            if len(both):
                doubled.append(both)
    return pa.chunked_array(doubled, pa.string()).combine_chunks()


def _nothing() -> pa.Table:
    fields = [pa.field("key", pa.string()), METADATA_SCHEMA.field("type"), METADATA_SCHEMA.field("location")]
    return pa.schema(fields).empty_table()


def _row_locations(ctx: TableContext, stat: WriteStat, time: str, *, whole: bool) -> pa.Table:
    """The locations of the rows that a file got by this commit, or of all of its rows."""
    if parse_base_file(stat.path.rpartition("/")[2]) is not None:
        keys = _base_keys(ctx, stat.path, None if whole else time)
    else:
        keys = _log_keys(ctx, stat.path)
    found = record_index_entries(keys, stat.partition_path, stat.file_id, time)
    return found.cast(_nothing().schema)


def _gone(ctx: TableContext, stat: WriteStat) -> Iterator[Lost]:
    """The keys that a base file lost."""
    if not stat.num_deletes or parse_base_file(stat.path.rpartition("/")[2]) is None:
        return
    before = _base_keys(ctx, _path_before(ctx, stat), None)
    yield (
        (stat.partition_path, stat.file_id),
        before.filter(pc.invert(pc.is_in(before, _base_keys(ctx, stat.path, None)))),
    )


def _taken(ctx: TableContext, metadata: CommitMetadata, time: str, timeline: Timeline) -> list[Lost]:
    """The keys that deletes in logs took. Where one may leave the row, its file group is merged."""
    logs, engine = written_logs(metadata.stats), LocalEngine(GROUPS_AHEAD)
    groups = sorted({(stat.partition_path, stat.file_id) for stat in metadata.stats if stat.num_deletes} & logs.keys())
    deletes = dict(zip(groups, engine.map(lambda group: _deletes(ctx, logs[group]), groups), strict=True))
    doubtful = {group for group, (_, ordered) in deletes.items() if ordered and _leaves(ctx.config)}
    if not doubtful:
        return [(group, keys) for group, (keys, _) in deletes.items()]
    slices = FileSystemView(ctx, timeline).latest_slices(sorted({partition for partition, _ in doubtful}))
    before = {(item.partition, item.file_id): item for item in slices}
    live = LiveKeys(ctx, timeline, schema=schema_behind(ctx, metadata, timeline)).after(time)

    def taken(group: tuple[str, str]) -> Lost:
        keys, _ = deletes[group]
        item = before.get(group) if group in doubtful else None
        if item is not None:
            for seen in live.of(ctx.storage, replace(item, logs=(*item.logs, *logs[group]))):
                keys = keys.filter(pc.invert(pc.is_in(keys, value_set=seen)))
        return group, keys

    return engine.map(taken, groups)


def _deletes(ctx: TableContext, logs: Iterable[LogFile]) -> tuple[pa.Array, bool]:
    """The keys of the deletes in logs, and whether any has an ordering value."""
    blocks = [block for log in logs for block in _blocks(ctx, log.path) if block.type is BlockType.DELETE]
    found = [_of_block(ctx, block) for block in blocks]
    keys = pa.chunked_array([each.keys for each in found], pa.string()).combine_chunks()
    return keys, any(each.ordering.null_count < len(each.keys) for each in found)


def _leaves(config: TableConfig) -> bool:
    """Whether a flagged delete in a log may leave the row: by commit time too in version 6, whose
    log entries compare their ordering values."""
    later = config.later_merge
    compared = config.ordering_fields if later is None else later.ordering
    return config.type is TableType.MERGE_ON_READ and bool(compared)


def _compacted(ctx: TableContext, metadata: CommitMetadata, timeline: Timeline) -> Iterator[Lost]:
    """The keys of deletes that a compaction has merged, and of which no row is left."""
    if not _leaves(ctx.config):
        return
    groups = {
        (stat.partition_path, stat.file_id): stat.path
        for stat in metadata.stats
        if parse_base_file(stat.path.rpartition("/")[2]) is not None
    }
    visible = VisibleInstants.of(timeline)
    for item in FileSystemView(ctx, timeline).latest_slices(sorted({partition for partition, _ in groups})):
        path = groups.get((item.partition, item.file_id))
        blocks = list(slice_blocks(ctx.storage, item.logs, visible)) if path is not None else []
        deletes = [block for block in blocks if block.type is BlockType.DELETE]
        if path is None or not deletes:
            continue
        keys = pa.chunked_array([_of_block(ctx, block).keys for block in deletes], pa.string()).combine_chunks()
        # A log that the compaction leaves out may hold a row that came back.
        rows = [_block_keys(ctx, block) for block in blocks if block.type is not BlockType.DELETE]
        there = pa.chunked_array([*rows, _base_keys(ctx, path, None)], pa.string()).combine_chunks()
        yield (item.partition, item.file_id), keys.filter(pc.invert(pc.is_in(keys, there)))


def _no_more(ctx: TableContext, lost: list[Lost], shards: RecordShards | None) -> pa.Array:
    """The keys that are nowhere any more: those that a file group lost which the index has for
    them.

    A log or a replaced group may name a key that has moved away before, and lives on elsewhere.
    While the index is being built it cannot be asked.
    """
    keys = pa.chunked_array([part for _, part in lost], pa.string()).combine_chunks()
    if shards is None or not len(keys):
        return keys.unique()
    names = pa.array([f"{file_id}/{partition}" for (partition, file_id), _ in lost], pa.string())
    numbers = np.repeat(np.arange(len(lost)), [len(part) for _, part in lost])
    own = names.take(pa.array(numbers))
    located = shards.find(ctx.storage, keys, _paths([group for group, _ in lost], numbers))
    there = pc.equal(located.names, own.take(pa.array(located.rows)))
    return keys.take(pa.array(located.rows)).filter(there).unique()


def _paths(groups: Sequence[tuple[str, str]], numbers: npt.NDArray[np.int64]) -> pa.DictionaryArray:
    """The partition of each key's file group, whose position in `groups` is given."""
    partitions = pa.array([partition for partition, _ in groups], pa.string())
    return partitions.take(pa.array(numbers)).dictionary_encode()


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


def _replaced(ctx: TableContext, metadata: CommitMetadata, timeline: Timeline) -> list[Lost]:
    """The keys of groups that the commit hides, those of deleted rows too."""
    hidden = set(metadata.replaced_groups)
    if not hidden:
        return []
    visible = VisibleInstants.of(timeline)
    partitions = sorted({partition for partition, _ in hidden})
    slices = FileSystemView(ctx, timeline).latest_slices(partitions)
    found = [item for item in slices if (item.partition, item.file_id) in hidden]
    return [((item.partition, item.file_id), _slice_keys(ctx, item, visible)) for item in found]


def _slice_keys(ctx: TableContext, item: FileSlice, visible: VisibleInstants) -> pa.Array:
    found = [] if item.base is None else [_base_keys(ctx, item.base.path, None)]
    blocks = slice_blocks(ctx.storage, item.logs, visible)
    found += [_block_keys(ctx, block) for block in blocks if block.type is not BlockType.DELETE]
    return pa.chunked_array(found, pa.string()).combine_chunks()


def _base_keys(ctx: TableContext, path: str, time: str | None) -> pa.Array:
    """The keys of a base file's rows, or of those that the instant `time` wrote."""
    found = []
    with ctx.storage.open_read(path) as source:
        for batch in read_batches(source, [RECORD_KEY, COMMIT_TIME] if time else [RECORD_KEY], path=path):
            keys = batch.column(RECORD_KEY)
            found.append(keys if time is None else keys.filter(pc.equal(batch.column(COMMIT_TIME), time)))
    return _texts(pa.chunked_array(found, pa.string()))


def _log_keys(ctx: TableContext, path: str) -> pa.Array:
    """The keys of a log's rows."""
    rows = (BlockType.AVRO, BlockType.PARQUET)
    found = [_block_keys(ctx, block) for block in _blocks(ctx, path) if block.type in rows]
    return pa.chunked_array(found, pa.string()).combine_chunks()


def _blocks(ctx: TableContext, path: str) -> list[LogBlock]:
    assert parse_log_file(path.rpartition("/")[2]) is not None
    with ctx.storage.open_read(path) as source:
        return list(scan_blocks(source, path=path))


def _block_keys(ctx: TableContext, block: LogBlock) -> pa.Array:
    with ctx.storage.open_read(block.path) as source:
        return _texts(read_rows(source, block, [RECORD_KEY])[RECORD_KEY])


def _of_block(ctx: TableContext, block: LogBlock) -> DeletedKeys:
    with ctx.storage.open_read(block.path) as source:
        return read_deletes(source, block)


def _texts(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    return whole.cast(pa.string())
