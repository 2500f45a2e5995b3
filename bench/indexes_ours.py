"""Ours in the race of indexes, on `LocalEngine`; and delta-rs."""

from __future__ import annotations

from pathlib import Path

from bench.index_kinds import KINDS
from bench.ours import Local
from bench.peers import Delta
from bench.settings import KEY


class LocalIndexed(Local):
    """hudi_table in this process, with one of the indexes that look keys up."""

    def __init__(self, kind: str) -> None:
        super().__init__(bloom=KINDS[kind].filters)
        self.index = KINDS[kind].ours
        self.more = KINDS[kind].more

    load = Local.bulk_insert


class DeltaIndexed(Delta):
    """delta-rs, which has no index: its merge by the key and the year, or by the key alone, as the
    index that it stands beside."""

    def __init__(self, kind: str) -> None:
        if kind != "bloom":
            self.predicate = f"old.{KEY} = new.{KEY}"

    def load(self, rows: Path, base: Path) -> None:
        """The table."""
        self.bulk_insert(rows, base)
