"""Writes of Spark under a lock that Hudi's options name: `hudi_spark.write`, and
`df.write.format("hudi")`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_spark
from hudi_table.api import create_table, open_table
from hudi_table.model.options.lock_settings import FileLockSettings
from hudi_table.table.locks.file_system import FileSystemLock
from hudi_table.table.store.clock import SystemClock

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms": "1",
    "hoodie.write.lock.client.num_retries": "0",
}
LOCK_ALONE = {key: value for key, value in LOCK.items() if key.startswith("hoodie.write.lock.")}
WAYS: dict[str, Callable[[DataFrame, str], Any]] = {
    "write": lambda df, base: hudi_spark.write(df, base, options=LOCK),
    "write to an opened table": lambda df, base: hudi_spark.write(df, open_table(base, lock=LOCK_ALONE)),
    "format": lambda df, base: df.write.format("hudi").options(**LOCK).mode("append").save(base),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_write_of_spark_waits_for_the_lock_that_the_options_name(
    spark: SparkSession, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few rows would be written by the driver alone.
    monkeypatch.setattr("hudi_spark.writer.small_rows", lambda *_: None)
    base = str(tmp_path / "t")
    create_table(base, SCHEMA, record_key="id")
    rows = spark.createDataFrame([("a", 1), ("b", 2)], "id string, ts long")
    held = FileSystemLock(SystemClock(), FileLockSettings(f"{base}/.hoodie"), pause=0.01).acquire(0)
    with pytest.raises(Exception, match="was not to be had"):
        WAYS[way](rows, base)
    held.release()
    WAYS[way](rows, base)
    assert open_table(base).scan().to_arrow().num_rows == 2
    assert not (tmp_path / "t" / ".hoodie" / "lock").exists()
