"""Another Hudi table on a store, followed, or asked by a statement."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import HudiTable, create_table, open_table
from hudi_table.table.store.remote import ObjectStorage
from tests.streams.conformance.on_store import OnStore
from tests.streams.conformance.part import Row

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("seq", pa.int64()), ("day", pa.string())])


class Above(OnStore):
    """A table with a partition for each day, which keeps the newest version of a row itself."""

    spoilt = "CorruptTable"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        super().__init__(request, folder)
        self.prefix = f"above-{uuid.uuid4().hex[:10]}"
        self.location = f"s3://{self.store.server.bucket}/{self.prefix}"
        self.seq, self.day = 0, "1"
        self.kept: tuple[str, bytes] | None = None
        create_table(
            self.location, SCHEMA, record_key="id", partition_by=["day"], ordering_fields=["v"],
            index={"type": "Simple"}, storage_options=self.store.server.options,
        )  # fmt: skip

    @property
    def above(self) -> HudiTable:
        """The table as it is now."""
        return open_table(self.location, storage_options=self.store.server.options)

    def calls(self) -> list[tuple[Any, str]]:
        return [(ObjectStorage, "_request")]

    def put(self, *rows: Row, **more: str) -> None:
        self.seq += 1
        self._write(self.seq, rows, more)

    def late(self, *rows: Row) -> None:
        self._write(self.seq - 1, rows, {})

    def _write(self, seq: int, rows: tuple[Row, ...], more: dict[str, str]) -> None:
        found = [{"id": key, "v": version, "seq": seq, "day": self.day, **more} for key, version in rows]
        schema = pa.schema([*SCHEMA, *((name, pa.string()) for name in more)])
        self.above.upsert(pa.Table.from_pylist(found, schema))

    def grow(self) -> None:
        self.day = "2"

    def poison(self) -> str:
        """Damage the file that was written last."""
        server = self.store.server
        files = [key for key in server.keys(f"{self.prefix}/1/") if key.endswith(".parquet")]
        key = max(files, key=lambda each: each.rpartition("_")[2])
        whole = server.client().get_object(Bucket=server.bucket, Key=key)["Body"].read()
        self.kept = key, whole
        server.client().put_object(Bucket=server.bucket, Key=key, Body=b"no parquet at all".ljust(len(whole)))
        return key.rpartition("/")[2]

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        assert self.kept is not None
        server, (key, whole) = self.store.server, self.kept
        server.client().put_object(Bucket=server.bucket, Key=key, Body=whole)
        return [], {}


class Hudi(Above):
    """It is followed commit by commit."""

    label = "Hudi"
    part = "a table on an S3 store"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        super().__init__(request, folder)
        self.feed.source = {"type": "Hudi", "hudi": {"location": self.location}}


class Sql(Above):
    """Its rows are those of a statement, by a number that grows."""

    label = "Sql"
    part = "a statement over a table on an S3 store"
    inserts = False

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        super().__init__(request, folder)
        tables = [{"name": "above", "location": self.location}]
        asked = {"query": "SELECT * FROM above", "tables": tables, "incremental": {"column": "seq", "lag": 5}}
        self.feed.source = {"type": "Sql", "sql": asked}
