"""What the row of types in `tests/data/debezium` holds, whatever format its event came in; and a
table that events go to, in memory."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

TYPES: dict[str, Any] = {
    "id": 1, "i2": 1, "i4": 2, "i8": 3, "f4": 1.5, "f8": 2.5, "n102": Decimal("99.99"), "b": True, "t": "té", "vc": "vc",
    "c": "c    ", "by": b"\x01\xff", "d": date(2026, 2, 3), "tm": "04:05:06.789", "ts": datetime(2026, 2, 3, 4, 5, 6, 123_456, UTC).replace(tzinfo=None),
    "tsp3": datetime(2026, 2, 3, 4, 5, 6, 123_000, UTC).replace(tzinfo=None), "tz": datetime(2026, 2, 3, 2, 5, 6, 123_456, UTC), "iv": 93_600_000_000,
    "u": "550e8400-e29b-41d4-a716-446655440000", "j": '{"a":1}', "jb": '{"b": 2}', "ar": [1, 2], "ta": ["x", None], "inet": "10.0.0.1",
    "m": Decimal("12.34"), "e": "e", "x": "<a/>", "bt": b"\x05",
}  # fmt: skip


class Snapshots:
    """Its snapshots, the newest first. `asked`: how many were read."""

    def __init__(self, *snapshots: pa.Table) -> None:
        self.snapshots = snapshots
        self.asked = 0

    def versions(self, keys: pa.Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        for each in self.snapshots:
            self.asked += 1
            kept = each.filter(pc.is_in(each["id"], keys["id"].combine_chunks()))
            yield kept.select(["id", *(name for name in columns if name in each.column_names)])
