"""The archive of table versions 8 and 9: which files count, what they tell, and what becomes of
damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import CorruptTableError, ExpiredError, UnsupportedTableError
from hudi_table.metadata.port import open_context
from hudi_table.table.timeline.archived import archived_completions, archived_entries, has_archive
from tests.support import golden
from tests.support.meanwhile import BeforeGet

HISTORY = Path(".hoodie") / "timeline" / "history"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return golden.unpack("v8_lsm", tmp_path).base


def opened(base: Path) -> HudiTable:
    return open_table(str(base))


def times(base: Path) -> list[str]:
    return [entry["commitTime"] for entries in archived_entries(opened(base).context) for entry in entries]


def test_each_archived_instant_is_told_once_and_files_that_no_manifest_names_do_not_count(base: Path) -> None:
    found = times(base)
    assert len(found) == len(set(found)) == 33
    assert len(list((base / HISTORY).glob("*.parquet"))) > 1
    assert archived_completions(opened(base).context).keys() == set(found)


def test_the_history_reaches_back_to_the_first_write(base: Path) -> None:
    history = opened(base).history(archived=True).to_pylist()
    assert [row["operation"] for row in history] == ["UPSERT"] * 19 + ["INSERT"]
    assert history[-1]["inserted"] == 4
    timeline = opened(base).timeline(archived=True).to_pylist()
    assert timeline[0]["file"].startswith("20261123011513169_2026")
    assert [row["instant"] for row in timeline] == sorted(row["instant"] for row in timeline)


def test_without_a_version_file_the_greatest_manifest_counts(base: Path) -> None:
    before = times(base)
    (base / HISTORY / "_version_").unlink()
    assert times(base) == before


def test_an_archive_without_files_is_empty(base: Path) -> None:
    (base / HISTORY / "_version_").write_text("99")
    (base / HISTORY / "manifest_99").write_text(json.dumps({"files": []}))
    for file in (base / HISTORY).glob("*.parquet"):
        file.unlink()
    assert times(base) == []
    assert not has_archive(opened(base).context)


@pytest.mark.parametrize("name", ["up68", "up69"])
def test_the_archive_of_an_upgraded_table_is_read_also_where_records_have_no_container(
    name: str, tmp_path: Path
) -> None:
    base = golden.unpack(name, tmp_path).base
    found = [entry for entries in archived_entries(opened(base).context) for entry in entries]
    assert [entry["commitTime"] for entry in found] == sorted(entry["commitTime"] for entry in found)
    assert all(entry["hoodieCommitMetadata"]["partitionToWriteStats"] for entry in found)


@pytest.mark.parametrize("damage", [b"", b"PAR1 no Parquet"])
def test_a_damaged_file_is_named(damage: bytes, base: Path) -> None:
    manifest = json.loads(
        (base / HISTORY / f"manifest_{(base / HISTORY / '_version_').read_text().strip()}").read_text()
    )
    name = manifest["files"][0]["fileName"]
    (base / HISTORY / name).write_bytes(damage)
    with pytest.raises(CorruptTableError, match=name):
        times(base)


def test_a_damaged_manifest_is_named(base: Path) -> None:
    (base / HISTORY / "_version_").write_text("13")
    (base / HISTORY / "manifest_13").write_text("{")
    with pytest.raises(CorruptTableError, match="manifest_13 is no manifest"):
        times(base)


def test_a_file_that_every_manifest_names_and_that_is_not_there_is_damage_by_name(base: Path) -> None:
    """Whoever read it was told to read again, for ever."""
    manifest = base / HISTORY / ("manifest_" + (base / HISTORY / "_version_").read_text())
    named = json.loads(manifest.read_text())["files"][0]["fileName"]
    manifest.write_text(manifest.read_text().replace(named, "x" + named))
    with pytest.raises(CorruptTableError, match=f"x{named} is part of the archive and is not there"):
        times(base)
    assert opened(base).scan().count() > 0


def test_a_file_that_was_merged_into_others_meanwhile_is_looked_for_in_the_next_manifest(base: Path) -> None:
    """Also where two manifests in turn were overtaken."""
    expected = times(base)
    manifest = base / HISTORY / ("manifest_" + (base / HISTORY / "_version_").read_text())
    whole = manifest.read_text()
    named = json.loads(whole)["files"][0]["fileName"]
    manifest.write_text(whole.replace(named, "x" + named))
    looks = []

    def look() -> None:
        looks.append(1)
        hooked.armed = len(looks) == 1
        if not hooked.armed:
            manifest.write_text(whole)

    hooked = BeforeGet(opened(base).context.storage, f"x{named}", look)
    hooked.armed = True
    found = archived_entries(open_context(hooked))
    assert sorted(entry["commitTime"] for entries in found for entry in entries) == sorted(expected)
    assert len(looks) == 2


def test_changes_since_an_archived_moment_are_refused_and_a_full_scan_gives_the_rows(base: Path) -> None:
    table = opened(base)
    (first, *_) = sorted(archived_completions(table.context).values())
    with pytest.raises(ExpiredError, match="partly archived"):
        table.scan(query="incremental", since=first).to_arrow()
    changed = table.scan(query="incremental", since=first, full_scan=True, meta=True).to_arrow()
    expected = [
        row for row in table.scan(meta=True).to_arrow().to_pylist() if row["_hoodie_commit_time"] > "20261123011513169"
    ]
    assert sorted(changed.column("id").to_pylist()) == sorted(row["id"] for row in expected)


def test_a_completed_file_that_does_not_tell_when_it_completed_is_refused_by_name(base: Path) -> None:
    (done,) = sorted((base / HISTORY.parent).glob("*_*.commit"))[-1:]
    done.rename(done.with_name(f"{done.name[:17]}.commit"))
    with pytest.raises(UnsupportedTableError, match="does not state when its instant completed"):
        opened(base).scan().to_arrow()
