"""`hoodie.allow.operation.metadata.field` on Spark: tasks write the column `_hoodie_operation`, and
DataFrames obey it and do not show it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_spark
from hudi_table.api import create_table
from hudi_table.model.names import ALL_META_COLUMNS, OPERATION_COLUMN
from tests.support.changelog import blocks_of, tell_operations

pytestmark = pytest.mark.spark

WITH = {"hoodie.allow.operation.metadata.field": "true"}
SCHEMA = pa.schema([("id", pa.string()), ("value", pa.int64())])


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_tasks_write_the_column_and_readers_see_rows_without_it(spark, tmp_path: Path, kind):
    base = tmp_path / "t"
    create_table(str(base), SCHEMA, record_key="id", type=kind, index={"type": "Bucket", "buckets": 1})

    def write(*rows, operation="upsert"):
        hudi_spark.write(spark.createDataFrame(rows, "id string, value long"), str(base), operation, options=WITH)

    write(("a", 1), ("b", 1), ("c", 1))
    write(("a", 2))
    write(("b", 0), operation="delete")
    files = [pq.read_schema(path).names for path in base.rglob("*.parquet")]
    files += [found.schema.names for log in base.rglob(".*.log.*") for _, found in blocks_of(log)]
    assert files
    assert all(names == [*ALL_META_COLUMNS, *SCHEMA.names] for names in files)
    shown = hudi_spark.read(spark, str(base))
    assert shown.columns == SCHEMA.names
    assert {tuple(row) for row in shown.collect()} == {("a", 2), ("c", 1)}
    if kind == "MergeOnRead":
        tell_operations(base, {"a": "D"})
        assert {tuple(row) for row in hudi_spark.read(spark, str(base)).collect()} == {("c", 1)}
    with pytest.raises(Exception, match=OPERATION_COLUMN):
        shown.select(OPERATION_COLUMN)
