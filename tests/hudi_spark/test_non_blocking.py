"""Tasks append to buckets beside another writer, and begin a bucket with a log."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import hudi_spark
from tests.hudi_table.write.test_conflicts import Meanwhile
from tests.hudi_table.write.test_non_blocking import BESIDE, SHARED_ID, values
from tests.support.written import new_table, rows, slices


@pytest.mark.parametrize("begun", [False, True])
def test_a_write_of_spark_and_one_of_ours_to_one_bucket_both_stand(spark: SparkSession, tmp_path, begun: bool) -> None:
    table = new_table(
        str(tmp_path / "t"), index={"type": "Bucket", "buckets": 1}, type="MergeOnRead", version=9, partitioned=False
    )
    kept = {}
    if begun:
        table.upsert(rows(("b", "x", 1), ("old", "x", 1)))
        kept["old"] = 1

    def theirs() -> None:
        hudi_spark.write(spark.createDataFrame(rows(("b", "x", 20))), table, "upsert", options=BESIDE)

    table.upsert(rows(("a", "x", 10)), options=BESIDE, engine=Meanwhile(theirs))
    assert values(table) == kept | {"a": 10, "b": 20}
    (found,) = slices(table)
    assert (found.base is None, found.file_id == SHARED_ID, len(found.logs)) == (not begun, not begun, 2)
