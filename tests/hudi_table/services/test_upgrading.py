"""Bringing tables to other versions: rows, history and properties afterwards, tables of Hudi's, its
bugs, what is refused, and the command line.

Hudi's own upgrades of up6, while a compaction is pending, are up68 and up69. Crash points:
tests/hudi_table/test_crash_upgrading.py; Hudi reads and writes on: tests/interop/test_upgrading.py.
"""

from __future__ import annotations

import itertools
import json
import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table import (
    InvalidOptionError,
    InvalidRequestError,
    UnsupportedTableError,
    create_table,
    downgrade_table,
    open_table,
    upgrade_table,
)
from hudi_table.cli import exits, main
from hudi_table.model.table.layouts import LAYOUT_1, LAYOUT_2
from hudi_table.services.upgrading.files import completion_times, renamed
from hudi_table.table.timeline.archived import archived_completions, archived_entries
from hudi_table.table.timeline.lsm import read_manifest
from tests.support import golden

GOLDENS = [
    ("up6", 8), ("up6", 9), ("lsm96", 9), ("arch", 9), ("bktmor", 9), ("rb", 8), ("clust", 9), ("sched", 9), ("lc", 8), ("cdc", 9),
    ("failmor", 9), ("isdel", 8), ("v8_lsm", 6), ("v8_lsm", 9), ("v8_mor_compact", 6), ("v9_mor_sched", 6), ("v9_replace", 8),
    ("v9_replace", 6), ("up68", 6), ("up69", 6), ("up69", 8), ("v8_cow_hive", 6), ("v8_mor_partial", 6), ("v8_nbcc", 9),
]  # fmt: skip
META = ["_hoodie_file_name", "_hoodie_commit_seqno"]


def bring(base: Path | str, target: int, **more: Any) -> Any:
    way = upgrade_table if target > 6 and target >= open_table(base).context.config.version else downgrade_table
    with warnings.catch_warnings(action="ignore"):
        return way(base, to=target, **more)


def rows_of(base: Path) -> pa.Table:
    return open_table(base).scan(meta=True).to_arrow().drop_columns(META).sort_by("_hoodie_record_key")


def files_in(base: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}


def instants(base: Path) -> set[tuple[str, str]]:
    found = open_table(base).timeline(archived=True)
    pairs = zip(found["instant"].to_pylist(), found["action"].to_pylist(), strict=True)
    return {(time, action) for time, action in pairs if action.endswith("commit") or action == "clean"}


def table_at(base: Path, version: int = 6, **more: Any) -> Path:
    schema = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])
    create_table(base, schema, record_key="id", ordering_fields="ts", version=version, **more)
    for number in range(3):
        write(base, number, number + 3, ts=number)
    return base


def write(base: Path, *numbers: int, ts: int) -> None:
    data = {"id": [f"k{n}" for n in range(*numbers)], "city": ["x"] * (numbers[1] - numbers[0])}
    open_table(base).upsert(pa.table(data | {"ts": [ts] * len(data["id"])}))


@pytest.mark.parametrize(("name", "target"), GOLDENS)
def test_a_table_of_hudi_has_its_rows_and_its_history_in_another_version(
    name: str, target: int, tmp_path: Path
) -> None:
    base = golden.unpack(name, tmp_path).base
    before, known = rows_of(base), instants(base)
    plan = bring(base, target, dry_run=True)
    assert rows_of(base).equals(before)
    assert plan.target == target
    result = bring(base, target)
    assert result.target == target == open_table(base).context.config.version
    assert rows_of(base).equals(before)
    assert known <= instants(base)
    assert not open_table(base).services.compaction().pending()
    assert bring(base, target).message == f"the table has version {target}"


def test_rows_behind_a_pending_compaction_stay_which_the_upgrade_of_hudi_hides(tmp_path: Path) -> None:
    """12.1 of the facts: k005 falls back to its older row in up68 and up69."""
    ours = golden.unpack("up6", tmp_path / "ours").base
    bring(ours, 8)
    mine = {row["id"]: row["name"] for row in rows_of(ours).to_pylist()}
    theirs = {row["id"]: row["name"] for row in golden.unpack("up68", tmp_path).rows().to_pylist()}
    expected = {row["id"]: row["name"] for row in golden.unpack("up6", tmp_path / "6").rows().to_pylist()}
    assert mine == expected
    assert {key for key in expected if theirs[key] != expected[key]} == {"k005"}


def test_the_timeline_is_that_of_hudis_upgrade_but_for_what_waited(tmp_path: Path) -> None:
    ours, theirs = golden.unpack("up6", tmp_path / "ours").base, golden.unpack("up68", tmp_path).base
    pending = open_table(ours).services.compaction().pending()
    bring(ours, 8)
    mine, hudis = (open_table(base).context for base in (ours, theirs))
    kept = {e["commitTime"]: e["completionTime"] for es in archived_entries(mine) for e in es}
    assert kept.keys() == {e["commitTime"] for es in archived_entries(hudis) for e in es}
    names = [{path.name for path in (base / ".hoodie/timeline").iterdir() if path.is_file()} for base in (ours, theirs)]
    # The age of an unpacked file has no milliseconds.
    seconds = [{(name[:17], name[18:32], name.rpartition(".")[2]) for name in some if "_" in name} for some in names]
    assert seconds[0] >= seconds[1]
    assert {time for time, _, _ in seconds[0] - seconds[1]} >= set(pending)
    assert {name for name in names[1] if "_" not in name} <= {name for name in names[0] if "_" not in name}


def test_no_archived_instant_is_lost_where_the_downgrade_of_hudi_drops_every_eleventh(tmp_path: Path) -> None:
    base = golden.unpack("v8_lsm", tmp_path).base
    known = {e["commitTime"]: e for es in archived_entries(open_table(base).context) for e in es}
    bring(base, 6)
    found = {e["commitTime"]: e for es in archived_entries(open_table(base).context) for e in es}
    assert len(found) == len(known) == 33
    assert open_table(base).context.config.archive_folder == "archived"
    for time, entry in found.items():
        assert entry["actionState"] == "COMPLETED"
        assert entry["stateTransitionTime"] == known[time]["completionTime"]


def test_archived_records_without_a_container_are_brought_over(tmp_path: Path) -> None:
    """12.5: those of an upgrade by Hudi 1.0.2, its downgrade stops at."""
    base = golden.unpack("up68", tmp_path).base
    bring(base, 6)
    found = [e for es in archived_entries(open_table(base).context) for e in es]
    assert len(found) >= 4
    assert all(e["hoodieCommitMetadata"]["partitionToWriteStats"] for e in found if e["actionState"] == "COMPLETED")


def test_there_and_back_the_properties_are_what_they_were(tmp_path: Path) -> None:
    base = table_at(tmp_path / "t", index={"type": "Bucket", "buckets": 2}, partition_by=["city"], type="MergeOnRead")
    before = open_table(base).properties
    for target in (8, 9, 8, 6):
        bring(base, target)
        write(base, 0, 2, ts=10 + target)
        assert open_table(base).context.lost == {}
    assert open_table(base).properties == before
    assert rows_of(base)["ts"].to_pylist() == [19, 19, 2, 2, 2]


def test_partition_fields_of_a_custom_generator_carry_their_kinds_in_later_versions_alone(tmp_path: Path) -> None:
    by = ["city", {"field": "ts", "type": "Timestamp", "format": "yyyy", "unit": "Seconds"}]
    base = table_at(tmp_path / "t", partition_by=by)
    before, config = open_table(base).properties, open_table(base).context.config
    bring(base, 9)
    assert open_table(base).properties["hoodie.table.partition.fields"] == "city:SIMPLE,ts:TIMESTAMP"
    assert open_table(base).context.config.partition_by == config.partition_by
    write(base, 0, 2, ts=3)
    bring(base, 6)
    assert open_table(base).properties == before
    write(base, 0, 2, ts=4)
    assert rows_of(base)["ts"].to_pylist() == [4, 4, 2, 2, 2]


def test_check_sums_of_java_go_with_the_files_that_they_were_of(tmp_path: Path) -> None:
    base = table_at(tmp_path / "t")
    for path in list((base / ".hoodie").glob("2*")):
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0 of what stood there")
    bring(base, 8)
    assert not list((base / ".hoodie").glob(".2*.crc"))
    bring(base, 6)
    assert not list((base / ".hoodie").rglob("*.crc"))


def test_an_upgraded_table_has_an_archive_that_is_empty_and_valid(tmp_path: Path) -> None:
    base = table_at(tmp_path / "t")
    bring(base, 9)
    ctx = open_table(base).context
    manifest = read_manifest(ctx.storage, ".hoodie/timeline/history")
    assert (manifest.number, manifest.files) == (1, ())
    assert (base / ".hoodie/timeline/history/_version_").read_text() == "1"


def test_changes_are_told_in_the_same_order_after_an_upgrade(tmp_path: Path) -> None:
    base = table_at(tmp_path / "t")
    times = open_table(base).timeline()["instant"].to_pylist()
    newest = rows_of(base)
    bring(base, 9)
    ctx = open_table(base).context
    completions = dict(zip(times, open_table(base).timeline()["file"].to_pylist(), strict=True))
    moments = [completions[time].partition("_")[2][:17] for time in times]
    assert moments == sorted(set(moments))
    since = open_table(base).scan(query="incremental", since=moments[-2], meta=True).to_arrow()
    expected = newest.filter(pa.compute.equal(newest["_hoodie_commit_time"], times[-1]))
    assert sorted(since["id"].to_pylist()) == sorted(expected["id"].to_pylist())
    assert archived_completions(ctx) == {}


@given(
    st.lists(
        st.tuples(st.integers(0, 9_000), st.integers(-9_000, 9_000)), min_size=1, max_size=8, unique_by=lambda p: p[0]
    )
)
def test_completion_times_keep_the_order_of_the_instants_whatever_the_ages_of_files_say(
    pairs: list[tuple[int, int]],
) -> None:
    changed = {f"2026010100000{t:04d}": f"2026010100000{max(0, min(9_999, t + age)):04d}" for t, age in pairs}
    found = completion_times(changed, [])
    order = sorted(found)
    assert all(time <= found[time] for time in order)
    assert all(found[one] < other for one, other in itertools.pairwise(order))


def test_names_go_there_and_back() -> None:
    names = [
        "20260101000000000.commit",
        "20260101000000000.inflight",
        "20260101000000001.clean.requested",
        ".aux",
        "hoodie.properties",
    ]
    later = renamed(names, LAYOUT_2, {"20260101000000000": "20260101000000005"})
    assert later == {
        "20260101000000000.commit": "20260101000000000_20260101000000005.commit",
        "20260101000000000.inflight": "20260101000000000.inflight",
        "20260101000000001.clean.requested": "20260101000000001.clean.requested",
    }
    assert sorted(renamed(later.values(), LAYOUT_1, {}).values()) == sorted(later)
    clustering = renamed(["20260101000000000.clustering.requested"], LAYOUT_1, {})
    assert set(clustering.values()) == {"20260101000000000.replacecommit.requested"}


def test_a_key_with_a_colon_keeps_a_bucket_table_where_it_is(tmp_path: Path) -> None:
    base = table_at(tmp_path / "t", index={"type": "Bucket", "buckets": 2})
    open_table(base).upsert(pa.table({"id": ["a:b"], "city": ["x"], "ts": [1]}))
    before = rows_of(base)
    with pytest.raises(InvalidRequestError, match="holds a record key with a colon"):
        bring(base, 8)
    assert rows_of(base).equals(before)
    assert not (base / ".hoodie/.upgrade").exists()
    assert not (base / ".hoodie/timeline").exists()
    write(base, 0, 1, ts=9)


@pytest.mark.parametrize("target", [7, 10, 5])
def test_a_version_that_is_not_written_is_refused_by_name(target: int, tmp_path: Path) -> None:
    base = table_at(tmp_path / "t")
    with pytest.raises(InvalidOptionError, match=f"there is no table version {target} to write"):
        (upgrade_table if target > 6 else downgrade_table)(base, to=target)


def test_an_upgrade_is_no_downgrade(tmp_path: Path) -> None:
    base = table_at(tmp_path / "t", version=8)
    with pytest.raises(InvalidRequestError, match="to bring it to 6 is a downgrade"):
        upgrade_table(base, to=6)
    with pytest.raises(InvalidRequestError, match="to bring it to 9 is an upgrade"):
        downgrade_table(base, to=9)


@pytest.mark.parametrize(("name", "target", "why"), [
    ("v9_multi_order", 8, "several ordering fields"), ("v9_partial_mode", 8, "merges rows"), ("v8_rolled", 6, "savepoint [0-9]+ keeps the log"),
])  # fmt: skip
def test_what_the_other_version_would_not_take_is_refused_before_anything_is_rewritten(
    name: str, target: int, why: str, tmp_path: Path
) -> None:
    base = golden.unpack(name, tmp_path).base
    before, files = rows_of(base), files_in(base)
    with pytest.raises((UnsupportedTableError, InvalidRequestError), match=why):
        bring(base, target)
    assert rows_of(base).equals(before)
    assert files_in(base) == files


def test_the_command_line_shows_first_and_does_it_with_yes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = table_at(tmp_path / "t")
    files = len([name for name in os.listdir(base / ".hoodie") if name[:2] == "20"])

    notes: list[str] = []

    def run(*arguments: str) -> dict[str, Any]:
        assert main([*arguments, "-o", "json"]) == exits.GOOD
        printed = capsys.readouterr()
        found: dict[str, Any] = json.loads(printed.out)
        notes[:] = printed.err.splitlines()
        return found

    unchanged = "nothing was changed; --yes does it, once every process that writes the table has ended"
    shown = run("upgrade", str(base), "--to", "9", "--reader", "Sail:1")
    assert (shown["from"], shown["to"], shown["timelineFiles"]) == (6, 9, files)
    assert "hoodie.table.version=9" in shown["properties"]
    (unproven,) = shown["unproven"]
    assert unproven.startswith("whether Sail 1 reads table version 9")
    assert notes == [f"{unproven}: try it with a copy of the table first", unchanged]
    assert open_table(base).context.config.version == 6
    done = run("upgrade", str(base), "--to", "9", "--yes")
    assert done["done"].startswith("the table was brought from version 6 to 9; ")
    assert notes == []
    assert open_table(base).context.config.version == 9
    assert run("downgrade", str(base), "--to", "6")["to"] == 6
    assert notes == [unchanged]
    assert run("downgrade", str(base), "--to", "6", "--yes")["to"] == 6
    assert (run("downgrade", str(base), "--to", "6")["from"], notes) == (6, [])
    assert main(["upgrade", str(base), "--to", "6"]) == 2
    assert "to is 6, and no upgrade ends there: give 8 or 9" in capsys.readouterr().err
    assert main(["upgrade", str(base), "--to", "7", "--yes"]) != exits.GOOD
