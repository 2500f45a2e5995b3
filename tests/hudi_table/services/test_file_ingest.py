"""What a table holds of a source: read from its newest commit, published first if it was only decided."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import CorruptTableError
from hudi_table.model.checkpoint import Checkpoint, advance, key_of
from hudi_table.services.file_ingest import current_checkpoint, list_source
from hudi_table.table.storage import open_storage

ROWS = pa.table({"id": ["a", "b"]})


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return create_table(tmp_path / "lake", ROWS.schema, record_key="id")


def listed(tmp_path: Path, *names: str) -> Checkpoint:
    for name in names:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    files = list_source(open_storage(f"file://{tmp_path}/in"))
    return advance(None, "feed", "one", files, files)


def test_a_source_is_listed_with_sizes_and_versions(tmp_path: Path) -> None:
    listed(tmp_path, "a", "deep/er/b")
    found = list_source(open_storage(f"file://{tmp_path}/in"))
    assert [(f.path, f.size) for f in found] == [("a", 1), ("deep/er/b", 9)]
    before = {f.path: f.version for f in found}
    (tmp_path / "in" / "a").write_text("b")
    after = {f.path: f.version for f in list_source(open_storage(f"file://{tmp_path}/in"))}
    assert after["a"] != before["a"]
    assert after["deep/er/b"] == before["deep/er/b"]


def test_a_source_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list_source(open_storage(f"file://{tmp_path}/absent")) == ()


def test_commits_of_others_do_not_hide_the_checkpoint(table: HudiTable, tmp_path: Path) -> None:
    held = listed(tmp_path, "a")
    assert current_checkpoint(table.context, "feed") is None
    table.upsert(ROWS, extra_metadata={key_of("feed"): held.to_text()})
    table.upsert(ROWS)
    assert current_checkpoint(table.context, "feed") == held
    assert current_checkpoint(table.context, "other") is None


def test_a_commit_that_was_decided_and_not_published_counts(table: HudiTable, tmp_path: Path) -> None:
    """Its writer died between decision and publication: its rows will be seen, so its files are taken."""
    held = listed(tmp_path, "a")
    table.upsert(ROWS)
    result = table.upsert(ROWS, extra_metadata={key_of("feed"): held.to_text()})
    published = tmp_path / "lake" / ".hoodie" / f"{result.instant}.commit"
    published.unlink()
    assert current_checkpoint(open_table(str(tmp_path / "lake")).context, "feed") == held
    assert published.exists()


def test_a_damaged_checkpoint_names_its_commit(table: HudiTable) -> None:
    result = table.upsert(ROWS, extra_metadata={key_of("feed"): '{"format": 7}'})
    with pytest.raises(CorruptTableError, match="feed") as caught:
        current_checkpoint(table.context, "feed")
    assert result.instant in str(caught.value)
