"""Apache Hudi and we write to one table at once, each under the lock of ZooKeeper that both take:
every acknowledged row is there, though both write to the same file group."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_table.api import create_table, open_table
from hudi_table.errors import WriteConflictError
from tests.interop import ours
from tests.interop.model import SCHEMA, rows
from tests.interop.test_beside import LAZY, QUICK
from tests.interop.test_matrix import upsert
from tests.support.hudi_oracle import VERSIONS, HudiFailedError, HudiOracle
from tests.support.scale import scaled
from tests.support.zookeeper import running_zookeeper

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2), pytest.mark.timeout(3_000)]
ROUNDS = scaled(3)
PAUSE = 2.0
"""Seconds between two writes of ours, so that Hudi's, which take as long, get through now and
then."""
SHARED = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
    "hoodie.write.lock.zookeeper.base_path": "/hudi",
    "hoodie.write.lock.zookeeper.lock_key": "t",
    "hoodie.write.lock.zookeeper.session_timeout_ms": "30000",
    "hoodie.write.lock.wait_time_ms": "60000",
}


@pytest.fixture(scope="module", params=VERSIONS)
def oracle(request: pytest.FixtureRequest) -> Iterator[HudiOracle]:
    with HudiOracle(request.param) as found:
        yield found


def test_no_acknowledged_row_of_either_is_lost(oracle: HudiOracle, tmp_path: Path, figure):
    base = tmp_path / "table"
    # All rows are one file group, so of two that write beside each other one must fail.
    create_table(base, SCHEMA, record_key="id", ordering_fields="ts", index={"type": "Bucket", "buckets": 1})
    ours.write(base, "upsert", rows(range(4), 1))
    kept = set(rows(range(4), 1)["id"].to_pylist())
    conflicts: list[str] = []
    with running_zookeeper(tmp_path / "server") as server:
        lock = SHARED | {"hoodie.write.lock.zookeeper.url": server.address}
        mode = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}

        def theirs() -> None:
            for number in range(ROUNDS):
                key = 1_000 + number
                try:
                    upsert(oracle, base, rows([key], 1), **QUICK, **LAZY, **mode, **lock)
                    kept.add(f"k{key}")
                except HudiFailedError as error:
                    if "onflict" not in str(error):
                        raise
                    conflicts.append("Apache Hudi")

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(theirs)
            number = 0
            while not writing.done():
                key = 10_000 + number
                number += 1
                try:
                    open_table(base, lock=lock).upsert(rows([key], 1))
                    kept.add(f"k{key}")
                except WriteConflictError:
                    conflicts.append("ours")
                time.sleep(PAUSE)
            writing.result()
    found = set(open_table(base).scan().to_arrow()["id"].to_pylist())
    assert found == kept
    assert set(oracle.read(base)["id"].to_pylist()) == kept
    figure(ROUNDS + number, "writes beside each other under one lock")
    figure(len(conflicts), "of them conflicts")
