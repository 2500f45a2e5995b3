"""Apache Hudi and we write to one table at once, each under the lock that both take: every
acknowledged row is there, a key that both write has its newest acknowledged value, and of two
writes only those of one file group conflict.

Matrix: {lock file, ZooKeeper} × {0.15.0, 1.1.1, 1.2.0} × the tables of `PIECES`. Each side writes
to one partition that the other writes to, and to one of its own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import pytest

from hudi_table.api import create_table, open_table
from tests.interop import ours
from tests.interop.further import Releases
from tests.interop.model import CITIES, SCHEMA, rows
from tests.interop.sharing import LOCKS, Acknowledged, by_ours, by_spark, locked, overtaken
from tests.support.hudi_oracle import VERSIONS, HudiOracle
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2), pytest.mark.timeout(3_000)]
TABLES: dict[str, tuple[Literal["CopyOnWrite", "MergeOnRead"], int]] = {
    "piece1": ("CopyOnWrite", 6),
    "piece2": ("MergeOnRead", 6),
    "piece3": ("CopyOnWrite", 9),
    "piece4": ("MergeOnRead", 9),
    "piece5": ("CopyOnWrite", 8),
    "piece6": ("MergeOnRead", 8),
}
"""Types and versions; of 0.15.0 version 6 alone."""
PIECES = pytest.mark.parametrize("piece", TABLES)
"""So that no shard takes long; one is a test of its own."""
ROUNDS = min(28, scaled(3))
"""Writes of Hudi's, with each release, in each piece: at the scale of the shards 504 with each
lock."""
PAUSE = 1.0
"""Seconds between two writes of ours, so that Hudi's, which take as long, get through now and
then."""
SHARED, HUDIS, OURS = range(len(CITIES))
"""Partitions, by their places among the model's."""


@pytest.fixture(scope="module", params=[*VERSIONS, "1.2.0"])
def oracle(request: pytest.FixtureRequest) -> Iterator[HudiOracle]:
    with ExitStack() as stack:
        further = request.param not in VERSIONS
        yield Releases(stack)[request.param] if further else stack.enter_context(HudiOracle(request.param))


@PIECES
@pytest.mark.parametrize("lock", LOCKS)
def test_no_acknowledged_row_of_either_is_lost(oracle: HudiOracle, tmp_path: Path, lock: str, figure, piece: str):
    base = tmp_path / "table"
    kind, version = TABLES[piece]
    version = version if oracle.is_1x else 6
    # The rows of a partition are one file group, so of two writes beside each other there one must fail.
    create_table(
        base, SCHEMA, record_key="id", ordering_fields="ts", partition_by=["city"], index={"type": "Bucket", "buckets": 1},
        type=kind, version=version,
    )  # fmt: skip
    ours.write(base, "upsert", rows(range(6), 1))
    began = time.monotonic()
    versions = itertools.count(2)
    hudis = Acknowledged(itertools.cycle((SHARED, HUDIS)), both=SHARED, versions=versions)
    mine = Acknowledged(itertools.cycle((SHARED, OURS)), 10_000, both=SHARED, versions=versions)
    with locked(lock, tmp_path) as properties, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(hudis.repeat, ROUNDS, by_spark(oracle, base, kind, properties, version))
        while not writing.done():
            mine.next(by_ours(base, properties))
            time.sleep(PAUSE)
        writing.result()
    shown = {row["id"]: row["ts"] for row in open_table(base).scan().to_arrow().to_pylist()}
    assert {row["id"]: row["ts"] for row in oracle.read(base).to_pylist()} == shown
    found = set(shown)
    assert mine.keys <= found
    hidden = hudis.keys - found
    assert hidden == overtaken(base, hidden)
    (both,) = rows([SHARED], 1)["id"].to_pylist()
    updates = {**hudis.updates, **mine.updates}
    assert shown[both] == 1_000 * max([1, *(updates[key] for key in updates.keys() - hidden)])
    assert found == set(rows(range(6), 1)["id"].to_pylist()) | mine.keys | hudis.keys - hidden
    # By the rules of both only writes of one file group exclude each other.
    assert {place for place, _ in hudis.refused} <= {SHARED}
    assert {place for place, _ in mine.refused} <= {SHARED}
    figure(ROUNDS, f"writes of Hudi {oracle.version} beside ours under one {lock}")
    figure(len(mine.keys) + len(mine.refused), f"writes of ours beside Hudi {oracle.version} under one {lock}")
    figure(len(hudis.refused) + len(mine.refused), "of them conflicts")
    figure(len(hidden), f"acknowledged rows that Hudi {oracle.version} hid itself")
    figure(round(time.monotonic() - began), f"seconds of such writes under one {lock}")
