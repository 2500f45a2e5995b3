"""Ours in the race of table services, on `LocalEngine` and on Spark."""

from __future__ import annotations

from pathlib import Path

from bench.ours import Local, Spark
from bench.services_steps import SORTED_BY, clustering_options, sorted_by
from hudi_table import open_table
from hudi_table.table.store.ports import Engine


def _cluster(base: Path, engine: Engine) -> None:
    (done,) = open_table(str(base)).cluster(clustering_options(base) | sorted_by(SORTED_BY), force=True, engine=engine)
    assert done.figures["rowsWritten"], done.message


class LocalServices(Local):
    """hudi_table in this process."""

    def __init__(self) -> None:
        super().__init__(bloom=False)

    def cluster(self, rows: Path, base: Path) -> None:
        del rows
        _cluster(base, self._engine)


class SparkServices(Spark):
    """hudi_spark on two tasks at once."""

    def __init__(self) -> None:
        super().__init__(bloom=False)

    def cluster(self, rows: Path, base: Path) -> None:
        from hudi_spark.engine import SparkEngine

        del rows
        _cluster(base, SparkEngine(self._spark))
