"""Apache Hudi in the race over logs. This module runs in the Python of the Hudi environment."""

from __future__ import annotations

from pathlib import Path

from bench.logs_spark import count_all
from bench.logs_steps import before_last, check
from bench.peers import Hudi
from bench.settings import KEY


class HudiLogs(Hudi):
    """Hudi's DataFrame writer, reader and compaction procedure."""

    table_type = "MERGE_ON_READ"

    def __init__(self, version: str, table_version: int = 6) -> None:
        super().__init__(bloom=False, version=version, table_version=table_version)

    def load(self, rows: Path, base: Path) -> None:
        self.bulk_insert(rows, base)

    def small(self, rows: Path, base: Path) -> None:
        self.upsert(rows, base)

    def snapshot(self, rows: Path, base: Path) -> None:
        check(rows, "snapshot", *count_all(self._spark.read.format("hudi").load(str(base))))

    def incremental(self, rows: Path, base: Path) -> None:
        reader = self._spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental")
        frame = reader.option("hoodie.datasource.read.begin.instanttime", before_last(base)).load(str(base))
        check(rows, "incremental", *count_all(frame))

    def compact(self, rows: Path, base: Path) -> None:
        del rows
        # Procedures do not read the keys from the table, and a bucket index asks for them.
        keys = f"hoodie.datasource.write.recordkey.field={KEY},hoodie.bucket.index.hash.field={KEY}"
        more = "hoodie.metadata.enable=false,hoodie.compact.inline.max.delta.commits=1"
        for step in ("schedule", "run"):
            call = f"CALL run_compaction(op => '{step}', path => '{base}', options => '{keys},{more}')"
            self._spark.sql(call).collect()
