"""What all contenders share; standard library only, since Apache Hudi's Python imports it too."""

from __future__ import annotations

KEY = "row_key"
PARTITION = "ship_year"
ORDERING = "version"
BUCKETS = 2
CORES = 2
CODEC = "zstd"
LEVEL = 1
SPARK_MEMORY = "3g"

SPARK_CONF = {
    "spark.driver.memory": SPARK_MEMORY,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.default.parallelism": str(CORES),
    "spark.sql.session.timeZone": "UTC",
}
