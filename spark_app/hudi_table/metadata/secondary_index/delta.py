"""What a commit says to an index of a secondary key: the pairs that its rows have now, and those
that they have no more.

Facts (measured on Hudi 1.0.2 and 1.1.1): a new pair is a record, an old one an entry of a delete
block; a row whose value stays says nothing. What moves rows and changes none, as compaction and
clustering do, says nothing either.

Each file group that was written to is compared with its slice before: of a base file all rows, of a
log those whose keys it names, merged as a reader merges them. So one group's pairs are held at a
time, and what has changed of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import read_deletes, read_rows
from hudi_table.codec.metadata.entries import secondary_entries
from hudi_table.metadata.records import Entries
from hudi_table.metadata.secondary_index.pairs import Pairs, note_of
from hudi_table.model.metadata_table import SecondaryPartition
from hudi_table.model.names import RECORD_KEY, parse_base_file
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import schema_behind
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import BaseFile, FileSlice, LogFile, written_logs
from hudi_table.table.view.file_system_view import FileSystemView

_KEEPING = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
"""Operations that change no row."""
_NOTHING = pa.array([], pa.string())


def pairs_of_commit(
    ctx: TableContext, name: SecondaryPartition, metadata: CommitMetadata, time: str, timeline: Timeline
) -> list[Entries]:
    """What the commit of the instant `time`, whose snapshot was `timeline`, says to this index.

    Raises UnkeptError if no index of its column is kept, CorruptTableError if a file that the
    commit was made of is not there.
    """
    whole = note_of(ctx, name).whole
    if metadata.compacted or metadata.operation_type in _KEEPING:
        return []
    pairs = Pairs(ctx, timeline, name, schema=schema_behind(ctx, metadata, timeline))
    groups: dict[tuple[str, str], list[WriteStat]] = {}
    for stat in metadata.stats:
        groups.setdefault((stat.partition_path, stat.file_id), []).append(stat)
    replaced, logs = set(metadata.replaced_groups), written_logs(metadata.stats)
    touched = sorted({partition for partition, _ in groups.keys() | replaced})
    slices = FileSystemView(ctx, timeline).latest_slices(touched) if touched else []
    before = {(item.partition, item.file_id): item for item in slices}
    added, gone = [], []
    for group in sorted(groups.keys() | replaced):
        wrote = groups.get(group, [])
        old, new = _Group(ctx, pairs, before.get(group), wrote, logs.get(group, ()), time).pairs()
        if group in replaced and group not in groups:
            new = _NOTHING
        added.append(_without(new, old))
        gone.append(_without(old, new))
    rows = pa.chunked_array(added, pa.string()).combine_chunks().unique()
    # A row that has moved is gone from one group and in another.
    deleted = _without(pa.chunked_array(gone, pa.string()).combine_chunks().unique(), rows)
    if not len(rows) and not len(deleted):
        return []
    return [Entries(secondary_entries(rows), deleted.take(pc.sort_indices(deleted)), whole=whole)]


class _Group:
    """A file group that a commit has written to, or hidden."""

    def __init__(
        self,
        ctx: TableContext,
        pairs: Pairs,
        before: FileSlice | None,
        stats: Sequence[WriteStat],
        logs: tuple[LogFile, ...],
        time: str,
    ) -> None:
        self._ctx, self._pairs, self._before, self._logs, self._time = ctx, pairs, before, logs, time
        self._bases = [stat for stat in stats if parse_base_file(stat.path.rpartition("/")[2]) is not None]

    def pairs(self) -> tuple[pa.Array, pa.Array]:
        """Its pairs before and behind the commit, those alone that may differ."""
        storage, before = self._ctx.storage, self._before
        if self._bases or not self._logs:
            old = _NOTHING if before is None else self._pairs.all_of(storage, before)
            found = [self._pairs.all_of(storage, self._after(stat), after=self._time) for stat in self._bases]
            return old, pa.chunked_array(found, pa.string()).combine_chunks()
        keys = pa.chunked_array(list(self._log_keys()), pa.string()).combine_chunks().unique()
        old = _NOTHING if before is None else self._pairs.all_of(storage, before, keys)
        return old, self._pairs.all_of(storage, self._with_logs(), keys, after=self._time)

    def _after(self, stat: WriteStat) -> FileSlice:
        base = BaseFile(stat.path, stat.partition_path, stat.file_id, self._time, stat.file_size_in_bytes)
        return FileSlice(stat.partition_path, stat.file_id, self._time, base, self._logs)

    def _with_logs(self) -> FileSlice:
        if self._before is not None:
            item = self._before
            return FileSlice(item.partition, item.file_id, item.instant, item.base, (*item.logs, *self._logs))
        path, log = self._logs[0].path, self._logs[0].name
        return FileSlice(path.rpartition("/")[0], log.file_id, self._time, None, self._logs)

    def _log_keys(self) -> Iterator[pa.Array]:
        """The keys that its new logs name, of rows and of deletes."""
        for log in self._logs:
            with self._ctx.storage.open_read(log.path) as source:
                for block in scan_blocks(source, path=log.path):
                    if block.type is BlockType.DELETE:
                        yield read_deletes(source, block).keys.cast(pa.string())
                    elif block.type in (BlockType.AVRO, BlockType.PARQUET):
                        keys = read_rows(source, block, [RECORD_KEY])[RECORD_KEY]
                        yield keys.combine_chunks().cast(pa.string())


def _without(pairs: pa.Array, others: pa.Array) -> pa.Array:
    return pairs.filter(pc.invert(pc.is_in(pairs, value_set=others)))
