"""What both engines write: small upserts of keys that are known, and of keys that are new."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

BUCKETS = 2
SHARED, NEW = 6, 3
"""Of each write: rows that every write updates, and rows of its own."""
SCHEMA = pa.schema([("id", pa.string()), ("by", pa.int64()), ("ts", pa.int64())])
KINDS = {"CopyOnWrite": "COPY_ON_WRITE", "MergeOnRead": "MERGE_ON_READ"}


@dataclass(frozen=True, slots=True)
class Write:
    """The upsert of one number. Later ones have larger numbers, which order the rows too."""

    number: int

    @property
    def new(self) -> list[str]:
        """The keys that nobody else writes."""
        return [f"n{self.number:04d}-{part}" for part in range(NEW)]

    @property
    def shared(self) -> list[str]:
        """The keys that every write updates."""
        return [f"shared-{part}" for part in range(SHARED)]

    def rows(self) -> pa.Table:
        """The rows."""
        ids = self.new + self.shared
        return pa.table({"id": ids, "by": [self.number] * len(ids), "ts": [self.number] * len(ids)}, schema=SCHEMA)
