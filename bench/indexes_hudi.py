"""Apache Hudi in the race of indexes. This module runs in the Python of the Hudi environment."""

from __future__ import annotations

from pathlib import Path

from bench.index_kinds import KINDS
from bench.peers import Hudi


class HudiIndexed(Hudi):
    """Hudi's DataFrame writer with the same index."""

    def __init__(self, kind: str) -> None:
        self._kind = KINDS[kind]
        super().__init__(bloom=self._kind.filters)

    def load(self, rows: Path, base: Path) -> None:
        """The table."""
        self.bulk_insert(rows, base)

    def index_options(self) -> dict[str, str]:
        """The index, without buckets; a bloom index's own parallelism is that of the cores."""
        return {"hoodie.index.type": self._kind.hudi, **self._kind.more}
