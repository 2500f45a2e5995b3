"""Small tables of versions 8 and 9, and what lies in their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.metadata.port import open_context
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.context import TableContext

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64()), ("ts", pa.int64())])
VERSIONS = [8, 9]


def rows(*items: tuple[str, int], city: str = "x", ts: int = 1) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "city": city, "n": n, "ts": ts} for key, n in items], schema=SCHEMA)


def new_table(base: Path | str, version: int, **more: Any) -> HudiTable:
    told: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering_fields": "ts", "version": version}
    return create_table(base, SCHEMA, **(told | more))


def contents(table: HudiTable) -> list[tuple[str, int]]:
    found = open_table(table.base_path).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["n"]) for row in found)


def files(table: HudiTable, folder: str) -> list[str]:
    return sorted(path.name for path in (Path(table.base_path) / folder).iterdir() if path.is_file())


def ctx_of(table: HudiTable) -> TableContext:
    return open_context(open_storage(table.base_path))
