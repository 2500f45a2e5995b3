"""The storage lock on every store, by the bytes that Apache Hudi writes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from hudi_table.errors import CorruptTableError, OutcomeUnknownError, UnavailableError, WriteAbortedError
from hudi_table.model.options.lock_settings import StorageLockSettings
from hudi_table.table.locks.storage import StorageLock
from hudi_table.table.locks.storage_file import AUDIT_SWITCH, LOCK, LockFile, decoded
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.owned.versioned import Version, VersionedObjects, versioned_objects
from hudi_table.table.store.ports import Storage
from tests.support.lock_clients import BEGIN, SharedTime, SkewedClock
from tests.support.s3 import S3Server, running_s3

MILLIS = int(BEGIN.timestamp() * 1000)


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with running_s3() as server:
        yield server


@pytest.fixture(params=["disk", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "s3":
        server = request.getfixturevalue("s3")
        return open_storage(server.new_uri(), server.options)
    return open_storage(str(tmp_path / "table") if request.param == "disk" else f"memory://{uuid.uuid4().hex}")


def lock_of(storage: Storage, clock: SkewedClock) -> StorageLock:
    return StorageLock(versioned_objects(storage), clock, StorageLockSettings(), pause=1.0)


def test_the_lock_is_held_by_one_until_it_is_given_back(storage: Storage):
    clock = SkewedClock()
    held = lock_of(storage, clock).acquire(0)
    there = decoded(storage.get(LOCK))
    assert (there.expired, there.valid_until) == (False, MILLIS + 300_000)
    with pytest.raises(UnavailableError, match=f"{there.owner} has it"):
        lock_of(storage, clock).acquire(5)
    assert clock.boot_seconds() == 5, "it looks until its patience ends"
    held.release()
    assert decoded(storage.get(LOCK)) == LockFile(True, there.valid_until, there.owner), "it is marked, not deleted"
    assert not held.valid()
    assert lock_of(storage, clock).acquire(0).valid()


def test_a_lease_that_passed_is_taken_over_half_a_second_later_and_its_holder_sees_that(storage: Storage):
    clock = SkewedClock()
    held = lock_of(storage, clock).acquire(0)
    clock.sleep(299.9)
    assert held.valid()
    clock.sleep(0.1)
    assert not held.valid(), "from the end of its lease on it does not trust it"
    clock.sleep(0.5)
    with pytest.raises(UnavailableError):
        lock_of(storage, clock).acquire(0)
    clock.sleep(0.002)
    other = lock_of(storage, clock).acquire(0)
    with pytest.raises(WriteAbortedError, match="another writer has taken it"):
        held.renew()
    held.release()
    other.renew()
    assert other.valid(), "who has lost it gives back nothing"


def test_a_lease_is_renewed_and_lives_again_if_nobody_took_it(storage: Storage):
    clock = SkewedClock()
    held = lock_of(storage, clock).acquire(0)
    clock.sleep(200)
    held.renew()
    clock.sleep(200)
    assert held.valid()
    assert decoded(storage.get(LOCK)).valid_until == MILLIS + 500_000
    clock.sleep(1_000)
    assert not held.valid()
    held.renew()
    assert held.valid(), "nobody had it between"


def test_a_lock_of_apache_hudi_is_respected_and_so_is_its_end(storage: Storage):
    clock = SkewedClock()
    theirs = f'{{"expired":false,"validUntil":{MILLIS + 30_000},"owner":"0e6c0d1e-8f2b-4a57-9c57-3d9f5a1f6a01"}}'
    storage.put(LOCK, theirs.encode())
    with pytest.raises(UnavailableError, match="0e6c0d1e"):
        lock_of(storage, clock).acquire(10)
    storage.put(LOCK, theirs.replace("false", "true").encode())
    assert lock_of(storage, clock).acquire(0).valid()


UNREADABLE = (
    "",
    "{",
    "null",
    "[]",
    '{"validUntil":5,"expired":false}',
    '{"expired":false,"validUntil":null,"owner":"x"}',
    '{"expired":0,"validUntil":5,"owner":"x"}',
    '{"expired":false,"validUntil":true,"owner":"x"}',
    "[" * 100_000,
)


@pytest.mark.parametrize("text", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_lock_that_nobody_can_read_is_nobodys_to_take(text: str):
    storage = open_storage(f"memory://{uuid.uuid4().hex}")
    storage.put(LOCK, text.encode())
    with pytest.raises(CorruptTableError, match="delete it"):
        lock_of(storage, SkewedClock()).acquire(0)
    assert storage.get(LOCK) == text.encode()


def test_its_bytes_are_those_that_hudi_writes():
    """As `StorageLockFile` of 1.1.1 and 1.2.0 writes them."""
    file = LockFile(False, 1_700_000_000_123, "0e6c0d1e-8f2b-4a57-9c57-3d9f5a1f6a01")
    assert file.encoded() == (
        b'{"expired":false,"validUntil":1700000000123,"owner":"0e6c0d1e-8f2b-4a57-9c57-3d9f5a1f6a01"}'
    )
    assert LockFile(True, 5, 'o"é').encoded() == '{"expired":true,"validUntil":5,"owner":"o\\"é"}'.encode()
    assert decoded(file.encoded()) == file


def test_a_lock_with_fields_of_a_later_release_is_read():
    assert decoded(b'{"owner":"x","validUntil":5,"expired":true,"more":1}') == LockFile(True, 5, "x")


def test_the_audit_log_has_a_line_for_each_step_as_hudi_writes_them(storage: Storage):
    storage.put(AUDIT_SWITCH, b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": true}')
    clock = SkewedClock()
    held = lock_of(storage, clock).acquire(0)
    clock.sleep(30)
    held.renew()
    clock.sleep(1)
    held.release()
    owner = decoded(storage.get(LOCK)).owner
    lines = storage.get(f".hoodie/.locks/audit/{MILLIS}_{owner}.jsonl").decode().splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["START", "RENEW", "END"]
    assert lines[1] == (
        f'{{"transactionStartTime":{MILLIS},"lockHeld":true,"state":"RENEW","lockExpiration":{MILLIS + 330_000},'
        f'"ownerId":"{owner}","timestamp":{MILLIS + 30_000}}}'
    )


@pytest.mark.parametrize("switch", [b'{"STORAGE_LOCK_AUDIT_SERVICE_ENABLED": false}', b"{", b"[]"])
def test_without_its_switch_there_is_no_audit_log(switch: bytes):
    storage = open_storage(f"memory://{uuid.uuid4().hex}")
    storage.put(AUDIT_SWITCH, switch)
    lock_of(storage, SkewedClock()).acquire(0).release()
    assert storage.list(".hoodie/.locks/audit") == []


@dataclass
class LosingReplies:
    """Objects of which the reply to the next write is lost; `applied`: whether that was done."""

    inner: VersionedObjects
    applied: bool | None = None

    def get(self, path: str) -> tuple[bytes, Version]:
        return self.inner.get(path)

    def create(self, path: str, data: bytes) -> Version:
        return self._write(lambda: self.inner.create(path, data))

    def replace(self, path: str, data: bytes, version: Version) -> Version:
        return self._write(lambda: self.inner.replace(path, data, version))

    def put(self, path: str, data: bytes) -> None:
        self.inner.put(path, data)

    def _write(self, write) -> Version:
        if self.applied is None:
            return write()
        applied, self.applied = self.applied, None
        if applied:
            write()
        raise OutcomeUnknownError("lost")


@pytest.fixture
def losing() -> tuple[LosingReplies, SkewedClock]:
    storage = open_storage(f"memory://{uuid.uuid4().hex}")
    return LosingReplies(versioned_objects(storage)), SkewedClock()


@pytest.mark.parametrize("applied", [True, False])
def test_an_acquisition_whose_reply_was_lost_is_found_or_tried_again(losing, applied: bool):
    objects, clock = losing
    objects.applied = applied
    held = StorageLock(objects, clock, StorageLockSettings(), pause=1.0).acquire(2)
    assert held.valid()
    assert clock.boot_seconds() == (0 if applied else 1)


def test_a_renewal_whose_reply_was_lost_is_found_again_and_not_taken_for_anothers(losing):
    objects, clock = losing
    held = StorageLock(objects, clock, StorageLockSettings(), pause=1.0).acquire(0)
    clock.sleep(100)
    objects.applied = True
    held.renew()
    clock.sleep(299)
    assert held.valid()
    objects.applied = False
    with pytest.raises(UnavailableError):
        held.renew()
    assert held.valid(), "as long as it did before"
    clock.sleep(1)
    assert not held.valid()


def test_a_release_whose_reply_was_lost_leaves_the_lock_free(losing):
    objects, clock = losing
    lock = StorageLock(objects, clock, StorageLockSettings(), pause=1.0)
    for applied in (True, False):
        held = lock.acquire(0)
        objects.applied = applied
        held.release()
        assert decoded(objects.get(LOCK)[0]).expired


def test_of_eight_threads_one_has_the_lock_at_a_time(storage: Storage):
    inside: list[int] = []

    def work(number: int) -> None:
        lock = StorageLock(versioned_objects(storage), SystemClock(), StorageLockSettings(), pause=0.01)
        for _ in range(5):
            held = lock.acquire(120)
            inside.append(number)
            assert inside == [number], "two are inside"
            held.renew()
            inside.remove(number)
            held.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_clocks_that_differ_by_no_more_than_half_a_second_let_nobody_in_too_early():
    storage = open_storage(f"memory://{uuid.uuid4().hex}")
    time = SharedTime()
    slow, fast = SkewedClock(time, -0.25), SkewedClock(time, 0.25)
    held = lock_of(storage, slow).acquire(0)
    other = lock_of(storage, fast).acquire(1_000)
    assert time.seconds > 300
    assert not held.valid()
    assert other.valid()
