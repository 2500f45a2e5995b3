"""Apache Hudi in the race of streams: Spark's own source of Kafka, and Hudi's streaming sink. This
module runs in the Python of the Hudi environment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.peers import Hudi
from bench.settings import CORES
from bench.stream_jars import hudi_jars
from bench.stream_settings import COLUMNS, SINK, Feed


class HudiStreams(Hudi):
    """Hudi's streaming sink. No contender compacts in this race."""

    def __init__(self, version: str) -> None:
        super().__init__(bloom=False, version=version, more_jars=hudi_jars())

    def catch_up(self, rows: Path, base: Path) -> None:
        """Everything that is in the topic now."""
        feed = Feed.load(rows)
        frame = _frame(self._spark, feed).option("maxOffsetsPerTrigger", str(feed.batch_rows)).load()
        _start(frame, base, self.sink(), availableNow=True).awaitTermination()

    def follow(self, rows: Path, base: Path) -> None:
        """What comes, for the feed's seconds."""
        feed = Feed.load(rows)
        frame = _frame(self._spark, feed).load()
        query = _start(frame, base, self.sink(), processingTime=f"{feed.interval:g} seconds")
        until = time.monotonic() + feed.seconds
        while time.monotonic() < until and query.isActive:
            time.sleep(0.1)
        if query.exception() is not None:
            raise query.exception()
        query.stop()

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


def _frame(spark: Any, feed: Feed) -> Any:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", feed.brokers)
    return reader.option("subscribe", feed.topic).option("startingOffsets", "earliest")


def _start(frame: Any, base: Path, options: Mapping[str, str], **trigger: Any) -> Any:
    from pyspark.sql import functions as sf

    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    rows = frame.select(sf.from_json(sf.col("value").cast("string"), schema).alias("row")).select("row.*")
    writer = rows.writeStream.format("hudi").options(**options).outputMode("append").trigger(**trigger)
    return writer.option("checkpointLocation", f"{base}.checkpoint").start(str(base))
