"""Files that a plan or a savepoint names and that are gone: those that never counted, and damage.

A log of a write that was not decided when it was named goes with that write, and no reader ever saw
a row of it: without it all is as it was. Anything else that is gone held rows. Facts: a log's token
names its writer if it is ours, but Hudi 1.1.1 takes over the token of the log before its own
(measured): what such a write completed names its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError
from hudi_table.model.names import parse_log_file
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_groups import LogFile
from hudi_table.table.view.listing import list_partitions


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """The files of a plan as they are listed: the `sizes` of those that are there, in bytes; the
    paths of those that are `gone`; those of logs that lie `beside` them, of the planned slices and
    not planned."""

    sizes: Mapping[str, int]
    gone: tuple[str, ...]
    beside: tuple[str, ...] = ()


def never_counted(ctx: TableContext, timeline: Timeline, slices: Iterable[PlannedSlice], what: str) -> PlannedFiles:
    """The planned files. Of those that are gone no block counts on this timeline; `what` names the
    plan.

    Lists the plan's partitions. Raises CorruptTableError that names a planned file whose rows count
    and that is gone.
    """
    found = _listed(ctx, slices)
    for path in found.gone:
        if counted_log(ctx, timeline, path):
            raise CorruptTableError(
                f"{what} names {path}, whose rows count, and it is gone; bring it back from a copy or a version of the store "
                "and execute the plan, or give up what is lost for good (hudictl rollback BASE INSTANT, of a compaction with --lost FILE)",
                base_path=ctx.base_path,
                path=path,
            )
    return found


def lost_of(ctx: TableContext, timeline: Timeline, slices: Iterable[PlannedSlice]) -> frozenset[str]:
    """Paths of planned files that are gone and whose rows count on this timeline."""
    return frozenset(path for path in _listed(ctx, slices).gone if counted_log(ctx, timeline, path))


def _listed(ctx: TableContext, slices: Iterable[PlannedSlice]) -> PlannedFiles:
    items = list(slices)
    listed = list_partitions(ctx.storage, sorted({item.partition for item in items}))
    there = {info.path: info.size for infos in listed.values() for info in infos}
    paths = [path for item in items for path in item.paths]
    sizes = {path: there[path] for path in paths if path in there}
    slices_planned = {(item.partition, item.file_id, item.base_instant) for item in items}
    beside = tuple(sorted(path for path in there.keys() - sizes.keys() if _slice_of(path) in slices_planned))
    return PlannedFiles(sizes, tuple(path for path in paths if path not in there), beside)


def _slice_of(path: str) -> tuple[str, str, str] | None:
    """Partition, file id and base instant of a log, as its name says; None of another file, such as
    what keeps the changes of a base file, which is named like its log."""
    partition, _, name = path.rpartition("/")
    log = parse_log_file(name)
    return None if log is None or log.cdc else (partition, log.file_id, log.base_instant)


def counted_log(ctx: TableContext, timeline: Timeline, path: str) -> bool:
    """Whether a file that is gone held rows that this timeline shows; so says any but a log of ours
    whose write has not completed."""
    name = parse_log_file(path.rpartition("/")[2])
    writer = None if name is None else LogFile(path, 0, name).instant
    if writer is None or writer in VisibleInstants.of(timeline):
        return True
    return any(path in commit_metadata(ctx, instant).paths for instant in timeline.commits)
