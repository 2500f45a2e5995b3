"""Flink 1.17 with Hudi 0.14.0 on tables of ours, alone and at once with Apache Hudi 0.15.0 on Spark
and with ours, under a lock that all three take.

Matrix: {copy-on-write, merge-on-read} × what it does there, and × {lock file, ZooKeeper}. Hudi 0.14
knows no table version above 6.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.errors import WriteConflictError
from tests.interop import ours
from tests.interop.model import SCHEMA, Model, rows
from tests.interop.sharing import LOCKS, MODE, Acknowledged, locked
from tests.interop.test_matrix import upsert
from tests.support.flink import Flink, running_flink, table
from tests.support.hudi_oracle import HudiFailedError, HudiOracle
from tests.support.rows import assert_same_rows
from tests.support.scale import scaled

pytestmark = [pytest.mark.interop, pytest.mark.at_scale(2), pytest.mark.timeout(1_200)]
kinds = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
ROUNDS = scaled(2)
PAUSE = 1.5
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
ALONE = {"clean.async.enabled": "false", "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
TYPES = {"CopyOnWrite": "COPY_ON_WRITE", "MergeOnRead": "MERGE_ON_READ"}


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    with running_flink(tmp_path_factory.mktemp("flink") / "process") as found:
        yield found


@kinds
def test_flink_reads_our_table_and_upserts_into_our_file_groups(flink: Flink, tmp_path: Path, kind: str) -> None:
    base, model = tmp_path / "table", Model(partitioned=False)
    ours.create(base, index="bucket", partitioned=False, type=kind)
    named = table("t", base, {"table.type": TYPES[kind], **BUCKET})
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
    with flink.following(table("t", base, streaming), "SELECT id, ts FROM t") as followed:
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
    with ExitStack() as stack:
        properties = stack.enter_context(locked(lock, tmp_path))
        mine, sparks, flinks = Acknowledged(10_000), Acknowledged(20_000), Acknowledged(30_000)
        with ThreadPoolExecutor(2) as pool:
            others = [
                pool.submit(repeatedly, sparks, by_spark(spark, base, kind, properties)),
                pool.submit(repeatedly, flinks, by_flink(flink, base, kind, properties)),
            ]
            while not all(other.done() for other in others):
                mine.next(by_ours(base, properties))
                time.sleep(PAUSE)
            for other in others:
                other.result()
    found = set(ours.read(base)["id"].to_pylist())
    assert set(spark.read(base)["id"].to_pylist()) == found
    assert {row["id"] for row in seen(flink, table("t", base, {"table.type": TYPES[kind], **BUCKET}))} == found
    print(mine, sparks, flinks, {k - found for k in [set()]})
    for each, name in ((mine, "ours"), (sparks, "of Hudi 0.15.0 on Spark"), (flinks, "of Flink")):
        print(name, len(each.keys), "kept", each.refused, "refused; missing", each.keys - found)
        figure(len(each.keys), f"acknowledged writes {name} beside two other engines")


def by_ours(base: Path, lock: dict[str, str]) -> Callable[[pa.Table], bool]:
    def write(data: pa.Table) -> bool:
        try:
            open_table(base, lock=lock).upsert(data)
        except WriteConflictError:
            return False
        return True

    return write


def by_spark(spark: HudiOracle, base: Path, kind: str, lock: dict[str, str]) -> Callable[[pa.Table], bool]:
    told = {"hoodie.datasource.write.table.type": TYPES[kind], **MODE, **lock}

    def write(data: pa.Table) -> bool:
        try:
            upsert(spark, base, data, **told)
        except HudiFailedError as error:
            if "resolve conflicts" not in str(error):
                raise
            return False
        return True

    return write


def by_flink(flink: Flink, base: Path, kind: str, lock: dict[str, str]) -> Callable[[pa.Table], bool]:
    """A refused commit of Flink's mostly ends its job without an error: what it committed tells the
    timeline, and which instants were its own the notes that it leaves for its writers."""
    named = table("t", base, {"table.type": TYPES[kind], **BUCKET, **ALONE, **MODE, **lock})

    def write(data: pa.Table) -> bool:
        try: flink.run(named, inserted(data))
        except Exception as e: print("FLINK", type(e), str(e)[:1500])
        instants = {path.stem for path in (base / ".hoodie" / ".aux" / "ckp_meta").iterdir() if not path.name.startswith(".")}
        print(instants)
        done = [x for each in instants for x in (base/".hoodie").glob(f"{each}.*commit")]
        return bool(done)

    return write


def repeatedly(acknowledged: Acknowledged, write: Callable[[pa.Table], bool]) -> None:
    for _ in range(ROUNDS):
        acknowledged.next(write)


def seen(flink: Flink, named: str) -> list[dict[str, Any]]:
    """The rows of the table `t` as Flink reads them."""
    found = [dict(zip(SCHEMA.names, row, strict=True)) for row in flink.rows(named, "SELECT * FROM t")]
    return [row | {"seen": datetime.fromisoformat(row["seen"]).replace(tzinfo=UTC)} for row in found]


def told(data: pa.Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in data.to_pylist())


def inserted(data: pa.Table) -> str:
    """A statement that upserts these rows."""
    return "INSERT INTO t VALUES " + ", ".join(f"({', '.join(map(literal, row.values()))})" for row in data.to_pylist())


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
