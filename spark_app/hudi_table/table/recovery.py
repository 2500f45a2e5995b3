"""Failed writes: abort in the chain, roll back, wait out the quarantine, finish. Any process, any time.

The steps are those of `docs/commit-protocol.md` section 2.2. Every one is idempotent, and wrong suspicion is safe:
the chain decides once. Hudi's own pending table services (compaction, clustering, …) are left to Hudi.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any

from hudi_table.codec.avro_file import read_container, write_container
from hudi_table.codec.log_blocks import rollback_block, scan_blocks
from hudi_table.errors import (
    CorruptTableError,
    InvariantError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
)
from hudi_table.model.chain import ChainEntry, Kind, entry_path
from hudi_table.model.instants import WRITE_ACTIONS, Action, Instant, State
from hudi_table.model.names import (
    HEARTBEAT,
    HOODIE,
    TEMP,
    LogFileName,
    join,
    parse_base_file,
    parse_log_file,
    parse_marker,
)
from hudi_table.table import chain, settle
from hudi_table.table.context import TableContext
from hudi_table.table.instants import draw_instant
from hudi_table.table.listing import list_data_files
from hudi_table.table.materialise import materialise
from hudi_table.table.timeline import Timeline, body, load_timeline

_STORE_CLOCK = ".hoodie/.txn/clock"
ABORT_ATTEMPTS_MAX = 1_000


def recover(
    ctx: TableContext, timeline: Timeline, *, own: Instant | None = None, eager: bool = False
) -> tuple[str, ...]:
    """Roll forward or back every pending write that seems dead; returns the instants that were dealt with.

    `own` is the caller's claim, never touched, whose age is the store's present. `eager`: the caller knows that no
    other writer is alive, so every undecided instant is taken for dead at once (its quarantine still runs).
    """
    rollbacks = _open_rollbacks(ctx, timeline)
    waiting = [i for i in timeline.pending if i.action in WRITE_ACTIONS and (own is None or i.time != own.time)]
    if not waiting and not rollbacks:
        return ()
    now = timeline.files[own.file_name] if own is not None else _store_now(ctx)
    upto = chain.read_tail(ctx).sequence
    first = timeline.commits[0].time if timeline.commits else None
    done = []
    for instant in waiting:
        decision = chain.find_decision(ctx, instant.time, upto)
        kind = decision[1].kind if decision else None
        if decision is not None and kind is Kind.COMMIT:
            if materialise(ctx, decision[1]):
                done.append(instant.time)
            elif first is not None and instant.time < first:
                _delete_claim(ctx, timeline, instant.time)
        elif kind is Kind.ABORT:
            over = _quarantine_over(ctx, decision, now)
            # Its files were deleted when its rollback began; until the quarantine ends there is nothing more to do.
            if over or instant.time not in rollbacks:
                done += _roll_back(ctx, timeline, instant, over=over)
        elif instant.time in rollbacks and kind is None:
            # A rollback that another engine planned: even then nothing is deleted before the chain has aborted it.
            done += abort_and_roll_back(ctx, instant)
        elif (
            kind is Kind.PLAN
            or _is_clustering(ctx, timeline, instant)
            or (not eager and not _seems_dead(ctx, timeline, instant.time, now))
        ):
            continue
        elif first is not None and instant.time < first:
            # Nothing live can be older than the timeline: a claim that arrived late. Its files, if any, are archived.
            _delete_claim(ctx, timeline, instant.time)
        else:
            done += abort_and_roll_back(ctx, instant)
    known = {i.time for i in waiting}
    for time, rollback in rollbacks.items():
        if time not in known:
            action = _rolled_back_action(ctx, rollback)
            done += _roll_back(ctx, timeline, Instant(time, action, State.REQUESTED), over=True)
    return tuple(done)


def abort_and_roll_back(ctx: TableContext, instant: Instant, *, confirmed_dead: bool = False) -> list[str]:
    """Section 2.2 steps 2 to 4: create the abort entry, delete the files, finish when nothing late can come.

    An instant that was committed meanwhile is published instead; a published plan is left alone.
    """
    for _ in range(ABORT_ATTEMPTS_MAX):
        begun = ctx.clock.boot_seconds()
        timeline = load_timeline(ctx)
        tail = chain.read_tail(ctx)
        decision = chain.find_decision(ctx, instant.time, tail.sequence)
        if decision is None:
            if not timeline.claim_names(instant.time):
                # Archived or rolled back since it was suspected, and its entry trimmed: its files are not ours.
                return []
            if ctx.clock.boot_seconds() - begun > ctx.settings.quarantine_seconds / 2:
                continue
            entry = ChainEntry(Kind.ABORT, instant.time, "recovery", max_instant=max(tail.max_instant, instant.time))
            with contextlib.suppress(ObjectExistsError, OutcomeUnknownError):
                chain.put_entry(ctx, tail.sequence + 1, entry)
            # Read again in any case: the slot's content decides, not this request's reply.
            continue
        if decision[1].kind is Kind.COMMIT:
            materialise(ctx, decision[1])
            return [instant.time]
        if decision[1].kind is Kind.PLAN:
            return []
        return _roll_back(ctx, timeline, instant, over=confirmed_dead)
    raise InvariantError(f"no abort of {instant.time} in {ABORT_ATTEMPTS_MAX} attempts", base_path=ctx.base_path)


def reconcile_attempts(ctx: TableContext, time: str, keep: set[str]) -> None:
    """Delete the marked files that no write stat names: what retried or speculative tasks left behind.

    Raises InvariantError if a deleted file is still there, or a named one never had a marker.
    """
    marked = set(_marked_files(ctx, time))
    unmarked = sorted(keep - marked)
    if unmarked:
        raise InvariantError(f"{unmarked[0]} was written without a marker", base_path=ctx.base_path, instant=time)
    for path in sorted(marked - keep):
        settle.delete(ctx.storage, path)
        try:
            ctx.storage.head(path)
        except ObjectNotFoundError:
            continue
        raise InvariantError(f"{path} is still there after its deletion", base_path=ctx.base_path, instant=time)


def delete_all(ctx: TableContext, folder: str) -> None:
    """Delete every object below a folder."""
    for info in ctx.storage.list(folder):
        ctx.storage.delete(info.path)


def _roll_back(ctx: TableContext, timeline: Timeline, instant: Instant, *, over: bool) -> list[str]:
    """Steps 3 and 4 for an aborted instant; `over`: its quarantine has ended."""
    rollback = _open_rollbacks(ctx, timeline).get(instant.time)
    files = _files_of(ctx, instant.time)
    if rollback is None and not files and not timeline.claim_names(instant.time):
        return []
    if rollback is None:
        rollback = _claim_rollback(ctx, instant, files)
    settle.put(ctx.storage, f"{HOODIE}/{rollback.with_state(State.INFLIGHT).file_name}", b"")
    for path in files:
        _take_back(ctx, path, instant.time, rollback.time)
    if not over:
        return [instant.time]
    late = _files_of(ctx, instant.time)
    for path in late:
        _take_back(ctx, path, instant.time, rollback.time)
    _delete_claim(ctx, load_timeline(ctx), instant.time)
    report = _rollback_metadata(ctx, instant, rollback.time, [*files, *late])
    try:
        path = f"{HOODIE}/{rollback.with_state(State.COMPLETED).file_name}"
        settle.settle(lambda: ctx.storage.put_if_absent(path, report))
    except ObjectExistsError:
        pass
    for info in ctx.storage.list(join(TEMP, instant.time)):
        settle.delete(ctx.storage, info.path)
    settle.delete(ctx.storage, f"{HEARTBEAT}/{instant.time}")
    return [instant.time]


def _take_back(ctx: TableContext, path: str, instant: str, rollback: str) -> None:
    """Delete a file of an aborted instant; of a log that other instants wrote to as well, as Hudi may, take back the blocks."""
    folder, _, name = path.rpartition("/")
    log = parse_log_file(name)
    if log is None or _holds_only(ctx, path, instant):
        settle.delete(ctx.storage, path)
        return
    _, files = ctx.storage.list_dir(folder)
    names = [parse_log_file(info.path.rpartition("/")[2]) for info in files]
    versions = [n.version for n in names if n and (n.file_id, n.base_instant) == (log.file_id, log.base_instant)]
    # Hudi's own token of rollbacks; a second recovery may add a block that takes nothing more back.
    after = LogFileName(log.file_id, log.base_instant, max(versions) + 1, "1-0-1")
    settle.put(ctx.storage, join(folder, str(after)), rollback_block(rollback, instant))


def _holds_only(ctx: TableContext, path: str, instant: str) -> bool:
    try:
        with ctx.storage.open_read(path) as source:
            blocks = scan_blocks(source, path=path)
    except ObjectNotFoundError:
        return True
    return all(block.instant in ("", instant) for block in blocks)


def _claim_rollback(ctx: TableContext, instant: Instant, files: list[str]) -> Instant:
    floor = max(load_timeline(ctx).newest_time, ctx.tail.max_instant if ctx.tail else "")
    plan = _rollback_plan(ctx, instant, files)
    for _ in range(ABORT_ATTEMPTS_MAX):
        rollback = Instant(draw_instant(ctx, floor), Action.ROLLBACK, State.REQUESTED)
        try:
            ctx.storage.put_if_absent(f"{HOODIE}/{rollback.file_name}", plan)
            return rollback
        except (ObjectExistsError, OutcomeUnknownError):
            floor = rollback.time
    raise InvariantError("no rollback instant could be claimed", base_path=ctx.base_path, instant=instant.time)


def _open_rollbacks(ctx: TableContext, timeline: Timeline) -> dict[str, Instant]:
    """Instant that is rolled back → its oldest pending rollback."""
    found: dict[str, Instant] = {}
    for instant in timeline.pending:
        if instant.action is Action.ROLLBACK:
            for record in _plan_records(ctx, instant):
                found.setdefault(record["instantToRollback"]["commitTime"], instant)
    return found


def _plan_records(ctx: TableContext, rollback: Instant) -> list[dict[str, Any]]:
    return _records(ctx, rollback.with_state(State.REQUESTED))


def _records(ctx: TableContext, instant: Instant) -> list[dict[str, Any]]:
    """The records of an instant's Avro body. Raises CorruptTableError if it has another content."""
    data = body(ctx, instant)
    try:
        return read_container(data) if data else []
    except ValueError as error:
        raise CorruptTableError(
            f"{instant.file_name} cannot be read: {error}", base_path=ctx.base_path, path=instant.file_name
        ) from error


def _rolled_back_action(ctx: TableContext, rollback: Instant) -> Action:
    return Action(_plan_records(ctx, rollback)[0]["instantToRollback"]["action"])


def _quarantine_over(ctx: TableContext, decision: tuple[int, ChainEntry] | None, now: datetime) -> bool:
    """Whether H has passed since the abort became visible, by the store's timestamps."""
    if decision is None:
        return False
    aborted = ctx.storage.head(entry_path(decision[0])).modified
    return (now - aborted).total_seconds() >= ctx.settings.quarantine_seconds


def _seems_dead(ctx: TableContext, timeline: Timeline, time: str, now: datetime) -> bool:
    signs = [timeline.files[name] for name in timeline.claim_names(time)]
    signs += [info.modified for info in ctx.storage.list(join(TEMP, time))]
    with contextlib.suppress(ObjectNotFoundError):
        signs.append(ctx.storage.head(f"{HEARTBEAT}/{time}").modified)
    return (now - max(signs)).total_seconds() >= ctx.settings.suspect_after_seconds


def _store_now(ctx: TableContext) -> datetime:
    settle.put(ctx.storage, _STORE_CLOCK, b"")
    return ctx.storage.head(_STORE_CLOCK).modified


def _delete_claim(ctx: TableContext, timeline: Timeline, time: str) -> None:
    for name in timeline.claim_names(time):
        settle.delete(ctx.storage, f"{HOODIE}/{name}")


def _is_clustering(ctx: TableContext, timeline: Timeline, instant: Instant) -> bool:
    requested = instant.with_state(State.REQUESTED)
    if instant.action is not Action.REPLACE_COMMIT or requested.file_name not in timeline.files:
        return False
    return any(record.get("clusteringPlan") for record in _records(ctx, requested))


def _marked_files(ctx: TableContext, time: str) -> list[str]:
    folder = join(TEMP, time)
    found = (parse_marker(info.path[len(folder) + 1 :]) for info in ctx.storage.list(folder))
    return sorted({marker[0] for marker in found if marker is not None})


def _files_of(ctx: TableContext, time: str) -> list[str]:
    """Data files of an instant: those with a marker (logs, whose name carries another instant, have only that), and those
    whose name carries it."""
    listed = {info.path for info in list_data_files(ctx.storage) if _instant_of(info.path) == time}
    return sorted(listed.union(_marked_files(ctx, time)))


def _file_id(path: str) -> str:
    name = path.rpartition("/")[2]
    found = parse_base_file(name) or parse_log_file(name)
    return found.file_id if found else ""


def _instant_of(path: str) -> str | None:
    name = parse_base_file(path.rpartition("/")[2])
    return None if name is None else name.instant


def _rollback_plan(ctx: TableContext, instant: Instant, files: list[str]) -> bytes:
    requests = []
    for path in files:
        partition = path.rpartition("/")[0]
        requests.append(
            {
                "partitionPath": partition,
                "fileId": _file_id(path),
                "latestBaseInstant": instant.time,
                "filesToBeDeleted": [join(ctx.base_path, path)],
                "logBlocksToBeDeleted": {},
            }
        )
    target = {"commitTime": instant.time, "action": instant.grouped_action.value}
    return write_container(
        "HoodieRollbackPlan", {"instantToRollback": target, "RollbackRequests": requests, "version": 1}
    )


def _rollback_metadata(ctx: TableContext, instant: Instant, rollback: str, files: list[str]) -> bytes:
    partitions: dict[str, dict[str, object]] = {}
    for path in sorted(set(files)):
        partition = path.rpartition("/")[0]
        entry = partitions.setdefault(
            partition,
            {
                "partitionPath": partition,
                "successDeleteFiles": [],
                "failedDeleteFiles": [],
                "rollbackLogFiles": {},
                "logFilesFromFailedCommit": {},
            },
        )
        deleted = entry["successDeleteFiles"]
        assert isinstance(deleted, list)
        deleted.append(join(ctx.base_path, path))
    return write_container(
        "HoodieRollbackMetadata",
        {
            "startRollbackTime": rollback,
            "timeTakenInMillis": 0,
            "totalFilesDeleted": len(set(files)),
            "commitsRollback": [instant.time],
            "partitionMetadata": partitions,
            "version": 1,
            "instantsRollback": [{"commitTime": instant.time, "action": instant.grouped_action.value}],
        },
    )
