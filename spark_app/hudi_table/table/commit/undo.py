"""Taking completed instants back: rollbacks and restores that were decided as plans of the chain.

The plan, `R.rollback.requested` or `R.restore.requested`, touches the whole table, so every attempt
whose snapshot is older than it fails, and whoever claims an instant later carries the plan out
first: nobody works beside it. Each instant is aborted in the chain, behind its commit: a claim of
it that a paused process creates late is that of an aborted instant, which nobody publishes again.
Then, the newest first, requested and inflight files go before the completed one, and its files, and
at last R completes. Every step is idempotent, by anybody.

Facts (measured on Hudi 0.15.0): all timeline files of the instants go, base files are deleted,
blocks of logs taken back; a restore also removes the rollbacks that are newer than its savepoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hudi_table.errors import CorruptTableError, UnavailableError
from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.table.commit.beside.locking import under_lock
from hudi_table.table.commit.rollback import (
    complete,
    delete_claim,
    instant_record,
    rollback_record,
    sweep,
    take_back,
    written_by,
)
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store import retry
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline, records_of
from hudi_table.table.timeline.bucket_count import sync_bucket_properties
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import encode_record
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.hash_rings import drop_rings
from hudi_table.table.view.listing import list_data_files

ABORT_ATTEMPTS_MAX = 1_000
REQUESTS_AHEAD = 16
"""Logs looked into at once: waiting for a store, not work."""

UNDOING = frozenset({Action.ROLLBACK, Action.RESTORE})
TAKEN_BACK = "completed commits were taken back by a rollback or a restore"
"""Why a table has no metadata table any more."""


@dataclass(frozen=True, slots=True)
class Undo:
    """A plan: `targets` are taken back, the newest first; `savepoint` is that of a restore, '' for
    a rollback."""

    instant: Instant
    targets: tuple[Instant, ...]
    savepoint: str = ""

    @property
    def times(self) -> frozenset[str]:
        """The instants that are taken back."""
        return frozenset(target.time for target in self.targets)


def restore_plan(targets: Iterable[Instant], savepoint: str) -> bytes:
    """The requested file of a restore."""
    infos = [{"commitTime": target.time, "action": target.action.value} for target in targets]
    return encode_record(
        "HoodieRestorePlan", {"instantsToRollback": infos, "version": 2, "savepointToRestoreTimestamp": savepoint}
    )


def planned_undo(ctx: TableContext, instant: Instant) -> Undo:
    """The plan of a rollback or restore, pending or completed. Raises CorruptTableError."""
    requested = instant.with_state(State.REQUESTED)
    try:
        (record,) = records_of(ctx, requested)
    except ValueError as error:
        raise CorruptTableError(
            f"{requested.file_name} is no plan", base_path=ctx.base_path, path=requested.file_name
        ) from error
    one = instant.action is Action.ROLLBACK
    infos = [record["instantToRollback"]] if one else record["instantsToRollback"]
    targets = [Instant(info["commitTime"], Action(info["action"]), State.COMPLETED) for info in infos]
    newest_first = sorted(targets, key=lambda target: comparable_time(target.time), reverse=True)
    return Undo(instant, tuple(newest_first), record.get("savepointToRestoreTimestamp") or "")


def planned_undos(ctx: TableContext, timeline: Timeline, instants: Iterable[Instant]) -> Iterator[Undo]:
    """The plans of those of the instants that are rollbacks or restores and have one. Raises as
    `planned_undo`."""
    for instant in instants:
        if instant.action in UNDOING and instant.with_state(State.REQUESTED).file_name in timeline.files:
            yield planned_undo(ctx, instant)


def is_decided(ctx: TableContext, instant: Instant) -> bool:
    """Whether a pending rollback or restore was decided as a plan of the chain: those of other
    engines, and of failed writes, were not."""
    return bool(decided_undos(ctx, [instant]))


def decided_undos(ctx: TableContext, instants: Sequence[Instant]) -> list[Instant]:
    """Those of the instants that were decided as plans: rollbacks and restores of completed writes,
    and indexing. However many there are, the chain is read to its end once.

    A plan of another action is none of theirs: a planner may have drawn the time of a rollback that
    was withdrawn, of which a late inflight file is left.
    """
    times = {instant.time for instant in instants}
    found = chain.find_decisions(ctx, times, chain.known_tail(ctx).sequence) if times else {}
    if len(found) < len(times):
        # What this process knows of the chain may be older than the plan.
        found = chain.find_decisions(ctx, times, chain.read_tail(ctx).sequence)
    plans = {time: entry for time, (_, entry) in found.items() if entry.kind is Kind.PLAN}
    return [instant for instant in instants if instant.time in plans and plans[instant.time].is_of(instant)]


def finish_undos(ctx: TableContext, timeline: Timeline) -> bool:
    """Carry out the decided rollbacks and restores that are pending; whether there was one: then
    the timeline is another."""
    waiting = decided_undos(ctx, [i for i in timeline.pending if i.action in UNDOING])
    for instant in waiting:
        carry_out(ctx, planned_undo(ctx, instant))
    return bool(waiting)


@under_lock
def carry_out(ctx: TableContext, undo: Undo) -> None:
    """All steps after the plan. What was done before is found done."""
    retry.put(ctx.storage, ctx.layout.timeline_path(undo.instant.with_state(State.INFLIGHT).file_name), b"")
    _drop_metadata(ctx)
    for target in undo.targets:
        _abort(ctx, target.time)
    timeline = load_timeline(ctx)
    for target in undo.targets:
        _forget(ctx, timeline, target)
    taken = [take_back(ctx, path, undo.times, undo.instant.time) for path in files_of(ctx, undo.times)]
    drop_rings(ctx, undo.times)
    for target in undo.targets:
        sweep(ctx, target.time)
    sync_bucket_properties(ctx, load_timeline(ctx))
    records = {t: rollback_record(ctx, t, undo.instant.time, taken) for t in undo.targets}
    if undo.instant.action is Action.ROLLBACK:
        complete(ctx, undo.instant, encode_record("HoodieRollbackMetadata", records[undo.targets[0]]))
        return
    for instant in timeline.instants:
        since = comparable_time(undo.savepoint) < comparable_time(instant.time) < comparable_time(undo.instant.time)
        if instant.action is Action.ROLLBACK and since:
            _forget(ctx, timeline, instant)
    report = {
        "startRestoreTime": undo.instant.time,
        "timeTakenInMillis": 0,
        "instantsToRollback": [target.time for target in undo.targets],
        "hoodieRestoreMetadata": {target.time: [record] for target, record in records.items()},
        "version": 1,
        "restoreInstantInfo": [instant_record(target) for target in undo.targets],
    }
    complete(ctx, undo.instant, encode_record("HoodieRestoreMetadata", report))


def _drop_metadata(ctx: TableContext) -> None:
    """The metadata table goes first, and with it what is being built of it: taking back its deltas
    too would be no less work than building it again."""
    timeline = load_timeline(ctx)
    if timeline.has_metadata or ctx.config.metadata_partitions:
        drop_metadata_table(ctx, TAKEN_BACK)
    for instant in timeline.pending:
        if instant.action is Action.INDEXING and is_decided(ctx, instant):
            delete_claim(ctx, timeline, instant)


def files_of(ctx: TableContext, instants: frozenset[str]) -> list[str]:
    """The data files that instants wrote, in whole or in part: told by the names of base files and
    by the blocks of logs.

    A log's token is no proof: Hudi 1.1.1 takes that of the log before its own, which may be one of
    ours (measured).
    """
    paths = [info.path for info in list_data_files(ctx.storage)]

    def wrote_any(path: str) -> bool:
        name = path.rpartition("/")[2]
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            return base.instant in instants
        return log is not None and (log.base_instant in instants or bool(written_by(ctx, path) & instants))

    found = LocalEngine(REQUESTS_AHEAD).map(wrote_any, paths)
    return [path for path, wrote in zip(paths, found, strict=True) if wrote]


def _abort(ctx: TableContext, time: str) -> None:
    """The chain's last word of an instant that is taken back."""
    for _ in range(ABORT_ATTEMPTS_MAX):
        tail = chain.read_tail(ctx)
        decision = chain.find_decision(ctx, time, tail.sequence)
        if decision is not None and decision[1].kind is Kind.ABORT:
            return
        # A slot behind a tail that was seen long ago may be one that was trimmed.
        fresh = ctx.clock.boot_seconds() - tail.seen_boot_seconds <= ctx.settings.fresh_seconds
        if fresh and chain.append_abort(ctx, tail, time):
            return
    raise UnavailableError(f"no abort of {time} in {ABORT_ATTEMPTS_MAX} attempts", base_path=ctx.base_path)


def _forget(ctx: TableContext, timeline: Timeline, instant: Instant) -> None:
    """Delete the timeline files of an instant, the completed one last."""
    for name in timeline.own_names(instant):
        retry.delete(ctx.storage, ctx.layout.timeline_path(name))
