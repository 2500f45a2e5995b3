"""Giving up the lost files of a pending compaction, so that it can be executed and holds the
archiver no longer."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.service.services import ServicePlan, ServiceResult, ServiceType
from hudi_table.services.compaction.execute import run_compaction
from hudi_table.services.compaction.lost_files import compaction_at, lost_files, plan_again
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext


def give_up(ctx: TableContext, time: str, paths: Iterable[str], *, writers_stopped: bool) -> ServiceResult:
    """Plan the compaction of instant `time` again without the lost files `paths`, and execute it if
    `writers_stopped`; may be asked for again.

    Raises InvalidRequestError unless `paths` are exactly its counted files that are gone, or were
    given up before.
    """
    lost = sorted(set(paths))
    figures = {"filesGivenUp": float(len(lost))}
    stands = plan_again(ctx, compaction_at(time), lost)
    if stands and not writers_stopped:
        wait = ctx.settings.quarantine_seconds
        message = f"compaction {time} gives up {counted(len(lost), 'file')}; what is left of it can be executed in {wait:,.0f} s (hudictl compact)"
        return ServiceResult(ServiceType.ROLLBACK, time, message, figures)
    if stands:
        run_compaction(ctx, time, LocalEngine(), max_memory=DEFAULT_MEMORY, writers_stopped=True)
    message = f"compaction {time} gives up {counted(len(lost), 'file')}, and what is left of it is executed"
    return ServiceResult(ServiceType.ROLLBACK, time, message, figures, replayed=not stands)


def preview_giving_up(ctx: TableContext, time: str, paths: Iterable[str]) -> ServicePlan:
    """A dry run: what is given up, and the rows that its writes put there. Raises as `give_up`."""
    lost, instant = sorted(set(paths)), compaction_at(time)
    timeline, tail = caught_up(ctx)
    if instant.file_name not in timeline.files or timeline.is_completed(time):
        raise InvalidRequestError(f"the timeline has no pending compaction {time}", base_path=ctx.base_path)
    lost_files(ctx, timeline, instant, lost, tail.sequence)
    stats = {stat.path: (i, stat) for i in timeline.commits for stat in commit_metadata(ctx, i).stats}
    details = [
        f"{path}: {counted(stats[path][1].num_writes, 'row')} of {stats[path][0].time}"
        if path in stats
        else f"{path}: rows unknown"
        for path in lost
    ]
    return ServicePlan(
        ServiceType.ROLLBACK,
        f"lost files of compaction {time} given up",
        files_before=len(lost),
        details=tuple(details),
    )
