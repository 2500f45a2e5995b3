"""The main file of a SparkApplication: the job of `hudi_spark.jobs`, imported by its name so that
executors find its parts."""

from __future__ import annotations

import sys

from hudi_spark.jobs.__main__ import run

if __name__ == "__main__":
    run(sys.argv[1:])
