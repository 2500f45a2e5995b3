"""Tables that tests write through the public surface, and what is in them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable, create_table
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("value", pa.int64()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
INDEXES: Mapping[str, Any] = {
    "bucket": {"type": "Bucket", "buckets": 3},
    "simple": "Simple",
    "global": "GlobalSimple",
}


def rows(*items: tuple[Any, ...]) -> pa.Table:
    """Rows of (id, city, value[, ts[, deleted]])."""
    padded = [(*item, *(1, None)[len(item) - 3 :]) for item in items]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in padded], schema=SCHEMA)


def keys(*items: tuple[str, str]) -> pa.Table:
    """Rows of (id, city) alone, as a delete takes them."""
    return pa.table({"id": [item[0] for item in items], "city": [item[1] for item in items]})


def new_table(uri: str | None = None, *, index: Any = "Simple", partitioned: bool = True, **more: Any) -> HudiTable:
    """An empty table with key `id`, by default in memory and of version 6."""
    more.setdefault("version", 6)
    more.setdefault("partition_by", "city" if partitioned else ())
    place = uri or f"memory://{uuid.uuid4().hex}/t"
    return create_table(place, more.pop("schema", SCHEMA), record_key="id", index=index, **more)


def contents(table: HudiTable) -> list[tuple[Any, ...]]:
    """(id, city, value) of every row, sorted."""
    found = table.scan(["id", "city", "value"]).to_arrow().to_pylist()
    return sorted((row["id"], row["city"], row["value"]) for row in found)


def meta_rows(table: HudiTable) -> dict[str, dict[str, Any]]:
    """Every row with its meta columns, by record key."""
    return {row["_hoodie_record_key"]: row for row in table.scan(meta=True).to_arrow().to_pylist()}


def slices(table: HudiTable) -> list[FileSlice]:
    """The newest visible slice of every file group."""
    return FileSystemView(table.context, load_timeline(table.context)).latest_slices()


def last_commit(table: HudiTable) -> CommitMetadata:
    """Metadata of the newest commit."""
    newest = load_timeline(table.context).last_commit
    assert newest is not None
    return commit_metadata(table.context, newest)
