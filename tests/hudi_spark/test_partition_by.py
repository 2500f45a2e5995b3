"""`partitionBy`, and paths and options that mean another table: they act as with Hudi, or are
refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import hudi_spark
from hudi_spark.datasource.format_options import format_options
from hudi_spark.datasource.source import HudiDataSource
from hudi_spark.datasource.writes import SparkWrite
from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError

KEYS = {"hoodie.table.name": "rides", "hoodie.datasource.write.recordkey.field": "id"}
PATH_FIELD = "hoodie.datasource.write.partitionpath.field"
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
COLUMNS = "id string, city string, ts long"


def asked(**options: str) -> SparkWrite:
    return SparkWrite.of(format_options(KEYS | options), overwrite=False)


def table(path: Path) -> HudiTable:
    return create_table(path, SCHEMA, record_key="id", partition_by="city", name="rides")


def test_partition_by_says_what_hudis_option_says() -> None:
    assert asked(partitionBy="city").options[PATH_FIELD] == "city"
    assert asked(partitionBy="city,ts", **{PATH_FIELD: "city:simple,ts:timestamp"}).options[PATH_FIELD] == (
        "city:simple,ts:timestamp"
    )
    with pytest.raises(InvalidOptionError, match=f"partitionBy names city, and {PATH_FIELD} is ts: leave one"):
        asked(partitionBy="city", **{PATH_FIELD: "ts"})


@pytest.mark.parametrize(
    "option",
    [
        {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
        {"hoodie.datasource.write.recordkey.field": "ts"},
        {"hoodie.table.name": "others"},
        {PATH_FIELD: "ts"},
    ],
)
def test_a_read_with_options_of_another_table_is_refused_by_name(option: dict[str, str], tmp_path: Path) -> None:
    """Hudi reads by what is stored, in silence."""
    table(tmp_path / "t")
    told = {"path": str(tmp_path / "t"), **KEYS, PATH_FIELD: "city"}
    assert HudiDataSource(told).schema().names[-1] == "ts"
    with pytest.raises(InvalidOptionError, match=f"{next(iter(option))}=.* contradicts the table"):
        HudiDataSource(told | option).schema()


def test_a_pattern_is_no_path_of_a_table(tmp_path: Path) -> None:
    """`load(path + "/*/*")` was needed by older releases of Hudi; a write made a folder of that
    name."""
    with pytest.raises(InvalidRequestError, match=r"/\*/\*' is a pattern: give the table's own path"):
        HudiDataSource({"path": f"{tmp_path}/t/*/*"}).schema()
    with pytest.raises(InvalidRequestError, match="is a pattern"):
        HudiDataSource({"path": f"{tmp_path}/t*", **KEYS}).writer(from_arrow_schema(SCHEMA), overwrite=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_batches_and_streams_are_partitioned_by_the_columns_of_partition_by(spark, tmp_path):
    hudi_spark.register(spark)
    rows = spark.createDataFrame([("a", "x", 1)], COLUMNS)
    batch, other, stream = (str(tmp_path / name) for name in ("batch", "other", "stream"))
    used = rows.write.options(**KEYS).partitionBy("city")
    used.format("hudi").mode("append").save(batch)
    used.save(batch)
    rows.write.options(**KEYS).save(other, "hudi", partitionBy=["city", "ts"])
    used.format("parquet").save(str(tmp_path / "parquet"))
    assert [found.name for found in (tmp_path / "parquet").glob("city=*")] == ["city=x"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json").write_text('{"id": "a", "city": "x", "ts": 1}\n')
    lines = spark.readStream.schema(COLUMNS).json(str(tmp_path / "in"))
    lines.writeStream.format("hudi").options(**KEYS).partitionBy("city").trigger(availableNow=True).option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    ).start(stream).awaitTermination()
    fields = [open_table(path).context.config.partition_fields for path in (batch, other, stream)]
    assert fields == [("city",), ("city", "ts"), ("city",)]
    assert open_table(batch).scan().count() == 1
