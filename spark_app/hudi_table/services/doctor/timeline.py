"""Checks of what lies under `.hoodie/`: instants that cannot be read, what is pending and for how
long, properties, leftovers.

Fact (measured on Hudi 0.15.0): a completed commit of no bytes counts as completed, whatever files
lie there of its instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from hudi_table.errors import CorruptTableError, ObjectNotFoundError
from hudi_table.model.names import HEARTBEAT, HOODIE, PROPERTIES, PROPERTIES_BACKUP, TEMP
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.model.timeline.instants import PLANNED_ACTIONS, WRITE_ACTIONS, Action, Instant, State, parse_instant
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.commit.leftovers import abandoned
from hudi_table.table.locks.file_system import found_lock
from hudi_table.table.rows.staged import stale_staged
from hudi_table.table.store.local import LocalStorage
from hudi_table.table.store.ports import Storage, plain
from hudi_table.table.timeline.active import body
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_records
from hudi_table.table.timeline.properties import parsed_properties

_WITH_PLAN = frozenset({*PLANNED_ACTIONS, Action.CLEAN, Action.ROLLBACK, Action.RESTORE})
_AVRO = frozenset({Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.SAVEPOINT})


def unreadable_instants(seen: Examined) -> Iterator[Finding]:
    """Completed instants, and pending plans, that have no bytes or cannot be parsed."""
    sizes = {
        info.path.rpartition("/")[2]: info.size
        for info in seen.ctx.storage.list_dir(seen.ctx.layout.timeline_folder)[1]
    }
    for name, size in sorted(sizes.items()):
        instant = parse_instant(name)
        if instant is None or name not in seen.timeline.files:
            continue
        planned = instant.state is State.REQUESTED and instant.action in _WITH_PLAN
        if not instant.completed and not planned:
            continue
        fault = "it has no bytes" if size == 0 else _fault(seen, instant)
        if fault:
            yield Finding(
                Check.UNREADABLE_INSTANT,
                Severity.ERROR,
                seen.ctx.layout.timeline_path(name),
                f"{instant.action.value} {instant.time} cannot be read: {fault}",
                "bring the file back from a copy or a version of the store; if it is the newest write, roll it back",
            )


def pending_instants(seen: Examined) -> Iterator[Finding]:
    """What has been pending for longer than a live writer leaves without a sign, and plans that
    wait."""
    for instant in seen.timeline.pending:
        names = seen.timeline.claim_names(instant.time)
        age = _age(seen, max(seen.timeline.files[name] for name in names)) if names else 0.0
        plan = instant.action in PLANNED_ACTIONS
        if age < seen.ctx.settings.suspect_after_seconds and not plan:
            continue
        yield Finding(
            Check.PENDING_INSTANT,
            Severity.INFO if plan else Severity.WARNING,
            seen.ctx.layout.timeline_path(instant.file_name),
            f"{instant.action.value} {instant.time} is {instant.state.value} for {age:,.0f} s",
            _advice(instant),
        )
    for time in seen.timeline.planner_claims:
        yield from _old_claim(seen, time)


def leftovers(seen: Examined) -> Iterator[Finding]:
    """Markers and heartbeats of instants that are not pending any more, and staged rows that nobody
    is to commit."""
    pending = {instant.time for instant in seen.timeline.pending} | {instant.time for instant in seen.before.pending}
    folders, _ = seen.ctx.storage.list_dir(TEMP)
    for folder in folders:
        time = folder.rstrip("/").rpartition("/")[2]
        if time not in pending:
            yield _leftover(f"{TEMP}/{time}", f"markers of {time}, which is not pending")
    for path in stale_staged(seen.ctx.storage, seen.ctx.clock.now):
        yield _leftover(path, "rows that a write staged and did not commit; the next clean deletes them")
    _, beats = seen.ctx.storage.list_dir(HEARTBEAT)
    for info in beats:
        time = info.path.rpartition("/")[2]
        if time not in pending:
            yield _leftover(info.path, f"a heartbeat of {time}, which is not pending")
        elif _age(seen, info.modified) >= seen.ctx.settings.suspect_after_seconds:
            yield Finding(
                Check.LEFTOVER,
                Severity.WARNING,
                info.path,
                f"the writer of {time} has not shown a sign of life for {_age(seen, info.modified):,.0f} s",
                "the next write rolls it back, unless its failed-writes policy leaves that to cleaning",
            )


def staging_files(seen: Examined) -> Iterator[Finding]:
    """Unfinished files of writers that were killed."""
    for info in abandoned(seen.ctx, seen.ctx.clock.now):
        yield Finding(
            Check.LEFTOVER,
            Severity.INFO,
            info.path,
            f"an unfinished file of {info.size:,} bytes, which nobody has written to for {_age(seen, info.modified):,.0f} s",
            "the next clean deletes it, and so does hudictl doctor --mend",
        )


def lock_files(seen: Examined) -> Iterator[Finding]:
    """The file of `FileSystemBasedLockProvider` whose holder was killed, perhaps: ours write it
    again each minute, and it keeps all others out."""
    ctx = seen.ctx
    provider = None if ctx.lock is None else ctx.lock.settings.provider
    if isinstance(provider, FileLockSettings):
        folder = provider.folder
    elif isinstance(plain(ctx.storage), LocalStorage):
        folder = f"{ctx.base_path}/{HOODIE}"
    else:
        return
    found = found_lock(folder, ctx.clock)
    if found is not None and found.age >= ctx.settings.suspect_after_seconds:
        yield Finding(
            Check.LEFTOVER,
            Severity.WARNING,
            found.path.removeprefix(f"{ctx.base_path}/"),
            f"a lock that its holder does not renew: {found}",
            "writers under this lock wait for it: if the process that made it has ended, delete the file",
        )


def properties(storage: Storage) -> Iterator[Finding]:
    """`hoodie.properties`: there, readable, its checksum right, no backup of a change that stopped
    half-way."""
    fault = None
    try:
        parsed_properties(storage.get(PROPERTIES), storage.base_path)
    except ObjectNotFoundError:
        fault = "is gone"
    except CorruptTableError as error:
        fault = error.message
    if fault:
        yield Finding(
            Check.PROPERTIES,
            Severity.ERROR,
            PROPERTIES,
            fault,
            f"copy {PROPERTIES_BACKUP} over it, or bring it back from a copy",
        )
    try:
        storage.head(PROPERTIES_BACKUP)
    except ObjectNotFoundError:
        return
    yield Finding(
        Check.PROPERTIES,
        Severity.WARNING,
        PROPERTIES_BACKUP,
        "a change of the properties stopped half-way and left its backup",
        "compare it with hoodie.properties, then delete it; the next change of a property deletes it too",
    )


def lost_properties(ctx: TableContext) -> Iterator[Finding]:
    """What another engine has dropped from `hoodie.properties`, or changed in it."""
    for key, (kept, now) in sorted(ctx.lost.items()):
        yield Finding(
            Check.PROPERTIES,
            Severity.ERROR,
            PROPERTIES,
            f"another engine has {'dropped' if now is None else 'changed'} {key}, which was {kept!r}"
            + ("" if now is None else f" and is {now!r}"),
            "put it back: hudictl doctor --mend; until then nothing is written here, and that engine writes by other rules",
        )


def _fault(seen: Examined, instant: Instant) -> str | None:
    if instant.completed and instant.action in WRITE_ACTIONS:
        return seen.unreadable.get(instant)
    try:
        if instant.action in _AVRO or not instant.completed:
            decode_records(body(seen.ctx, instant))
    except ObjectNotFoundError:
        return None  # gone since it was listed
    except ValueError as error:
        return str(error)
    return None


def _advice(instant: Instant) -> str:
    if instant.action in PLANNED_ACTIONS:
        return "it waits to be executed: run the service, or hudictl compact"
    if instant.action in WRITE_ACTIONS:
        return "a writer that died; the next write, cleaning or rollback takes it back"
    return "whoever began it stopped; run it again"


def _old_claim(seen: Examined, time: str) -> Iterator[Finding]:
    (name,) = [name for name in seen.timeline.claim_names(time) if name.endswith(".claim")]
    age = _age(seen, seen.timeline.files[name])
    if age >= seen.ctx.settings.suspect_after_seconds:
        yield Finding(
            Check.PENDING_INSTANT,
            Severity.WARNING,
            seen.ctx.layout.timeline_path(name),
            f"a planner claimed {time} {age:,.0f} s ago and published nothing",
            "the next write decides it",
        )


def _leftover(path: str, message: str) -> Finding:
    return Finding(Check.LEFTOVER, Severity.INFO, path, message, "harmless; delete it when no writer is at work")


def _age(seen: Examined, moment: datetime) -> float:
    return (seen.ctx.clock.now() - moment).total_seconds()
