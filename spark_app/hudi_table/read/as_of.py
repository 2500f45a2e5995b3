"""Time travel: whether the rows of an instant are still there.

Facts (Hudi 0.15.0 and 1.1.1): what completed at or before the instant is read. Hudi refuses what
the newest clean does not retain, by what it says; a clean by file versions says nothing, and behind
one Hudi reads on without the slices that it took. We refuse where files are gone, naming the clean.
A clean that has not completed counts too: whatever its plan names may be gone. So does a rollback
or restore of what had been visible. Cleans are archived before the writes beside them, so those of
the archive count where a moment lies before all that are on the timeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hudi_table.errors import ExpiredError
from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.instants import Action, Instant, comparable_time
from hudi_table.table.commit.undo import planned_undos
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import has_archive
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clean_plans import Files, archived_since, completed_cleans, taken_files
from hudi_table.table.view.file_system_view import FileSystemView, replaced_groups


def check_retained(view: FileSystemView) -> None:
    """Raise ExpiredError if files that a reader of `view`, which is as of an instant, needs are
    gone, or if nobody can tell any more.

    The files are listed before the timeline is read again: a clean is on the timeline before it
    deletes anything, so none can have taken a listed group's slice unseen.
    """
    ctx, as_of = view.ctx, view.as_of or ""
    view.groups()
    timeline = load_timeline(ctx)
    oldest = next(completed_cleans(ctx, timeline), None)
    limit = comparable_time(as_of)
    start = timeline.start
    # What a rollback has made the newest again it has found whole, whichever cleans came between.
    newest = all(comparable_time(i.time) <= limit for i in timeline.commits)
    # A savepoint keeps what its instant showed, though newer ones are archived and whatever a clean took.
    in_archive = start is not None and limit < comparable_time(start) and as_of not in timeline.commit_times
    cleaned_before = (
        oldest is not None
        and limit < comparable_time(oldest.time)
        and not (oldest.retains and limit >= comparable_time(oldest.retains))
    )
    # Of a moment that the timeline tells the archive is asked for its cleans.
    asks = not in_archive and cleaned_before and not newest and as_of not in timeline.saved
    archived = archived_since(ctx, limit) if asks and has_archive(ctx) else {}
    if archived is None or (in_archive and has_archive(ctx)):
        where = (
            f"in the archived part of the timeline (the active one starts at {start})"
            if in_archive or oldest is None
            else f"before the clean {oldest.time}, and older writes are archived"
        )
        raise ExpiredError(
            f"as_of {as_of} lies {where}: which files were visible then is no longer known; choose a later instant "
            "(hudictl timeline shows them)",
            base_path=ctx.base_path,
            instant=as_of,
        )
    undo = _taken_back(ctx, timeline, as_of)
    if undo is not None:
        raise ExpiredError(
            f"as_of {as_of} cannot be read: the {undo.action.value} {undo.time} took back what was written then; choose an instant "
            "that is on the timeline (hudictl timeline shows them)",
            base_path=ctx.base_path,
            instant=as_of,
        )
    taken = archived | taken_files(ctx, timeline, limit)
    clean = _missing(ctx, timeline, view, taken)
    if clean is not None:
        done = clean in archived or any(i.time == clean for i in timeline.completed)
        did = "deleted" if done else "is pending, and deletes"
        raise ExpiredError(
            f"as_of {as_of} cannot be read: the clean {clean} {did} files that were current then; choose a later "
            f"instant (hudictl timeline shows them)",
            base_path=ctx.base_path,
            instant=as_of,
        )


def _taken_back(ctx: TableContext, timeline: Timeline, as_of: str) -> Instant | None:
    """The rollback or restore that made another past of the moment, if one did.

    A restore does so with every moment after its savepoint, a rollback with that of its instant: of
    a moment between two writes nobody knows whether the one that was rolled back had ever been
    visible.
    """
    limit = comparable_time(as_of)
    since_then = (instant for instant in timeline.instants if comparable_time(instant.time) >= limit)
    for undo in planned_undos(ctx, timeline, since_then):
        first = comparable_time(undo.targets[-1].time) if undo.targets else ""
        since = comparable_time(undo.savepoint) < limit if undo.savepoint else first <= limit
        if as_of in undo.times or (undo.instant.action is Action.RESTORE and since):
            return undo.instant
    return None


def _missing(ctx: TableContext, timeline: Timeline, view: FileSystemView, taken: Mapping[str, Files]) -> str | None:
    """The clean that deleted a slice, or a part of it, which was the newest of its visible group at
    the moment of `view`. `taken`: what each clean after it deleted.

    Only a later clean can have: what one deletes was outdated when it was planned.
    """
    limit = comparable_time(view.as_of or "")
    deleted = [
        (partition, slice_.file_id, comparable_time(slice_.instant), clean)
        for clean, files in taken.items()
        for partition, names in files.items()
        for slice_ in map(_slice_of, names)
        if slice_ is not None and comparable_time(slice_.instant) <= limit
    ]
    if not deleted:
        return None
    hidden = view.hidden()
    # Logs beside a later compaction, whose slice of that moment is gone, make one of their own, which held nothing then.
    latest = {(g.partition, g.file_id): comparable_time(g.latest.instant) for g in view.groups()}
    kept = {group: instant for group, instant in latest.items() if instant <= limit}
    found = [
        (instant, clean, (partition, file_id))
        for partition, file_id, instant, clean in deleted
        if (partition, file_id) not in hidden and kept.get((partition, file_id), "") <= instant
    ]
    if found:
        known = _known_groups(ctx, timeline)
        found = [each for each in found if each[2] in known]
    return max(found)[1] if found else None


def _known_groups(ctx: TableContext, timeline: Timeline) -> set[tuple[str, str]]:
    """The groups that are visible now, or were until an instant of the timeline replaced them.

    What hid any other one is archived, so it came before every moment that can be read.
    """
    visible = {(group.partition, group.file_id) for group in FileSystemView(ctx, timeline).groups()}
    return visible | replaced_groups(ctx, timeline)


class _Slice(NamedTuple):
    file_id: str
    instant: str


def _slice_of(name: str) -> _Slice | None:
    """The slice that a data file belongs to."""
    base = parse_base_file(name)
    if base is not None:
        return _Slice(base.file_id, base.instant)
    log = parse_log_file(name)
    return None if log is None else _Slice(log.file_id, log.base_instant)
