"""Where hudi-rs reads other rows than ours, or none: cases of docs/reference/compatibility.md that
need no Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from tests.support.hudi_rs import read

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NESTED = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("s", pa.struct([("at", pa.timestamp("us", "UTC"))]))])
TIMED = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
PLAIN = pa.schema([("id", pa.string()), ("ts", pa.int64())])
PARTED = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("p", pa.string())])
ONE_BUCKET = {"type": "Bucket", "buckets": 1}


def rows(schema: pa.Schema, **fields: object) -> pa.Table:
    return pa.Table.from_pylist([{"id": "a", **fields}], schema=schema)


@pytest.mark.parametrize("hive", [False, True])
def test_an_equals_sign_in_a_partition_value_is_read_alike(tmp_path: Path, *, hive: bool) -> None:
    table = create_table(
        str(tmp_path), PARTED, record_key="id", ordering_fields="ts", partition_by="p", index="Simple", hive_style=hive
    )
    table.upsert(rows(PARTED, ts=1, p="a=b"))
    assert read(tmp_path)["p"].to_pylist() == table.scan().to_arrow()["p"].to_pylist() == ["a=b"]


def test_a_nested_timestamp_in_a_log_is_read_by_ours_and_not_by_hudi_rs(tmp_path: Path) -> None:
    table = create_table(
        str(tmp_path), NESTED, record_key="id", ordering_fields="ts", index="Simple", type="MergeOnRead"
    )
    table.upsert(rows(NESTED, ts=1, s={"at": MOMENT}))
    assert read(tmp_path)["s"].to_pylist() == [{"at": MOMENT}]
    table.upsert(rows(NESTED, ts=2, s={"at": MOMENT}))
    assert table.scan().to_arrow()["s"].to_pylist() == [{"at": MOMENT}]
    with pytest.raises(Exception, match="reconcile"):
        read(tmp_path)


@pytest.mark.parametrize("metadata", [False, True])
def test_hudi_rs_misses_a_file_group_of_logs_alone_that_a_metadata_table_lists(
    tmp_path: Path, *, metadata: bool
) -> None:
    table = create_table(
        str(tmp_path), PLAIN, record_key="id", ordering_fields="ts", index=ONE_BUCKET, type="MergeOnRead", version=9
    )
    if metadata:
        table.build_metadata()
    table.upsert(rows(PLAIN, ts=1), options={"hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL"})
    assert (table.scan().to_arrow()["ts"].to_pylist(), read(tmp_path).num_rows) == ([1], 0 if metadata else 1)
    table.compact(force=True)
    assert read(tmp_path)["ts"].to_pylist() == [1]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("key", [["id"], ["id", "ts"]], ids=["one key field", "two key fields"])
def test_hudi_rs_reads_no_partition_field_that_carries_its_kind(tmp_path: Path, key: list[str], version: int) -> None:
    """A custom key generator's, which several key fields beside a time need."""
    table = create_table(
        str(tmp_path),
        TIMED,
        record_key=key,
        ordering_fields="ts",
        partition_by={"field": "at", "type": "Timestamp", "format": "yyyy/MM"},
        index="Simple",
        version=version,
    )
    table.upsert(rows(TIMED, ts=1, at=MOMENT))
    assert table.scan().to_arrow()["at"].to_pylist() == [MOMENT]
    if len(key) == 1 or version == 6:
        assert read(tmp_path)["at"].to_pylist() == [MOMENT]
        return
    assert open_table(str(tmp_path)).properties["hoodie.table.partition.fields"] == "at:TIMESTAMP"
    with pytest.raises(Exception, match="not present in the table schema"):
        read(tmp_path)
