"""The main file of a SparkApplication: the job of `hudi_spark.jobs`, imported by its name so that
executors find its parts."""

from __future__ import annotations

import os
import sys

from hudi_spark.jobs.__main__ import main

if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a JVM gateway's threads must not delay or change the end
