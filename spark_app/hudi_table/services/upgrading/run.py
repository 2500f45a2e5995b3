"""Bringing a table to another version, so that whatever dies on the way leaves it whole in the one
or the other, and the next run goes on.

The order: a note that keeps our writers away; what waits is executed, and logs are merged where the
other version names them otherwise; a decision in the chain, which ends every attempt that began
before; the timeline and the archive are written anew beside the old ones, where no reader of the
old version looks; then one put of `hoodie.properties` makes the table the new one; then the old
files go, and the note. Until that put every reader has the old table, from it on the new one.
Section 2.9 of `docs/explanation/commit-protocol.md`.

Writers of other engines know no note: they must have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hudi_table.errors import (
    CorruptTableError,
    InvalidRequestError,
    UnsupportedTableError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.metadata.definitions import undefine_all_but_users
from hudi_table.model.counts import counted
from hudi_table.model.names import parse_log_file
from hudi_table.model.table.layouts import Layout
from hudi_table.model.table.readers import Reader
from hudi_table.model.timeline.conflict_keys import CLEANING, METADATA, TABLE
from hudi_table.model.timeline.instants import (
    WRITE_ACTIONS,
    Action,
    format_instant_time,
    parse_instant,
    planner_claim_time,
)
from hudi_table.model.timeline.settled import Settled
from hudi_table.services.cleaning.service import CleaningService
from hudi_table.services.clustering.service import ClusteringService
from hudi_table.services.compaction.service import CompactionService
from hudi_table.services.planning import Choose
from hudi_table.services.savepoints import create_savepoint, delete_savepoint
from hudi_table.services.upgrading.archive import archived_times, bring_archive, bring_older, older_than_archived
from hudi_table.services.upgrading.files import completion_times, renamed, rewritten
from hudi_table.services.upgrading.merging import refuse_logs
from hudi_table.services.upgrading.plan import (
    SAVED_BEFORE,
    Change,
    VersionPlan,
    check_colons,
    check_version,
    index_definitions,
    keeps_indexes,
    new_context,
    outlived,
    planned,
    refuse_readers,
)
from hudi_table.table.commit.recovery import recover, recover_planner
from hudi_table.table.commit.transaction import planning
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import kept_properties
from hudi_table.table.timeline.active import load_timeline, refuse_other_version
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_time
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.version_change import ChangeRight, VersionChange, being_changed, noted_change
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files

ATTEMPTS_MAX = 5
FILES_AT_ONCE = 16
_EVERYTHING = frozenset({TABLE, CLEANING, METADATA})
_DECISION = "upgrade"
"""The word behind the instant of a decision, as the file that it makes is called; no engine takes
it for an instant."""
_LATEST_ALONE = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}


class _CleanBefore(CleaningService):
    """Leaves nothing to readers of the last minute: the other version would take it for rows."""

    def _published_choice(self) -> Choose:
        return self.choice(self.ctx, force=self.request.force)


@dataclass(frozen=True, slots=True)
class VersionResult:
    """What a change of the version did. `timeline_files` and `archived` instants were written anew;
    `source` is `target` where only what an earlier run had left was ended, or nothing was to do."""

    source: int
    target: int
    timeline_files: int = 0
    archived: int = 0

    @property
    def message(self) -> str:
        """In a sentence."""
        if self.source == self.target:
            return f"the table has version {self.target}"
        written = f"{counted(self.timeline_files, 'timeline file')} and {counted(self.archived, 'archived instant')}"
        return f"the table was brought from version {self.source} to {self.target}; {written} were written anew"


def plan_version(ctx: TableContext, target: int, readers: Iterable[Reader] = ()) -> VersionPlan:
    """A dry run: what a change would do, and which of the `readers` it would take the table from.
    Raises as `bring_to` where it would not begin."""
    return planned(ctx, check_version(ctx, target), readers)


@logged("upgrade")
def bring_to(
    ctx: TableContext,
    target: int,
    *,
    resume: bool = False,
    readers: Iterable[Reader] = (),
    savepoint: bool = False,
    attempt: str = "",
) -> VersionResult:
    """Bring the table to version `target`. `resume`: go on with what another process has begun,
    which has ended. `savepoint`: keep the newest write as it is before, once logs are merged.
    `attempt`: by which the note names this one. Afterwards `ctx` is of the new version.

    Raises InvalidOptionError for a version that is not written, InvalidRequestError that names what
    is pending, a change that has begun, or one of the `readers` that could no longer read the
    table; UnsupportedTableError for a table that would not be written in that version,
    WriteConflictError if writers keep coming, WriteAbortedError if another process has gone on with
    it.
    """
    source = ctx.config.version
    begun = noted_change(ctx.storage)
    if begun is not None and not resume:
        raise being_changed(ctx, begun)
    if begun is None:
        refuse_other_version(ctx)
        if source == target:
            return VersionResult(source, target)
        check_version(ctx, target)
    if source != target:
        refuse_readers(ctx, target, readers)
    change = VersionChange(source, target, attempt) if attempt else VersionChange(source, target)
    right = ChangeRight.taken(ctx, change, resume=begun is not None)
    ctx.changes_version = True
    try:
        return _bring(ctx, right, None if begun is None else begun.target, savepoint=savepoint)
    finally:
        ctx.changes_version = False


def _bring(ctx: TableContext, right: ChangeRight, begun: int | None, *, savepoint: bool) -> VersionResult:
    """Under the note; `begun`: to which version an earlier run was bringing the table."""
    source, target = right.change.source, right.change.target
    # Before the note another run may have come to its end.
    refuse_other_version(ctx)
    if source in (begun, target):
        # The earlier one has ended but for what is left over, or it is given up.
        _leave(ctx, right)
    if source == target:
        right.end()
        return VersionResult(source, target)
    try:
        change = check_version(ctx, target)
        _prepare_and_decide(ctx, change, savepoint=savepoint)
        done = _convert(ctx, change, right)
    except WriteAbortedError:
        raise
    except (InvalidRequestError, UnsupportedTableError, WriteConflictError, CorruptTableError):
        if ctx.config.version == source:
            _leave(ctx, right)
            right.end()
        raise
    _leave(ctx, right)
    right.end()
    return done


@relists
def _prepare_and_decide(ctx: TableContext, change: Change, *, savepoint: bool) -> None:
    """Until a snapshot shows nothing that waits, and the chain takes the decision on it."""
    for _ in range(ATTEMPTS_MAX):
        _prepare(ctx, change)
        if savepoint and load_timeline(ctx).commits:
            # Of slices without logs: one that kept logs would stand in the way of a downgrade.
            create_savepoint(ctx, comment=f"{SAVED_BEFORE}{change.config.version}")
        with planning(ctx, Action.RESTORE) as txn:
            _refuse_pending(ctx, txn.timeline, txn.time)
            if _logs_left(ctx, change, txn.timeline):
                txn.withdraw()
                continue
            check_colons(ctx, change, txn.timeline)
            txn.plan(b"", _EVERYTHING, file=f"{txn.time}.{_DECISION}")
            return
    raise WriteConflictError(
        f"writers came between in each of {ATTEMPTS_MAX} attempts; stop them, then begin again", base_path=ctx.base_path
    )


@relists
def _prepare(ctx: TableContext, change: Change) -> None:
    """Execute what waits, and merge all logs."""
    recover(ctx, load_timeline(ctx))
    for time in load_timeline(ctx).planner_claims:
        # Of a planner that gives way, or of a run of this that died; nothing is written under it.
        recover_planner(ctx, time)
    engine = LocalEngine()
    cleaning, clustering, compaction = _CleanBefore(ctx), ClusteringService(ctx), CompactionService(ctx)
    for service in (cleaning, clustering, compaction):
        for instant in service.pending():
            service.execute(instant, engine=engine)
    if change.merges_logs:
        compaction({"hoodie.compaction.strategy": "UnBounded"}, force=True).run(engine=engine)
    if change.drops_older_logs:
        for kept in outlived(ctx, change):
            # Who could publish it again writes where the table has no timeline then.
            delete_savepoint(ctx, kept.instant, writers_stopped=True)
        cleaning(_LATEST_ALONE, force=True).run(engine=engine)


def _refuse_pending(ctx: TableContext, timeline: Timeline, own: str) -> None:
    claims = [time for time in timeline.planner_claims if time != own]
    waiting = [i.file_name for i in timeline.pending if not timeline.is_leftover(i) and i.time != own]
    found = sorted([*waiting, *claims])
    if found:
        raise InvalidRequestError(
            f"{', '.join(found[:5])}{' …' if len(found) > 5 else ''} {'is' if len(found) == 1 else 'are'} pending: stop all writers, then "
            f"{_remedy(ctx, found[0])}, and begin again",
            base_path=ctx.base_path,
        )


def _remedy(ctx: TableContext, name: str) -> str:
    """How what is pending ends, by the name of its file: a write alone can be taken back."""
    instant = parse_instant(name)
    if instant is not None and instant.action is Action.CLEAN:
        return f"end it (hudictl clean {ctx.base_path} --yes)"
    if instant is not None and instant.grouped_action in WRITE_ACTIONS:
        return f"let it end, or take it back (hudictl rollback {ctx.base_path} {instant.time} --yes --writers-stopped)"
    return "let it end"


def _logs_left(ctx: TableContext, change: Change, timeline: Timeline) -> bool:
    """Whether a log stands where the other version would read it otherwise."""
    refuse_logs(ctx, timeline, change.merging)
    if not change.merges_logs:
        return False
    if any(slice_.logs for slice_ in FileSystemView(ctx, timeline).latest_slices()):
        return True
    if not change.drops_older_logs:
        return False
    names = (parse_log_file(info.path.rpartition("/")[2]) for info in list_data_files(ctx.storage))
    left = next((name for name in names if name is not None), None)
    if left is not None:
        raise InvalidRequestError(
            f"the table keeps a log of {left.base_instant}, which the other version would take for one of another slice; cleaning kept it, as for a "
            "savepoint: delete savepoints that are not needed any more, and begin again",
            base_path=ctx.base_path,
        )
    return False


def _convert(ctx: TableContext, change: Change, right: ChangeRight) -> VersionResult:
    """Write the timeline and the archive anew, then put the properties."""
    source = ctx.config.version
    right.prove()
    drop_metadata_table(ctx, f"the table was brought from version {source} to {change.config.version}")
    if keeps_indexes(ctx, change):
        undefine_all_but_users(ctx)
    for path in index_definitions(ctx, change):
        right.delete(path)
    files, archived = _rewrite(ctx, change, right) if change.moves else (0, 0)
    # Whoever slept since the last look must not make another's half-written timeline the table's.
    right.prove()
    kept_properties.forget(ctx.storage, set(change.updates))
    replace_properties(ctx, change.updates)
    ctx.bodies.clear()
    ctx.settled = Settled()
    return VersionResult(source, ctx.config.version, files, archived)


def _rewrite(ctx: TableContext, change: Change, right: ChangeRight) -> tuple[int, int]:
    new, timeline = new_context(ctx, change), load_timeline(ctx)
    archive = archived_times(ctx)
    active = {i.time for i in timeline.completed}
    changed = {i.time: _written(ctx, timeline, i.file_name) for i in timeline.completed}
    times = completion_times({**archive, **changed}, (i.time for i in timeline.instants))
    # What an earlier attempt has left may bear other completion times.
    _clear(right, change.layout)
    archived = bring_archive(ctx, new, active, times, right.renew_if_due)
    older = older_than_archived(timeline, change.layout, archive)
    right.renew_if_due()
    bring_older(ctx, new, timeline, older, times)
    # What has not completed is the claim of a writer that is about to find the note, and to take it back.
    stays = {(i.time, i.grouped_action) for i in timeline.completed} - {(i.time, i.grouped_action) for i in older}
    staying = (name for name in timeline.files if _of(name) in stays)
    names = renamed(staying, change.layout, times)
    LocalEngine(FILES_AT_ONCE).map(lambda name: _copy(right, change.layout, name, names[name]), sorted(names))
    return len(names), archived + len(older)


def _of(name: str) -> tuple[str, Action] | None:
    instant = parse_instant(name)
    return (instant.time, instant.grouped_action) if instant else None


def _written(ctx: TableContext, timeline: Timeline, name: str) -> str:
    """When an instant completed: as its file tells, else when that was written, in the table's
    zone."""
    instant = parse_instant(name)
    told = instant.completion if instant else ""
    return told or format_instant_time(local_time(ctx, timeline.files[name]))


def _copy(right: ChangeRight, layout: Layout, name: str, new: str) -> None:
    ctx = right.ctx
    path = ctx.layout.timeline_path(name)
    try:
        data = rewritten(name, ctx.storage.get(path), layout)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTableError(
            f"{path} cannot be brought to another version: {error}", base_path=ctx.base_path, path=path
        ) from error
    right.put(layout.timeline_path(new), data)


def _leave(ctx: TableContext, right: ChangeRight) -> None:
    """Leave the table as its properties tell: the timelines of other layouts go, and what the
    decision made."""
    for layout in ctx.layout.others:
        _clear(right, layout)
    for path in _files_in(ctx.storage, ctx.layout):
        if path.endswith(f".{_DECISION}"):
            right.delete(path)


def _clear(right: ChangeRight, layout: Layout) -> None:
    """Delete the files of a timeline that is not, or not yet, the table's: of version 6 those with
    names of instants, of others the whole folder."""
    for path in _files_in(right.ctx.storage, layout):
        right.delete(path)


def _files_in(storage: Storage, layout: Layout) -> Iterator[str]:
    if not layout.other_folder:
        yield from (info.path for info in storage.list(layout.timeline_folder))
        return
    for info in storage.list_dir(layout.timeline_folder)[1]:
        # On a local disk Java keeps check sums beside them: one of an earlier file would make the new one unreadable.
        name = info.path.rpartition("/")[2].removesuffix(".crc").removeprefix(".")
        if parse_instant(name) or planner_claim_time(name) or name.endswith(f".{_DECISION}"):
            yield info.path
