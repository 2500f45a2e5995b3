"""Apache Hudi and we write to one table at once, each under the lock that both take: every
acknowledged row is there, and of two writes only those of one file group conflict.

Matrix: {lock file, ZooKeeper} × {0.15.0, 1.1.1, 1.2.0}, on table version 6. Each side writes to one
partition that the other writes to, and to one of its own.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from hudi_table.api import create_table, open_table
from tests.interop import ours
from tests.interop.further import Releases
from tests.interop.model import CITIES, SCHEMA, rows
from tests.interop.sharing import LOCKS, Acknowledged, by_ours, by_spark, locked, overtaken
from tests.support.hudi_oracle import VERSIONS, HudiOracle
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2), pytest.mark.timeout(3_000)]
PIECES = pytest.mark.parametrize("piece", [f"piece{number}" for number in range(1, 7)])
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
    # The rows of a partition are one file group, so of two writes beside each other there one must fail.
    create_table(
        base, SCHEMA, record_key="id", ordering_fields="ts", partition_by=["city"], index={"type": "Bucket", "buckets": 1}
    )  # fmt: skip
    ours.write(base, "upsert", rows(range(6), 1))
    began = time.monotonic()
    hudis, mine = Acknowledged(itertools.cycle((SHARED, HUDIS))), Acknowledged(itertools.cycle((SHARED, OURS)), 10_000)
    with locked(lock, tmp_path) as properties, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(hudis.repeat, ROUNDS, by_spark(oracle, base, "CopyOnWrite", properties))
        while not writing.done():
            mine.next(by_ours(base, properties))
            time.sleep(PAUSE)
        writing.result()
    found = set(open_table(base).scan().to_arrow()["id"].to_pylist())
    assert set(oracle.read(base)["id"].to_pylist()) == found
    assert mine.keys <= found
    hidden = hudis.keys - found
    assert hidden == overtaken(base, hidden)
    assert found == set(rows(range(6), 1)["id"].to_pylist()) | mine.keys | hudis.keys - hidden
    # By the rules of both only writes of one file group exclude each other.
    assert {place for place, _ in hudis.refused} <= {SHARED}
    assert {place for place, _ in mine.refused} <= {SHARED}
    figure(ROUNDS, f"writes of Hudi {oracle.version} beside ours under one {lock}")
    figure(len(mine.keys) + len(mine.refused), f"writes of ours beside Hudi {oracle.version} under one {lock}")
    figure(len(hudis.refused) + len(mine.refused), "of them conflicts")
    figure(len(hidden), f"acknowledged rows that Hudi {oracle.version} hid itself")
    figure(round(time.monotonic() - began), f"seconds of such writes under one {lock}")
