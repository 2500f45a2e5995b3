"""One Spark session for all tests of this folder: local, two cores, workers of this interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
FAST_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
"""Short queries: the second compiler costs more than it saves, two fifths of a session's processor
time (measured). The code of the first one fills what it has alone, 48 MiB, and is then thrown away
and made again."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """`local[2]` with one retry of failed tasks, so that retries can be tested."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "spark_app"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.python.daemon.module", "hudi_spark.daemon")
        .config("spark.driver.extraJavaOptions", FAST_JAVA)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
