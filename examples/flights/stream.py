"""Prints the changes of a table as they land, until the corrections of October have come.

    python examples/flights/stream.py demo/lake/flights-mor

Ends with 0 once they have; with 1 if nothing comes for three minutes.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

import hudi_spark
from hudi_spark.sql import local_session

CORRECTED_MONTH = 10
PATIENCE = 180
"""Seconds."""


def say(text: str) -> None:
    """A line that can be told from those of other programs."""
    sys.stdout.write("".join(f"stream │ {line}\n" for line in text.splitlines()))
    sys.stdout.flush()


def tell(changes: DataFrame) -> bool:
    """Print what a micro-batch holds; whether corrections were among it."""
    changes = changes.persist()
    writes = changes.groupBy("_hoodie_commit_time", "month").count().orderBy("_hoodie_commit_time", "month").collect()
    for row in writes:
        say(f"write {row['_hoodie_commit_time']}: {row['count']:,} flights of month {row['month']} are new or changed")
    corrected = changes.where(col("month") == CORRECTED_MONTH)
    for row in corrected.orderBy("time_hour", "flight").limit(5).collect():
        flight = f"{row.carrier} {row.flight} of {row.time_hour:%Y-%m-%d}"
        say(f"  {flight}, corrected on {row.updated_at:%Y-%m-%d}: {row.arr_delay} minutes late")
    changes.unpersist()
    return any(row["month"] == CORRECTED_MONTH for row in writes)


def main(table: str) -> int:
    """Follow the table."""
    spark = local_session()
    hudi_spark.register(spark)
    seen = threading.Event()

    def batch(changes: DataFrame, _: int) -> None:
        if tell(changes):
            seen.set()

    source = spark.readStream.format("hudi").option("since", "latest")
    query = (
        source.load(str(Path(table).resolve()))
        .writeStream.foreachBatch(batch)
        .trigger(processingTime="1 second")
        .start()
    )
    query.processAllAvailable()  # from here on the stream has begun
    say(f"waiting for changes of {table}")
    for _ in range(PATIENCE):
        if seen.wait(1) or not query.isActive:
            break
    failure = query.exception()
    query.stop()
    spark.stop()
    if not seen.is_set():
        say(f"no corrections within {PATIENCE} s" if failure is None else str(failure))
    return 0 if seen.is_set() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else f"{__doc__}")
