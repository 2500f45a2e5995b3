"""Apache Hudi in the race of streams: Spark's structured streaming. This module runs in the Python
of the Hudi environment."""

from __future__ import annotations

from bench.peers import Hudi
from bench.settings import CORES
from bench.stream_jars import hudi_jars
from bench.stream_settings import SINK
from bench.stream_spark import SparkFollower


class HudiStreams(SparkFollower, Hudi):
    """Hudi's streaming sink. No contender compacts in this race."""

    def __init__(self, version: str) -> None:
        super().__init__(bloom=False, version=version, more_jars=hudi_jars())

    def sink(self) -> dict[str, str]:
        """The table, and what Hudi's writer would do besides."""
        return SINK | {
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.metadata.enable": "false",
            "hoodie.parquet.bloom.filter.enabled": "false",
            "hoodie.upsert.shuffle.parallelism": str(CORES),
            "hoodie.datasource.compaction.async.enable": "false",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.write.table.version": str(self._table_version),
            "hoodie.write.auto.upgrade": "false",
        }
