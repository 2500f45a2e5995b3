"""`hudi_table` on Spark: distribution, shuffle, DataFrame surfaces, and the jobs that pods run.

Spark moves and shuffles rows; it decides nothing about the format. `write(df, table, operation)` comes first, since a
Python data source cannot ask for a distribution; `spark.read.format("hudi")` needs no jar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_spark.engine import SparkEngine
    from hudi_spark.frames import read, register
    from hudi_spark.writer import write

_HOMES = {
    "SparkEngine": "hudi_spark.engine",
    "read": "hudi_spark.frames",
    "register": "hudi_spark.frames",
    "write": "hudi_spark.writer",
}
__all__ = ["SparkEngine", "read", "register", "write"]


def __getattr__(name: str) -> Any:
    """Load a public name at its first use: importing this package starts no JVM and imports no pyspark."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
