"""What a table must hold after each operation: a dictionary of rows by `id`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hudi_table.model.names import IS_DELETED

CITIES = ("nyc", "par", "sf")
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("ts", pa.int64()),
    ]
)
START = datetime(2024, 1, 1, tzinfo=UTC)


def rows(numbers: Iterable[int], version: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    """One row for each number: its key and city follow from the number alone, all else also from
    `version`."""
    return pa.Table.from_pylist([_row(number, version) for number in numbers], schema=schema)


def _row(number: int, version: int) -> dict[str, Any]:
    return {
        "id": f"k{number:03d}",
        "city": CITIES[number % len(CITIES)],
        "name": None if number % 7 == 0 else f"name {number} v{version} é中",
        "price": Decimal(number * 100 + version).scaleb(-2),
        "seen": START + timedelta(hours=number, microseconds=version),
        "ts": 1000 * version,
    }


class Model:
    """Rows by `id`, changed by the same operations as the table. Without `partitioned` all rows are
    one partition. `by_event_time`: whether a row of an upsert that has a lower ordering value than
    the stored one does nothing."""

    def __init__(self, *, partitioned: bool, by_event_time: bool = False) -> None:
        self.partitioned, self.by_event_time = partitioned, by_event_time
        self.found: dict[str, dict[str, Any]] = {}

    def copy(self) -> Model:
        """Another model with the same rows."""
        other = Model(partitioned=self.partitioned, by_event_time=self.by_event_time)
        other.found = dict(self.found)
        return other

    def rows(self) -> list[dict[str, Any]]:
        """All rows."""
        return list(self.found.values())

    def apply(self, operation: str, data: pa.Table) -> None:
        """Change the rows as `operation` with `data` does. `delete_partition` takes the partitions
        of `data`."""
        given = {row["id"]: row for row in data.to_pylist()}
        match operation:
            case "delete":
                for key in given:
                    self.found.pop(key, None)
                return
            case "upsert":
                self._merge(given)
                return
            case "insert_overwrite" | "delete_partition":
                replaced = {self._partition(row) for row in given.values()}
                self.found = {k: row for k, row in self.found.items() if self._partition(row) not in replaced}
            case "insert_overwrite_table":
                self.found = {}
        if operation != "delete_partition":
            self.found |= given

    def _merge(self, given: dict[str, dict[str, Any]]) -> None:
        for key, row in given.items():
            stored = self.found.get(key)
            if self.by_event_time and stored is not None and row["ts"] < stored["ts"]:
                continue
            if row.get(IS_DELETED):
                self.found.pop(key, None)
            else:
                self.found[key] = row

    def _partition(self, row: dict[str, Any]) -> str:
        return row["city"] if self.partitioned else ""
