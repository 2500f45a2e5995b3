"""The lock file on local disk, beside whoever else deletes or overwrites it."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_table.errors import AccessDeniedError, InvalidOptionError, UnavailableError, WriteAbortedError
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.table.locks.file_system import FileSystemLock, lock_bytes
from hudi_table.table.store.clock import SystemClock


class ActingClock(SystemClock):
    """Something happens while it sleeps."""

    def __init__(self, act=lambda: None) -> None:
        self.act = act

    def sleep(self, seconds: float) -> None:
        self.act()
        super().sleep(seconds)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "t" / ".hoodie" / "lock"


def lock_of(file: Path, minutes: int = 0, clock: SystemClock | None = None) -> FileSystemLock:
    return FileSystemLock(clock or SystemClock(), FileLockSettings(str(file.parent), minutes), pause=0.01)


def age(file: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(file, (moment, moment))


def test_its_content_is_as_hudi_writes_it():
    """As `LockInfo` of 1.1.1 and 1.2.0 prints it."""
    assert lock_bytes("2026-01-02 03:04:05.678", "main", ["a.B.c (B.java:3)", "a.D.e (null:-2)"]).decode() == (
        '{\n  "lockCreateTime" : "2026-01-02 03:04:05.678",\n  "lockThreadName" : "main",\n'
        '  "lockStacksInfo" : [ "a.B.c (B.java:3)", "a.D.e (null:-2)" ]\n}'
    )
    assert lock_bytes("", "", []).endswith(b'"lockStacksInfo" : [ ]\n}')


def test_the_lock_is_held_by_one_until_it_is_given_back(file: Path):
    held = lock_of(file).acquire(0)
    assert file.read_bytes().startswith(b'{\n  "lockCreateTime" : "')
    assert held.valid()
    held.renew()
    with pytest.raises(UnavailableError, match="has been there for"):
        lock_of(file).acquire(0.05)
    held.release()
    assert not file.exists()
    assert not held.valid()
    held.release()
    lock_of(file).acquire(0).release()


def test_a_folder_is_named_as_a_path_or_as_hadoop_writes_one(tmp_path: Path):
    for name in (str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}", f"file:///{tmp_path}"):
        held = FileSystemLock(SystemClock(), FileLockSettings(name), pause=1).acquire(0)
        assert (tmp_path / "lock").exists()
        held.release()
    with pytest.raises(InvalidOptionError, match="use StorageBasedLockProvider"):
        FileSystemLock(SystemClock(), FileLockSettings("s3://lake/locks"), pause=1)


@pytest.mark.parametrize("content", [b"", b'{\n  "lockCreateTime"', b"\xff"])
def test_a_file_of_anybody_is_respected_torn_or_not_until_it_is_stale(file: Path, content: bytes):
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    (file.parent / ".lock.crc").write_bytes(b"crc")
    age(file, 3_000)
    with pytest.raises(UnavailableError, match="3000 seconds"):
        lock_of(file).acquire(0)
    with pytest.raises(UnavailableError):
        lock_of(file, minutes=51).acquire(0)
    held = lock_of(file, minutes=49).acquire(0)
    assert held.valid()
    assert not (file.parent / ".lock.crc").exists(), "check sums of another content would be damage to Hadoop"
    held.release()


def test_a_lease_is_as_long_as_the_file_is_not_stale_and_renewed_by_making_it_new(file: Path):
    class Later(SystemClock):
        later = 0.0

        def boot_seconds(self) -> float:
            return super().boot_seconds() + self.later

    clock = Later()
    held = lock_of(file, 1, clock).acquire(0)
    age(file, 40)
    clock.later = 61
    assert not held.valid()
    held.renew()
    assert held.valid()
    assert time.time() - file.stat().st_mtime < 30
    held.release()


@pytest.mark.parametrize(
    "what", ["deleted", "deleted and made anew", "overwritten", "the same content in another file"]
)
def test_a_holder_whose_file_another_took_sees_that_and_leaves_theirs_alone(file: Path, what: str):
    """A client of Hudi deletes the file as it closes, whoever's it is; and overwrites one that came
    between its look and its opening."""
    held = lock_of(file).acquire(0)
    content = file.read_bytes()
    if what == "overwritten":
        with file.open("r+b") as opened:
            opened.truncate()
            opened.write(b"theirs")
    else:
        file.unlink()
        if what != "deleted":
            file.write_bytes(content if "same" in what else b"theirs")
    theirs = file.read_bytes() if file.exists() else None
    with pytest.raises(WriteAbortedError, match="deleted or overwritten"):
        held.renew()
    assert not held.valid()
    held.release()
    assert (file.read_bytes() if file.exists() else None) == theirs


def test_who_opens_the_file_as_we_make_it_has_it(file: Path):
    """Hudi's client on a local disk looks, and then opens what may be there by now."""
    theirs = b'{ "lockCreateTime" : "2026-01-02 03:04:05.678" }'
    clock = ActingClock(lambda: file.write_bytes(theirs))
    with pytest.raises(UnavailableError, match="opened the file as we made it"):
        lock_of(file, clock=clock).acquire(0)
    assert file.read_bytes() == theirs


def test_a_folder_that_may_not_be_written_is_named(file: Path):
    file.parent.parent.mkdir(parents=True)
    file.parent.write_bytes(b"a file")
    with pytest.raises((AccessDeniedError, InvalidOptionError, UnavailableError, Exception), match="lock"):
        lock_of(file).acquire(0)


def test_of_eight_threads_one_has_the_lock_at_a_time(file: Path):
    inside: list[int] = []

    def work(number: int) -> None:
        for _ in range(5):
            held = lock_of(file, minutes=1).acquire(120)
            inside.append(number)
            assert inside == [number], "two are inside"
            held.renew()
            inside.remove(number)
            held.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_of_eight_threads_one_takes_a_stale_lock(file: Path):
    file.parent.mkdir(parents=True)
    for _ in range(10):
        file.write_bytes(b"theirs")
        age(file, 100)

        def tried(_: int) -> bool:
            try:
                lock_of(file, minutes=1).acquire(0)
            except UnavailableError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(tried, range(8))) == 1
        file.unlink()


def test_who_waits_in_vain_is_told_who_made_the_file_and_how_it_is_freed(file: Path):
    held = lock_of(file).acquire(0)
    age(file, 5000)
    with pytest.raises(UnavailableError) as error:
        lock_of(file).acquire(0)
    said = str(error.value)
    assert str(file) in said
    assert "has been there for 5000 seconds, made at 20" in said
    assert "by 'hudi_table" in said
    assert f"(process {os.getpid()} on {socket.gethostname()})" in said
    assert "if the process that made it has ended, delete the file" in said
    assert held.valid(), "nobody has taken it"


def test_of_a_file_that_expires_nobody_is_told_to_delete_it(file: Path):
    lock_of(file, minutes=10).acquire(0)
    with pytest.raises(UnavailableError, match="has been there for 0 seconds, made at") as error:
        lock_of(file, minutes=10).acquire(0)
    assert "delete the file" not in str(error.value)


def test_a_file_that_tells_nothing_is_told_by_its_age(file: Path):
    file.parent.mkdir(parents=True)
    for content in ("", "[1]", '{"lockCreateTime" : 1}', "\xff"):
        file.write_text(content)
        with pytest.raises(UnavailableError, match="has been there for 0 seconds; it lies there until"):
            lock_of(file).acquire(0)


def test_hudis_own_file_tells_its_thread(file: Path):
    file.parent.mkdir(parents=True)
    file.write_bytes(lock_bytes("2026-01-02 03:04:05.678", "main", ["a.B.c (B.java:3)"]))
    with pytest.raises(UnavailableError, match=r"made at 2026-01-02 03:04:05\.678 by 'main'; it lies there"):
        lock_of(file).acquire(0)
