"""The files that a listing of the table shows as committed, and where the metadata table says
otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from hudi_table.codec.metadata.keys import of_no_value
from hudi_table.metadata.expression_index.build import wrong_entries
from hudi_table.metadata.reading import latest_of, listed_files, listed_partitions, read_listing, slice_parts
from hudi_table.metadata.record_index.shards import is_there, shard_counts
from hudi_table.metadata.secondary_index.build import is_kept, recorded_pairs
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import (
    ExpressionPartition,
    MetadataPartition,
    SecondaryPartition,
    is_expression,
    is_secondary,
)
from hudi_table.model.names import LogFileName, instant_of_token, join, parse_base_file, parse_log_file
from hudi_table.model.timeline.instants import Action, comparable_time
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clean_plans import pending_cleans
from hudi_table.table.view.listing import list_data_files, partitions_in


@dataclass(frozen=True, slots=True)
class Difference:
    """A path (of a file, or of a partition) and what is wrong with its entry."""

    path: str
    what: str


_NOT_MEASURED = 1
"""Bytes with which a rollback of Hudi 0.15.0 lists the logs of the failed write (measured): it did
not ask for their size."""


def committed_files(infos: Iterable[ObjectInfo], timeline: Timeline) -> dict[tuple[str, str], int]:
    """(partition, name) and size of the data files among listed objects that completed writes left,
    replaced ones too."""
    completed = {i.time for i in timeline.commits}
    start = comparable_time(timeline.start) if timeline.start else ""

    def counts(instant: str | None) -> bool:
        return instant is None or instant in completed or comparable_time(instant) < start

    def writer_of(log: LogFileName) -> str | None:
        # The log of a rewrite's changes has that write's own instant in its name.
        own = timeline.layout.logs_tell_writers or log.cdc
        return log.base_instant if own else instant_of_token(log.token)

    found = {}
    for info in infos:
        partition, _, name = info.path.rpartition("/")
        base, log = parse_base_file(name), parse_log_file(name)
        if (base is not None and counts(base.instant)) or (log is not None and counts(writer_of(log))):
            found[partition, name] = info.size
    return found


def differences(ctx: TableContext) -> list[Difference]:
    """Where the partition `files` and the table's folders disagree, which partitions a record index
    by partition leaves out, and what indexes of secondary keys and expressions say beside the rows,
    sorted by path; empty without a metadata table that is ready. Raises CorruptTableError,
    UnsupportedTableError.

    Of what writers and cleans change meanwhile it is right: the timeline is listed before and
    after, and what only one of both explains is passed over.
    """
    before = load_timeline(ctx)
    table = MetadataTable.load(ctx, before)
    if table is None or "files" not in table.partitions.ready:
        return []
    listing = read_listing(table)
    infos = list_data_files(ctx.storage)
    after = load_timeline(ctx)
    stored = {join(*place): size for place, size in committed_files(infos, before).items()}
    late = {join(*place): size for place, size in committed_files(infos, after).items()}
    listed = listed_files(listing)
    moved = {i.file_name for i in before.completed} != {i.file_name for i in after.completed}
    # Of what another engine is about to restore, files go before their entries.
    moved = moved or any(i.action is Action.RESTORE for i in (*before.pending, *after.pending))
    waiting = [*pending_cleans(ctx, before).values(), *pending_cleans(ctx, after).values()]
    going = {join(partition, name) for plan in waiting for partition, names in plan.files.items() for name in names}
    emptied = {partition for plan in waiting for partition in plan.partitions}
    differences_found = [Difference(path, "is not listed") for path in stored.keys() - listed.keys()]
    if not moved:
        # What a clean deletes is listed until it completes. A log whose write was taken back may stay, and a block behind it takes its rows back:
        # so does Hudi's restore, of a log of ours too (measured on 0.15.0).
        logs = {info.path for info in infos if parse_log_file(info.path.rpartition("/")[2]) is not None}
        gone = listed.keys() - late.keys() - going - logs
        differences_found += [Difference(path, "is listed and is not there") for path in gone]
    differences_found += [
        Difference(path, f"is listed with {listed[path]} bytes and has {stored[path]}")
        for path in stored.keys() & listed.keys()
        if listed[path] not in (stored[path], _NOT_MEASURED)
    ]
    known = set(listed_partitions(listing))
    with_files = {partition for partition, _ in committed_files(infos, before)}
    differences_found += [Difference(path, "is a partition that is not listed") for path in with_files - known]
    if not moved:
        differences_found += [
            Difference(path, "is no partition") for path in known - set(partitions_in(infos)) - emptied
        ]
    if table.by_partition and MetadataPartition.RECORD_INDEX in table.partitions.ready:
        groups = [group.latest for group in table.groups.get(MetadataPartition.RECORD_INDEX, ())]
        ids = [item.file_id for item in groups if is_there(item.logs, table.counted, based=item.base is not None)]
        differences_found += [
            Difference(path, "has no shards in the record index")
            for path in known - shard_counts(ids, ctx.base_path).keys()
        ]
    if not moved:
        differences_found += _of_secondary(ctx, table, before)
        differences_found += _of_expressions(ctx, table, before)
    return sorted(differences_found, key=lambda item: (item.path, item.what))


def _of_expressions(ctx: TableContext, table: MetadataTable, timeline: Timeline) -> Iterator[Difference]:
    """Indexes of expressions by which a reader of Hudi's would leave files out that have rows."""
    for name in map(ExpressionPartition, filter(is_expression, table.partitions.ready)):
        what = wrong_entries(ctx, table, timeline, name)
        if what:
            yield Difference(name, what)


def _of_secondary(ctx: TableContext, table: MetadataTable, timeline: Timeline) -> Iterator[Difference]:
    """Indexes of secondary keys whose pairs are not those of the rows: file group by file group, of
    which each is held alone."""
    for name in map(SecondaryPartition, filter(is_secondary, table.partitions.ready)):
        if not is_kept(ctx, timeline, name):
            # Hudi's own: the next write drops it.
            continue
        groups = {group.file_id: group.latest for group in table.groups.get(name, ()) if group.slices}
        lacks = more = 0
        for file_id, rows in recorded_pairs(ctx, timeline, name, max(1, len(groups)), every=True):
            item = groups.get(file_id)
            wanted = rows["key"].combine_chunks()
            held = latest_of(slice_parts(table, item))["key"].combine_chunks() if item else wanted.slice(0, 0)
            # Hudi 1.0.2 leaves rows without a value out where it builds one (measured); no filter asks for them.
            valued = wanted.filter(pc.invert(of_no_value(wanted)))
            lacks += len(valued.filter(pc.invert(pc.is_in(valued, value_set=held))))
            more += len(held.filter(pc.invert(pc.is_in(held, value_set=wanted))))
        if lacks or more:
            yield Difference(name, f"lacks {lacks} pairs of rows, and holds {more} that no row has")
