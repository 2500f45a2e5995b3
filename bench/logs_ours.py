"""Ours in the race over logs, on `LocalEngine` and on Spark; and hudi-rs, which reads what ours
wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.logs_steps import before_last, check
from bench.ours import Local, Spark, options_of
from bench.settings import ORDERING
from hudi_table import open_table


def held(table: pa.Table) -> tuple[int, int]:
    return len(table), pc.sum(table.column(ORDERING)).as_py() or 0


class LocalLogs(Local):
    """hudi_table in this process."""

    table_type = "MergeOnRead"

    def __init__(self, version: int = 6) -> None:
        super().__init__(bloom=False, version=version)

    load, small = Local.bulk_insert, Local.upsert

    def snapshot(self, rows: Path, base: Path) -> None:
        check(rows, "snapshot", *held(open_table(str(base)).scan().to_arrow()))

    def incremental(self, rows: Path, base: Path) -> None:
        scan = open_table(str(base)).scan(query="incremental", since=before_last(base))
        check(rows, "incremental", *held(scan.to_arrow()))

    def compact(self, rows: Path, base: Path) -> None:
        del rows
        open_table(str(base)).compact(options_of(bloom=False), force=True, engine=self._engine)


class SparkLogs(Spark):
    """hudi_spark on two tasks at once."""

    table_type = "MergeOnRead"

    def __init__(self, version: int = 6) -> None:
        super().__init__(bloom=False, version=version)

    load, small = Spark.bulk_insert, Spark.upsert

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
        open_table(str(base)).compact(options_of(bloom=False), force=True, engine=SparkEngine(self._spark))

    def _check(self, rows: Path, step: str, frame: Any) -> None:
        from bench.logs_spark import count_all

        check(rows, step, *count_all(frame))


class HudiRs:
    """hudi-rs reads a table of ours."""

    def snapshot(self, rows: Path, base: Path) -> None:
        from hudi import HudiTableBuilder

        batches = [pa.record_batch(batch) for batch in HudiTableBuilder.from_base_uri(str(base)).build().read()]
        check(rows, "snapshot", *held(pa.Table.from_batches(batches)))
