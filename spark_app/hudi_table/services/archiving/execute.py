"""Archiving: what leaves is written to a new file of the archive, read back, and only then deleted
from the timeline. What an archive is, its layout tells: `logs.py` and `lsm.py`.

A crash leaves an instant in both, or twice in the archive; the next archiving goes on. Two
archivers at once write it twice and delete it once. Requested and inflight files go before the
completed one, so nothing archived ever looks pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.cleaning import oldest_needed
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.lifecycle import resolve_metadata_partitions, standing
from hudi_table.metadata.table import MetadataTable
from hudi_table.model.counts import counted
from hudi_table.model.names import HEARTBEAT, TEMP, join
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceResult, ServiceType
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.services.archiving.kinds import ARCHIVES
from hudi_table.services.archiving.plan import Leaving, Present, plan_archiving
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.services.archiving.replaced import Replaced
from hudi_table.services.archiving.trim import trim_chain
from hudi_table.table.commit.beside.locking import section
from hudi_table.table.commit.recovery import are_over, give_up_unclaimed, recover
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.commit.undo import decided_undos
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import confirm, load_timeline, records_if_there, unconfirmed_timeline
from hudi_table.table.timeline.bucket_count import sync_bucket_properties
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import store_now
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.write.checks.request import refuse_unsupported


@dataclass(slots=True)
class _Done:
    """What one run did."""

    instants: list[Instant] = field(default_factory=list)
    files_deleted: int = 0
    bytes_written: int = 0


@relists
@logged("archiving")
def archive(
    ctx: TableContext, options: Mapping[str, str] | None = None, *, force: bool = False
) -> ServiceResult | None:
    """Archive what is due by the options, or all that may leave (`force`); then trim the chain.
    None if nothing is due.

    Raises InvalidOptionError for settings that contradict each other, CorruptTableError if a
    timeline file cannot be read: nothing is deleted that is not in the archive.
    """
    refuse_unsupported(ctx.config)
    policy = ArchivePolicy.parse(options or {})
    timeline = unconfirmed_timeline(ctx, exact=True)
    if not _planned(ctx, timeline, policy, ctx.clock.now(), force=force, ageless=True).due:
        return None
    confirm(ctx, timeline)
    # Hudi's writers archive under the lock that they share, too.
    with section(ctx):
        return _archived(ctx, timeline if ctx.lock is None else load_timeline(ctx), policy, force=force)


def _archived(ctx: TableContext, timeline: Timeline, policy: ArchivePolicy, *, force: bool) -> ServiceResult | None:
    if recover(ctx, timeline):
        timeline = load_timeline(ctx)
    now = store_now(ctx)
    _release_metadata(ctx)
    leaving = _planned(ctx, timeline, policy, now, force=force)
    if not leaving.due:
        return None
    # A resize may leave only when the properties know it.
    sync_bucket_properties(ctx, timeline)
    marked = _marked(ctx)
    if not _give_up_unclaimed(ctx, timeline, leaving, marked, now):
        return None
    done = _Done()
    keep, merge = ARCHIVES[ctx.layout.archive]
    for instants, size in keep(ctx, timeline, leaving.instants, policy):
        _delete(ctx, instants, policy, now, done)
        done.bytes_written += size
    _sweep(ctx, {instant.time for instant in done.instants}, marked)
    merged = merge(ctx, policy)
    return _result(done, trim_chain(ctx, now), merged, leaving)


def archive_kept(ctx: TableContext, time: str) -> None:
    """Archive a commit that a savepoint keeps on the timeline while younger ones have left it, in
    whatever order. Whoever calls has made sure that nobody publishes it again. Raises
    InvalidRequestError for what it replaced and what no clean has taken yet, or while the metadata
    table needs it; as `archive`."""
    with section(ctx):
        _release_metadata(ctx)
        timeline = load_timeline(ctx)
        instant = next((i for i in timeline.commits if i.time == time), None)
        if instant is None:
            return
        if instant.action is Action.REPLACE_COMMIT and not Replaced(ctx).gone(instant):
            held = "files that it replaced are there; delete older savepoints, and clean (hudictl clean)"
        elif Present.of(ctx, store_now(ctx), _needed_by_metadata(ctx, timeline)).needs(instant):
            held = "the metadata table holds logs of it that are not compacted; end what is pending"
        else:
            held = ""
        if held:
            raise InvalidRequestError(
                f"younger writes than {time} are archived, so without its savepoint it has to be archived too, and cannot yet: {held}, then "
                "delete the savepoint",
                base_path=ctx.base_path,
                instant=time,
            )
        sync_bucket_properties(ctx, timeline)
        keep, _ = ARCHIVES[ctx.layout.archive]
        for instants, _ in keep(ctx, timeline, [instant], ArchivePolicy.parse({})):
            _forget(ctx, timeline, instants, _Done())


@relists
def preview(ctx: TableContext, options: Mapping[str, str] | None = None, *, force: bool = False) -> ServicePlan | None:
    """A dry run: what would leave now; ages are judged by this process's clock. None if nothing is
    due."""
    refuse_unsupported(ctx.config)
    policy = ArchivePolicy.parse(options or {})
    timeline = load_timeline(ctx)
    leaving = _planned(ctx, timeline, policy, ctx.clock.now(), force=force)
    if not leaving.due:
        return None
    states = timeline.states()
    gone = sum(len(states[i.time, i.grouped_action]) for i in leaving.instants)
    lines = [f"{i.time} {i.action.value}" for i in leaving.instants]
    return ServicePlan(
        ServiceType.ARCHIVING,
        _why(leaving),
        files_before=len(timeline.files),
        files_after=len(timeline.files) - gone,
        details=tuple(lines[:DETAILS_MAX]),
    )


def _planned(
    ctx: TableContext,
    timeline: Timeline,
    policy: ArchivePolicy,
    now: datetime,
    *,
    force: bool,
    ageless: bool = False,
) -> Leaving:
    """`ageless`: only whether it is worth to look closer, with no request to the store."""
    present = Present.of(ctx, now, "" if ageless else _needed_by_metadata(ctx, timeline))
    if ageless:
        present = replace(present, now=max([*timeline.files.values(), now]), quarantine_seconds=float("-inf"))
    gone: Callable[[Instant], bool] = (lambda _: True) if ageless else Replaced(ctx).gone
    return plan_archiving(timeline, policy, present, gone=gone, undone=partial(decided_undos, ctx), force=force)


def _release_metadata(ctx: TableContext) -> None:
    """Compact a metadata table, so that its logs need none of the instants that are to leave. One
    that was not told of a commit is dropped: once that has left, nothing shows it."""
    if resolve_metadata_partitions(ctx).ready and standing(ctx, load_timeline(ctx)) is not None:
        compact_metadata(ctx, 1)


def _needed_by_metadata(ctx: TableContext, timeline: Timeline) -> str:
    table = MetadataTable.load(ctx, timeline) if timeline.has_metadata else None
    return "" if table is None else oldest_needed(table)


def _delete(ctx: TableContext, archived: list[Instant], policy: ArchivePolicy, now: datetime, done: _Done) -> None:
    """Delete what is in the archive now, oldest first, as far as a fresh listing still lets it
    leave (a savepoint may have come)."""
    timeline = load_timeline(ctx)
    still = set(_planned(ctx, timeline, policy, now, force=True).instants)
    _forget(ctx, timeline, [instant for instant in archived if instant in still], done)


def _forget(ctx: TableContext, timeline: Timeline, archived: Iterable[Instant], done: _Done) -> None:
    states = timeline.states()
    for instant in archived:
        for state in states[instant.time, instant.grouped_action]:
            retry.delete(ctx.storage, ctx.layout.timeline_path(state.file_name))
            ctx.bodies.pop(state.file_name, None)
            done.files_deleted += 1
        done.instants.append(instant)


def _marked(ctx: TableContext) -> frozenset[str]:
    """Instants that have markers: listed once, since a write that leaves the timeline puts no more
    of them."""
    folders, _ = ctx.storage.list_dir(TEMP)
    return frozenset(folder.rstrip("/").rpartition("/")[2] for folder in folders)


def _give_up_unclaimed(
    ctx: TableContext, timeline: Timeline, leaving: Leaving, marked: frozenset[str], now: datetime
) -> bool:
    """Before the timeline passes an instant that another engine took back while its writer went on:
    it is still `marked`, and what its markers name would count from then on. False while its writer
    may still have the right to write, and with it put markers: that ends a quarantine after the
    abort, or else after the rollback."""
    left = [instant for instant in timeline.commits if instant not in leaving.instants]

    def passed(times: Iterable[str]) -> set[str]:
        """Those that the timeline is about to pass, and that have no file on it."""
        within = {time for time in times if not timeline.has_passed(time) and (not left or time < left[0].time)}
        return {time for time in within if not any(name.startswith(time) for name in timeline.files)}

    rollbacks = [instant for instant in timeline.completed if instant.action is Action.ROLLBACK]
    begun = now - timedelta(seconds=ctx.settings.quarantine_seconds)
    young = [instant for instant in rollbacks if timeline.files.get(instant.file_name, now) > begun]
    if not are_over(ctx, passed({*_taken_by(ctx, young), *open_rollbacks(ctx, timeline)}), now):
        return False
    unknown = passed(marked)
    for time in sorted(unknown & _taken_by(ctx, rollbacks if unknown else [])):
        give_up_unclaimed(ctx, time, confirmed_dead=True)
    return True


def _taken_by(ctx: TableContext, rollbacks: Iterable[Instant]) -> set[str]:
    """The instants that completed rollbacks name."""
    records = (record for instant in rollbacks for record in records_if_there(ctx, instant) or ())
    return {time for record in records for time in record["commitsRollback"]}


def _sweep(ctx: TableContext, times: set[str], marked: frozenset[str]) -> None:
    """Delete what writes that crashed after their decision left of themselves: markers and
    heartbeats."""
    left = [info.path for time in sorted(times & marked) for info in ctx.storage.list(join(TEMP, time))]
    beats = [info.path for info in ctx.storage.list(HEARTBEAT) if info.path.rpartition("/")[2] in times]
    for path in (*left, *beats):
        retry.delete(ctx.storage, path)


def _result(done: _Done, trimmed: int, merged: int, leaving: Leaving) -> ServiceResult:
    figures = {
        "instants": float(len(done.instants)),
        "filesDeleted": float(done.files_deleted),
        "bytesWritten": float(done.bytes_written),
        "chainEntriesTrimmed": float(trimmed),
        "archiveFilesMerged": float(merged),
    }
    message = f"{counted(len(done.instants), 'instant')} archived"
    if leaving.held_by:
        message += f"; {leaving.held_by}"
    return ServiceResult(ServiceType.ARCHIVING, "", message, figures)


def _why(leaving: Leaving) -> str:
    others = len(leaving.instants) - leaving.writes
    text = f"{counted(leaving.writes, 'write')} and {counted(others, 'other instant')} may leave the timeline"
    return f"{text}; {leaving.held_by}" if leaving.held_by else text
