"""What Apache Hudi's Spark does with a topic: Spark's own source of Kafka, and a table as the sink.
This module runs in its Python."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.stream_settings import COLUMNS, SINK, Feed


class SparkFollower:
    """A contender that has a session of Spark."""

    _spark: Any

    def sink(self) -> Mapping[str, str]:
        """The options of its table."""
        return SINK

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


def _frame(spark: Any, feed: Feed) -> Any:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", feed.brokers)
    return reader.option("subscribe", feed.topic).option("startingOffsets", "earliest")


def _start(frame: Any, base: Path, options: Mapping[str, str], **trigger: Any) -> Any:
    from pyspark.sql import functions as sf

    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    rows = frame.select(sf.from_json(sf.col("value").cast("string"), schema).alias("row")).select("row.*")
    writer = rows.writeStream.format("hudi").options(**options).outputMode("append").trigger(**trigger)
    return writer.option("checkpointLocation", f"{base}.checkpoint").start(str(base))
