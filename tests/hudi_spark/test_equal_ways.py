"""`df.write.format("hudi")` and `hudi_spark.write` are one write in two forms: the same rows and
the same commits, whatever the operation.

Copy-on-write and merge-on-read; compared are the rows with Hudi's key and partition columns, and of
every commit its operation, its extra metadata and what it counted by file group. Only times, file
ids and sizes of files may differ.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hudi_spark
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.timeline.active import commit_metadata, load_timeline

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
OPERATION = "hoodie.datasource.write.operation"
OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
}
STEPS: list[tuple[str, list[tuple[str, str, int]]]] = [
    ("insert", [(f"k{n:02d}", f"c{n % 3}", n) for n in range(20)]),
    ("upsert", [("k03", "c0", 100), ("k04", "c1", -5), ("n1", "c0", 1), ("n1", "c0", 3)]),
    ("delete", [("k00", "c0", 0), ("k01", "c1", 50), ("unknown", "c1", 0)]),
    ("bulk_insert", [("more", "c3", 1), ("more", "c4", 2)]),
    ("insert_overwrite", [("only", "c2", 1), ("only2", "c4", 1)]),
]


def rows(table: HudiTable) -> list[Any]:
    names = ["_hoodie_record_key", "_hoodie_partition_path", *SCHEMA.names]
    return sorted(tuple(row.values()) for row in table.scan(names).to_arrow().to_pylist())


def told(commit: CommitMetadata) -> dict[str, Any]:
    """What a commit says, without times, names and sizes of its files."""
    counted = Counter(
        (
            stat.partition_path, Path(stat.path).suffix == ".parquet", stat.prev_commit == "null", stat.num_writes, stat.num_inserts,
            stat.num_update_writes, stat.num_deletes, stat.total_write_errors,
        )
        for stat in commit.stats
    )  # fmt: skip
    replaced = {partition: len(ids) for partition, ids in (commit.replaced or {}).items()}
    return {
        "operation": commit.operation_type, "extra": dict(commit.extra_metadata), "replaced": replaced, "counted": counted,
    }  # fmt: skip


def commits(table: HudiTable) -> list[dict[str, Any]]:
    return [told(commit_metadata(table.context, each)) for each in load_timeline(table.context).commits]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_ways_make_the_same_table(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    given = OPTIONS | {"hoodie.datasource.write.table.type": kind}
    by_format, by_call = str(tmp_path / "format"), str(tmp_path / "call")
    create_table(by_call, SCHEMA, options=given)
    for operation, data in STEPS:
        # In two tasks: of few rows in one, `hudi_spark.write` would leave logs to the driver.
        frame = spark.createDataFrame(data, "id string, city string, ts long").repartition(2)
        options = given | {OPERATION: operation}
        frame.write.format("hudi").options(**options).mode("append").save(by_format)
        hudi_spark.write(frame, by_call, options=options)
        assert rows(open_table(by_format)) == rows(open_table(by_call)), operation
    found, wanted = commits(open_table(by_format)), commits(open_table(by_call))
    assert [each["operation"] for each in wanted][-len(STEPS) :] == [operation.upper() for operation, _ in STEPS]
    assert found == wanted
