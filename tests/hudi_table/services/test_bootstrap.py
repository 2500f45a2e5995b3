"""Tables that were bootstrapped in place: every read, write and service finds the columns that lie
outside the table; and what is refused by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from hudi_table import (
    CorruptTableError,
    HudiTable,
    InvalidRequestError,
    downgrade_table,
    open_table,
    upgrade_table,
)
from hudi_table.bootstrapping import bootstrap_table
from hudi_table.metadata.port import open_context
from hudi_table.model.names import BOOTSTRAP_INSTANT, is_skeleton
from hudi_table.model.service.findings import Severity
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from tests.support import hudi_rs
from tests.support.aged import AgedStorage
from tests.support.bootstrapped import (
    SORTED,
    TYPES,
    as_written,
    changed,
    day,
    no_errors,
    part,
    rows_of,
    skeletons,
    with_changes,
)


@pytest.fixture(params=[(kind, version) for kind in TYPES for version in (6, 9)], ids=str)
def table(request: pytest.FixtureRequest, source: Path, untouched: None, tmp_path: Path) -> HudiTable:
    del untouched
    kind, version = request.param
    bootstrap_table(tmp_path / "t", source, record_key="id", type=kind, version=version)
    return open_table(tmp_path / "t")


def test_nothing_is_copied_and_all_rows_are_there(table: HudiTable) -> None:
    assert rows_of(table) == as_written()
    assert table.schema().names == ["id", "n", "text", "day"]
    for path in skeletons(table):
        names = pq.ParquetFile(Path(table.base_path) / path).schema_arrow.names
        assert names == [
            "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"
        ]  # fmt: skip
    assert len(skeletons(table)) == 4
    (commit,) = table.history().to_pylist()
    assert (commit["instant"], commit["operation"]) == (BOOTSTRAP_INSTANT, "BOOTSTRAP")
    assert no_errors(table)


def test_every_projection_and_filter_finds_the_rows_of_both_files(table: HudiTable) -> None:
    found = table.scan(["text", "_hoodie_record_key", "n"], filter="n >= 2 and n < 9").to_arrow().to_pylist()
    assert sorted((row["_hoodie_record_key"], row["text"], row["n"]) for row in found) == [
        (f"k{i:02}", f"text {i}", i) for i in range(2, 9)
    ]
    by_meta = table.scan(["n", "day"], filter="_hoodie_record_key = 'k07'").to_arrow().to_pylist()
    assert by_meta == [{"n": 7, "day": day(7)}]
    assert table.scan(["day"], filter="day = date '2024-01-02'").to_arrow().num_rows == 6
    assert len(rows_of(table, filter="day = date '2024-01-02' and n > 7")) == 4
    assert table.scan(["_hoodie_file_name", "_hoodie_commit_seqno"]).to_arrow().num_rows == 12
    assert table.scan(["day"]).to_arrow().num_rows == table.scan().count() == 12
    assert len(rows_of(table, limit=5)) == 5


def test_a_projection_reads_nothing_of_the_file_that_it_does_not_ask(source: Path, tmp_path: Path) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id")
    for path in source.rglob("*.parquet"):
        path.rename(path.with_suffix(".away"))
    table = open_table(tmp_path / "t")
    assert table.scan(["_hoodie_record_key"]).to_arrow().num_rows == 12
    with pytest.raises(CorruptTableError, match=r"holds the columns of .* and is gone: bring it back"):
        table.scan(["n"]).to_arrow()


def test_engines_are_handed_no_skeleton(table: HudiTable) -> None:
    relation = table.scan().to_duckdb()
    assert sorted(relation.project("id, n").fetchall()) == [(f"k{i:02}", i) for i in range(12)]
    assert relation.filter("n > 8").aggregate("count(*)").fetchall() == [(3,)]
    assert table.scan(filter="n > 8").to_polars().collect().height == 3
    table.upsert(changed(1))
    if table.context.config.type.value == "CopyOnWrite":
        # One file is plain now, and three are not.
        assert table.scan().to_duckdb().aggregate("count(*), sum(n)").fetchall() == [(12, 166)]


def test_updates_inserts_and_deletes_make_plain_files_or_logs_beside(table: HudiTable) -> None:
    made = load_timeline(table.context).commits[0].moment
    table.upsert(changed(1, 7, 13))
    expected = as_written() | with_changes(1, 7, 13)
    assert rows_of(table) == expected
    assert rows_of(table, as_of=BOOTSTRAP_INSTANT) == as_written()
    since = {row["id"] for row in table.scan(query="incremental", since=made).to_arrow().to_pylist()}
    assert since == {"k01", "k07", "k13"}
    assert table.scan(query="incremental").to_arrow().num_rows == 13
    table.delete(changed(2, 13))
    del expected["k02"], expected["k13"]
    assert rows_of(table) == expected
    images = table.changes(since=made).to_arrow().to_pylist()
    assert sorted((row["op"], (row["before"] or {}).get("n"), (row["after"] or {}).get("n")) for row in images)[:2] == [
        ("d", 2, None), ("d", 113, None)
    ]  # fmt: skip
    assert ("u", 1, 101) in {
        (row["op"], (row["before"] or {}).get("n"), (row["after"] or {}).get("n")) for row in images
    }
    assert no_errors(table)


def test_every_operation_goes_on(table: HudiTable) -> None:
    table.write(changed(20), operation="insert")
    table.write(changed(21), operation="bulk_insert")
    assert rows_of(table) == as_written() | with_changes(20, 21)
    table.write(changed(0, text="over"), operation="insert_overwrite")
    expected = {key: row for key, row in as_written().items() if row[3] == day(6)}
    expected |= with_changes(0, text="over") | with_changes(20, 21)
    assert rows_of(table) == expected
    table.write(None, operation="delete_partition", partitions=["day=2024-01-02"])
    assert rows_of(table) == {key: row for key, row in expected.items() if row[3] != day(6)}


def test_services_leave_plain_files_and_the_source_alone(table: HudiTable) -> None:
    table.upsert(changed(1, 7))
    expected = as_written() | with_changes(1, 7)
    if table.context.config.type.value == "MergeOnRead":
        assert table.compact(force=True)
        assert rows_of(table) == expected
    assert table.cluster(SORTED, force=True)
    assert rows_of(table) == expected
    table.upsert(changed(2))
    table.clean({"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    expected |= with_changes(2)
    assert rows_of(table) == expected
    assert not skeletons(table)
    assert not [path for path in Path(table.base_path).rglob("*.parquet") if is_skeleton(path.name)]
    assert no_errors(table)


def test_compaction_and_log_compaction_merge_into_the_columns_outside(source: Path, tmp_path: Path) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id", type="MergeOnRead")
    table = open_table(tmp_path / "t")
    for number in range(3):
        table.upsert(changed(1, 4, text=f"v{number}"))
    expected = as_written() | with_changes(1, 4, text="v2")
    assert rows_of(table, query="read_optimized") == as_written()
    assert rows_of(table) == expected
    table.compact(force=True)
    assert rows_of(table) == rows_of(table, query="read_optimized") == expected


def test_what_came_after_a_bootstrap_is_taken_back(table: HudiTable) -> None:
    table.savepoint(BOOTSTRAP_INSTANT)
    table.upsert(changed(1))
    (_, newest) = sorted(table.history()["instant"].to_pylist())
    table.rollback(newest, writers_stopped=True)
    assert rows_of(table) == as_written()
    table.upsert(changed(2))
    table.restore(BOOTSTRAP_INSTANT, writers_stopped=True)
    assert rows_of(table) == as_written()
    assert len(skeletons(table)) == 4


def test_a_timeline_without_its_bootstrap_still_reads_skeletons(table: HudiTable) -> None:
    for number in range(12):
        table.upsert(changed(1, text=f"v{number}"))
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    table.clean({"hoodie.clean.commits.retained": "2"})
    HudiTable(open_context(AgedStorage(open_storage(table.base_path)))).archive(few)
    assert BOOTSTRAP_INSTANT not in table.timeline()["instant"].to_pylist()
    assert BOOTSTRAP_INSTANT in table.timeline(archived=True)["instant"].to_pylist()
    assert rows_of(table) == as_written() | with_changes(1, text="v11")
    assert len(skeletons(table)) >= 3


def test_the_same_bootstrap_again_changes_nothing_where_its_commit_is_archived(table: HudiTable, source: Path) -> None:
    made = {"type": table.context.config.type.value, "version": table.context.config.version}
    first = bootstrap_table(table.base_path, source, record_key="id", **made)  # type: ignore[arg-type]
    assert first.replayed
    for number in range(12):
        table.upsert(changed(1, text=f"v{number}"))
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    HudiTable(open_context(AgedStorage(open_storage(table.base_path)))).archive(few)
    assert BOOTSTRAP_INSTANT not in table.timeline()["instant"].to_pylist()
    assert bootstrap_table(table.base_path, source, record_key="id", **made) == first  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="there is another table"):
        bootstrap_table(table.base_path, source, record_key="n")


def test_a_metadata_table_is_built_over_skeletons(table: HudiTable) -> None:
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    table.upsert(changed(1), options=options)
    assert rows_of(table) == as_written() | with_changes(1)
    assert rows_of(table, filter="n = 8") == {"k08": as_written()["k08"]}
    assert rows_of(table, filter="n = 101") == with_changes(1)


def test_a_source_that_changed_is_told_by_name(source: Path, tmp_path: Path) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id")
    table, path = open_table(tmp_path / "t"), source / "day=2024-01-01" / "0.parquet"
    before = path.read_bytes()
    pq.write_table(part(0, 2), path)
    with pytest.raises(
        CorruptTableError, match=r"0.parquet holds the columns of .*, and has \d+ bytes, not the \d+ of the bootstrap"
    ):
        table.scan().to_arrow()
    wrong = [found for found in table.doctor() if found.severity is Severity.ERROR]
    assert len(wrong) == 1
    assert "0.parquet" in wrong[0].message
    path.write_bytes(before)
    assert rows_of(table) == as_written()


def test_a_bootstrapped_table_is_brought_to_later_versions_and_back(table: HudiTable) -> None:
    base, expected, before = table.base_path, as_written(), table.context.config.version
    for version in (8, 9, 6, 8) if before == 6 else (8, 6, 9):
        (upgrade_table if version > before else downgrade_table)(base, to=version)
        before = version
        brought = open_table(base)
        assert rows_of(brought) == expected
        word = "class" if version == 6 else "type"
        stored = [
            line for line in (Path(base) / ".hoodie/hoodie.properties").read_text().split() if "bootstrap.index" in line
        ]
        assert [line.partition("=")[0] for line in stored] == [f"hoodie.bootstrap.index.{word}"]
        brought.upsert(changed(version, text=f"of {version}"))
        expected |= with_changes(version, text=f"of {version}")
        assert rows_of(brought) == expected
        assert no_errors(brought)


def test_a_bootstrap_of_hudis_that_died_is_rolled_back(table: HudiTable) -> None:
    # Hudi writes the properties first; its dead bootstrap leaves skeletons of a pending instant.
    timeline = Path(table.base_path) / table.context.layout.timeline_folder
    for suffix in ("commit", "deltacommit"):
        for path in timeline.glob(f"{BOOTSTRAP_INSTANT}*.{suffix}"):
            path.unlink()
    dead = open_table(table.base_path)
    assert dead.scan().count() == 0
    dead.upsert(changed(3))
    assert rows_of(dead) == with_changes(3)
    assert not [path for path in Path(table.base_path).rglob("*.parquet") if is_skeleton(path.name)]


def test_an_index_that_is_gone_is_told_by_name(table: HudiTable) -> None:
    for path in (Path(table.base_path) / ".hoodie" / ".aux" / ".bootstrap").rglob("*.hfile"):
        path.unlink()
    again = open_table(table.base_path)
    with pytest.raises(CorruptTableError, match="does not say which file holds its columns: restore the index"):
        again.scan(["n"]).to_arrow()
    wrong = [found for found in again.doctor() if found.severity is Severity.ERROR]
    assert {found.path for found in wrong} == set(skeletons(again))


def test_a_source_elsewhere_than_the_table_says_is_told_by_name(table: HudiTable, tmp_path: Path) -> None:
    properties = Path(table.base_path) / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace(f"{tmp_path}/in", f"{tmp_path}/other"))
    with pytest.raises(CorruptTableError, match=r"which is not below the table's hoodie.bootstrap.base.path"):
        open_table(table.base_path).scan(["n"]).to_arrow()


def test_hudi_rs_reads_skeletons_alone_until_they_are_clustered(source: Path, tmp_path: Path) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id")
    alone = hudi_rs.read(tmp_path / "t")
    assert sorted(alone["_hoodie_record_key"].to_pylist()) == sorted(as_written())
    assert set(alone["n"].to_pylist()) == {None}
    open_table(tmp_path / "t").cluster(SORTED, force=True)
    assert sorted(hudi_rs.read(tmp_path / "t")["n"].to_pylist()) == list(range(12))
