"""What stands against taking instants back: savepoints, pending plans, cleaned files, processes
that may still be at work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hudi_table.errors import InvalidRequestError
from hudi_table.model.names import join, parse_base_file
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, comparable_time
from hudi_table.table.commit.missing_files import counted_log
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.timeline.archived import hidden_by
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import pending_plans
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files
from hudi_table.table.view.savepoints import savepoints


def check_savepoint(ctx: TableContext, timeline: Timeline, savepoint: str) -> None:
    """Refuse what is no savepoint, one that a newer savepoint forbids to go back to, one behind
    which writes were archived, and one whose files are gone.

    Raises InvalidRequestError.
    """
    known = {found.instant: found for found in savepoints(ctx, timeline)}
    if savepoint not in known or savepoint not in {i.time for i in timeline.commits}:
        names = ", ".join(known) or "none"
        raise InvalidRequestError(
            f"there is no savepoint {savepoint!r}; the table has {names}", base_path=ctx.base_path
        )
    newer = [time for time in known if time > savepoint]
    if newer:
        raise InvalidRequestError(
            f"savepoint {newer[0]} is newer than {savepoint} and would go with it; delete it first",
            base_path=ctx.base_path,
        )
    limit = comparable_time(savepoint)
    before = [i for i in timeline.instants if comparable_time(i.time) <= limit or i.grouped_action not in WRITE_ACTIONS]
    archived = hidden_by(ctx, timeline, _of(timeline, before))
    if archived:
        raise InvalidRequestError(
            f"the write {archived} after the savepoint {savepoint} is archived (hoodie.archive.beyond.savepoint), and a restore takes back only "
            f"what is on the timeline: its rows would come back; read the table as of {savepoint}, and write those rows anew",
            base_path=ctx.base_path,
            instant=archived,
        )
    listed = {info.path for info in list_data_files(ctx.storage)}
    for partition, kept in known[savepoint].files.items():
        for name in kept:
            path = join(partition, name)
            if path not in listed and counted_log(ctx, timeline.until(savepoint), path):
                raise InvalidRequestError(
                    f"{path} of savepoint {savepoint} is gone, so it cannot be restored; bring it back first",
                    base_path=ctx.base_path,
                )


def check_free(ctx: TableContext, timeline: Timeline, target: Instant, metadata: CommitMetadata) -> None:
    """Refuse to take back what a savepoint or a pending plan stands on."""
    if any(found.instant == target.time for found in savepoints(ctx, timeline)):
        raise InvalidRequestError(
            f"{target.time} is a savepoint; delete the savepoint first, or restore an earlier one",
            base_path=ctx.base_path,
        )
    plans = pending_plans(ctx, timeline)
    plans |= {i: list(plan.slices) for i, plan in live_clusterings(ctx, timeline).items()}
    for instant, slices in plans.items():
        named = {path for item in slices for path in (item.base_path, *item.log_paths)}
        if named & metadata.paths:
            raise InvalidRequestError(
                f"the plan {instant.time} ({instant.action.value}) is to rewrite files of {target.time}; execute it or roll it "
                "back first, or restore a savepoint",
                base_path=ctx.base_path,
            )
    cleaning = [i for i in timeline.pending if i.action is Action.CLEAN]
    if cleaning:
        raise InvalidRequestError(
            f"a clean is pending at {cleaning[0].time} and may delete what {target.time} superseded; finish it first",
            base_path=ctx.base_path,
        )


def check_start_is_left(ctx: TableContext, timeline: Timeline, target: Instant) -> None:
    """Refuse to take back the write with which the timeline starts if archived ones are not older
    than its next start: their files count because they are, and no reader would find them."""
    archived = hidden_by(ctx, timeline, _without(timeline, target))
    if archived:
        raise InvalidRequestError(
            f"{target.time} is the only write that is not archived, or kept by a savepoint: without it no reader would know that the files of the "
            f"archived write {archived} count; write the rows that are to be there anew",
            base_path=ctx.base_path,
            instant=target.time,
        )


def check_what_comes_back(view: FileSystemView, target: Instant, metadata: CommitMetadata) -> None:
    """Refuse if slices that the write superseded were cleaned: their rows would be lost with it."""
    before = FileSystemView(view.ctx, _without(view.timeline, target))
    groups = {(g.partition, g.file_id): g for g in before.groups()}
    gone = [key for key in metadata.replaced_groups if key not in groups]
    for stat in metadata.stats:
        rewritten = parse_base_file(stat.path.rpartition("/")[2]) is not None and stat.prev_commit not in ("", "null")
        group = groups.get((stat.partition_path, stat.file_id))
        if rewritten and (group is None or stat.prev_commit not in {item.instant for item in group.slices}):
            gone.append((stat.partition_path, stat.file_id))
    if gone:
        raise InvalidRequestError(
            f"what {target.time} superseded in file group {gone[0][1]} of partition {gone[0][0]!r} has been cleaned: taking it back "
            "would lose rows that were there before it",
            base_path=view.ctx.base_path,
            instant=target.time,
        )


def _without(timeline: Timeline, target: Instant) -> Timeline:
    """The timeline as it would be: no listing shows it, so none is held against it, and what a
    clean has taken meanwhile is refused as gone."""
    return _of(timeline, (i for i in timeline.instants if i.time != target.time))


def _of(timeline: Timeline, instants: Iterable[Instant]) -> Timeline:
    return replace(timeline, instants=tuple(instants), listed_at=None)


def check_old(ctx: TableContext, timeline: Timeline, targets: Iterable[Instant]) -> None:
    """Refuse what a paused process could still publish again."""
    now = store_now(ctx)
    for target in targets:
        age = (now - timeline.files[target.file_name]).total_seconds()
        if age < ctx.settings.quarantine_seconds:
            raise InvalidRequestError(
                f"{target.time} was committed {age:.0f} s ago, and a process that writes the table could still publish it again: wait "
                f"until it is {ctx.settings.quarantine_seconds:.0f} s old, or end all writers of the table and confirm it "
                "(writers_stopped=True, --writers-stopped)",
                base_path=ctx.base_path,
                instant=target.time,
            )


def not_newest(timeline: Timeline, instant: str) -> str:
    """Why an instant is not the one to roll back, in words."""
    newest = timeline.last_commit
    if any(i.time == instant and i.action is Action.CLEAN for i in timeline.pending):
        return f"{instant} is a clean, which cannot be taken back: execute it (clean(), hudictl clean --yes)"
    if any(i.time == instant for i in timeline.pending):
        return (
            f"{instant} is not completed, so no dry run can list its files: take it back, or leave it to the next write"
        )
    if all(i.time != instant for i in timeline.commits):
        return f"{instant!r} is no write on the timeline; the newest is {newest.time if newest else 'none'}"
    assert newest is not None
    return (
        f"{instant} is not the newest write, {newest.time} is; roll back the newer ones first, or restore a savepoint"
    )
