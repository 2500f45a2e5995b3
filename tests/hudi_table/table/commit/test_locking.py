"""Commits, plans and recoveries under a lock that another engine takes too."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import InvalidOptionError, UnavailableError, WriteAbortedError, WriteConflictError
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.table.commit.decision import Decider
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock
from tests.support.beside import another_engine, seen_anew

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
IMPATIENT = LOCK | {"hoodie.write.lock.wait_time_ms": "1", "hoodie.write.lock.client.num_retries": "0"}
PATIENT = LOCK | {"hoodie.write.lock.wait_time_ms_between_retry": "10"}


def row(key: str, value: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value}], schema=SCHEMA)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    create_table(tmp_path / "t", SCHEMA, record_key="id").upsert(row("a", 1))
    return tmp_path / "t"


def theirs(base: Path) -> FileSystemLock:
    return FileSystemLock(SystemClock(), FileLockSettings(str(base / ".hoodie")), pause=0.01)


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
        ours = decider.ctx.lock._inside.held
        (base / ".hoodie" / "lock").unlink()
        with pytest.raises(WriteAbortedError):
            ours.renew()
        return check(decider, sequence, claimed)

    monkeypatch.setattr(Decider, "_check_neighbours", slow)
    with pytest.raises(WriteAbortedError, match="no longer ours"):
        table.upsert(row("a", 2))
    monkeypatch.undo()
    assert values(table) == [1]


def test_a_write_under_a_lock_shows_a_heartbeat_from_its_beginning(base: Path, monkeypatch: pytest.MonkeyPatch):
    table = open_table(base, lock=PATIENT)
    decide = Decider.decide
    seen: list[list[Path]] = []

    def deciding(decider, *args):
        seen.append(list((base / ".hoodie" / ".heartbeat").glob("*")))
        return decide(decider, *args)

    monkeypatch.setattr(Decider, "decide", deciding)
    table.upsert(row("a", 2))
    assert len(seen[0]) == 1
    assert list((base / ".hoodie" / ".heartbeat").glob("*")) == []


def test_an_option_that_is_not_of_a_lock_is_refused(base: Path):
    with pytest.raises(InvalidOptionError, match=r"hoodie\.table\.name"):
        open_table(base, lock={"hoodie.table.name": "x"})
    with pytest.raises(InvalidOptionError, match="is empty"):
        open_table(base, lock={})
