"""What both Sparks do with the rows that they read. This module runs in two Pythons."""

from __future__ import annotations

from typing import Any

from bench.settings import ORDERING


def count_all(frame: Any) -> tuple[int, int]:
    """Count and sum of the ordering column; a hash over all columns has them all read."""
    from pyspark.sql import functions as sf

    columns = [name for name in frame.columns if not name.startswith("_hoodie_")]
    found = frame.agg(
        sf.count("*").alias("rows"), sf.sum(ORDERING).alias("ordering"), sf.max(sf.xxhash64(*columns)).alias("all")
    ).collect()[0]
    return int(found["rows"]), int(found["ordering"] or 0)
