"""Ours in the race over logs, on `LocalEngine` and on Spark; and hudi-rs, which reads what ours wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.logs_steps import before_last, check
from bench.ours import Spark
from bench.rows import read
from bench.settings import BUCKETS, CODEC, CORES, KEY, ORDERING, PARTITION
from hudi_table import create_table, open_table
from hudi_table.api import HudiTable
from hudi_table.table.engine import LocalEngine

OPTIONS = {"hoodie.parquet.compression.codec": CODEC}


def created(rows: Path, base: Path) -> HudiTable:
    schema = pq.read_schema(next(iter(sorted(rows.glob("*.parquet"))))).remove_metadata()
    return create_table(
        base, schema, record_key=KEY, partition_by=PARTITION, ordering_fields=ORDERING, type="MergeOnRead",
        index={"type": "Bucket", "buckets": BUCKETS}, options=OPTIONS,
    )  # fmt: skip


def held(table: pa.Table) -> tuple[int, int]:
    return len(table), pc.sum(table.column(ORDERING)).as_py() or 0


class LocalLogs:
    """hudi_table in this process."""

    def __init__(self) -> None:
        self._engine = LocalEngine(CORES)

    def load(self, rows: Path, base: Path) -> None:
        created(rows, base).write(read(rows), operation="bulk_insert", options=OPTIONS, engine=self._engine)

    def upsert(self, rows: Path, base: Path) -> None:
        open_table(str(base)).upsert(read(rows), options=OPTIONS, engine=self._engine)

    small = upsert

    def snapshot(self, rows: Path, base: Path) -> None:
        check(rows, "snapshot", *held(open_table(str(base)).scan().to_arrow()))

    def incremental(self, rows: Path, base: Path) -> None:
        scan = open_table(str(base)).scan(query="incremental", since=before_last(base))
        check(rows, "incremental", *held(scan.to_arrow()))

    def compact(self, rows: Path, base: Path) -> None:
        del rows
        open_table(str(base)).compact(OPTIONS, force=True, engine=self._engine)


class SparkLogs(Spark):
    """hudi_spark on two tasks at once."""

    def __init__(self) -> None:
        super().__init__(bloom=False)

    def load(self, rows: Path, base: Path) -> None:
        import hudi_spark

        hudi_spark.write(self._spark.read.parquet(str(rows)), created(rows, base), "bulk_insert", options=OPTIONS)

    def small(self, rows: Path, base: Path) -> None:
        self.upsert(rows, base)

    def snapshot(self, rows: Path, base: Path) -> None:
        import hudi_spark

        self._check(rows, "snapshot", hudi_spark.read(self._spark, str(base)))

    def incremental(self, rows: Path, base: Path) -> None:
        import hudi_spark

        frame = hudi_spark.read(self._spark, str(base), query="incremental", since=before_last(base))
        self._check(rows, "incremental", frame)

    def compact(self, rows: Path, base: Path) -> None:
        from hudi_spark.engine import SparkEngine

        del rows
        open_table(str(base)).compact(OPTIONS, force=True, engine=SparkEngine(self._spark))

    def _check(self, rows: Path, step: str, frame: Any) -> None:
        from bench.logs_spark import count_all

        check(rows, step, *count_all(frame))


class HudiRs:
    """hudi-rs reads a table of ours."""

    def snapshot(self, rows: Path, base: Path) -> None:
        from hudi import HudiTableBuilder

        batches = [pa.record_batch(batch) for batch in HudiTableBuilder.from_base_uri(str(base)).build().read()]
        check(rows, "snapshot", *held(pa.Table.from_batches(batches)))
