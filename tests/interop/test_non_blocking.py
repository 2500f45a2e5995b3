"""Apache Hudi's non-blocking writers and ours append to one bucket at once: nobody fails, every row
is there, and both engines read the same, also behind a compaction of either."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from tests.interop.further import Releases
from tests.interop.model import SCHEMA, rows
from tests.interop.test_beside import LAZY, QUICK
from tests.interop.test_later_versions import COMPACTING, LOGS, upsert
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2), pytest.mark.timeout(3_000)]
BESIDE = {"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"}
THREADS = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
"""Hudi asks for a lock, which it takes to draw times alone; ours knows nothing of it."""
HUDI = {**THREADS, **LOGS, **QUICK, **LAZY, **BESIDE, "hoodie.bucket.index.num.buckets": "1"}
ROUNDS = scaled(1)


@pytest.fixture(scope="module", params=["1.1.1", "1.2.0"])
def oracle(request: pytest.FixtureRequest) -> Iterator[HudiOracle]:
    with ExitStack() as stack:
        yield Releases(stack)[request.param]


def patiently(oracle: HudiOracle, base: Path, data: pa.Table, version: int) -> None:
    """A write of Hudi's, again where it drew the millisecond that a write of ours has for its
    instant: it looks for no other one."""
    while True:
        try:
            upsert(oracle, base, data, version, "bucket", **HUDI)
        except HudiFailedError as error:
            if "File already exists" not in str(error) or ".requested" not in str(error):
                raise
        else:
            return


@pytest.mark.parametrize("version", [8, 9])
def test_both_append_to_one_bucket_and_nobody_fails(oracle: HudiOracle, tmp_path: Path, version: int, figure) -> None:
    base = tmp_path / "table"
    create_table(
        base, SCHEMA, record_key="id", ordering_fields="ts", index={"type": "Bucket", "buckets": 1}, type="MergeOnRead", version=version
    )  # fmt: skip
    kept: dict[str, int] = {}
    ours = 0
    for number in range(ROUNDS):
        # Both write the keys of the round, ours with the larger ordering value every second time; and one key each alone.
        mine, theirs = (3, 2) if number % 2 else (2, 3)
        both, alone = [4 * number, 4 * number + 1], (4 * number + 2, 4 * number + 3)
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(patiently, oracle, base, rows([*both, alone[1]], theirs), version)
            again = 0
            while not writing.done() or not again:
                open_table(base).upsert(rows([*both, alone[0]], mine), options=BESIDE)
                again += 1
            writing.result()
        ours += again
        for keys, newest in ((both, 3), (alone[:1], mine), (alone[1:], theirs)):
            kept |= {row["id"]: row["ts"] for row in rows(keys, newest).to_pylist()}
    assert read(base) == kept
    assert {row["id"]: row["ts"] for row in oracle.read(base).to_pylist()} == kept
    open_table(base).compact(force=True)
    assert {row["id"]: row["ts"] for row in oracle.read(base).to_pylist()} == kept
    upsert(oracle, base, rows([0], 9), version, "bucket", **HUDI | COMPACTING)
    assert read(base) == kept | {row["id"]: row["ts"] for row in rows([0], 9).to_pylist()}
    figure(ROUNDS + ours, "writes that append beside each other, Hudi's and ours")


@pytest.mark.parametrize("version", [8, 9])
def test_a_bucket_whose_group_was_replaced_begins_anew_for_both(
    oracle: HudiOracle, tmp_path: Path, version: int
) -> None:
    """Of Hudi's own first rows in it nothing is seen, by either: it names the group as before."""
    table = create_table(
        tmp_path / "table", SCHEMA, record_key="id", ordering_fields="ts", index={"type": "Bucket", "buckets": 1}, type="MergeOnRead", version=version
    )  # fmt: skip
    base = tmp_path / "table"
    upsert(oracle, base, rows([0], 1), version, "bucket", **HUDI)
    table.write(rows([], 1), operation="insert_overwrite_table")
    upsert(oracle, base, rows([1], 1), version, "bucket", **HUDI)
    assert (read(base), keys_of(oracle, base)) == ({}, set())
    table.upsert(rows([2], 1), options=BESIDE)
    upsert(oracle, base, rows([3], 1), version, "bucket", **HUDI)
    assert set(read(base)) == keys_of(oracle, base) == {"k002", "k003"}


def keys_of(oracle: HudiOracle, base: Path) -> set[str]:
    return {row["id"] for row in oracle.read(base).to_pylist()}


def read(base: Path) -> dict[str, int]:
    return {row["id"]: row["ts"] for row in open_table(base).scan(columns=["id", "ts"]).to_arrow().to_pylist()}
