"""Savepoints: a commit whose files no clean deletes, to read or to restore later.

A savepoint is decided in the chain as a plan is, against cleans: of a clean and a savepoint that
are planned side by side, the later one lists again. Hudi's own requested and inflight files of a
savepoint are not needed: Hudi 0.15.0 and 1.1.1 make them themselves when they delete one
(`tests/interop/test_cleaning.py`).
"""

from __future__ import annotations

import getpass
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

from hudi_table.errors import ExpiredError, InvalidRequestError, ObjectNotFoundError
from hudi_table.model.given import checked_call
from hudi_table.model.names import parse_log_file
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.conflict_keys import CLEANING
from hudi_table.model.timeline.instants import Action, Instant, comparable_time, parse_instant
from hudi_table.read.as_of import check_retained
from hudi_table.services.archiving.execute import archive_kept
from hudi_table.services.base import Unplanned
from hudi_table.services.cleaning.stored import StoredGroup, StoredSlice, stored_groups
from hudi_table.services.compaction.debt import CountedLogs, Seen
from hudi_table.services.planning import Choose, Draft, publish
from hudi_table.table.commit.publish import drop_claim
from hudi_table.table.commit.undo import planned_undos
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archived_completions, hidden_by
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.relisting import relists, with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import pending_clusterings
from hudi_table.table.view.file_groups import LogFile
from hudi_table.table.view.file_system_view import FileSystemView, replaced_at
from hudi_table.table.view.listing import list_data_files
from hudi_table.table.view.savepoints import Savepoint, savepoint_instant, savepoints
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_timeline


@relists
def create_savepoint(ctx: TableContext, instant: str = "", *, comment: str = "", by: str = "") -> ServiceResult:
    """Keep the commit of `instant`, by default the newest; one that is kept already stays as it is
    (`replayed`).

    Raises InvalidRequestError if there is no such commit, if it is being taken back or if an older
    write is under way, ExpiredError if files that it needs were cleaned or a pending clean deletes
    them, WriteConflictError, UnsupportedTableError.
    """
    refuse_unsupported(ctx.config, merges=False)
    kept: list[str] = []
    planned = publish(ctx, Action.SAVEPOINT, _choice(ctx, instant, comment, by, kept))
    if planned is not None:
        _check_still_there(ctx, kept[0])
    count = planned.files_before if planned else 0
    message = f"savepoint {kept[0]}" + ("" if planned else " was there before")
    return ServiceResult(ServiceType.SAVEPOINT, kept[0], message, {"filesKept": float(count)}, planned is None)


def _check_still_there(ctx: TableContext, instant: str) -> None:
    """Let the savepoint go again if an archiver has taken its commit meanwhile: that had listed the
    timeline before."""
    timeline = load_timeline(ctx)
    if instant in timeline.commit_times:
        return
    for name in _names_of(timeline, instant):
        retry.delete(ctx.storage, ctx.layout.timeline_path(name))
    raise ExpiredError(
        f"{instant} was archived while its savepoint was made: keep a newer commit (hudictl timeline shows them)",
        base_path=ctx.base_path,
        instant=instant,
    )


def _choice(ctx: TableContext, instant: str, comment: str, by: str, kept: list[str]) -> Choose:
    """The savepoint of a commit, None if it is there; `kept` becomes that commit's instant."""

    def choose(view: FileSystemView) -> Draft | None:
        check_timeline(ctx, view.timeline)
        commit = _commit(ctx, view.timeline, instant)
        kept[:] = [commit.time]
        target = savepoint_instant(commit.time)
        if view.timeline.ended(target) is not None:
            return None
        _check_nothing_older(ctx, view.timeline, commit.time)
        _check_stays(ctx, view.timeline, commit.time)
        try:
            files = _files(ctx, view.timeline, commit.time)
        except ExpiredError as error:
            if instant:
                raise
            # The newest one was asked for, and there is a newer one now.
            raise ObjectNotFoundError(error.message, base_path=ctx.base_path, path=commit.file_name) from error
        found = Savepoint(commit.time, by or _user(), int(ctx.clock.now().timestamp() * 1000), comment, files)
        count = sum(map(len, files.values()))
        said = ServicePlan(
            ServiceType.SAVEPOINT, "asked for", files_before=count, files_after=count, details=(f"keep {commit.time}",)
        )
        return Draft(found.to_avro(), frozenset({CLEANING}), said, target)

    return choose


@relists
def list_savepoints(ctx: TableContext) -> list[Savepoint]:
    """All savepoints, oldest first."""
    return savepoints(ctx, load_timeline(ctx))


@relists
def delete_savepoint(ctx: TableContext, instant: str, *, writers_stopped: bool = False) -> None:
    """Let go of a savepoint; the next clean may delete its files. `writers_stopped`: every process
    that ever wrote the table has ended or left it. Its commit is archived before, if Hudi has
    archived younger ones. Raises InvalidRequestError if there is none, if somebody could publish it
    again, or if its commit cannot be archived yet.
    """
    timeline = load_timeline(ctx)
    found = [i for i in timeline.instants if i.action is Action.SAVEPOINT and i.time == instant]
    if not found:
        known = ", ".join(i.time for i in timeline.completed if i.action is Action.SAVEPOINT) or "none"
        raise InvalidRequestError(f"there is no savepoint {instant!r}; the table has {known}", base_path=ctx.base_path)
    if not writers_stopped:
        _check_old(ctx, timeline, instant)
    # A claim that its maker left would bring it back.
    upto = chain.read_tail(ctx).sequence
    for time in timeline.planner_claims:
        decision = chain.find_decision(ctx, time, upto)
        if decision is not None and _is_savepoint_of(decision[1].name, instant):
            drop_claim(ctx, time)
    left = tuple(i for i in timeline.instants if i not in found)
    if hidden_by(ctx, timeline, replace(timeline, instants=left)):
        # Without the savepoint the timeline would start with its commit, and what was archived behind that would not count.
        archive_kept(ctx, instant)
    for name in _names_of(timeline, instant):
        retry.delete(ctx.storage, ctx.layout.timeline_path(name))


def _check_nothing_older(ctx: TableContext, timeline: Timeline, instant: str) -> None:
    """Refuse while an older write is under way: a restore goes by instants, and would leave what it
    commits later. Plans change no rows, and an aborted write commits nothing."""
    plans = pending_clusterings(ctx, timeline)
    upto = chain.read_tail(ctx).sequence
    for found in timeline.pending:
        if not found.is_write or found in plans or found.time >= instant:
            continue
        decision = chain.find_decision(ctx, found.time, upto)
        if decision is None or decision[1].kind is not Kind.ABORT:
            raise InvalidRequestError(
                f"the {found.action.value} {found.time} is pending and older than {instant}: a restore would not take it back; wait "
                "until it has ended, or roll it back if it is dead, then make the savepoint",
                base_path=ctx.base_path,
                instant=found.time,
            )


def _check_stays(ctx: TableContext, timeline: Timeline, instant: str) -> None:
    """Refuse a commit that a rollback or restore is about to take back, though readers see it
    still."""
    for undo in planned_undos(ctx, timeline, timeline.pending):
        if instant in undo.times:
            raise InvalidRequestError(
                f"{instant} is being taken back by the {undo.instant.action.value} {undo.instant.time}, which has not ended: the next write ends it, "
                "or the same call once more; then make the savepoint",
                base_path=ctx.base_path,
                instant=undo.instant.time,
            )


def _check_old(ctx: TableContext, timeline: Timeline, instant: str) -> None:
    """Refuse while its maker, or a helper that looked before it was there, may still publish it,
    after its files were cleaned."""
    made = max(timeline.files[name] for name in _names_of(timeline, instant))
    left = ctx.settings.quarantine_seconds - (store_now(ctx) - made).total_seconds()
    if left > 0:
        raise InvalidRequestError(
            f"savepoint {instant} is young, and a process that writes the table could still publish it again: wait another "
            f"{left:.0f} s, or end all writers of the table and confirm it (writers_stopped=True, --writers-stopped)",
            base_path=ctx.base_path,
            instant=instant,
        )


def _names_of(timeline: Timeline, instant: str) -> list[str]:
    """The files of the savepoint of an instant."""
    return timeline.own_names(savepoint_instant(instant))


def _is_savepoint_of(name: str, instant: str) -> bool:
    found = parse_instant(name)
    return found is not None and (found.action, found.time) == (Action.SAVEPOINT, instant)


def _commit(ctx: TableContext, timeline: Timeline, instant: str) -> Instant:
    commits = timeline.commits
    found = commits[-1:] if not instant else [i for i in commits if i.time == instant]
    if not found:
        newest = f"the newest is {commits[-1].time}" if commits else "there is none"
        raise InvalidRequestError(
            f"there is no completed commit {instant!r} on the timeline to keep; {newest}", base_path=ctx.base_path
        )
    return found[0]


def _files(ctx: TableContext, timeline: Timeline, instant: str) -> dict[str, tuple[str, ...]]:
    """The files of every slice that was the newest of a visible group at `instant`."""
    try:
        check_retained(FileSystemView(ctx, timeline, instant))
    except ExpiredError as error:
        raise ExpiredError(
            f"{instant} cannot be kept any more: {error.message}", base_path=ctx.base_path, instant=instant
        ) from error
    files: dict[str, list[str]] = {}
    replaced = replaced_at(ctx, timeline.until(instant))
    counted = CountedLogs(ctx.storage, timeline, instant)
    for group in stored_groups(list_data_files(ctx.storage), timeline, replaced, partial(archived_completions, ctx)):
        for found in _current(group, instant):
            files.setdefault(group.partition, []).extend(_kept(found, counted))
    return {partition: tuple(names) for partition, names in sorted(files.items())}


def _current(group: StoredGroup, instant: str) -> list[StoredSlice]:
    """The newest slice at `instant`; logs beside a compaction that has no base file yet belong to
    the slice before."""
    limit = comparable_time(instant)
    slices = [found for found in group.slices if comparable_time(found.instant) <= limit]
    if group.replaced or not slices:
        return []
    has_base = any(name.endswith(".parquet") for name in slices[0].names)
    return slices[: 1 if has_base else 2]


def _kept(item: StoredSlice, counted: CountedLogs) -> list[str]:
    """The names of its files, without logs of which the kept commit shows nothing: who wrote them
    may still take them away."""
    logs = [
        LogFile(info.path, info.size, name)
        for info in item.files
        if (name := parse_log_file(info.path.rpartition("/")[2]))
    ]
    gone = {log.path for log, seen in counted.of(logs) if seen in (Seen.NOTHING, Seen.GONE)}
    return [info.path.rpartition("/")[2] for info in item.files if info.path not in gone]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "hudictl"


@dataclass(frozen=True)
class SavepointService(Unplanned):
    """A commit is kept from cleans; see `services.base.Service`. The plan is decided and carried
    out in one step: none waits."""

    type: ClassVar[ServiceType] = ServiceType.SAVEPOINT

    @checked_call
    def __call__(self, instant: str = "", *, comment: str = "", plan: str = "") -> Self:
        """The service with the commit of `instant`, by default the newest. `plan`: digest of a dry
        run, which must still hold."""
        return self.with_request(ServiceRequest(plan=plan, instant=instant, comment=comment))

    def current_plan(self) -> ServicePlan | None:
        """The commit that would be kept; None if it is kept already. Raises as
        `create_savepoint`."""
        refuse_unsupported(self.ctx.config, merges=False)
        choose = _choice(self.ctx, self.request.instant, self.request.comment, "", [])
        draft = with_relists(self.ctx, lambda: choose(FileSystemView(self.ctx, load_timeline(self.ctx))))
        # Its content names the moment: what is kept is all that an approval can hold on to.
        return None if draft is None else draft.plan

    def work(self, engine: Engine) -> ServiceResult:
        """See `create_savepoint`."""
        del engine
        return create_savepoint(self.ctx, self.request.instant, comment=self.request.comment)
