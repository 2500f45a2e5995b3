"""Tables that were bootstrapped in place: every read, write and service finds the columns that lie
outside the table; and what is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import (
    CorruptTableError,
    HudiError,
    HudiTable,
    InvalidDataError,
    InvalidOptionError,
    InvalidRequestError,
    InvalidSchemaError,
    UnsupportedTableError,
    create_table,
    downgrade_table,
    open_table,
    upgrade_table,
)
from hudi_table.bootstrapping import BootstrapResult, bootstrap_table
from hudi_table.metadata.port import open_context
from hudi_table.model.names import BOOTSTRAP_INSTANT, is_skeleton
from hudi_table.model.service.findings import Severity
from hudi_table.table.store.opening import open_storage
from tests.support.aged import AgedStorage
from tests.support.s3 import running_s3

TYPES = ("CopyOnWrite", "MergeOnRead")
SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("text", pa.string())])
SORTED = {"hoodie.clustering.plan.strategy.sort.columns": "id"}


def part(first: int, stop: int) -> pa.Table:
    numbers = range(first, stop)
    return pa.table([[f"k{i:02}" for i in numbers], list(numbers), [f"text {i}" for i in numbers]], schema=SCHEMA)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Twelve rows in two partitions, files of several row groups; the column of the folders is in
    none."""
    for folder, first in (("day=2024-01-01", 0), ("day=2024-01-02", 6)):
        (tmp_path / "in" / folder).mkdir(parents=True)
        for number in range(2):
            start = first + 3 * number
            pq.write_table(part(start, start + 3), tmp_path / "in" / folder / f"{number}.parquet", row_group_size=2)
    return tmp_path / "in"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def untouched(source: Path) -> Iterator[None]:
    before = contents(source)
    yield
    assert contents(source) == before, "the source was changed"


@pytest.fixture(params=TYPES)
def table(request: pytest.FixtureRequest, source: Path, untouched: None, tmp_path: Path) -> HudiTable:
    del untouched
    bootstrap_table(tmp_path / "t", source, record_key="id", type=request.param)
    return open_table(tmp_path / "t")


def day(number: int) -> Any:
    return pa.scalar(f"2024-01-0{1 + number // 6}").cast(pa.date32()).as_py()


def changed(*numbers: int, text: str = "new") -> pa.Table:
    rows = [{"id": f"k{i:02}", "n": 100 + i, "text": text, "day": day(i)} for i in numbers]
    return pa.Table.from_pylist(rows, schema=pa.schema([*SCHEMA, ("day", pa.date32())]))


def as_written(*but: int) -> dict[str, tuple[Any, ...]]:
    return {f"k{i:02}": (f"k{i:02}", i, f"text {i}", day(i)) for i in range(12) if i not in but}


def rows_of(table: HudiTable, **how: Any) -> dict[str, tuple[Any, ...]]:
    found = [tuple(row.values()) for row in table.scan(["id", "n", "text", "day"], **how).to_arrow().to_pylist()]
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row for row in found}


def with_changes(*numbers: int, text: str = "new") -> dict[str, tuple[Any, ...]]:
    return {row["id"]: tuple(row.values()) for row in changed(*numbers, text=text).to_pylist()}


def skeletons(table: HudiTable) -> list[str]:
    return [path for path in table.files()["base_file"].to_pylist() if path and is_skeleton(path)]


def no_errors(table: HudiTable) -> bool:
    return not [found for found in table.doctor(keys=True, data=True) if found.severity is Severity.ERROR]


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
    table.upsert(changed(1, 7, 13))
    expected = as_written() | with_changes(1, 7, 13)
    assert rows_of(table) == expected
    assert rows_of(table, as_of=BOOTSTRAP_INSTANT) == as_written()
    since = {row["id"] for row in table.scan(query="incremental", since=BOOTSTRAP_INSTANT).to_arrow().to_pylist()}
    assert since == {"k01", "k07", "k13"}
    assert table.scan(query="incremental").to_arrow().num_rows == 13
    table.delete(changed(2, 13))
    del expected["k02"], expected["k13"]
    assert rows_of(table) == expected
    images = table.changes(since=BOOTSTRAP_INSTANT).to_arrow().to_pylist()
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


def test_inserts_do_not_rewrite_a_skeleton_because_it_is_small(source: Path, tmp_path: Path) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id")
    table = open_table(tmp_path / "t")
    table.upsert(changed(3).set_column(0, "id", pa.array(["another"])))
    assert len(skeletons(table)) == 4


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


def test_a_metadata_table_is_built_over_skeletons(table: HudiTable) -> None:
    options = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    table.upsert(changed(1), options=options)
    assert rows_of(table) == as_written() | with_changes(1)
    assert rows_of(table, filter="n = 8") == {"k08": as_written()["k08"]}
    assert rows_of(table, filter="n = 101") == with_changes(1)


def test_folders_without_names_need_the_columns_that_they_are_named_by(tmp_path: Path) -> None:
    for city, first in (("x", 0), ("y", 5)):
        (tmp_path / "in" / city).mkdir(parents=True)
        rows = part(first, first + 5).append_column("city", pa.array([city] * 5))
        pq.write_table(rows, tmp_path / "in" / city / "a.parquet")
    with pytest.raises(InvalidDataError, match=r"x/a.parquet holds rows of the partition '', and lies in 'x'"):
        bootstrap_table(tmp_path / "none", tmp_path / "in", record_key="id")
    assert not (tmp_path / "none" / ".hoodie" / "hoodie.properties").exists()
    bootstrap_table(tmp_path / "t", tmp_path / "in", record_key="id", partition_by="city")
    table = open_table(tmp_path / "t")
    assert table.scan(["city"], filter="city = 'y'").count() == 5
    table.upsert(part(2, 3).append_column("city", pa.array(["x"])))
    assert table.scan().count() == 10


def test_partitions_are_chosen_by_their_paths(source: Path, untouched: None, tmp_path: Path) -> None:
    del untouched
    done = bootstrap_table(tmp_path / "t", source, record_key="id", pattern=".*01-01")
    assert (done.skeletons, done.copied, done.rows, done.partitions) == (2, 2, 12, 2)
    table = open_table(tmp_path / "t")
    assert {path.partition("/")[0] for path in skeletons(table)} == {"day=2024-01-01"}
    assert rows_of(table) == as_written()
    other = bootstrap_table(tmp_path / "o", source, record_key="id", pattern=".*01-01", mode="FullRecord")
    assert (other.skeletons, other.copied) == (2, 2)
    assert {path.partition("/")[0] for path in skeletons(open_table(tmp_path / "o"))} == {"day=2024-01-02"}
    whole = bootstrap_table(tmp_path / "w", source, record_key="id", mode="FullRecord")
    assert (whole.skeletons, whole.rows, whole.replayed) == (0, 12, False)
    assert rows_of(open_table(tmp_path / "w")) == as_written()


def test_the_same_bootstrap_again_changes_nothing_and_another_is_refused(source: Path, tmp_path: Path) -> None:
    first = bootstrap_table(tmp_path / "t", source, record_key="id")
    again = bootstrap_table(tmp_path / "t", source, record_key="id")
    assert again == BootstrapResult(**{**{f: getattr(first, f) for f in first.__slots__}, "replayed": True})
    with pytest.raises(InvalidRequestError, match="there is another table 't' at"):
        bootstrap_table(tmp_path / "t", source, record_key="n")
    create_table(tmp_path / "made", SCHEMA, record_key="id")
    with pytest.raises(InvalidRequestError, match="there is another table 'made' at"):
        bootstrap_table(tmp_path / "made", source, record_key="id")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidRequestError, match=r"holds something else than a Hudi table \(notes.txt\)"):
        bootstrap_table(tmp_path / "full", source, record_key="id")
    for inside in (source / "t", source):
        with pytest.raises(InvalidRequestError, match="lie one inside the other"):
            bootstrap_table(inside, source, record_key="id")


def test_a_bootstrap_that_was_cut_short_goes_on_only_with_what_it_was_of(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("hudi_table.services.bootstrapping.run._publish", _dies)
        with pytest.raises(KeyboardInterrupt):
            bootstrap_table(tmp_path / "t", source, record_key="id")
    with pytest.raises(HudiError, match="no Hudi table"):
        open_table(tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="holds files of a bootstrap that was cut short, of another source"):
        bootstrap_table(tmp_path / "t", source, record_key="n")
    bootstrap_table(tmp_path / "t", source, record_key="id")
    assert rows_of(open_table(tmp_path / "t")) == as_written()


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


BAD: dict[str, tuple[dict[str, Any], type[HudiError], str]] = {
    "mode": ({"mode": "Half"}, InvalidOptionError, "mode"),
    "pattern": ({"pattern": "("}, InvalidOptionError, r"pattern is '\(', which is no regular expression"),
    "key": ({"record_key": "nobody"}, InvalidSchemaError, "record_key names 'nobody', which is no column"),
    "index": ({"index": {"type": "Bucket", "buckets": 2}}, InvalidOptionError, "index is Bucket, which says where a row lies"),
    "record index": ({"index": "RecordIndex"}, InvalidOptionError, "index is RecordIndex"),
    "partition": ({"partition_by": "n"}, InvalidDataError, r"holds rows of the partition 'n=0', and lies in 'day=2024-01-01'"),
    "option": ({"options": {"hoodie.populate.meta.fields": "false"}}, InvalidOptionError, "meta"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused_by_name(source: Path, tmp_path: Path, name: str) -> None:
    more, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        bootstrap_table(tmp_path / "t", source, **({"record_key": "id"} | more))
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()


def test_sources_that_cannot_be_are_refused_by_name(source: Path, tmp_path: Path) -> None:
    folder = source / "day=2024-01-01"

    def refused(kind: type[HudiError], message: str) -> None:
        with pytest.raises(kind, match=message):
            bootstrap_table(tmp_path / "t", source, record_key="id")
        (folder / "bad.parquet").unlink()

    pq.write_table(part(0, 1), folder / "bad.parquet")
    refused(InvalidDataError, r"2 rows of .* have the record key 'k00' in the partition 'day=2024-01-01'")
    pq.write_table(part(50, 51).set_column(1, "n", pa.array([5], pa.int32())), folder / "bad.parquet")
    refused(
        InvalidSchemaError,
        "bad.parquet stores the column 'n' as int32, and the table 't' has int64: .* mode FullRecord",
    )
    pq.write_table(part(50, 51).set_column(1, "n", pa.array(["5"])), folder / "bad.parquet")
    refused(InvalidSchemaError, "bad.parquet")
    pq.write_table(part(50, 51).append_column("_hoodie_record_key", pa.array(["x"])), folder / "bad.parquet")
    refused(InvalidSchemaError, "bad.parquet has a column '_hoodie_record_key', the name of one of Hudi's own")
    pq.write_table(part(50, 51).drop_columns(["id"]), folder / "bad.parquet")
    refused(InvalidDataError, "id")
    (folder / "bad.parquet").write_bytes(b"no Parquet at all")
    refused(InvalidDataError, "bad.parquet")
    (folder / "notes.csv").write_text("a,b")
    with pytest.raises(InvalidRequestError, match=r"notes.csv .* is no Parquet file by its name"):
        bootstrap_table(tmp_path / "t", source, record_key="id")
    (folder / "notes.csv").unlink()
    with pytest.raises(InvalidRequestError, match="no Parquet file lies at"):
        bootstrap_table(tmp_path / "t", tmp_path / "nothing", record_key="id")
    bootstrap_table(tmp_path / "t", source, record_key="id")


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


def test_columns_that_some_files_lack_are_null(source: Path, tmp_path: Path) -> None:
    pq.write_table(part(50, 51).drop_columns(["text"]), source / "day=2024-01-01" / "2.parquet")
    bootstrap_table(tmp_path / "t", source, record_key="id")
    table = open_table(tmp_path / "t")
    assert rows_of(table, filter="id = 'k50'") == {"k50": ("k50", 50, None, day(0))}
    assert len(rows_of(table)) == 13


def test_versions_that_are_not_made_are_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match="a bootstrap makes tables of version 6"):
        bootstrap_table(tmp_path / "t", source, record_key="id", options={"hoodie.write.table.version": "9"})


def test_a_bootstrapped_table_is_brought_to_later_versions_and_back(table: HudiTable) -> None:
    base, expected = table.base_path, as_written()
    for version in (8, 9, 6):
        (upgrade_table if version > 6 else downgrade_table)(base, to=version)
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
    action = "commit" if table.context.config.type.value == "CopyOnWrite" else "deltacommit"
    (Path(table.base_path) / f".hoodie/{BOOTSTRAP_INSTANT}.{action}").unlink()
    dead = open_table(table.base_path)
    assert dead.scan().count() == 0
    dead.upsert(changed(3))
    assert rows_of(dead) == with_changes(3)
    assert not [path for path in Path(table.base_path).rglob("*.parquet") if is_skeleton(path.name)]


def test_at_a_store_each_skeleton_opens_with_its_source(tmp_path: Path) -> None:
    with running_s3() as server:
        options = server.options
        store = open_storage(f"s3://{server.bucket}/in", options)
        for number, folder in enumerate(("day=2024-01-01", "day=2024-01-02")):
            sink = pa.BufferOutputStream()
            pq.write_table(part(6 * number, 6 * number + 6), sink, row_group_size=4)
            store.put(f"{folder}/a.parquet", sink.getvalue().to_pybytes())
        base = f"s3a://{server.bucket}/t"
        bootstrap_table(base, f"s3a://{server.bucket}/in", record_key="id", type="MergeOnRead", storage_options=options)
        table = open_table(base, storage_options=options)
        assert rows_of(table) == as_written()
        assert rows_of(table, filter="n = 7") == {"k07": as_written()["k07"]}
        table.upsert(changed(1, 7))
        table.compact(force=True)
        assert rows_of(table) == as_written() | with_changes(1, 7)
