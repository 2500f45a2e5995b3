"""Files that a plan or a savepoint names and that are gone: those that never counted, and damage.

A log of a write that was not decided when it was named goes with that write, and no reader ever saw a row of it: without it all is as it
was. Anything else that is gone held rows. Facts: a log's token names its writer if it is ours, but Hudi 1.1.1 takes over the token of the
log before its own (measured): what such a write completed names its log.
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.errors import CorruptTableError
from hudi_table.model.names import parse_log_file
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_groups import LogFile
from hudi_table.table.view.listing import list_partitions


def never_counted(ctx: TableContext, timeline: Timeline, slices: Iterable[PlannedSlice], what: str) -> frozenset[str]:
    """Paths of planned logs that are gone and of which no block counts on this timeline; `what` names the plan.

    Lists the plan's partitions. Raises CorruptTableError that names a planned file whose rows count and that is gone.
    """
    gone = _gone(ctx, slices)
    for path in gone:
        if counted_log(ctx, timeline, path):
            raise CorruptTableError(
                f"{what} names {path}, whose rows count, and it is gone; bring it back from a copy or a version of the store "
                "and execute the plan, or give up what is lost for good (hudictl rollback BASE INSTANT, of a compaction with --lost FILE)",
                base_path=ctx.base_path,
                path=path,
            )
    return frozenset(gone)


def lost_of(ctx: TableContext, timeline: Timeline, slices: Iterable[PlannedSlice]) -> frozenset[str]:
    """Paths of planned files that are gone and whose rows count on this timeline."""
    return frozenset(path for path in _gone(ctx, slices) if counted_log(ctx, timeline, path))


def _gone(ctx: TableContext, slices: Iterable[PlannedSlice]) -> list[str]:
    items = list(slices)
    listed = list_partitions(ctx.storage, sorted({item.partition for item in items}))
    there = {info.path for infos in listed.values() for info in infos}
    return [path for item in items for path in item.paths if path not in there]


def counted_log(ctx: TableContext, timeline: Timeline, path: str) -> bool:
    """Whether a file that is gone held rows that this timeline shows; so says any but a log of ours whose write has not completed."""
    name = parse_log_file(path.rpartition("/")[2])
    writer = None if name is None else LogFile(path, 0, name).instant
    if writer is None or writer in VisibleInstants.of(timeline):
        return True
    return any(path in commit_metadata(ctx, instant).paths for instant in timeline.commits)
