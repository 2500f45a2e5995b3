"""What a table of version 8 or 9 is made of, as we write it: properties, names, logs, and when a
write completes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable, create_table, open_table, write_hudi
from hudi_table.codec.avro.container import read_container
from hudi_table.codec.log.blocks import scan_blocks
from hudi_table.errors import (
    InvalidOptionError,
    InvalidRequestError,
    TableNotFoundError,
)
from hudi_table.metadata.port import open_context
from hudi_table.model.table.java_properties import parse_properties
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State, next_instant_time, parse_instant
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from tests.support import golden
from tests.support.later_tables import SCHEMA, VERSIONS, contents, ctx_of, files, new_table, rows


@pytest.mark.parametrize(("name", "version"), [("v8_mor_event", 8), ("v9_bucket_mor", 9)])
def test_a_new_table_has_the_properties_that_hudi_gives_one(name: str, version: int, tmp_path: Path):
    theirs = parse_properties((golden.unpack(name, tmp_path).base / ".hoodie/hoodie.properties").read_text())
    table = new_table(tmp_path / "t", version, type="MergeOnRead", hive_style=theirs["hoodie.datasource.write.hive_style_partitioning"] == "true")  # fmt: skip
    ours = parse_properties((tmp_path / "t/.hoodie/hoodie.properties").read_text())
    about_metadata = {"hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight", "hoodie.table.index.defs.path"}  # fmt: skip
    named = {"hoodie.table.name", "hoodie.table.checksum"}
    for key in theirs.keys() - about_metadata - named:
        assert ours.get(key) == theirs[key], key
    of_ours = ours.keys() - theirs.keys()
    assert {key for key in of_ours if not key.startswith(("hoodie.index.", "hoodie.bucket.", "hoodie.lakeops."))} <= {
        "hoodie.database.name", "hoodie.table.create.schema",
    }  # fmt: skip
    config = table.context.config
    assert (config.version, config.merge_mode.value, config.ordering_fields) == (version, "EventTime", ("ts",))


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_fields_of_a_custom_generator_carry_their_kinds(version: int, tmp_path: Path):
    by_day = {"field": "ts", "type": "Timestamp", "format": "yyyy-MM", "input": "EPOCHMILLISECONDS"}
    new_table(tmp_path / "t", version, partition_by=["city", by_day])
    stored = parse_properties((tmp_path / "t/.hoodie/hoodie.properties").read_text())
    assert stored["hoodie.table.partition.fields"] == "city:SIMPLE,ts:TIMESTAMP"
    found = open_table(tmp_path / "t").context.config.partition_by
    assert [(item.field, item.type.value, item.format) for item in found] == [
        ("city", "Simple", None), ("ts", "Timestamp", "yyyy-MM"),
    ]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_that_is_opened_is_the_one_that_was_created(version: int, tmp_path: Path):
    made = new_table(tmp_path / "t", version, index={"type": "Bucket", "buckets": 3}, merge_mode="CommitTime")
    found = open_table(tmp_path / "t").context
    assert found.config == made.context.config
    assert found.config.index == made.context.config.index
    assert found.config.merge_mode.value == "CommitTime"
    assert not found.lost


@pytest.mark.parametrize("version", [6, 8, 9])
def test_an_option_gives_the_version_of_a_new_table(version: int, tmp_path: Path):
    options = {"hoodie.write.table.version": str(version)}
    create_table(tmp_path / "t", SCHEMA, record_key="id", options=options)
    assert open_table(tmp_path / "t").context.config.version == version
    with pytest.raises(InvalidRequestError, match="version is 6"):
        create_table(tmp_path / "u", SCHEMA, record_key="id", version=6, options={"hoodie.write.table.version": "9"})
    # Later writes may repeat the option; another version is none of a write's.
    write_hudi(tmp_path / "t", rows(("a", 1)), options=options)
    other = {"hoodie.write.table.version": "9" if version == 8 else "8"}
    with pytest.raises(InvalidOptionError, match="contradicts the table"):
        write_hudi(tmp_path / "t", rows(("a", 1)), options=other)


def test_new_tables_have_version_9(tmp_path: Path):
    assert create_table(tmp_path / "t", SCHEMA, record_key="id").context.config.version == 9


@pytest.mark.parametrize("version", [6, 8, 9])
def test_changes_since_the_moment_of_a_write_are_those_behind_it(version: int, tmp_path: Path):
    table = new_table(tmp_path / "t", version)
    first = table.upsert(rows(("a", 1)), batch="one")
    assert table.upsert(rows(("a", 1)), batch="one").moment == first.moment
    since = first.moment
    for number, key in enumerate("bcd"):
        done = table.upsert(rows((key, number)))
        assert table.changes(since=since).to_arrow().num_rows == 1
        assert table.scan(query="incremental", since=since, until=done.moment).to_arrow()["id"].to_pylist() == [key]
        since = done.moment
    assert not table.changes(since=since).to_arrow().num_rows


def test_who_asks_for_no_version_opens_a_table_of_any(tmp_path: Path):
    new_table(tmp_path / "t", 9)
    same: dict[str, Any] = {"record_key": "id", "partition_by": "city", "ordering_fields": "ts", "if_exists": "open"}
    assert create_table(tmp_path / "t", SCHEMA, **same).context.config.version == 9
    with pytest.raises(InvalidRequestError, match="has version 9, not 8"):
        create_table(tmp_path / "t", SCHEMA, **same, version=8)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_write_leaves_the_files_that_hudi_looks_for(version: int, tmp_path: Path):
    table = new_table(tmp_path / "t", version)
    time = table.upsert(rows(("a", 1))).instant
    replaced = table.write(rows(("b", 2)), operation="insert_overwrite").instant
    names = files(table, ".hoodie/timeline")
    (done,) = [name for name in names if name.startswith(f"{time}_")]
    assert {f"{time}.commit.requested", f"{time}.inflight"} <= set(names)
    found = parse_instant(done)
    assert found is not None
    assert found.completion > time
    (record,) = read_container((Path(table.base_path) / ".hoodie/timeline" / done).read_bytes())
    assert record["operationType"] == "UPSERT"
    assert SCHEMA_KEY in record["extraMetadata"]
    assert {f"{replaced}.replacecommit.requested", f"{replaced}.replacecommit.inflight"} <= set(names)
    assert [name for name in names if name.startswith(f"{replaced}_") and name.endswith(".replacecommit")]
    # Beside the timeline nothing of it is left in the folder above.
    assert files(table, ".hoodie") == ["hoodie.properties"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_log_is_named_by_the_instant_that_writes_it_and_counts_from_one(version: int, tmp_path: Path):
    table = new_table(tmp_path / "t", version, type="MergeOnRead")
    table.insert(rows(("a", 1), ("b", 1)))
    times = [table.upsert(rows(("a", n))).instant for n in (2, 3)]
    gone = table.delete(rows(("b", 0))).instant
    logs = [name for name in files(table, "x") if ".log." in name]
    assert [name.split("_")[1] for name in logs] == [f"{time}.log.1" for time in (*times, gone)]
    stat = committed(table, times[-1]).stats[0]
    assert (stat.prev_commit, stat.extra["baseFile"], stat.extra["logFiles"]) == (times[-1], "", [logs[1]])
    with open_storage(table.base_path).open_read(f"x/{logs[-1]}") as source:
        assert [block.instant for block in scan_blocks(source)] == [gone]
    assert contents(table) == [("a", 3)]


def committed(table: HudiTable, time: str) -> CommitMetadata:
    from hudi_table.table.timeline.active import commit_metadata

    timeline = load_timeline(table.context)
    return commit_metadata(table.context, next(i for i in timeline.commits if i.time == time))


def test_a_log_where_changes_are_logged_tells_its_slice(tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead", options={"hoodie.table.cdc.enabled": "true"})
    first = table.insert(rows(("a", 1))).instant
    second = table.upsert(rows(("a", 2))).instant
    stat = committed(table, second).stats[0]
    assert stat.prev_commit == first
    assert stat.extra["baseFile"].endswith(f"_{first}.parquet")
    changes = open_table(table.base_path).changes().to_arrow().to_pylist()
    assert [(row["op"], row["after"]["n"]) for row in changes] == [("i", 1), ("u", 2)]


def test_logs_are_marked_as_files_that_are_created(tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead")
    table.insert(rows(("a", 1)))
    store = open_storage(table.base_path)
    marked: list[str] = []

    class Watching:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def put(self, path: str, data: bytes) -> None:
            if ".temp/" in path:
                marked.append(f"{path} {data.decode()}")
            store.put(path, data)

        def put_if_absent(self, path: str, data: bytes) -> None:
            if ".temp/" in path:
                marked.append(f"{path} {data.decode()}")
            store.put_if_absent(path, data)

    HudiTable(open_context(Watching())).upsert(rows(("a", 2)))
    of_logs = [text for text in marked if ".log.1" in text]
    assert of_logs
    assert all(text.strip().endswith(".marker.CREATE") for text in of_logs)


@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
def test_a_rollback_deletes_the_logs_of_a_write_by_their_names(type_: str, tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type=type_)
    table.insert(rows(("a", 1)))
    before = set(files(table, "x"))
    time = table.upsert(rows(("a", 2))).instant
    assert table.rollback(time, writers_stopped=True).figures["filesDeleted"] == 1
    assert set(files(table, "x")) == before
    assert contents(table) == [("a", 1)]
    done = [parse_instant(name) for name in files(table, ".hoodie/timeline") if name.endswith(".rollback")]
    assert [found is not None and found.completion == next_instant_time(found.time) for found in done] == [True]


def test_a_log_of_a_dead_write_without_its_marker_is_deleted_by_its_name(tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead")
    table.insert(rows(("a", 1)))
    dead = begin(ctx_of(table), Action.DELTA_COMMIT)
    dead.inflight()
    (base,) = files(table, "x")[1:]
    log = Path(table.base_path) / "x" / f".{base.split('_')[0]}_{dead.time}.log.1_0-1-2"
    log.write_bytes(b"half")
    table.rollback(dead.time, writers_stopped=True)
    assert not log.exists()
    assert contents(table) == [("a", 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_savepoints_and_cleans_are_there_once_whoever_ends_them(version: int, tmp_path: Path):
    table = new_table(tmp_path / "t", version)
    for n in range(5):
        table.upsert(rows(("a", n)))
    kept = table.savepoint().instant
    assert table.savepoint().replayed
    table.upsert(rows(("a", 9)))
    clean = table.schedule_clean({"hoodie.clean.commits.retained": "1"})
    assert clean is not None
    assert table.run_clean(clean.instant).figures["filesDeleted"] == 4
    assert table.run_clean(clean.instant).replayed
    names = files(table, ".hoodie/timeline")
    assert len([name for name in names if name.endswith((".clean", ".savepoint"))]) == 2
    table.delete_savepoint(kept, writers_stopped=True)
    assert not [name for name in files(table, ".hoodie/timeline") if "savepoint" in name]
    assert contents(table) == [("a", 9)]


def test_a_clean_keeps_the_logs_of_the_slices_that_are_read(tmp_path: Path):
    table = new_table(tmp_path / "t", 9, type="MergeOnRead")
    table.insert(rows(("a", 0), ("b", 0)))
    for n in range(1, 4):
        table.upsert(rows(("a", n)))
        table.compact(force=True)
    table.upsert(rows(("b", 7)))
    pending = begin(ctx_of(table), Action.DELTA_COMMIT)
    table.clean({"hoodie.clean.commits.retained": "1"})
    left = files(table, "x")
    assert [name.endswith(".parquet") or ".log.1" in name for name in left] == [True, False, True]
    assert contents(table) == [("a", 3), ("b", 7)]
    pending.abort()


def test_an_instant_in_any_state_has_the_name_of_its_layout():
    from hudi_table.model.table.layouts import layout_of

    clean = Instant("20261124000000000", Action.CLEAN, State.REQUESTED)
    assert layout_of(6).completed(clean).file_name == "20261124000000000.clean"
    assert layout_of(9).completed(clean).file_name == "20261124000000000_20261124000000001.clean"
    assert layout_of(9).completed(clean, "20261124000000777").file_name == "20261124000000000_20261124000000777.clean"
    assert layout_of(6).completed(clean, "20261124000000777").file_name == "20261124000000000.clean"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_table_has_an_archive_that_holds_nothing(version: int, tmp_path: Path):
    table = new_table(tmp_path / "t", version)
    assert files(table, ".hoodie/timeline/history") == ["_version_", "manifest_1"]
    table.upsert(rows(("a", 1)))
    assert [row["instant"] for row in table.timeline(archived=True).to_pylist()] == [
        row["instant"] for row in table.timeline().to_pylist()
    ]


def test_properties_that_are_gone_are_missed_where_the_timeline_lies_in_its_own_folder(tmp_path: Path):
    table = new_table(tmp_path / "t", 9)
    table.upsert(rows(("a", 1)))
    (tmp_path / "t/.hoodie/hoodie.properties").unlink()
    clock = Waited()
    with pytest.raises(TableNotFoundError):
        open_context(open_storage(table.base_path), clock)
    assert clock.waited


class Waited(SystemClock):
    """A clock that notes that it was waited for."""

    waited = 0.0

    def sleep(self, seconds: float) -> None:
        self.waited += seconds
