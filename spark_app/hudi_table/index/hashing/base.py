"""What both bucket indexes have in common: the hash of a key decides, and a partition has file
groups of its own."""

from __future__ import annotations

from abc import ABC

from hudi_table.index.base import Index


class HashIndex(Index, ABC):
    """An index that routes by hash."""

    __slots__ = ()

    @property
    def reads_snapshot(self) -> bool:
        """False: the hash is all."""
        return False

    @property
    def is_global(self) -> bool:
        """False: file groups are per partition."""
        return False
