"""Rolling an aborted instant back: its files deleted, the rollback on the timeline, its claim gone.

Facts (measured on Hudi 0.15.0): base files of the instant are deleted; of a log that holds other
instants too, its blocks are taken back by a rollback block in a new log file. Logs of ours hold one
instant each and are deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hudi_table.codec.log.blocks import rollback_block, scan_blocks
from hudi_table.errors import (
    InvariantError,
    ObjectExistsError,
    ObjectNotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from hudi_table.model.names import (
    HEARTBEAT,
    TEMP,
    LogFileName,
    join,
    parse_data_file,
    parse_log_file,
)
from hudi_table.model.timeline.chain import ChainEntry
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.markers import marked_files
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store import retry
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline, records_if_there
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.layout import decode_commit, encode_commit, encode_record
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.hash_rings import drop_rings
from hudi_table.table.view.listing import list_data_files

_LOG = logging.getLogger("hudi_table.rollback")

CLAIM_ATTEMPTS_MAX = 1_000
LISTINGS_MAX = 100
CLOSINGS_MAX = 10


@dataclass(frozen=True, slots=True)
class PendingRollback:
    """A rollback whose plan is there: `instant` takes `target` back."""

    instant: Instant
    target: Instant


def roll_back(ctx: TableContext, timeline: Timeline, instant: Instant, *, over: bool, sweeps: bool = True) -> list[str]:
    """Steps 3 and 4 for an aborted instant; `over`: its quarantine has ended. `sweeps`: its markers
    go too, since nothing late can come."""
    timeline, pending = _pending_rollbacks(ctx, timeline)
    rollback = _oldest(pending, instant.time)
    files = _files_of(ctx, instant.time)
    if rollback is None and not files and not timeline.own_names(instant):
        return []
    if rollback is None:
        rollback = _claim_rollback(ctx, instant, files)
        rollback = _only_rollback(ctx, instant.time) or rollback
    retry.put(ctx.storage, ctx.layout.timeline_path(rollback.with_state(State.INFLIGHT).file_name), b"")
    target = frozenset([instant.time])
    taken = [take_back(ctx, path, target, rollback.time) for path in files]
    drop_rings(ctx, target)
    _record_in_metadata(ctx, timeline, instant.time, taken)
    _LOG.debug("%s: %d files taken back by %s", instant.time, len(files), rollback.time)
    if not over:
        return [instant.time]
    # What came before the quarantine ended was listed above, since `over` was known before that.
    timeline = load_timeline(ctx)
    _record_in_metadata(ctx, timeline, instant.time, taken)
    decided = _decided(ctx, timeline, instant)
    if decided is None:
        delete_claim(ctx, timeline, instant)
    rollback = _only_rollback(ctx, instant.time) or rollback
    report = encode_record("HoodieRollbackMetadata", rollback_record(ctx, instant, rollback.time, taken))
    complete(ctx, rollback, report)
    if decided is not None:
        _close(ctx, decided, rollback.time)
    if sweeps:
        sweep(ctx, instant.time)
    return [instant.time]


def _decided(ctx: TableContext, timeline: Timeline, instant: Instant) -> ChainEntry | None:
    """The decision of a write that another engine has overtaken, and so was given up behind it:
    under a lock alone. None where the claim is gone, without which no commit can stand."""
    if ctx.lock is None or instant.with_state(State.REQUESTED).file_name not in timeline.files:
        return None
    return chain.find_commit(ctx, instant, chain.read_tail(ctx).sequence)


def _close(ctx: TableContext, decided: ChainEntry, rollback: str) -> None:
    """Put a commit of nothing in the place of a decided write whose files are gone.

    Its writer may stand between its look at the lock and the create of its completed file, for
    however long, and die right behind it: then nobody would see that the file came late.
    """
    path = ctx.layout.timeline_path(decided.name)
    nothing = encode_commit(ctx.layout, decode_commit(decided.data).taken_back(rollback))
    for _ in range(CLOSINGS_MAX):
        try:
            retry.until_confirmed(lambda: ctx.storage.put_if_absent(path, nothing))
            return
        except ObjectExistsError:
            if is_closed(ctx, decided):
                return
            retry.delete(ctx.storage, path)
    raise InvariantError(
        f"{decided.name} came back {CLOSINGS_MAX} times", base_path=ctx.base_path, instant=decided.instant
    )


def is_closed(ctx: TableContext, decided: ChainEntry) -> bool:
    """Whether a commit of nothing stands in the place of a write that was decided."""
    try:
        return decode_commit(ctx.storage.get(ctx.layout.timeline_path(decided.name))).is_taken_back
    except ObjectNotFoundError:
        return False


def take_back_unclaimed(ctx: TableContext, timeline: Timeline, time: str, *, over: bool) -> None:
    """Delete what was written for an instant whose claim another engine has taken back. `over`:
    nothing late can come, so its markers, which tell a later archiving of its files, go too."""
    target = frozenset([time])
    taken = [take_back(ctx, path, target, time) for path in _files_of(ctx, time)]
    drop_rings(ctx, target)
    _record_in_metadata(ctx, timeline, time, taken)
    _LOG.debug("%s: %d files of an instant that another engine took back deleted", time, len(taken))
    if over:
        sweep(ctx, time)


def _record_in_metadata(ctx: TableContext, timeline: Timeline, time: str, taken: Iterable[TakenBack | None]) -> None:
    """Take the instant's delta back. A log that takes blocks back is part of its slice and of no
    commit, so the metadata table would miss it: it goes."""
    if not timeline.has_metadata:
        return
    if any(found is not None and found.by is not None for found in taken):
        drop_metadata_table(ctx, f"{time} was rolled back from a log that others write to")
    else:
        ctx.metadata.forget(ctx, time)


def complete(ctx: TableContext, rollback: Instant, report: bytes) -> None:
    """Create the completed file of a rollback or restore; one that is there already is a helper's
    success."""
    path = ctx.layout.timeline_path(ctx.layout.completed(rollback).file_name)
    with suppress(ObjectExistsError):
        retry.until_confirmed(lambda: ctx.storage.put_if_absent(path, report))


def sweep(ctx: TableContext, time: str) -> None:
    """Delete the markers and the heartbeat of an instant that is no more."""
    markers = [info.path for info in ctx.storage.list(join(TEMP, time))]
    retry.delete_all(ctx.storage, [*markers, f"{HEARTBEAT}/{time}"])


def open_rollbacks(ctx: TableContext, timeline: Timeline) -> dict[str, PendingRollback]:
    """Instant that is rolled back → its oldest pending rollback. One without its plan is a
    leftover, see `recovery`."""
    _, pending = _pending_rollbacks(ctx, timeline)
    found: dict[str, PendingRollback] = {}
    for rollback in pending:
        found.setdefault(rollback.target.time, rollback)
    return found


def _pending_rollbacks(ctx: TableContext, timeline: Timeline) -> tuple[Timeline, list[PendingRollback]]:
    """The rollbacks that wait, oldest first, and the listing that shows them: a newer one if a plan
    went since the timeline was listed, withdrawn for another of the same instant."""
    for _ in range(LISTINGS_MAX):
        waiting = [
            instant
            for instant in timeline.pending
            if instant.action is Action.ROLLBACK and instant.with_state(State.REQUESTED).file_name in timeline.files
        ]
        plans = [records_if_there(ctx, instant.with_state(State.REQUESTED)) for instant in waiting]
        if None not in plans:
            return timeline, [
                PendingRollback(instant, _target_of(record))
                for instant, records in zip(waiting, plans, strict=True)
                for record in records or ()
            ]
        timeline = load_timeline(ctx)
    raise UnavailableError(
        f"plans of rollbacks went while they were read, {LISTINGS_MAX} times; try again", base_path=ctx.base_path
    )


def _target_of(plan: dict[str, Any]) -> Instant:
    info = plan["instantToRollback"]
    return Instant(info["commitTime"], Action(info["action"]), State.REQUESTED)


def _only_rollback(ctx: TableContext, time: str) -> Instant | None:
    """The oldest of the pending rollbacks of an instant; the others, which recoveries claimed at
    the same moment, are withdrawn."""
    timeline, pending = _pending_rollbacks(ctx, load_timeline(ctx))
    only = _oldest(pending, time)
    for other in pending:
        if other.target.time == time and other.instant != only:
            delete_claim(ctx, timeline, other.instant)
    return only


def _oldest(pending: Iterable[PendingRollback], time: str) -> Instant | None:
    return next((rollback.instant for rollback in pending if rollback.target.time == time), None)


def delete_claim(ctx: TableContext, timeline: Timeline, instant: Instant) -> None:
    """Delete the requested and inflight files of an instant, and nothing that another action or a
    planner has at its time: whoever owns that would lose an instant that he holds, and another
    could draw it."""
    ended = timeline.ended(instant)
    for name in timeline.own_names(instant):
        if ended is None or name != ended.file_name:
            retry.delete(ctx.storage, ctx.layout.timeline_path(name))


@dataclass(frozen=True, slots=True)
class TakenBack:
    """One file of instants that were taken back: deleted, or followed by the log `by` of `by_bytes`
    bytes, whose blocks cancel theirs."""

    path: str
    instants: frozenset[str]
    size: int = 0
    by: str | None = None
    by_bytes: int = 0


def take_back(ctx: TableContext, path: str, instants: frozenset[str], rollback: str) -> TakenBack | None:
    """Delete a file of instants that are given up; of a log that other instants wrote to as well,
    as Hudi may, take back the blocks. None for a log that others alone wrote to."""
    folder, _, name = path.rpartition("/")
    log = parse_log_file(name)
    wrote = instants & {instant_named(ctx, path)} if log is None else written_by(ctx, path)
    if log is None or wrote <= instants:
        retry.delete(ctx.storage, path)
        return TakenBack(path, wrote or instants)
    if not wrote & instants:
        return None
    _, files = ctx.storage.list_dir(folder)
    listed = {info.path.rpartition("/")[2]: info for info in files}
    names = [
        n for n in map(parse_log_file, listed) if n and (n.file_id, n.base_instant) == (log.file_id, log.base_instant)
    ]
    # Hudi's own token of rollbacks; a second recovery may add a block that takes nothing more back.
    after = LogFileName(log.file_id, log.base_instant, max(n.version for n in names) + 1, "1-0-1")
    blocks = b"".join(rollback_block(rollback, instant) for instant in sorted(wrote & instants))
    by = join(folder, str(after))
    retry.put(ctx.storage, by, blocks)
    return TakenBack(path, wrote & instants, listed[name].size, by, len(blocks))


def written_by(ctx: TableContext, path: str) -> frozenset[str]:
    """The instants of a log's blocks, none if it is gone."""
    try:
        with ctx.storage.open_read(path) as source:
            blocks = scan_blocks(source, path=path)
    except ObjectNotFoundError:
        return frozenset()
    return frozenset(block.instant for block in blocks if block.instant)


def _claim_rollback(ctx: TableContext, instant: Instant, files: list[str]) -> Instant:
    floor = max(load_timeline(ctx).newest_time, ctx.tail.max_instant if ctx.tail else "")
    plan = rollback_plan(ctx, instant, files)
    for _ in range(CLAIM_ATTEMPTS_MAX):
        rollback = Instant(draw_instant(ctx, floor), Action.ROLLBACK, State.REQUESTED)
        floor = rollback.time
        try:
            ctx.storage.put_if_absent(ctx.layout.timeline_path(rollback.file_name), plan)
        except (ObjectExistsError, OutcomeUnknownError):
            continue
        if not load_timeline(ctx).shares(rollback):
            return rollback
        retry.delete(ctx.storage, ctx.layout.timeline_path(rollback.file_name))
    raise InvariantError("no rollback instant could be claimed", base_path=ctx.base_path, instant=instant.time)


def _files_of(ctx: TableContext, time: str) -> list[str]:
    """Data files of an instant: those with a marker (logs whose name carries another instant have
    only that), and those whose name carries it."""
    listed = {info.path for info in list_data_files(ctx.storage) if instant_named(ctx, info.path) == time}
    return sorted(listed.union(marked_files(ctx, time)))


def _file_id(path: str) -> str:
    name = path.rpartition("/")[2]
    found = parse_data_file(name)
    return found.file_id if found else ""


def instant_named(ctx: TableContext, path: str) -> str | None:
    """The instant that the name of a data file says wrote it; None if it says none."""
    name = parse_data_file(path.rpartition("/")[2])
    if isinstance(name, LogFileName):
        return name.base_instant if ctx.layout.logs_tell_writers else None
    return None if name is None else name.instant


def rollback_plan(ctx: TableContext, instant: Instant, files: Iterable[str]) -> bytes:
    """The requested file of a rollback: what it takes back, and the files that it deletes."""
    requests = [
        {
            "partitionPath": path.rpartition("/")[0],
            "fileId": _file_id(path),
            "latestBaseInstant": instant.time,
            "filesToBeDeleted": [join(ctx.base_path, path)],
            "logBlocksToBeDeleted": {},
        }
        for path in files
    ]
    return encode_record(
        "HoodieRollbackPlan",
        {"instantToRollback": instant_record(instant), "RollbackRequests": requests, "version": 1},
    )


def instant_record(instant: Instant) -> dict[str, str]:
    """A HoodieInstantInfo."""
    return {"commitTime": instant.time, "action": instant.grouped_action.value}


def rollback_record(
    ctx: TableContext, instant: Instant, rollback: str, taken: Iterable[TakenBack | None]
) -> dict[str, Any]:
    """The HoodieRollbackMetadata of one instant."""
    partitions: dict[str, dict[str, Any]] = {}
    mine = {item.path: item for item in taken if item is not None and instant.time in item.instants}
    for path in sorted(mine):
        item, partition = mine[path], path.rpartition("/")[0]
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
        if item.by is None:
            entry["successDeleteFiles"].append(join(ctx.base_path, path))
        else:
            entry["rollbackLogFiles"][join(ctx.base_path, item.by)] = item.by_bytes
            entry["logFilesFromFailedCommit"][join(ctx.base_path, path)] = item.size
    return {
        "startRollbackTime": rollback,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(item.by is None for item in mine.values()),
        "commitsRollback": [instant.time],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [instant_record(instant)],
    }
