"""Bootstrapping in place: which partitions are copied, once and whole, and what is refused by
name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import (
    HudiError,
    InvalidDataError,
    InvalidOptionError,
    InvalidRequestError,
    InvalidSchemaError,
    create_table,
    open_table,
)
from hudi_table.bootstrapping import BootstrapResult, bootstrap_table
from hudi_table.cli import main
from hudi_table.model.timeline.instants import format_instant_time, parse_instant
from hudi_table.table.store.opening import open_storage
from tests.support.bootstrapped import (
    SCHEMA,
    TYPES,
    as_written,
    changed,
    day,
    part,
    rows_of,
    skeletons,
    with_changes,
)
from tests.support.s3 import running_s3


def test_inserts_do_not_rewrite_a_skeleton_because_it_is_small(source: Path, tmp_path: Path) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id")
    table = open_table(tmp_path / "t")
    table.upsert(changed(3).set_column(0, "id", pa.array(["another"])))
    assert len(skeletons(table)) == 4


def test_a_bootstrap_is_no_foreign_writer_and_has_no_age(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap_table(tmp_path / "t", source, record_key="id")
    assert main(["info", str(tmp_path / "t"), "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["lastInstant"], found["ageSeconds"], found["foreignWriters"]) == ("00000000000001", None, None)
    assert main(["timeline", str(tmp_path / "t"), "-o", "json"]) == 0
    assert [item["ageSeconds"] for item in json.loads(capsys.readouterr().out)["items"]] == [None]


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
    "idle option": (
        {"options": {"hoodie.metadata.enable": "true"}}, InvalidOptionError, "hoodie.metadata.enable=true acts on writes and services",
    ),
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
    with pytest.raises(InvalidRequestError, match=r"0\.parquet is a file: name the folder that holds the files"):
        bootstrap_table(tmp_path / "t", folder / "0.parquet", record_key="id")
    bootstrap_table(tmp_path / "t", source, record_key="id")


def test_columns_that_some_files_lack_are_null(source: Path, tmp_path: Path) -> None:
    pq.write_table(part(50, 51).drop_columns(["text"]), source / "day=2024-01-01" / "2.parquet")
    bootstrap_table(tmp_path / "t", source, record_key="id")
    table = open_table(tmp_path / "t")
    assert rows_of(table, filter="id = 'k50'") == {"k50": ("k50", 50, None, day(0))}
    assert len(rows_of(table)) == 13


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("version", [8, 9])
def test_tables_of_later_versions_lie_as_their_layout_says(
    source: Path, untouched: None, tmp_path: Path, version: int, kind: Any
) -> None:
    del untouched
    before = format_instant_time(datetime.now(UTC).astimezone().replace(tzinfo=None))
    done = bootstrap_table(tmp_path / "t", source, record_key="id", type=kind, version=version, pattern=".*01-01")
    assert (done.skeletons, done.copied, done.rows) == (2, 2, 12)
    table = open_table(tmp_path / "t")
    assert table.context.config.version == version
    assert rows_of(table) == as_written()
    action = "commit" if kind == "CopyOnWrite" else "deltacommit"
    found = [parse_instant(path.name) for path in sorted((tmp_path / "t" / ".hoodie" / "timeline").glob("*.*"))]
    ended = [each for each in found if each is not None and each.completed]
    assert [(each.time, each.action) for each in ended] == [("00000000000001", action), ("00000000000002", action)]
    assert before <= ended[0].completion < ended[1].completion
    assert len(found) == 6
    properties = (tmp_path / "t" / ".hoodie" / "hoodie.properties").read_text().splitlines()
    assert "hoodie.bootstrap.index.type=HFILE" in properties
    assert f"hoodie.bootstrap.base.path={source}" in properties
    by_option = {"hoodie.write.table.version": str(version)}
    bootstrap_table(tmp_path / "o", source, record_key="id", options=by_option)
    assert open_table(tmp_path / "o").context.config.version == version


def test_the_commits_of_one_that_was_cut_short_complete_once(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("hudi_table.services.bootstrapping.run.create_properties", _dies)
        with pytest.raises(KeyboardInterrupt):
            bootstrap_table(tmp_path / "t", source, record_key="id", version=9)
    timeline = tmp_path / "t" / ".hoodie" / "timeline"
    left = sorted(path.name for path in timeline.glob("*.*"))
    assert len(left) == 3
    bootstrap_table(tmp_path / "t", source, record_key="id", version=9)
    assert sorted(path.name for path in timeline.glob("*.*")) == left


def test_a_column_of_vectors_stays_no_list(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    (tmp_path / "in").mkdir()
    pq.write_table(rows, tmp_path / "in" / "a.parquet")
    with pytest.raises(InvalidSchemaError, match=r"stores the column 'v' as fixed_size_list.* mode FullRecord"):
        bootstrap_table(tmp_path / "t", tmp_path / "in", record_key="id", version=9)
    bootstrap_table(tmp_path / "t", tmp_path / "in", record_key="id", version=8)
    assert open_table(tmp_path / "t").scan(["v"]).to_arrow()["v"].to_pylist() == [[1.0, 2.0]]


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


def test_hudictl_bootstraps(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "bootstrap",
        str(tmp_path / "t"),
        str(source),
        "--record-key",
        "id",
        "--pattern",
        ".*01-01",
        "--table-version",
        "9",
        "-o",
        "json",
    ]
    assert main(arguments) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["skeletons"], told["copied"], told["replayed"]) == (12, 2, 2, False)
    assert open_table(tmp_path / "t").context.config.version == 9
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["replayed"] is True
    assert main([*arguments[:4], "nobody"]) == 1
    assert "record_key names 'nobody', which is no column" in capsys.readouterr().err


def test_options_of_files_are_those_of_skeletons(source: Path, tmp_path: Path) -> None:
    bootstrap_table(
        tmp_path / "t", source, record_key="id", index="Bloom", options={"hoodie.parquet.compression.codec": "gzip"}
    )
    table = open_table(tmp_path / "t")
    for path in skeletons(table):
        footer = pq.ParquetFile(tmp_path / "t" / path).metadata
        assert footer.row_group(0).column(2).compression == "GZIP"
        assert b"org.apache.hudi.bloomfilter" in footer.metadata
    table.upsert(changed(1, 13))
    assert rows_of(table) == as_written() | with_changes(1, 13)
