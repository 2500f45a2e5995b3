"""What a rollback or restore takes back, as plans for the chain, and what that means in rows and
files."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceType
from hudi_table.model.timeline.conflict_keys import CLEANING, METADATA, TABLE
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, comparable_time
from hudi_table.services.planning import Choose, Draft
from hudi_table.services.restoring.checks import (
    check_free,
    check_old,
    check_savepoint,
    check_start_is_left,
    check_what_comes_back,
    not_newest,
)
from hudi_table.table.commit.rollback import rollback_plan
from hudi_table.table.commit.undo import restore_plan
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView

CONFLICT_KEYS = frozenset({TABLE, CLEANING, METADATA})
"""A clean or a savepoint that was planned since the snapshot may delete or keep what is taken back,
and a building of the metadata table lists it: it plans again."""


def rollback_choice(ctx: TableContext, instant: str, *, writers_stopped: bool, dry: bool = False) -> Choose:
    """The plan of a rollback; raises where it must not be. A `dry` run does not ask how old the
    instant is."""

    def choose(view: FileSystemView) -> Draft:
        timeline = view.timeline
        target = timeline.last_commit
        if target is None or target.time != instant:
            raise InvalidRequestError(not_newest(timeline, instant), base_path=ctx.base_path)
        metadata = commit_metadata(ctx, target)
        check_free(ctx, timeline, target, metadata)
        check_start_is_left(ctx, timeline, target)
        check_what_comes_back(view, target, metadata)
        if not (writers_stopped or dry):
            check_old(ctx, timeline, [target])
        body = rollback_plan(ctx, target, sorted(metadata.paths))
        return Draft(body, CONFLICT_KEYS, _described(ctx, ServiceType.ROLLBACK, [target], f"rollback of {instant}"))

    return choose


def restore_choice(ctx: TableContext, savepoint: str, *, writers_stopped: bool, dry: bool = False) -> Choose:
    """The plan of a restore; raises where it must not be."""

    def choose(view: FileSystemView) -> Draft:
        timeline = view.timeline
        check_savepoint(ctx, timeline, savepoint)
        begun = begun_restore(timeline)
        if begun is not None:
            raise nothing_to_choose(ctx, begun)
        targets = written_after(timeline, savepoint)
        pending = [target for target in targets if not target.completed]
        if pending and not (writers_stopped or dry):
            raise InvalidRequestError(
                f"{pending[0].action.value} {pending[0].time} is pending after the savepoint, and its writer may be at work; end all "
                "writers and services of the table, then confirm it (writers_stopped=True, --writers-stopped)",
                base_path=ctx.base_path,
                instant=pending[0].time,
            )
        if not (writers_stopped or dry):
            check_old(ctx, timeline, targets)
        plan = _described(ctx, ServiceType.RESTORE, targets, f"restore to savepoint {savepoint}")
        return Draft(restore_plan(targets, savepoint), CONFLICT_KEYS, plan)

    return choose


def begun_restore(timeline: Timeline) -> Instant | None:
    """A restore that is pending once ours have been finished: another engine's."""
    return next((i for i in timeline.pending if i.action is Action.RESTORE), None)


def nothing_to_choose(ctx: TableContext, begun: Instant) -> InvalidRequestError:
    """What a dry run is told, and who comes with the plan of one: what goes is decided."""
    return InvalidRequestError(
        f"the restore {begun.time} of another engine is pending, and its plan stands: there is nothing to choose; where all writers of the "
        "table have ended, end it without a dry run (writers_stopped=True, --writers-stopped --yes)",
        base_path=ctx.base_path,
        instant=begun.time,
    )


def written_after(timeline: Timeline, savepoint: str) -> list[Instant]:
    """Writes and plans after a savepoint, the newest first."""
    limit = comparable_time(savepoint)
    found = [i for i in timeline.instants if i.grouped_action in WRITE_ACTIONS and comparable_time(i.time) > limit]
    return found[::-1]


def _described(ctx: TableContext, service: ServiceType, targets: Iterable[Instant], why: str) -> ServicePlan:
    """What would go, in numbers and one line for each instant."""
    lines, groups, files, freed = [], set(), 0, 0
    for target in targets:
        if not target.completed:
            lines.append(f"{target.action.value} {target.time}: planned")
            continue
        metadata = commit_metadata(ctx, target)
        stats = metadata.stats
        groups |= {(stat.partition_path, stat.file_id) for stat in stats}
        files += len(metadata.paths)
        freed += sum(stat.file_size_in_bytes for stat in stats)
        inserted = sum(s.num_inserts for s in stats)
        updated, deleted = sum(s.num_update_writes for s in stats), sum(s.num_deletes for s in stats)
        rows = f"{counted(inserted, 'row')} inserted, {updated:,} updated, {deleted:,} deleted"
        lines.append(
            f"{target.action.value} {target.time}: {metadata.operation_type.lower()}, {rows}, {counted(len(metadata.paths), 'file')}"
        )
    return ServicePlan(
        service,
        why=why,
        file_groups=len(groups),
        files_before=files,
        bytes_freed=freed,
        details=tuple(lines[:DETAILS_MAX]),
    )
