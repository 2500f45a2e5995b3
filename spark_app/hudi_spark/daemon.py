"""The process that Spark forks its Python workers from, with our imports made once for all of them.

For `spark.python.daemon.module`. Spark ends workers that were idle for a minute, and each new one
imports what its task needs again, at the first task of every worker: a second of CPU (measured).
Forked from here they begin with it.
"""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
from pyspark.daemon import manager

import hudi_spark.datasource.source
import hudi_spark.writer  # noqa: F401

if __name__ == "__main__":
    # Where pandas is installed, Arrow imports it for the first array that it takes from numpy: half a second.
    pa.array(np.zeros(1))
    gc.collect()
    gc.freeze()
    manager()
