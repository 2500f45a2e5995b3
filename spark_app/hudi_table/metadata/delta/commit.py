"""A commit's delta: one log in each file group that it touches, and the instant on the metadata
table's timeline.

It is written before the commit is decided, and counts when the commit completes. So the timeline's
files come first: a reader of Hudi's stops its scan at a block that is newer than the newest instant
there. A plan that is found in the chain meanwhile moves the groups; then only the delta is written
again, behind it, and what was written before is deleted.

Facts (measured on Hudi 0.15.0): requested is empty, the write stats of the completed deltacommit
are those of logs, its operation is UPSERT_PREPPED; a log of the metadata table holds one HFile
block.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_table.codec.log.hfile import hfile_block
from hudi_table.codec.log.rows import delete_block
from hudi_table.codec.metadata.records import encode_metadata, metadata_schema
from hudi_table.errors import CorruptTableError, UnavailableError, UnsupportedTableError
from hudi_table.metadata.delta.log_placement import Place, Places, own_logs
from hudi_table.metadata.lifecycle import drop, drop_partitions, standing
from hudi_table.metadata.records import Derive, Entries, UnkeptError, group_numbers
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import AnyPartition, group_file_id, partition_named
from hudi_table.model.names import META_COLUMNS, METADATA_TABLE, join
from hudi_table.model.table.version_properties import RECORDS
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.conflict_keys import METADATA, metadata_conflict_key
from hudi_table.model.timeline.instants import Action, Instant, State, next_instant_time, parse_instant
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext, WritePermit
from hudi_table.table.timeline.layout import encode_commit
from hudi_table.table.timeline.timeline import Timeline

_LOG = logging.getLogger("hudi_table.metadata")

OPERATION = "UPSERT_PREPPED"
_MOVES_MAX = 10


@dataclass(slots=True)
class Delta:
    """What the instant `time` of the data table says to the metadata table. `timeline`: a listing
    of the data table's; `wrote_logs`: a log of it was written."""

    ctx: TableContext
    permit: WritePermit
    time: str
    derive: Derive
    timeline: Timeline
    wrote_logs: bool = False
    _entries: dict[tuple[AnyPartition, bool], Sequence[Entries]] = field(default_factory=dict)

    def write(self) -> frozenset[str]:
        """Write the logs where they belong now. Returns the conflict keys of the plans that would
        move them.

        Raises WriteAbortedError if the instant was taken away, and what the storage raises.
        """
        self.permit.prove()
        try:
            table = standing(self.ctx, self.timeline)
            if table is None or not table.partitions.all:
                return frozenset({METADATA})
            record = record_of(table.ctx, table.timeline.last_commit)
            logs = self._all_logs(table, record)
        except (CorruptTableError, UnsupportedTableError) as error:
            # Without it the table is as right as with it; with a part of it, it is not.
            drop(self.ctx, error.message)
            return frozenset({METADATA})
        self.ctx.metadata_deltas = table.deltas + bool(logs)
        if logs:
            self.permit.renew_if_due()
            publish_delta(table, self.time, record, [stat for _, _, stat in logs])
        self.wrote_logs = bool(logs)
        for place, data, _ in logs:
            self.permit.put_file(join(METADATA_TABLE, place.path), data)
        _LOG.debug("%s: %d logs written to the metadata table", self.time, len(logs))
        return frozenset(
            {METADATA, *(metadata_conflict_key(place.partition, place.name.file_id) for place, _, _ in logs)}
        )

    def write_again(self) -> frozenset[str]:
        """The same after a plan has moved a group: what lies in the slice before is deleted, for
        nobody has planned it.

        The group may move once more between the writing and the search for where it is now: then
        nothing lies in the newest slice yet.
        """
        for _ in range(_MOVES_MAX):
            conflict_keys = self.write()
            if self.ctx.layout.logs_tell_writers:
                # Published anew, its logs lie behind the plan as they are.
                return conflict_keys
            table = MetadataTable.load(self.ctx, self.timeline)
            if table is None:
                return conflict_keys
            places = Places(table, self.time)
            stays: set[tuple[str, str]] = set()
            moved: dict[str, tuple[str, str]] = {}
            for log in own_logs(table, self.time):
                group = log.path.rpartition("/")[0], log.name.file_id
                if log.name.base_instant == places.of(*group).name.base_instant:
                    stays.add(group)
                else:
                    moved[log.path] = group
            if stays.issuperset(moved.values()):
                for path in moved:
                    retry.delete(table.ctx.storage, path)
                return conflict_keys
        raise UnavailableError(
            f"the metadata table was built anew during each of {_MOVES_MAX} writes to it; try again",
            base_path=self.ctx.base_path,
        )

    def _all_logs(self, table: MetadataTable, record: str) -> list[tuple[Place, bytes, WriteStat]]:
        places = Places(table, self.time)
        logs: list[tuple[Place, bytes, WriteStat]] = []
        for name in map(partition_named, table.partitions.all):
            try:
                logs += self._logs(places, name, record, by_partition=table.by_partition)
            except UnkeptError as error:
                drop_partitions(self.ctx, {error.partition}, error.message)
        return logs

    def _logs(
        self, places: Places, partition: AnyPartition, record: str, *, by_partition: bool
    ) -> list[tuple[Place, bytes, WriteStat]]:
        kind = (partition, by_partition)
        if kind not in self._entries:
            self._entries[kind] = self.derive(partition, by_partition)
        logs = []
        for entries in self._entries[kind]:
            groups, begun = places.groups(partition, entries.of)
            parts = {number: (rows, deleted) for number, rows, deleted in by_group(entries, groups)}
            nothing = (entries.rows.slice(0, 0), entries.deleted.slice(0, 0))
            for number in sorted(parts.keys() | begun):
                rows, deleted = parts.get(number, nothing)
                place = places.of(partition, group_file_id(partition, number, entries.of), begins=number in begun)
                data = log_bytes(record, rows, deleted, partition, self.time)
                logs.append((place, data, _stat(place, len(data), len(rows), len(deleted))))
        return logs


def record_of(own: TableContext, newest: Instant | None) -> str:
    """The schema of records that are written to a metadata table, of those that its version has:
    that of its `newest` commit, so that all of it has one; of a new one the first. `own`: its
    context.

    hudi-rs 0.5 reads no metadata table with records of two schemas (measured).
    """
    names = RECORDS[own.config.version]
    if len(names) == 1 or newest is None:
        return names[0]
    told = _fields(commit_metadata(own, newest).avro_schema or "{}")
    return next((name for name in names if _fields(_plain_schema(name)) == told), names[0])


def _fields(schema: str) -> frozenset[str]:
    """The fields of the statistics in a record, by which its schemas differ."""
    record = json.loads(schema)
    found = (field["type"][1] for field in record.get("fields", ()) if field["name"] == "ColumnStatsMetadata")
    return frozenset(field["name"] for stats in found for field in stats["fields"])


def publish(
    ctx: TableContext,
    time: str,
    record: str,
    stats: list[WriteStat],
    operation: str = OPERATION,
    *,
    completion: str = "",
) -> None:
    """The instant's three files on the metadata table's timeline. `record`: the schema of what it
    has written; `completion`: when it completes there, where that is told."""
    instant = Instant(time, Action.DELTA_COMMIT, State.REQUESTED)
    done = ctx.layout.completed(instant, completion)
    files = [(instant, b""), (instant.with_state(State.INFLIGHT), b"")]
    for state, data in (*files, (done, completed_body(ctx, record, stats, operation))):
        retry.put(ctx.storage, ctx.layout.timeline_path(state.file_name), data)


def publish_delta(table: MetadataTable, time: str, record: str, stats: list[WriteStat]) -> None:
    """The same of a delta: it completes behind every compaction of the metadata table, for what
    those take was decided before it. What other attempts at it said stays if that is as late, else
    it goes first."""
    timeline, completion = table.timeline, ""
    if table.ctx.layout.tells_completions:
        names = timeline.own_names(Instant(time, Action.DELTA_COMMIT, State.REQUESTED))
        said = {name: i.completion for name in names if (i := parse_instant(name)) is not None and i.completed}
        compactions = [i.time for i in timeline.instants if i.grouped_action is Action.COMMIT]
        completion = max([next_instant_time(max([time, *compactions])), *said.values()])
        for name, moment in said.items():
            if moment != completion:
                retry.delete(table.ctx.storage, table.ctx.layout.timeline_path(name))
    publish(table.ctx, time, record, stats, completion=completion)


def completed_body(
    ctx: TableContext, record: str, stats: Iterable[WriteStat], operation: str, *, compacted: bool = False
) -> bytes:
    """The commit metadata of an instant of the metadata table."""
    schema = {SCHEMA_KEY: _plain_schema(record)}
    return encode_commit(ctx.layout, CommitMetadata(operation, tuple(stats), schema, compacted=compacted))


def log_bytes(record: str, rows: pa.Table, deleted: pa.Array, partition: str, instant: str) -> bytes:
    """A log of the rows, sorted by key, and of deleted keys; of neither, an empty delete block.
    `record`: the schema of the rows."""
    schema = metadata_schema(record)
    data = hfile_block(rows["key"], encode_metadata(rows, schema), schema, instant) if len(rows) else b""
    if len(deleted) or not data:
        data += delete_block(deleted, partition, instant)
    return data


@functools.cache
def _plain_schema(name: str) -> str:
    """The schema of a record without the meta columns, as commits carry it."""
    record = json.loads(metadata_schema(name))
    fields = [field for field in record["fields"] if field["name"] not in META_COLUMNS]
    return json.dumps({**record, "fields": fields}, separators=(",", ":"))


def by_group(entries: Entries, groups: int) -> list[tuple[int, pa.Table, pa.Array]]:
    """(number of the file group, its rows, its deleted keys)."""
    if groups == 1:
        return [(0, entries.rows, entries.deleted)] if len(entries.rows) or len(entries.deleted) else []
    of_rows = group_numbers(entries.rows["key"], groups, whole=entries.whole)
    of_keys = group_numbers(entries.deleted, groups, whole=entries.whole)
    return [
        (number, entries.rows.filter(pa.array(of_rows == number)), entries.deleted.filter(pa.array(of_keys == number)))
        for number in sorted({*of_rows.tolist(), *of_keys.tolist()})
    ]


def _stat(place: Place, size: int, puts: int, deletes: int) -> WriteStat:
    """The write stat of a log, with the keys that Hudi gives it."""
    extra: Mapping[str, object] = {
        "logVersion": place.name.version,
        "logOffset": 0,
        "baseFile": place.base,
        "logFiles": [*place.logs, str(place.name)],
        "recordsStats": {"val": None},
    }
    return WriteStat(
        file_id=place.name.file_id,
        path=place.path,
        partition_path=place.partition,
        prev_commit=place.name.base_instant,
        num_writes=puts,
        num_deletes=deletes,
        num_update_writes=puts,
        total_write_bytes=size,
        file_size_in_bytes=size,
        extra=extra,
    )
