"""Ours: on `LocalEngine` with both cores, and on Spark from a DataFrame."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq

from bench.rows import read
from bench.settings import BUCKETS, CODEC, CORES, KEY, LEVEL, ORDERING, PARTITION, SPARK_CONF
from hudi_table import create_table, open_table
from hudi_table.api import HudiTable

BUCKET_INDEX = {"type": "Bucket", "buckets": BUCKETS}


def created(
    rows: Path,
    base: Path,
    bloom: bool,
    table_type,
    index: str | Mapping[str, Any] = BUCKET_INDEX,
    *,
    version: int = 6,
) -> HudiTable:
    """A table for these rows, without any."""
    return create_table(
        base,
        pq.read_schema(next(iter(sorted(rows.glob("*.parquet"))))).remove_metadata(),
        record_key=KEY,
        partition_by=PARTITION,
        ordering_fields=ORDERING,
        type=table_type,
        index=index,
        options=options_of(bloom),
        version=version,
    )


def options_of(bloom: bool) -> dict[str, str]:
    return {
        "hoodie.parquet.compression.codec": CODEC,
        "hoodie.parquet.bloom.filter.enabled": str(bloom).lower(),
    }


class Local:
    """hudi_table in this process."""

    table_type = "CopyOnWrite"
    index: str | Mapping[str, Any] = BUCKET_INDEX
    more: Mapping[str, str] = MappingProxyType({})

    def __init__(self, *, bloom: bool, version: int = 6) -> None:
        from hudi_table.table.engine.local_engine import LocalEngine

        assert LEVEL == 1, "our default"
        self._bloom, self._version = bloom, version
        self._engine = LocalEngine(CORES)

    def bulk_insert(self, rows: Path, base: Path) -> None:
        table = created(rows, base, self._bloom, self.table_type, self.index, version=self._version)
        table.write(read(rows), operation="bulk_insert", options=self._options(), engine=self._engine)

    def upsert(self, rows: Path, base: Path) -> None:
        open_table(str(base)).write(read(rows), operation="upsert", options=self._options(), engine=self._engine)

    def _options(self) -> dict[str, str]:
        return options_of(self._bloom) | dict(self.more)


class Spark:
    """hudi_spark on two tasks at once."""

    table_type = "CopyOnWrite"

    def __init__(self, *, bloom: bool, tasks: int = CORES, version: int = 6) -> None:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._bloom, self._version = bloom, version
        builder = SparkSession.builder.master(f"local[{tasks}]").appName("bench")
        for name, value in SPARK_CONF.items():
            builder = builder.config(name, value)
        builder = builder.config("spark.python.daemon.module", "hudi_spark.daemon")
        self._spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536").getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")

    def bulk_insert(self, rows: Path, base: Path) -> None:
        import hudi_spark

        table = created(rows, base, self._bloom, self.table_type, version=self._version)
        hudi_spark.write(self._spark.read.parquet(str(rows)), table, "bulk_insert", options=options_of(self._bloom))

    def upsert(self, rows: Path, base: Path) -> None:
        import hudi_spark

        hudi_spark.write(self._spark.read.parquet(str(rows)), str(base), "upsert", options=options_of(self._bloom))
