"""Apache Hudi on an object store, by S3A, in the bench of stores. This module runs in the Python of
the Hudi environment.

Its session is warm, as is S3A's client; each step reads or writes the table anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bench.peers import Hudi


class HudiStore(Hudi):
    """`base` is a file that tells the table: its location and type, its buckets, and what S3A has
    to know."""

    key, partition, ordering = "id", "p", "ts"

    def __init__(self, version: str) -> None:
        super().__init__(
            bloom=False, version=version, more_jars=sorted(Path(os.environ["HUDI_BENCH_S3A"]).glob("*.jar"))
        )
        self._buckets = 1

    def bulk_insert(self, rows: Path, base: Path) -> None:
        self._write("bulk_insert", rows, self._location(base), "overwrite")

    def upsert(self, rows: Path, base: Path) -> None:
        self._write("upsert", rows, self._location(base), "append")

    def index_options(self) -> dict[str, str]:
        return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(self._buckets)}

    def scan(self, rows: Path, base: Path) -> None:
        """All columns of all rows, which are hashed where they are."""
        del rows
        from pyspark.sql import functions as sf

        frame = self._spark.read.format("hudi").load(self._location(base))
        frame.select(sf.max(sf.xxhash64(*frame.columns))).collect()

    def _location(self, base: Path) -> str:
        told: dict[str, Any] = json.loads(base.read_text())
        settings = self._spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in told["s3a"].items():
            settings.set(name, value)
        self.table_type, self._buckets = told["type"], told["buckets"]
        return str(told["location"])
