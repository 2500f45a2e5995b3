"""What a commit says of who made it: rows, files and schema, and nothing of how the writer was
configured."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import create_table, write_hudi

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})
OPTIONS = {
    "hoodie.parquet.max.file.size": "98765431",
    "hoodie.parquet.small.file.limit": "87654321",
    "hoodie.parquet.compression.codec": "gzip",
}
DOCUMENT = {"partitionToWriteStats", "compacted", "extraMetadata", "operationType", "lakeops.crc32"}


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_commit_holds_no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-of-the-environment")
    create_table(tmp_path / "t", ROWS.schema, record_key="id", version=6)
    write_hudi(tmp_path / "t", ROWS, operation=operation, options=OPTIONS)
    commit = max((tmp_path / "t" / ".hoodie").glob("*.commit"))
    document = json.loads(commit.read_text())
    assert set(document) <= DOCUMENT
    assert set(document["extraMetadata"]) <= {"schema"} | {
        key for key in document["extraMetadata"] if key.startswith("hoodie.lakeops.")
    }
    everything = b"".join(
        path.read_bytes() for path in (tmp_path / "t" / ".hoodie").rglob("*") if path.is_file()
    ).decode("latin-1")
    assert "canary" not in everything
    assert not [key for key in OPTIONS if key in everything]
    assert not [value for value in OPTIONS.values() if len(value) > 4 and value in everything]
