"""Apache Hudi's own lock clients and ours exclude each other: whoever is inside makes a file that
must not be there yet."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_table.errors import UnavailableError, WriteAbortedError
from hudi_table.model.options.lock_settings import PREFIX, lock_settings
from hudi_table.table.locks.file_system import lock_bytes
from hudi_table.table.locks.lease import Lock
from hudi_table.table.locks.opening import open_lock
from hudi_table.table.locks.storage_file import LockFile
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from tests.support.hudi_oracle import VERSIONS, HudiOracle
from tests.support.scale import scaled
from tests.support.zookeeper import running_zookeeper

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.at_scale(2), pytest.mark.timeout(3_000)]
FILE, ZOOKEEPER = "FileSystemBasedLockProvider", "ZookeeperBasedLockProvider"
BY_PATH = "ZookeeperBasedImplicitBasePathLockProvider"
PIECES = pytest.mark.parametrize("piece", [f"piece{number}" for number in range(1, 6)])
"""So that no shard takes long; one is a test of its own."""
ROUNDS = min(500, scaled(50))
"""Of each side, with each version of Hudi, in each piece: at the scale of the shards 10,000 with
each provider."""
CHUNK = 100


@pytest.fixture(scope="module", params=VERSIONS)
def oracle(request: pytest.FixtureRequest) -> Iterator[HudiOracle]:
    with HudiOracle(request.param) as found:
        yield found


def ours(provider: str, properties: Mapping[str, str], base: Path) -> Lock:
    options = {**properties, f"{PREFIX}provider": provider, f"{PREFIX}wait_time_ms_between_retry": "2"}
    settings = lock_settings(options, base_path=str(base), table_name="t", environment={})
    assert settings is not None
    return open_lock(settings, open_storage(str(base)), SystemClock())


def file_properties(base: Path) -> dict[str, str]:
    return {"hoodie.base.path": str(base), f"{PREFIX}filesystem.path": str(base), f"{PREFIX}filesystem.expire": "0"}


def zookeeper_properties(address: str) -> dict[str, str]:
    return {
        f"{PREFIX}zookeeper.url": address,
        f"{PREFIX}zookeeper.base_path": "/hudi",
        f"{PREFIX}zookeeper.lock_key": "t",
        f"{PREFIX}zookeeper.session_timeout_ms": "30000",
        f"{PREFIX}zookeeper.connection_timeout_ms": "30000",
        f"{PREFIX}wait_time_ms_between_retry": "100",
        f"{PREFIX}max_wait_time_ms_between_retry": "1000",
        f"{PREFIX}num_retries": "3",
    }


def excluded(oracle: HudiOracle, provider: str, properties: Mapping[str, str], base: Path) -> None:
    """Both sides take the lock `ROUNDS` times, and never meet."""
    critical = base / "critical"
    lock = ours(provider, properties, base)
    rounds = [CHUNK] * (ROUNDS // CHUNK) + [ROUNDS % CHUNK]

    def theirs() -> int:
        return sum(oracle.lock_rounds(provider, properties, count, critical) for count in rounds)

    met = 0
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(theirs)
        for _ in range(ROUNDS):
            held = lock.acquire(300)
            try:
                os.close(os.open(critical, os.O_CREAT | os.O_EXCL))
                time.sleep(0.001)
                held.renew()
                critical.unlink()
            except FileExistsError:
                met += 1
            held.release()
        assert (met, other.result()) == (0, 0)


@PIECES
def test_the_lock_file_excludes_hudis_client_and_ours(oracle: HudiOracle, tmp_path: Path, figure, piece: str):
    excluded(oracle, FILE, file_properties(tmp_path), tmp_path)
    figure(2 * ROUNDS, "acquisitions of a lock file beside Apache Hudi")


@PIECES
def test_the_lock_of_zookeeper_excludes_hudis_client_and_ours(oracle: HudiOracle, tmp_path: Path, figure, piece: str):
    with running_zookeeper(tmp_path / "server") as server:
        excluded(oracle, ZOOKEEPER, zookeeper_properties(server.address), tmp_path)
    figure(2 * ROUNDS, "acquisitions of a lock of ZooKeeper beside Apache Hudi")


@pytest.mark.parametrize("oracle", [each for each in VERSIONS if not each.startswith("0.")], indirect=True)
def test_the_lock_of_zookeeper_that_goes_by_the_tables_path_excludes_hudis_client_and_ours(
    oracle: HudiOracle, tmp_path: Path, figure
):
    """Releases before 1.0 have no such provider."""
    with running_zookeeper(tmp_path / "server") as server:
        properties = zookeeper_properties(server.address) | {"hoodie.base.path": str(tmp_path)}
        properties = {key: text for key, text in properties.items() if not key.endswith((".base_path", ".lock_key"))}
        excluded(oracle, BY_PATH, properties, tmp_path)
    figure(2 * ROUNDS, "acquisitions of a lock of ZooKeeper by the table's path beside Apache Hudi")


def test_a_client_of_hudi_that_gives_up_deletes_the_lock_file_and_ours_sees_that(oracle: HudiOracle, tmp_path: Path):
    properties = file_properties(tmp_path)
    lock = ours(FILE, properties, tmp_path)
    held = lock.acquire(0)
    assert not oracle.lose_lock(FILE, properties)
    assert not (tmp_path / "lock").exists(), "if it is there, Hudi has mended this: say so in the docs"
    with pytest.raises(WriteAbortedError, match="deleted or overwritten"):
        held.renew()
    assert not held.valid()


def test_a_client_of_hudi_waits_in_the_queue_of_zookeeper(oracle: HudiOracle, tmp_path: Path):
    with running_zookeeper(tmp_path / "server") as server:
        properties = zookeeper_properties(server.address)
        lock = ours(ZOOKEEPER, properties, tmp_path)
        held = lock.acquire(60)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(oracle.lock_rounds, ZOOKEEPER, properties, 1, tmp_path / "critical")
            time.sleep(2)
            assert not waiting.done()
            with pytest.raises(UnavailableError, match="others are before us"):
                lock.acquire(0)
            held.release()
            assert waiting.result() == 0


def test_the_bytes_of_locks_are_those_that_hudi_writes(oracle: HudiOracle):
    theirs = oracle.lock_bytes()
    assert lock_bytes("2026-01-02 03:04:05.678", "main", []).decode() == theirs["file"]
    assert ("object" in theirs) == oracle.is_1x
    if oracle.is_1x:
        assert LockFile(False, 1_700_000_000_123, "an owner").encoded().decode() == theirs["object"]
