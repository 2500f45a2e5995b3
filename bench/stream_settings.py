"""What all contenders in the race of streams share; standard library only, since Apache Hudi's
Python imports it too."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from bench.settings import CODEC

COLUMNS = {
    "id": "STRING",
    "n": "BIGINT",
    "at": "BIGINT",
    "city": "STRING",
    "driver": "STRING",
    "fare": "DOUBLE",
    "seats": "BIGINT",
    "paid": "BOOLEAN",
    "note": "STRING",
}
KEY, ORDERING = "id", "n"
BUCKETS = 4
SINK = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.precombine.field": ORDERING,
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.parquet.compression.codec": CODEC,
    "hoodie.archive.automatic": "false",
}
"""The table of Apache Hudi's Spark. What it archives would not tell when it was shown, and ours
archives nothing here."""
BATCH_ROWS = 500_000
"""Of who catches up."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A topic, how often its follower commits, for how long it follows, and the rows of a batch
    when it catches up."""

    brokers: str
    topic: str
    batch_rows: int = BATCH_ROWS
    interval: float = 2.0
    seconds: float = 0.0

    def store(self, path: Path) -> Path:
        """As a file, for the process of a contender."""
        path.write_text(json.dumps(asdict(self)))
        return path

    @classmethod
    def load(cls, path: Path) -> Self:
        """What `store` wrote."""
        return cls(**json.loads(path.read_text()))
