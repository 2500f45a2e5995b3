"""One run of Hudi Streamer, in the environment of `make setup-streamer`: the argument is a JSON
document of its jars and its fields.

It is made by its class and not by its command: the jar of its command line was renamed, see
`scripts/setup_streamer.py`, and Spark would read the arguments by another one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from py4j.java_gateway import set_field
from pyspark.sql import SparkSession


def main(asked: dict[str, Any]) -> None:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(asked["jars"]))
        .getOrCreate()
    )
    jvm: Any = session._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    streamer = "org.apache.hudi.utilities.streamer.HoodieStreamer"
    settings = jvm.java.lang.Class.forName(f"{streamer}$Config", True, loader).newInstance()
    for name, value in asked["fields"].items():
        set_field(settings, name, value)
    set_field(settings, "operation", jvm.org.apache.hudi.common.model.WriteOperationType.UPSERT)
    jvm.org.apache.hudi.utilities.streamer.HoodieStreamer(settings, session._jsc).sync()
    session.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
