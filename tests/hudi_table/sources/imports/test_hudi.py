"""A Hudi table that is copied, or exported as a table: the same rows in one commit, and what
merges, is keyed and lies like the other one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table import InvalidOptionError, InvalidRequestError, create_table, open_table
from hudi_table.cli import main
from hudi_table.importing import import_table

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64()), ("note", pa.string())])
FIRST = [("a", "x", 1, "one"), ("b", "y", 2, "two"), ("c", "x", 3, None)]
SECOND = [("a", "x", 5, "newer"), ("d", "y", 1, "new"), ("c", "x", 2, "late")]
AFTER = [("a", "x", 5, "newer"), ("b", "y", 2, "two"), ("c", "x", 3, None), ("d", "y", 1, "new")]


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def rows_of(base: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in open_table(base).scan().to_arrow().to_pylist())


@pytest.fixture(params=[("CopyOnWrite", 6), ("MergeOnRead", 6), ("MergeOnRead", 9)], ids=str)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    kind, version = request.param
    table = create_table(
        str(tmp_path / "source"), SCHEMA, record_key="id", partition_by="city", ordering_fields="n", type=kind,
        index={"type": "Bucket", "buckets": 2}, version=version, hive_style=True,
    )  # fmt: skip
    table.upsert(table_of(FIRST))
    table.upsert(table_of(SECOND))
    return tmp_path / "source"


def test_a_copy_has_the_rows_in_one_commit_and_is_like_its_source(source: Path, tmp_path: Path) -> None:
    done = import_table(tmp_path / "copy", source)
    assert (done.form, done.rows, done.rows_read) == ("hudi", 4, 4)
    assert rows_of(tmp_path / "copy") == rows_of(source) == AFTER
    copy, there = (open_table(base).context.config for base in (tmp_path / "copy", source))
    for name in (
        "record_key",
        "partition_by",
        "ordering_fields",
        "type",
        "merge_mode",
        "index",
        "version",
        "hive_style",
    ):
        assert getattr(copy, name) == getattr(there, name), name
    assert [each["rows"] for each in open_table(tmp_path / "copy").history().to_pylist() if each["rows"]] == [4]
    assert import_table(tmp_path / "copy", source).replayed
    # It merges on as the other one does.
    open_table(tmp_path / "copy").upsert(table_of([("a", "x", 4, "older")]))
    assert rows_of(tmp_path / "copy") == AFTER


def test_a_copy_is_of_the_moment_and_of_the_rows_that_are_asked_for(source: Path, tmp_path: Path) -> None:
    first = open_table(source).history().to_pylist()[-2]["instant"]
    import_table(tmp_path / "then", source, source_version=first)
    assert rows_of(tmp_path / "then") == FIRST
    scan = open_table(source).scan(["id", "city", "n"], "n > 1")
    import_table(tmp_path / "some", scan, partition_by=[], type="CopyOnWrite", index="Simple")
    assert rows_of(tmp_path / "some") == [("a", "x", 5), ("b", "y", 2), ("c", "x", 3)]
    with pytest.raises(InvalidOptionError, match="which has its moment: leave version and format out"):
        import_table(tmp_path / "no", scan, source_version=first)
    with pytest.raises(InvalidRequestError, match="'n' is a record key, partition or ordering column of"):
        import_table(tmp_path / "no", open_table(source).scan(["id", "city"]))
    assert not (tmp_path / "no").exists()


def test_an_index_that_lies_beside_the_files_is_not_copied(tmp_path: Path) -> None:
    table = create_table(str(tmp_path / "source"), SCHEMA, record_key="id", index="GlobalSimple", version=9)
    table.upsert(table_of(FIRST))
    table.build_metadata(["record_index"])
    table.use_index("RecordIndex")
    import_table(tmp_path / "copy", tmp_path / "source")
    index = open_table(tmp_path / "copy").context.config.index
    assert index is not None
    assert index.type.value == "GlobalSimple"


def test_the_command_exports_a_table_and_says_where_the_next_one_goes_on(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(source), str(tmp_path / "all"), "--format", "hudi", "-o", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["rows"], said["target"]) == (4, str(tmp_path / "all"))
    assert rows_of(tmp_path / "all") == AFTER
    open_table(source).upsert(table_of([("e", "x", 9, "behind")]))
    more = ["--format", "hudi", "--query", "incremental", "--since", said["nextSince"], "-o", "json"]
    assert main(["export", str(source), str(tmp_path / "more"), *more]) == 0
    assert rows_of(tmp_path / "more") == [("e", "x", 9, "behind")]
    capsys.readouterr()
    assert main(["export", str(source), str(tmp_path / "no"), "--format", "hudi", "--query", "cdc"]) == 2
    assert "--format hudi does not go with --query cdc" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["source", "source/copy", ""])
def test_a_copy_does_not_lie_inside_its_source(source: Path, tmp_path: Path, place: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidRequestError, match="lie one inside the other: name a place beside it"):
        import_table(tmp_path / place, source)
    assert main(["export", str(source), str(tmp_path / place), "--format", "hudi"]) == 1
    assert sorted(tmp_path.rglob("*")) == before
