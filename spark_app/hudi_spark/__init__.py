"""`hudi_table` on Spark: distribution, shuffle, DataFrame surfaces, and the jobs that pods run.

Spark moves and shuffles rows; it decides nothing about the format. `write(df, table, operation)`
comes first, since a Python data source cannot ask for a distribution; `spark.read.format("hudi")`
needs no jar.

Begin with `writer.py` for writes and `datasource/source.py` for the format.

Fact (pyspark 4.3): whatever Python a session needs beside the driver's own, planners of data
sources among them, is `python3` of the PATH unless `PYSPARK_PYTHON` says otherwise when the JVM
starts. In a virtual environment that nobody activated that is another Python, without this package;
so importing this one names the environment's, if nothing else was said.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from hudi_table.version import __version__

if TYPE_CHECKING:
    from hudi_spark.engine import SparkEngine
    from hudi_spark.frames import read, register
    from hudi_spark.writer import write

if sys.prefix != sys.base_prefix:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

_HOMES = {
    "SparkEngine": "hudi_spark.engine",
    "read": "hudi_spark.frames",
    "register": "hudi_spark.frames",
    "write": "hudi_spark.writer",
}
__all__ = ["SparkEngine", "__version__", "read", "register", "write"]


if not TYPE_CHECKING:  # or a name that is misspelt would pass for one of any type

    def __getattr__(name: str) -> Any:
        """Load a public name at its first use: importing this package starts no JVM and imports no
        pyspark."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
