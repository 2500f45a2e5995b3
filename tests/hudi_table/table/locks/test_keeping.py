"""A lock that a program holds around its own work."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from hudi_table.errors import UnavailableError, WriteAbortedError
from hudi_table.model.options.lock_settings import FileLockSettings, LockSettings, lock_settings
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.locks.keeping import kept
from hudi_table.table.locks.opening import hold_lock, open_lock
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage


def file_lock(folder: Path) -> FileSystemLock:
    return FileSystemLock(SystemClock(), FileLockSettings(str(folder), 1), pause=0.01)


@pytest.mark.parametrize("provider", ["StorageBasedLockProvider", "FileSystemBasedLockProvider"])
def test_the_lock_that_options_name_is_held_inside_and_free_behind(tmp_path: Path, provider: str):
    options = {"hoodie.write.lock.provider": provider, "hoodie.write.lock.wait_time_ms": "1"}
    options["hoodie.write.lock.client.num_retries"] = "0"
    settings = lock_settings(options, base_path=str(tmp_path), table_name="t", environment={})
    assert settings is not None
    storage = open_storage(str(tmp_path))
    with hold_lock(settings, storage, SystemClock()) as held:
        assert held.valid()
        with pytest.raises(UnavailableError):
            open_lock(settings, storage, SystemClock()).acquire(0)
    assert not held.valid()
    with pytest.raises(ZeroDivisionError), hold_lock(settings, storage, SystemClock()):
        raise ZeroDivisionError
    open_lock(settings, storage, SystemClock()).acquire(0).release()


def test_it_is_renewed_while_the_work_goes_on(tmp_path: Path):
    with kept(file_lock(tmp_path), patience=0, every=0.02):
        first = (tmp_path / "lock").stat().st_mtime_ns
        until = time.monotonic() + 60
        while (tmp_path / "lock").stat().st_mtime_ns == first and time.monotonic() < until:
            time.sleep(0.01)
        assert (tmp_path / "lock").stat().st_mtime_ns > first


def test_who_lost_the_lock_meanwhile_is_told_at_the_end(tmp_path: Path):
    def work() -> None:
        with kept(file_lock(tmp_path), patience=0, every=0.02) as held:
            (tmp_path / "lock").unlink()
            until = time.monotonic() + 60
            while held.valid() and time.monotonic() < until:
                time.sleep(0.01)
            assert not held.valid()

    with pytest.raises(WriteAbortedError, match="deleted or overwritten"):
        work()
    assert not any(thread.name.startswith("hudi-lock") for thread in threading.enumerate())


class Unanswered:
    """A lock whose store no longer answers. `lasts`: whether its lease does."""

    def __init__(self, *, lasts: bool) -> None:
        self.lasts = lasts
        self.asked = threading.Event()

    def acquire(self, patience: float) -> Unanswered:
        return self

    def valid(self) -> bool:
        return self.lasts

    def lease_seconds(self) -> float:
        return 60.0

    def renew(self) -> None:
        self.asked.set()
        raise UnavailableError("no answer")

    def release(self) -> None:
        pass


def test_a_store_that_does_not_answer_matters_when_the_lease_has_ended():
    lock = Unanswered(lasts=True)
    with kept(lock, patience=0, every=0.01):
        assert lock.asked.wait(60)
    lock = Unanswered(lasts=False)
    with pytest.raises(WriteAbortedError, match="no answer"), kept(lock, patience=0, every=0.01):
        assert lock.asked.wait(60)


def test_a_lock_is_renewed_three_times_in_each_lease():
    assert LockSettings(FileLockSettings("/x", 3), 1, 1).renewal == 60
    assert LockSettings(FileLockSettings("/x"), 1, 1).renewal == 60
