"""Tables whose columns Hudi has renamed, dropped and added again (schema on read): files and logs
of before are read, and rewritten, by the ids that the columns had then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import HudiError, UnsupportedTableError
from hudi_table.metadata.port import open_context
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support import altered, golden
from tests.support.aged import AgedStorage
from tests.support.later_tables import ctx_of
from tests.support.rows import canonical

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("name", pa.string()), ("x", pa.string())])
BUCKETS = {"type": "Bucket", "buckets": 1}
KINDS = ["CopyOnWrite", "MergeOnRead"]
VERSIONS = [6, 8, 9]
versions = pytest.mark.parametrize("version", VERSIONS)
kinds = pytest.mark.parametrize("kind", KINDS)


def made(base: Path, version: int = 9, kind: str = "MergeOnRead", **more: Any) -> HudiTable:
    """A table of two writes, the second of which is a log where the table has them."""
    told: dict[str, Any] = {
        "record_key": "id",
        "ordering_fields": "ts",
        "type": kind,
        "index": BUCKETS,
        "version": version,
    }
    table = create_table(base, SCHEMA, **(told | more))
    upsert(base, ("a", 1, "na", "xa"), ("b", 1, "nb", "xb"))
    upsert(base, ("b", 2, "nb2", "xb2"), ("c", 2, "nc", "xc"))
    return table


def upsert(base: Path, *rows: tuple[Any, ...], **options: str) -> None:
    """Rows with the columns that the table has now."""
    table = open_table(str(base))
    schema = table.schema() or SCHEMA
    table.upsert(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema), options=options
    )


def contents(base: Path, **asked: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in open_table(str(base)).scan(**asked).to_arrow().to_pylist())


@versions
@kinds
def test_rows_of_before_a_renaming_have_their_values_wherever_they_lie(tmp_path: Path, version: int, kind: str) -> None:
    made(tmp_path / "t", version, kind)
    altered.rename(tmp_path / "t", "name", "called")
    assert contents(tmp_path / "t", columns=["id", "called"]) == [("a", "na"), ("b", "nb2"), ("c", "nc")]
    assert contents(tmp_path / "t", columns=["id"], filter="called = 'nc'") == [("c",)]


@pytest.mark.parametrize("name", [*golden.MERGE_ON_READ, *(name for name in golden.LATER if "_mor" in name)])
def test_logs_of_hudi_read_the_same_once_a_column_is_renamed(tmp_path: Path, name: str) -> None:
    base = golden.unpack(name, tmp_path).base
    before = open_table(str(base)).scan().to_arrow()
    context = open_table(str(base)).context.config
    kept = {*context.record_key, *context.partition_fields, *context.ordering_fields, "_hoodie_is_deleted"}
    column = next(each for each in before.schema.names if each not in kept)
    altered.rename(base, column, "called")
    after = open_table(str(base)).scan().to_arrow()
    names = ["called" if each == column else each for each in before.schema.names]
    assert canonical(after.rename_columns(before.schema.names)) == canonical(before)
    assert after.schema.names == names


def test_logs_alone_are_refused_where_fields_inside_a_column_were_renamed(tmp_path: Path) -> None:
    base = golden.unpack("v9_nbcc", tmp_path).base
    assert not list(base.glob("**/*.parquet"))
    column = (open_table(str(base)).schema() or SCHEMA).names[-1]
    altered.rename(base, column, "called")
    (path,) = (base / ".hoodie/.schema").glob("*.schemacommit")
    history = json.loads(path.read_text())
    for version, name in zip(history["schemas"], ("town", "city"), strict=True):
        version["fields"][-1]["type"] = {"type": "record", "fields": [{"id": 90, "name": name, "type": "string"}]}
    path.write_text(json.dumps(history))
    with pytest.raises(UnsupportedTableError, match="fields inside column 'called' were renamed or dropped"):
        open_table(str(base)).scan().to_arrow()


@versions
@kinds
def test_changes_of_before_a_renaming_have_their_values(tmp_path: Path, version: int, kind: str) -> None:
    cdc = {"hoodie.table.cdc.enabled": "true"} if kind == "CopyOnWrite" else {}
    made(tmp_path / "t", version, kind, options=cdc)
    altered.rename(tmp_path / "t", "name", "called")
    found = open_table(str(tmp_path / "t")).changes(columns=["called"]).to_arrow().to_pylist()
    images = {(change["op"], *((change[side] or {}).get("called") for side in ("before", "after"))) for change in found}
    assert images == {("i", None, "na"), ("i", None, "nb"), ("u", "nb", "nb2"), ("i", None, "nc")}


@versions
@kinds
def test_a_column_that_was_dropped_and_added_again_has_nothing_of_before(
    tmp_path: Path, version: int, kind: str
) -> None:
    base = tmp_path / "t"
    made(base, version, kind)
    altered.drop(base, "x")
    altered.add(base, "x")
    assert contents(base, columns=["id", "x"]) == [("a", None), ("b", None), ("c", None)]
    upsert(base, ("d", 3, "nd", "new"))
    assert contents(base, columns=["id", "x"]) == [("a", None), ("b", None), ("c", None), ("d", "new")]
    if kind == "MergeOnRead":
        open_table(str(base)).compact(force=True)
        assert contents(base, columns=["id", "x"]) == [("a", None), ("b", None), ("c", None), ("d", "new")]


@versions
@kinds
def test_a_write_brings_what_was_renamed_to_its_new_name(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    made(base, version, kind)
    altered.rename(base, "name", "called")
    upsert(base, ("a", 3, "na3", "xa3"))
    assert contents(base, columns=["id", "called"]) == [("a", "na3"), ("b", "nb2"), ("c", "nc")]


@versions
@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_a_compaction_brings_logs_to_the_names_of_today(tmp_path: Path, version: int, blocks: str) -> None:
    base = tmp_path / "t"
    made(base, version)
    upsert(base, ("c", 3, "nc3", "xc3"), **{"hoodie.logfile.data.block.format": blocks})
    altered.rename(base, "name", "called")
    upsert(base, ("d", 3, "nd", "xd"))
    before = contents(base)
    assert before == [("a", 1, "na", "xa"), ("b", 2, "nb2", "xb2"), ("c", 3, "nc3", "xc3"), ("d", 3, "nd", "xd")]
    open_table(str(base)).compact(force=True)
    assert contents(base, query="read_optimized") == before


@versions
def test_a_log_compaction_puts_logs_of_both_names_into_one(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    made(base, version)
    altered.rename(base, "name", "called")
    upsert(base, ("d", 3, "nd", "xd"))
    before = contents(base)
    open_table(str(base)).compact_logs(force=True)
    assert (
        contents(base)
        == before
        == [("a", 1, "na", "xa"), ("b", 2, "nb2", "xb2"), ("c", 2, "nc", "xc"), ("d", 3, "nd", "xd")]
    )


@versions
@kinds
def test_a_clustering_reads_what_was_renamed(tmp_path: Path, version: int, kind: str) -> None:
    base = tmp_path / "t"
    made(base, version, kind, index="Simple")
    altered.rename(base, "name", "called")
    before = contents(base)
    open_table(str(base)).cluster(force=True)
    assert contents(base) == before == [("a", 1, "na", "xa"), ("b", 2, "nb2", "xb2"), ("c", 2, "nc", "xc")]


def test_a_record_index_is_built_of_logs_of_both_names(tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base, index="Simple")
    altered.rename(base, "name", "called")
    upsert(base, ("c", 3, "nc3", "xc3"), ("d", 3, "nd", "xd"))
    open_table(str(base)).build_metadata(["record_index"])
    assert contents(base, columns=["id", "called"], filter="_hoodie_record_key = 'c'") == [("c", "nc3")]


def test_statistics_of_partitions_are_refused_while_older_files_have_other_names(tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base)
    altered.rename(base, "name", "called")
    with pytest.raises(HudiError, match="renamed or dropped, which its older files do not tell"):
        open_table(str(base)).build_metadata(["partition_stats"])
    assert contents(base, columns=["id"], filter="called = 'nc'") == [("c",)]


@versions
def test_a_column_of_a_name_that_was_dropped_is_refused(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    made(base, version)
    altered.drop(base, "x")
    rows = pa.table({"id": ["d"], "ts": [3], "name": ["nd"], "x": ["new"]}, schema=SCHEMA)
    with pytest.raises(UnsupportedTableError, match="would change the columns x, and Hudi keeps a schema history"):
        open_table(str(base)).upsert(rows)
    assert contents(base) == [("a", 1, "na"), ("b", 2, "nb2"), ("c", 2, "nc")]


def test_a_write_is_refused_where_rows_were_ordered_by_a_column_of_another_name(tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base)
    altered.drop(base, "ts")
    altered.add(base, "ts")
    with pytest.raises(UnsupportedTableError, match="before ts became what rows are found and ordered by"):
        open_table(str(base)).upsert(open_table(str(base)).scan().to_arrow())


@versions
def test_every_commit_saves_the_history_for_hudi(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    made(base, version)
    time = altered.rename(base, "name", "called")
    known = altered.saved(base)
    upsert(base, ("d", 3, "nd", "xd"))
    open_table(str(base)).compact(force=True)
    assert altered.saved(base) == known
    ctx = ctx_of(open_table(str(base)))
    mine = [instant for instant in load_timeline(ctx).commits if instant.time > time]
    assert len(mine) == 2
    for instant in mine:
        assert json.loads(commit_metadata(ctx, instant).extra_metadata["latest_schema"]) == known[0]
        assert list((base / ".hoodie/.schema").glob(f"{instant.time}*.schemacommit"))


def test_what_was_saved_for_commits_that_left_the_timeline_goes_and_the_names_stay_known(tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base)
    time = altered.rename(base, "name", "called")
    for number in range(8):
        upsert(base, ("d", 3 + number, "nd", "xd"))
    keeping = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "2"}
    HudiTable(open_context(AgedStorage(open_storage(str(base))))).archive(keeping)
    upsert(base, ("e", 3, "ne", "xe"))
    commits = {instant.time for instant in load_timeline(ctx_of(open_table(str(base)))).commits}
    assert time not in commits
    assert {path.name.partition("_")[0] for path in (base / ".hoodie/.schema").iterdir()} <= commits
    assert contents(base, columns=["id", "called"])[:2] == [("a", "na"), ("b", "nb2")]


@versions
def test_a_change_of_columns_that_was_never_committed_counts_for_nothing(tmp_path: Path, version: int) -> None:
    base = tmp_path / "t"
    made(base, version)
    altered.rename(base, "name", "called")
    altered.fail(base, "x")
    assert contents(base)[0] == ("a", 1, "na", "xa")


def test_an_older_moment_is_read_under_the_names_that_it_had(tmp_path: Path) -> None:
    base = tmp_path / "t"
    made(base)
    moment = open_table(str(base)).history().to_pylist()[0]["instant"]
    altered.rename(base, "name", "called")
    upsert(base, ("a", 3, "na3", "xa3"))
    assert open_table(str(base)).scan(as_of=moment).to_arrow().to_pylist()[0]["name"] == "na"
