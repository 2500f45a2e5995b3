"""Flink 1.17 with Hudi 0.14.0 on tables of ours, alone and at once with Apache Hudi 0.15.0 on Spark
and with ours, under a lock that all three take.

Matrix: {copy-on-write, merge-on-read} × what it does there, and × {lock file, ZooKeeper}. Hudi 0.14
knows no table version above 6.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.interop import ours
from tests.interop.model import SCHEMA, Model, rows
from tests.interop.sharing import LOCKS, MODE, TYPES, Acknowledged, Write, by_ours, by_spark, locked, overtaken
from tests.support.flink import Flink, FlinkFailedError, running_flink, table
from tests.support.hudi_oracle import HudiOracle
from tests.support.rows import assert_same_rows
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2), pytest.mark.timeout(1_200)]
kinds = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
ROUNDS = scaled(2)
PAUSE = 3.0
"""Seconds between two writes of ours, so that those of the others, which take as long, get through
now and then."""
BUCKET = {
    "index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "3",
    "hoodie.bucket.index.hash.field": "id",
    "precombine.field": "ts",
    "metadata.enabled": "false",
    "compaction.async.enabled": "false",
    "compaction.schedule.enabled": "false",
}
ALONE = {"hoodie.table.services.enabled": "false"}
"""Else each job cleans as it starts, whatever `clean.async.enabled` says."""


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    with running_flink(tmp_path_factory.mktemp("flink") / "process") as found:
        yield found


@kinds
def test_flink_reads_our_table_and_upserts_into_our_file_groups(flink: Flink, tmp_path: Path, kind: str) -> None:
    base, model = tmp_path / "table", Model(partitioned=False)
    ours.create(base, index="bucket", partitioned=False, type=kind)
    named = table(base, {"table.type": TYPES[kind], **BUCKET})
    for operation, numbers, version in (("insert", range(20), 1), ("upsert", range(12, 24), 2), ("delete", [3, 13], 3)):
        ours.write(base, operation, data := rows(numbers, version))
        model.apply(operation, data)
        assert_same_rows(seen(flink, named), model.rows(), of=f"Flink, after our {operation}")
    groups = file_groups(base)
    # It updates rows, inserts others, and writes a key that we deleted again.
    flink.run(named, inserted(data := rows([0, 3, 14, 30, 31], 4)))
    model.apply("upsert", data)
    assert file_groups(base) == groups
    assert_same_rows(ours.read(base), model.rows(), of="ours, after Flink's upsert")
    ours.write(base, "upsert", data := rows([0, 1, 30, 40], 5))
    model.apply("upsert", data)
    assert file_groups(base) == groups
    assert_same_rows(ours.read(base), model.rows(), of="ours, after our upsert")
    assert_same_rows(seen(flink, named), model.rows(), of="Flink, after our upsert")


@kinds
def test_flink_follows_our_table_and_gets_each_row(flink: Flink, tmp_path: Path, kind: str) -> None:
    base = tmp_path / "table"
    ours.create(base, index="bucket", partitioned=False, type=kind)
    ours.write(base, "upsert", rows(range(10), 1))
    streaming = {
        "table.type": TYPES[kind],
        **BUCKET,
        "read.streaming.enabled": "true",
        "read.start-commit": "earliest",
        "read.streaming.check-interval": "1",
    }
    with flink.following(table(base, streaming), "SELECT id, ts FROM `table`") as followed:
        assert sorted(followed.wait_for(10)) == told(rows(range(10), 1))
        ours.write(base, "upsert", rows(range(10, 15), 2))
        assert sorted(followed.wait_for(15)) == told(pa.concat_tables([rows(range(10), 1), rows(range(10, 15), 2)]))


@pytest.fixture(scope="module")
def spark() -> Iterator[HudiOracle]:
    with HudiOracle("0.15.0") as found:
        yield found


@kinds
@pytest.mark.parametrize("lock", LOCKS)
def test_three_engines_write_at_once_under_one_lock(
    flink: Flink, spark: HudiOracle, tmp_path: Path, kind: str, lock: str, figure
) -> None:
    base = tmp_path / "table"
    ours.create(base, index="bucket", partitioned=False, type=kind)
    ours.write(base, "upsert", rows(range(9), 1))
    places = itertools.cycle(range(3))
    mine, sparks, flinks = (Acknowledged(places, first) for first in (1_000, 10_000, 20_000))
    with locked(lock, tmp_path) as properties, ThreadPoolExecutor(2) as pool:
        others = [
            pool.submit(sparks.repeat, ROUNDS, by_spark(spark, base, kind, properties)),
            pool.submit(flinks.repeat, ROUNDS, by_flink(flink, base, kind, properties)),
        ]
        while not all(other.done() for other in others):
            mine.next(by_ours(base, properties))
            time.sleep(PAUSE)
        for other in others:
            other.result()
    found = set(ours.read(base)["id"].to_pylist())
    assert set(spark.read(base)["id"].to_pylist()) == found
    assert {row["id"] for row in seen(flink, table(base, {"table.type": TYPES[kind], **BUCKET}))} == found
    assert mine.keys <= found
    hidden = (sparks.keys | flinks.keys) - found
    assert hidden == (overtaken(base, hidden) if kind == "CopyOnWrite" else set())
    for each, name in ((mine, "ours"), (sparks, "Hudi 0.15.0's on Spark"), (flinks, "Flink's")):
        figure(len(each.keys), f"acknowledged writes of {name}, three engines at once")
        figure(len(each.refused), f"refused writes of {name}, three engines at once")
    figure(len(hidden), "acknowledged rows that Hudi hid itself, three engines at once")


def by_flink(flink: Flink, base: Path, kind: str, lock: Mapping[str, str]) -> Write:
    """A refused commit of Flink's may end its job without an error: what it committed tells the
    timeline, and which instants were its own the notes that it leaves for its writers."""
    named = table(base, {"table.type": TYPES[kind], **BUCKET, **ALONE, **MODE, **lock})

    def write(data: pa.Table) -> bool:
        before = noted(base)
        with contextlib.suppress(FlinkFailedError):
            flink.run(named, inserted(data))
        new = noted(base) - before
        return any(list((base / ".hoodie").glob(f"{instant}.*commit")) for instant in new)

    return write


def noted(base: Path) -> set[str]:
    """The instants that Flink's writers left notes of."""
    return {path.name.split(".")[0] for path in (base / ".hoodie" / ".aux").glob("ckp_meta*/[0-9]*")}


def seen(flink: Flink, named: str) -> list[dict[str, Any]]:
    """The rows of the table as Flink reads them."""
    found = [dict(zip(SCHEMA.names, row, strict=True)) for row in flink.rows(named, "SELECT * FROM `table`")]
    return [row | {"seen": datetime.fromisoformat(row["seen"]).replace(tzinfo=UTC)} for row in found]


def told(data: pa.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in data.to_pylist())


def inserted(data: pa.Table) -> str:
    """A statement that upserts these rows."""
    return "INSERT INTO `table` VALUES " + ", ".join(
        f"({', '.join(map(literal, row.values()))})" for row in data.to_pylist()
    )


def literal(value: Any) -> str:
    match value:
        case None:
            return "CAST(NULL AS STRING)"
        case str():
            return f"'{value}'"
        case datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
        case _:
            return str(value)


def file_groups(base: Path) -> set[str]:
    return {path.name.lstrip(".").split("_")[0] for path in base.iterdir() if "_" in path.name.lstrip(".")}
