"""Apache Hudi in the race of streams: Spark's structured streaming. This module runs in the Python
of the Hudi environment."""

from __future__ import annotations

from pathlib import Path

from bench.peers import Hudi
from bench.settings import CODEC, CORES
from bench.stream_jars import hudi_jars
from bench.stream_settings import BUCKETS, KEY, ORDERING, Feed
from bench.stream_spark import catch_up, follow

OPTIONS = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.compression.codec": CODEC,
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.upsert.shuffle.parallelism": str(CORES),
    # No contender compacts in this race.
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
}


class HudiStreams(Hudi):
    """Hudi's streaming sink."""

    def __init__(self, version: str) -> None:
        super().__init__(bloom=False, version=version, more_jars=hudi_jars())

    def catch_up(self, rows: Path, base: Path) -> None:
        catch_up(self._spark, Feed.load(rows), base, self._options())

    def follow(self, rows: Path, base: Path) -> None:
        follow(self._spark, Feed.load(rows), base, self._options())

    def _options(self) -> dict[str, str]:
        return OPTIONS | {"hoodie.write.table.version": str(self._table_version), "hoodie.write.auto.upgrade": "false"}
