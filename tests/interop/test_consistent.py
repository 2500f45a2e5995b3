"""Consistent hashing across engines: ours read and upserted on by Hudi, Hudi's by us, before and
after a split and a merge by either, and after what replaces file groups. Every row lies where its
key's hash belongs, and comes once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import open_table
from hudi_table.model.table.rings import Ring
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.hash_rings import TableRings
from tests.interop import ours
from tests.interop.conftest import Hudis
from tests.interop.model import Model, rows
from tests.interop.test_clustering import go_on
from tests.interop.test_matrix import upsert
from tests.interop.test_merge_on_read import COMPACTING, LOGS
from tests.support.hudi_oracle import HudiOracle

pytestmark = [pytest.mark.interop, pytest.mark.by_turns]

SPLIT = {"hoodie.parquet.max.file.size": "1000", "hoodie.bucket.index.merge.threshold": "0"}
"""Every file group that the bounds allow is split."""
MERGE = {"hoodie.bucket.index.split.threshold": "1000"}
"""Nothing is split, and all that are small, which is all, are merged as far as the bounds allow."""
_CLASS = "org.apache.hudi.client.clustering"
HASHED = {
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
    "hoodie.bucket.index.num.buckets": "3",
    "hoodie.bucket.index.min.num.buckets": "2",
    "hoodie.bucket.index.max.num.buckets": "8",
    "hoodie.bucket.index.hash.field": "id",
}
CLUSTERING = {
    "hoodie.metadata.enable": "false",
    "hoodie.clustering.plan.strategy.class": f"{_CLASS}.plan.strategy.SparkConsistentBucketClusteringPlanStrategy",
    "hoodie.clustering.execution.strategy.class": f"{_CLASS}.run.strategy.SparkConsistentBucketClusteringExecutionStrategy",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.row.writer.enable": "false",
}
STEPS = (
    ("upsert", range(20), 1),
    ("upsert", range(10, 30), 2),
    ("delete", range(0, 20, 5), 3),
    ("insert", range(30, 40), 4),
)
layouts = pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])


def written(base: Path, partitioned: bool) -> Model:
    model = Model(partitioned=partitioned)
    ours.create(base, index="consistent", partitioned=partitioned, type="MergeOnRead")
    go_on(base, model, STEPS)
    return model


def assert_right(base: Path, oracle: HudiOracle, model: Model, **more: Any) -> None:
    ours.assert_all_read(base, oracle, model.rows(), **more)
    assert open_table(str(base)).doctor(keys=True) == ()


def write_on(base: Path, oracle: HudiOracle, model: Model, version: int = 8, *, deletes: bool = True) -> None:
    """Hudi changes and adds keys, then we; and we delete some."""
    told = {**LOGS, **HASHED} if "hoodie.index.type" not in properties(base) else dict(LOGS)
    upsert(oracle, base, data := rows([6, 7, 11, 33, 60, 61], version), **told)
    model.apply("upsert", data)
    assert_right(base, oracle, model)
    ours.write(base, "upsert", data := rows(range(5, 64, 9), version + 1), options=options_of(base))
    model.apply("upsert", data)
    if deletes:
        ours.write(base, "delete", data := rows(range(6, 8), version + 1), options=options_of(base))
        model.apply("delete", data)
    assert_right(base, oracle, model)


def properties(base: Path) -> str:
    return (base / ".hoodie" / "hoodie.properties").read_text()


def options_of(base: Path) -> dict[str, str]:
    """What we have to be told of a table: of one of Hudi's the index, which version 6 does not
    store."""
    return {} if "hoodie.index.type" in properties(base) else HASHED


def rings(base: Path, partitioned: bool) -> dict[str, Ring]:
    table = open_table(str(base))
    found = TableRings(table.context, load_timeline(table.context), 3)
    return {name: found.ring(name) for name in (("nyc", "par", "sf") if partitioned else ("",))}


def cluster(oracle: HudiOracle, base: Path, operation: str, more: dict[str, str]) -> None:
    told = ",".join(f"{key}={value}" for key, value in (CLUSTERING | HASHED | more).items())
    oracle.sql(f"CALL run_clustering(path => '{base}', op => '{operation}', options => '{told}')")


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert", "insert_overwrite", "delete_partition"])
@layouts
def test_every_engine_reads_our_table_and_hudi_upserts_and_compacts_it(
    hudis: Hudis, tmp_path: Path, partitioned: bool, operation: str
) -> None:
    base = tmp_path / "table"
    model = written(base, partitioned)
    go_on(base, model, ((operation, range(40, 52, 2), 5), ("upsert", range(8, 48, 3), 6)))

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_right(copy, oracle, expected)
        upsert(oracle, copy, data := rows([2, 9, 42, 43], 7), **LOGS, **COMPACTING)
        expected.apply("upsert", data)
        assert_right(copy, oracle, expected)
        write_on(copy, oracle, expected)

    hudis.each_on_a_copy(base, each)


@layouts
def test_every_engine_goes_on_with_the_nodes_that_we_split_and_merged(
    hudis: Hudis, tmp_path: Path, partitioned: bool
) -> None:
    base = tmp_path / "table"
    model = written(base, partitioned)
    before = rings(base, partitioned)
    (done,) = open_table(str(base)).cluster(SPLIT, force=True)
    assert done.figures["fileGroups"] > 1
    split = rings(base, partitioned)
    assert all(len(split[name].nodes) > len(before[name].nodes) for name in before)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected = model.copy()
        assert_right(copy, oracle, expected)
        write_on(copy, oracle, expected)
        (merged,) = open_table(str(copy)).cluster(MERGE, force=True)
        assert merged.figures["fileGroups"] > merged.figures["filesAfter"]
        after = rings(copy, partitioned)
        assert all(len(after[name].nodes) < len(split[name].nodes) for name in split)
        assert_right(copy, oracle, expected)
        write_on(copy, oracle, expected, 20)

    hudis.each_on_a_copy(base, each)


@layouts
def test_hudi_executes_our_plan_and_all_go_on(hudis: Hudis, tmp_path: Path, partitioned: bool) -> None:
    base = tmp_path / "table"
    model = written(base, partitioned)

    def each(oracle: HudiOracle, copy: Path) -> None:
        expected, mine = model.copy(), open_table(str(copy))
        plan = mine.schedule_clustering(SPLIT, force=True)
        assert plan is not None
        assert_right(copy, oracle, expected)
        cluster(oracle, copy, "execute", {})
        assert mine.pending_clusterings() == []
        assert sum(len(ring.nodes) for ring in rings(copy, partitioned).values()) > 3 * (1 + 2 * partitioned)
        assert_right(copy, oracle, expected)
        write_on(copy, oracle, expected)

    hudis.each_on_a_copy(base, each)


@layouts
def test_we_upsert_on_hudis_table_and_carry_out_its_splits(hudis: Hudis, tmp_path: Path, partitioned: bool) -> None:
    def each(oracle: HudiOracle) -> None:
        base, model = tmp_path / f"table-{oracle.version}", Model(partitioned=partitioned)
        told = {
            "hoodie.table.name": "table",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "city" if partitioned else "",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
            "hoodie.metadata.enable": "false",
            "hoodie.datasource.write.operation": "upsert",
        }
        if not partitioned:
            told["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        for numbers, version in ((range(20), 1), (range(10, 30), 2)):
            oracle.write(base, data := rows(numbers, version), told | HASHED)
            model.apply("upsert", data)
        assert_right(base, oracle, model)
        # Of Hudi's own clustering: rows that a delete block in a log had deleted came back with it (0.15.0).
        write_on(base, oracle, model, deletes=False)
        cluster(oracle, base, "scheduleAndExecute", SPLIT)
        assert_right(base, oracle, model)
        write_on(base, oracle, model, 20)
        cluster(oracle, base, "schedule", MERGE | {"hoodie.bucket.index.merge.threshold": "1"})
        mine = open_table(str(base))
        (instant,) = mine.pending_clusterings()
        mine.run_clustering(instant, options=HASHED)
        assert all(len(ring.nodes) == 2 for ring in rings(base, partitioned).values())
        assert_right(base, oracle, model)
        write_on(base, oracle, model, 30)
        (split,) = mine.cluster(HASHED | SPLIT, force=True)
        assert split.figures["filesAfter"] > split.figures["fileGroups"]
        assert_right(base, oracle, model)
        write_on(base, oracle, model, 40)

    hudis.each(each)
