"""The lock of ZooKeeper, before a real server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hudi_table.errors import UnavailableError, WriteAbortedError
from hudi_table.model.options.lock_settings import ZooKeeperLockSettings, lock_settings
from hudi_table.table.locks.lease import Held
from hudi_table.table.locks.opening import hold_lock
from hudi_table.table.locks.zookeeper import HeldZooKeeperLock, ZooKeeperLock, place
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from tests.support.zookeeper import ZooKeeper, running_zookeeper

PATH = "/hudi/locks/trips"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("zookeeper") / "server") as found:
        yield found


def lock_of(server: ZooKeeper, session: float = 30.0) -> ZooKeeperLock:
    return ZooKeeperLock(
        SystemClock(), ZooKeeperLockSettings(server.address, PATH, session, connection_timeout=20.0), pause=0.1
    )


def children(held: HeldZooKeeperLock) -> list[str]:
    found: list[str] = held._client.get_children(PATH)
    return found


def test_nodes_queue_by_their_numbers_whoever_made_them():
    """As Curator orders them: of `_c_…-lock-N` by N, whatever token stands before it."""
    queue = ["_c_ffff-lock-0000000002", "_c_0000-lock-0000000010", "_c_8888-lock-0000000001"]
    assert place(queue, "_c_8888-lock-0000000001") == (0, None)
    assert place(queue, "_c_0000-lock-0000000010") == (2, "_c_ffff-lock-0000000002")


def test_the_lock_is_held_by_one_until_it_is_given_back(server: ZooKeeper):
    held = lock_of(server).acquire(0)
    assert held.valid()
    held.renew()
    with pytest.raises(UnavailableError, match="1 others are before us, the next is _c_"):
        lock_of(server).acquire(0.2)
    assert len(children(held)) == 1, "who gave up has left the queue"
    got: list[HeldZooKeeperLock] = []
    waiting = threading.Thread(target=lambda: got.append(lock_of(server).acquire(60)))
    waiting.start()
    time.sleep(0.2)
    assert got == []
    held.release()
    waiting.join(60)
    assert got[0].valid()
    assert not held.valid()
    got[0].release()


def test_a_session_is_as_long_as_the_server_allows_and_no_longer_trusted(server: ZooKeeper):
    held = lock_of(server, session=3_600.0).acquire(0)
    assert held._lease.seconds == pytest.approx(40.0), "the greatest that this server gives"
    held.release()


def test_who_loses_his_node_sees_that_and_the_next_one_has_the_lock(server: ZooKeeper):
    held = lock_of(server).acquire(0)
    held._client.delete(f"{PATH}/{children(held)[0]}")
    following = lock_of(server).acquire(60)
    with pytest.raises(WriteAbortedError, match="ended its session"):
        held.renew()
    assert not held.valid()
    held.release()
    assert following.valid()
    following.renew()
    following.release()


def test_a_session_that_has_ended_is_known_to_be_lost_before_its_lease_ends(server: ZooKeeper):
    held = lock_of(server).acquire(0)
    node = f"{PATH}/{children(held)[0]}"
    watching = held._client.__class__(hosts=server.address)
    watching.start(20)
    while watching.exists(node):  # the client may come back with its session before that is ended
        other = held._client.__class__(hosts=server.address, client_id=held._client.client_id)
        other.start(20)
        other.stop()
        other.close()
    watching.stop()
    watching.close()
    until = time.monotonic() + 60
    while held.valid() and time.monotonic() < until:
        time.sleep(0.05)
    assert not held.valid()
    with pytest.raises(WriteAbortedError, match="its session has ended"):
        held.renew()
    held.release()


def test_a_server_that_is_gone_is_named_and_the_lease_runs_out(tmp_path: Path):
    with running_zookeeper(tmp_path / "server") as server:
        settings = ZooKeeperLockSettings(server.address, PATH, 2.0, connection_timeout=5.0)
        held = ZooKeeperLock(SystemClock(), settings, pause=0.1).acquire(0)
        server.kill()
        until = time.monotonic() + 60
        while held.valid() and time.monotonic() < until:
            time.sleep(0.05)
        assert not held.valid()
        with pytest.raises(UnavailableError, match="does not answer"):
            held.renew()
        with pytest.raises(UnavailableError, match=f"ZooKeeper at {server.address} does not answer"):
            ZooKeeperLock(SystemClock(), ZooKeeperLockSettings(server.address, PATH, 2.0, 0.5), pause=0.1).acquire(0)
        held.release()


def test_of_six_threads_one_has_the_lock_at_a_time(server: ZooKeeper):
    inside: list[int] = []

    def work(number: int) -> None:
        for _ in range(3):
            held = lock_of(server).acquire(120)
            inside.append(number)
            assert inside == [number], "two are inside"
            inside.remove(number)
            held.release()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_the_lock_that_goes_by_the_tables_path_is_one_for_all_who_write_there(server: ZooKeeper, tmp_path: Path):
    options = {
        "hoodie.write.lock.provider": "ZookeeperBasedImplicitBasePathLockProvider",
        "hoodie.write.lock.zookeeper.url": server.address,
        "hoodie.write.lock.wait_time_ms": "1000",
        "hoodie.write.lock.client.num_retries": "0",
    }

    def held(base: str, table: str) -> AbstractContextManager[Held]:
        settings = lock_settings(options, base_path=base, table_name=table, environment={})
        assert settings is not None
        return hold_lock(settings, open_storage(str(tmp_path)), SystemClock())

    with held("s3://lake/trips", "trips"):
        with pytest.raises(UnavailableError, match="1 others are before us"), held("s3a://lake/trips/", "another"):
            pass
        with held("s3://lake/trips-2", "trips") as other:
            assert other.valid()


def test_a_lock_is_renewed_within_the_session_that_the_server_grants(tmp_path: Path):
    """It is shorter here than the interval that follows from the session that is asked for."""
    with running_zookeeper(tmp_path / "server", session_max=3.0) as server:
        options = {
            "hoodie.write.lock.provider": "ZookeeperBasedLockProvider",
            "hoodie.write.lock.zookeeper.url": server.address,
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": "trips",
        }
        settings = lock_settings(options, base_path=str(tmp_path), table_name="t", environment={})
        assert settings is not None
        with hold_lock(settings, open_storage(str(tmp_path)), SystemClock()) as held:
            until = time.monotonic() + 7
            while time.monotonic() < until:
                assert held.valid()
                time.sleep(0.1)


def test_who_wants_the_lock_waits_for_a_server_that_is_away(tmp_path: Path):
    with running_zookeeper(tmp_path / "server") as server:
        settings = ZooKeeperLockSettings(server.address, PATH, 30.0, connection_timeout=1.0)
        lock = ZooKeeperLock(SystemClock(), settings, pause=0.1)
        server.kill()
        got: list[HeldZooKeeperLock] = []
        waiting = threading.Thread(target=lambda: got.append(lock.acquire(120)))
        waiting.start()
        time.sleep(3)
        assert waiting.is_alive()
        server.start()
        waiting.join(120)
        assert got[0].valid()
        got[0].release()
