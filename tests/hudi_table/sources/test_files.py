"""What a table holds of a source: read from its newest commit, published first if it was only
decided."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import CorruptTableError
from hudi_table.model.job import checkpoint as model
from hudi_table.model.job.checkpoint import Checkpoint, advance, key_of, waiting
from hudi_table.sources.checkpoints import archived_checkpoints, current_checkpoint
from hudi_table.sources.files.digests import store_digests
from hudi_table.sources.files.source import FilesSource, list_source
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.aged import AgedStorage
from tests.support.crashes import opened

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


def test_a_batch_takes_what_waits_and_there_is_none_where_nothing_does(tmp_path: Path) -> None:
    held = listed(tmp_path, "a")
    source = FilesSource(open_storage(f"file://{tmp_path}/in"), "json", "feed", "two")
    assert source.plan(source.discover(), held) is None
    (tmp_path / "in" / "b").write_text("b")
    batch = source.plan(source.discover(), held)
    assert batch is not None
    assert [file.path for file in batch.files] == ["b"]
    assert waiting(source.discover(), batch.checkpoint) == ()


def test_commits_of_others_do_not_hide_the_checkpoint(table: HudiTable, tmp_path: Path) -> None:
    held = listed(tmp_path, "a")
    assert current_checkpoint(table.context, "feed") is None
    table.upsert(ROWS, extra_metadata={key_of("feed"): held.to_text()})
    table.upsert(ROWS)
    assert current_checkpoint(table.context, "feed") == held
    assert current_checkpoint(table.context, "other") is None


def test_a_commit_that_was_decided_and_not_published_counts(table: HudiTable, tmp_path: Path) -> None:
    """Its writer died between decision and publication: its rows will be seen, so its files are
    taken."""
    held = listed(tmp_path, "a")
    table.upsert(ROWS)
    result = table.upsert(ROWS, extra_metadata={key_of("feed"): held.to_text()})
    (published,) = (tmp_path / "lake" / ".hoodie").rglob(f"{result.instant}*.commit")
    published.unlink()
    assert current_checkpoint(open_table(str(tmp_path / "lake")).context, "feed") == held
    assert published.exists()


def test_a_damaged_checkpoint_names_its_commit(table: HudiTable) -> None:
    result = table.upsert(ROWS, extra_metadata={key_of("feed"): '{"format": 7}'})
    with pytest.raises(CorruptTableError, match="feed") as caught:
        current_checkpoint(table.context, "feed")
    assert result.instant in str(caught.value)


def test_digests_settle_in_a_file_that_commits_name_and_what_none_names_is_swept(
    table: HudiTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "RECENT_MAX", 1)
    folder = tmp_path / "lake" / ".hoodie" / ".ingest" / "feed"
    ctx, before = table.context, None
    for number in range(3):
        listed(tmp_path, f"{number}-a", f"{number}-b")
        files = list_source(open_storage(f"file://{tmp_path}/in"))
        wanted = store_digests(ctx, "feed", before, advance(before, "feed", "one", files, files))
        table.upsert(ROWS, extra_metadata={key_of("feed"): wanted.to_text()})
        before = current_checkpoint(ctx, "feed")
        assert before == wanted
        assert not waiting(files, before)
        for path in folder.iterdir():
            os.utime(path, (0, 0))
        orphan = folder / "of-an-attempt-that-was-killed.digests"
        orphan.write_bytes(b"")
        os.utime(orphan, (0, 0))
    assert len(list(folder.iterdir())) == 4, "those of commits of the timeline stay, and the last orphan"
    assert not table.doctor()
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(CorruptTableError, match="is gone: restore that file"):
        current_checkpoint(ctx, "feed")


def test_a_checkpoint_that_only_the_archive_holds_is_found(table: HudiTable, tmp_path: Path) -> None:
    held, newest = listed(tmp_path, "a"), listed(tmp_path, "b")
    table.upsert(ROWS, extra_metadata={key_of("feed"): held.to_text()})
    table.upsert(ROWS, extra_metadata={key_of("feed"): newest.to_text(), key_of("other"): held.to_text()})
    for _ in range(4):
        table.upsert(ROWS)
    old = opened(AgedStorage(open_storage(f"file://{tmp_path}/lake")))
    assert old.archive(
        {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    )
    assert len(load_timeline(table.context).commits) < 4
    assert current_checkpoint(table.context, "feed") == newest
    found = archived_checkpoints(table.context, ["feed", "other", "none"])
    assert {name: text for name, (_, text) in found.items()} == {"feed": newest.to_text(), "other": held.to_text()}
