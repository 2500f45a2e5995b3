"""Apache Hudi in the race of table services. This module runs in the Python of the Hudi
environment."""

from __future__ import annotations

from pathlib import Path

from bench.peers import Hudi
from bench.services_steps import SORTED_BY, clustering_options


class HudiServices(Hudi):
    """Hudi's clustering procedure, with the row writer that it takes by default: the faster of its
    two ways."""

    def __init__(self, version: str) -> None:
        super().__init__(bloom=False, version=version)

    def cluster(self, rows: Path, base: Path) -> None:
        del rows
        more = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
        options = ",".join(f"{key}={value}" for key, value in (clustering_options(base) | more).items())
        call = f"CALL run_clustering(path => '{base}', op => 'scheduleAndExecute', order => '{SORTED_BY}', options => '{options}')"
        self._spark.sql(call).collect()
