"""What every contender of the race of table services is asked: the small files of the whole table,
put in order, as few large ones.

This module runs in two Pythons.
"""

from __future__ import annotations

import math
from pathlib import Path

from bench.settings import CODEC

FILES = 96
OUTPUTS = 4
CURVE_OUTPUTS = 16
SORTED_BY = "l_shipdate"
CURVE = ("l_partkey", "l_shipdate")
_PLAN = "hoodie.clustering.plan.strategy."


def clustering_options(base: Path, outputs: int = OUTPUTS) -> dict[str, str]:
    """Hudi's options, of which the target size makes so many files of those that lie in the
    table."""
    total = sum(file.stat().st_size for file in base.glob("*.parquet"))
    return {
        f"{_PLAN}target.file.max.bytes": str(math.ceil(total / outputs)),
        "hoodie.parquet.compression.codec": CODEC,
        "hoodie.parquet.bloom.filter.enabled": "false",
        "hoodie.metadata.enable": "false",
    }


def sorted_by(*columns: str) -> dict[str, str]:
    """The option that puts the rows in order."""
    return {f"{_PLAN}sort.columns": ",".join(columns)}
