"""Commits, plans and recoveries under a lock that another engine takes too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import (
    CommitStateUnknownError,
    InvalidOptionError,
    OutcomeUnknownError,
    UnavailableError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.metadata.delta.commit import Delta
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit import recovery
from hudi_table.table.commit.decision import Decider
from hudi_table.table.commit.transaction import begin
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store import retry
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.beside import an_engine_without_our_chain, another_engine, seen_anew
from tests.support.late_publication import Killed

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
IMPATIENT = LOCK | {"hoodie.write.lock.wait_time_ms": "1", "hoodie.write.lock.client.num_retries": "0"}
PATIENT = LOCK | {"hoodie.write.lock.wait_time_ms_between_retry": "10"}


def row(key: str, value: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value}], schema=SCHEMA)


@pytest.fixture(params=[6, 9])
def base(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    create_table(tmp_path / "t", SCHEMA, record_key="id", version=request.param).upsert(row("a", 1))
    return tmp_path / "t"


def theirs(base: Path) -> FileSystemLock:
    return FileSystemLock(SystemClock(), FileLockSettings(str(base / ".hoodie")), pause=0.01)


def lock_of(base: Path) -> Path:
    return base / ".hoodie" / "lock"


def heartbeats(base: Path) -> list[Path]:
    return list((base / ".hoodie" / ".heartbeat").glob("*"))


def their_upsert(table: HudiTable, value: int) -> None:
    an_engine_without_our_chain(table, lambda other: other.upsert(row("a", value)))


def values(table: HudiTable) -> list[int]:
    return sorted(seen_anew(table).scan().to_arrow()["v"].to_pylist())


def test_a_write_waits_for_the_lock_and_leaves_it_free(base: Path):
    held = theirs(base).acquire(0)
    with pytest.raises(UnavailableError, match="was not to be had"):
        open_table(base, lock=IMPATIENT).upsert(row("a", 2))
    assert values(open_table(base)) == [1], "nothing of it is visible"
    writing = threading.Thread(target=lambda: open_table(base, lock=PATIENT).upsert(row("a", 3)))
    writing.start()
    writing.join(1)
    assert writing.is_alive()
    held.release()
    writing.join(60)
    assert values(open_table(base)) == [3]
    theirs(base).acquire(0).release()


def test_what_another_engine_commits_while_we_wait_for_the_lock_is_a_conflict(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    table = open_table(base, lock=PATIENT)
    taken = FileSystemLock.acquire

    def acquire(lock: FileSystemLock, patience: float):
        monkeypatch.setattr(FileSystemLock, "acquire", taken)
        another_engine(table, lambda other: other.upsert(row("a", 7)))
        return taken(lock, patience)

    monkeypatch.setattr(FileSystemLock, "acquire", acquire)
    with pytest.raises(WriteConflictError, match="another engine"):
        table.upsert(row("a", 2))
    assert values(table) == [7]


def test_who_lost_the_lock_before_his_decision_decides_nothing(base: Path, monkeypatch: pytest.MonkeyPatch):
    table = open_table(base, lock=PATIENT)
    check = Decider._check_neighbours

    def slow(decider, sequence, claimed):
        lock_of(base).unlink()
        return check(decider, sequence, claimed)

    monkeypatch.setattr(Decider, "_check_neighbours", slow)
    with pytest.raises(WriteAbortedError, match="no longer ours"):
        table.upsert(row("a", 2))
    monkeypatch.undo()
    assert values(table) == [1]


def test_who_lost_the_lock_while_the_metadata_table_was_written_decides_nothing_under_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    options = {"hoodie.metadata.enable": "true"}
    base = tmp_path / "t"
    create_table(base, SCHEMA, record_key="id").upsert(row("a", 1), options=options)
    written = Delta.write

    def then_lost(delta):
        keys = written(delta)
        lock_of(base).unlink()
        return keys

    monkeypatch.setattr(Delta, "write", then_lost)
    with pytest.raises(WriteAbortedError, match="no longer ours"):
        open_table(base, lock=PATIENT).upsert(row("a", 2))
    monkeypatch.undo()
    open_table(base, lock=PATIENT).upsert(row("b", 3))
    assert values(open_table(base)) == [1, 3]


def test_who_lost_the_lock_while_nobody_knows_what_came_of_his_request_says_so(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    table = open_table(base, lock=PATIENT)

    def unanswered(ctx, sequence, entry):
        lock_of(base).unlink()
        raise OutcomeUnknownError("no reply")

    monkeypatch.setattr(chain, "put_entry", unanswered)
    with pytest.raises(CommitStateUnknownError, match="when the lock was lost"):
        table.upsert(row("a", 2))


def test_what_was_decided_before_the_lock_was_lost_is_published_under_it_again(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    table = open_table(base, lock=PATIENT)
    publish = Decider.publish

    def late(decider, entry, requested_at):
        lock_of(base).unlink()
        publish(decider, entry, requested_at)

    monkeypatch.setattr(Decider, "publish", late)
    table.upsert(row("a", 2))
    assert values(table) == [2]
    assert not lock_of(base).exists()


def test_what_was_decided_before_the_lock_was_lost_does_not_hide_what_another_engine_wrote_under_it(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    table = open_table(base, lock=PATIENT)
    publish = Decider.publish

    def late(decider, entry, requested_at):
        if decider.ctx.lock is not None:
            lock_of(base).unlink()
            their_upsert(table, 7)
        publish(decider, entry, requested_at)

    monkeypatch.setattr(Decider, "publish", late)
    with pytest.raises(WriteConflictError, match="the lock was lost"):
        table.upsert(row("a", 2))
    monkeypatch.undo()
    assert values(table) == [7]
    open_table(base, lock=PATIENT).upsert(row("a", 8))
    assert values(table) == [8]


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
def test_a_decision_that_comes_when_the_lock_is_lost_does_not_hide_what_another_engine_wrote_before_it(
    base: Path, monkeypatch: pytest.MonkeyPatch, dies: bool
):
    """What the other engine did is older than the entry, and was not looked at."""
    table = open_table(base, lock=PATIENT)
    put, decided = chain.put_entry, list[str]()

    def late(ctx, sequence, entry):
        monkeypatch.undo()
        lock_of(base).unlink()
        their_upsert(table, 7)
        decided.append(entry.instant)
        put(ctx, sequence, entry)
        if dies:
            raise Killed

    monkeypatch.setattr(chain, "put_entry", late)
    with pytest.raises(Killed if dies else WriteConflictError):
        table.upsert(row("a", 2))
    if dies:
        open_table(base, lock=PATIENT).upsert(row("b", 3))
    assert values(table) == ([3, 7] if dies else [7])
    ctx = table.context
    stand = {each.time for each in load_timeline(ctx).commits if not commit_metadata(ctx, each).is_taken_back}
    assert not set(decided) & stand
    open_table(base, lock=PATIENT).upsert(row("a", 8))
    assert values(table) == ([3, 8] if dies else [8])


@pytest.mark.parametrize("overtaken", [False, True])
def test_a_publication_that_comes_when_the_lock_is_lost_is_taken_back_if_another_engine_came_before(
    base: Path, monkeypatch: pytest.MonkeyPatch, overtaken: bool
):
    table = open_table(base, lock=PATIENT)
    once = retry.until_confirmed

    def late(request):
        monkeypatch.undo()
        lock_of(base).unlink()
        if overtaken:
            their_upsert(table, 7)
        once(request)

    decide = Decider.decide

    def decided(*args, **more):
        found = decide(*args, **more)
        monkeypatch.setattr(retry, "until_confirmed", late)
        return found

    monkeypatch.setattr(Decider, "decide", decided)
    with pytest.raises(WriteConflictError, match="the lock was lost") if overtaken else nullcontext():
        table.upsert(row("a", 2))
    assert values(table) == ([7] if overtaken else [2])
    open_table(base, lock=PATIENT).upsert(row("a", 8))
    assert values(table) == [8]
    assert open_table(base).doctor() == ()


def test_what_a_killed_writer_decided_is_published_if_no_other_engine_came_between(base: Path):
    kill_before_publication(open_table(base, lock=PATIENT))
    open_table(base, lock=PATIENT).upsert(row("b", 3))
    assert values(open_table(base)) == [2, 3]


def test_what_a_killed_writer_decided_is_given_up_if_another_engine_came_between(base: Path):
    kill_before_publication(open_table(base, lock=PATIENT))
    their_upsert(open_table(base), 7)
    open_table(base, lock=PATIENT).upsert(row("b", 3))
    assert values(open_table(base)) == [3, 7]
    open_table(base, lock=PATIENT).upsert(row("b", 4))
    assert values(open_table(base)) == [4, 7]


@pytest.mark.parametrize("overtaken", [False, True])
def test_the_plan_of_a_killed_planner_stands_unless_another_engine_wrote_to_its_groups(tmp_path: Path, overtaken: bool):
    base = tmp_path / "t"
    bucket = {"type": "Bucket", "buckets": 1}
    made = create_table(base, SCHEMA, record_key="id", type="MergeOnRead", index=bucket)
    for value in (1, 2):
        made.upsert(row("a", value))
    table = open_table(base, lock=PATIENT)
    kill_before_publication(table, lambda: table.schedule_compaction(force=True))
    if overtaken:
        their_upsert(open_table(base), 7)
    open_table(base, lock=PATIENT).upsert(row("b", 3))
    assert values(open_table(base)) == ([3, 7] if overtaken else [2, 3])
    waiting = open_table(base).services.compaction.pending()
    assert len(waiting) == (0 if overtaken else 1)
    open_table(base, lock=PATIENT).compact(force=True)
    assert values(open_table(base)) == ([3, 7] if overtaken else [2, 3])


def kill_before_publication(table: HudiTable, act: Callable[[], object] | None = None) -> None:
    def killed(decider, entry, requested_at):
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decider, "publish", killed)
        with pytest.raises(Killed):
            (act or (lambda: table.upsert(row("a", 2))))()


def test_a_lock_that_is_lost_behind_the_publication_is_no_fault_of_the_write(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    table = open_table(base, lock=PATIENT)
    publish = Decider.publish

    def then_lost(decider, entry, requested_at):
        publish(decider, entry, requested_at)
        lock_of(base).unlink()

    monkeypatch.setattr(Decider, "publish", then_lost)
    table.upsert(row("a", 2))
    assert values(table) == [2]


def test_a_write_under_a_lock_has_a_heartbeat_before_its_claim_and_none_behind_its_end(
    base: Path, monkeypatch: pytest.MonkeyPatch
):
    table = open_table(base, lock=PATIENT)
    create = type(table.context.storage).put_if_absent
    claimed: list[list[Path]] = []

    def creating(store, path, data):
        if path.endswith(".requested"):
            claimed.append(heartbeats(base))
        return create(store, path, data)

    monkeypatch.setattr(type(table.context.storage), "put_if_absent", creating)
    table.upsert(row("a", 2))
    assert [len(beats) for beats in claimed] == [1]
    assert heartbeats(base) == []
    txn = begin(table.context, Action.COMMIT)
    txn.withdraw()
    assert heartbeats(base) == []


def test_only_who_decides_or_takes_something_back_takes_the_lock(base: Path, monkeypatch: pytest.MonkeyPatch):
    taken: list[float] = []
    acquire = FileSystemLock.acquire

    def acquiring(lock: FileSystemLock, patience: float):
        taken.append(patience)
        return acquire(lock, patience)

    monkeypatch.setattr(FileSystemLock, "acquire", acquiring)
    table = open_table(base, lock=PATIENT)
    other = begin(open_table(base).context, Action.COMMIT)
    table.scan().to_arrow()
    table.upsert(row("b", 2))
    assert len(taken) == 1, "who is alive beside it is not taken back"
    recovery.abort_and_roll_back(table.context, other.instant)
    assert len(taken) == 2
    open_table(base).upsert(row("c", 3))
    assert len(taken) == 2, "a table that was opened without a lock takes none"


def test_a_clean_beside_a_metadata_table_records_what_it_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written, held = Delta.write, []

    def seen(delta):
        held.append(lock_of(tmp_path / "t").exists())
        return written(delta)

    options = {"hoodie.metadata.enable": "true"}
    create_table(tmp_path / "t", SCHEMA, record_key="id").upsert(row("a", 1), options=options)
    table = open_table(tmp_path / "t", lock=PATIENT)
    for value in (2, 3):
        table.upsert(row("a", value), options=options)
    monkeypatch.setattr(Delta, "write", seen)
    table.clean({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    assert held == [True], "no other engine writes to the metadata table meanwhile"
    assert values(table) == [3]
    on_disk = {str(path.relative_to(tmp_path / "t")) for path in (tmp_path / "t").glob("*.parquet")}
    known = seen_anew(table).context
    listed = known.metadata.files(known, load_timeline(known))
    assert listed is not None
    assert {file.path for file in listed.files} == on_disk


def test_threads_that_write_beside_each_other_wait_for_each_other(base: Path):
    table = open_table(base, lock=PATIENT)
    retry = {"hoodie.write.num.retries.on.conflict.failures": "10"}
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda key: table.insert(row(key, 2), options=retry), "bcd"))
    assert values(table) == [1, 2, 2, 2]


def test_a_restore_waits_for_the_lock(base: Path):
    table = open_table(base, lock=IMPATIENT)
    instant = table.upsert(row("a", 2)).instant
    held = theirs(base).acquire(0)
    with pytest.raises(UnavailableError, match="was not to be had"):
        table.rollback(instant, writers_stopped=True)
    held.release()
    table.rollback(instant, writers_stopped=True)
    assert values(table) == [1]


def test_an_option_that_is_not_of_a_lock_is_refused(base: Path):
    for lock, said in (({"hoodie.table.name": "x"}, r"hoodie\.table\.name"), ({}, "names no lock")):
        with pytest.raises(InvalidOptionError, match=said):
            open_table(base, lock=lock)
