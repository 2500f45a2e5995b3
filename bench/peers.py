"""delta-rs, and Apache Hudi. This module runs in two Pythons, so each peer's library is imported
where it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.settings import BUCKETS, CODEC, CORES, KEY, LEVEL, ORDERING, PARTITION, SPARK_CONF

HUDI = "1.1.1"
HUDI_OF = {6: HUDI, 9: "1.2.0"}
"""Table version → the release beside which the main races are run: of 9 the newest that is
pinned."""


class Delta:
    """delta-rs on all cores: a table partitioned by year, without buckets or meta columns."""

    predicate = f"old.{KEY} = new.{KEY} AND old.{PARTITION} = new.{PARTITION}"

    def bulk_insert(self, rows: Path, base: Path) -> None:
        import deltalake

        from bench.rows import read

        deltalake.write_deltalake(base, read(rows), partition_by=[PARTITION], writer_properties=self._properties())

    def upsert(self, rows: Path, base: Path) -> None:
        import deltalake

        from bench.rows import read

        merger = deltalake.DeltaTable(base).merge(
            read(rows),
            predicate=self.predicate,
            source_alias="new",
            target_alias="old",
            writer_properties=self._properties(),
        )
        older = f"new.{ORDERING} >= old.{ORDERING}"
        merger.when_matched_update_all(predicate=older).when_not_matched_insert_all().execute()

    def _properties(self) -> Any:
        from deltalake import WriterProperties

        return WriterProperties(compression="ZSTD", compression_level=LEVEL)


class Hudi:
    """Apache Hudi's DataFrame writer on Spark 3.5, with as many tasks at once as ours.

    The metadata table is off, which is less work for Hudi: by default ours has none.
    """

    table_type = "COPY_ON_WRITE"
    key, partition, ordering = KEY, PARTITION, ORDERING

    def __init__(
        self, *, bloom: bool, version: str = HUDI, table_version: int = 6, more_jars: Sequence[Path] = ()
    ) -> None:
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._version, self._table_version = version, table_version
        jars = Path(os.environ["HUDI_INTEROP_IVY"]) / "jars"
        others = [str(jar) for jar in sorted(jars.glob("*.jar")) if "bundle" not in jar.name]
        others += map(str, more_jars)
        builder = SparkSession.builder.master(f"local[{CORES}]").appName("bench")
        settings = SPARK_CONF | {
            "spark.driver.extraClassPath": ":".join(
                [str(jars / f"org.apache.hudi_hudi-spark3.5-bundle_2.12-{version}.jar"), *others]
            ),
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            "spark.hadoop.parquet.compression.codec.zstd.level": str(LEVEL),
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self._bloom = bloom

    def bulk_insert(self, rows: Path, base: Path) -> None:
        self._write("bulk_insert", rows, base, "overwrite")

    def upsert(self, rows: Path, base: Path) -> None:
        self._write("upsert", rows, base, "append")

    def index_options(self) -> dict[str, str]:
        """The index of the race: buckets."""
        return {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(BUCKETS)}

    def _write(self, operation: str, rows: Path, base: Path | str, mode: str) -> None:
        options = {
            "hoodie.table.name": "lineitem",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": self.key,
            "hoodie.datasource.write.partitionpath.field": self.partition,
            "hoodie.datasource.write.precombine.field": self.ordering,
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            "hoodie.metadata.enable": "false",
            "hoodie.parquet.compression.codec": CODEC,
            "hoodie.parquet.bloom.filter.enabled": str(self._bloom).lower(),
            "hoodie.datasource.write.table.type": self.table_type,
            # A batch write of a merge-on-read table compacts after every fifth by itself.
            "hoodie.compact.inline.max.delta.commits": "1000",
        }
        if not self._version.startswith("0."):
            options |= {"hoodie.write.table.version": str(self._table_version), "hoodie.write.auto.upgrade": "false"}
        options |= self.index_options()
        options |= {f"hoodie.{kind}.shuffle.parallelism": str(CORES) for kind in ("insert", "upsert", "bulkinsert")}
        self._spark.read.parquet(str(rows)).write.format("hudi").options(**options).mode(mode).save(str(base))
