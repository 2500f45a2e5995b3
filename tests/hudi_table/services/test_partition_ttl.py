"""Partitions that outlive their time: which ones, and that no fresh row goes with them."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.bootstrapping import bootstrap_table
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.metadata.port import open_context
from hudi_table.services.cleaning import ttl
from hudi_table.services.cleaning.ttl import TtlOptions, expired_partitions
from hudi_table.table.store.ports import Clock
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.taken_back import aged
from tests.support.written import INDEXES, SCHEMA, rows

DAYS = {"hoodie.partition.ttl.strategy.days.retain": "2"}
CREATION = DAYS | {"hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"}


class Later:
    """The system's clock, days ahead; `when_drawing` runs once, when it is asked for the second
    time: for an instant to claim."""

    def __init__(self, clock: Clock, days: float) -> None:
        self.clock, self.days = clock, days
        self.asked = 0
        self.when_drawing: Callable[[], object] = lambda: None

    def now(self) -> datetime:
        self.asked += 1
        if self.asked == 2:
            self.when_drawing()
        return self.clock.now() + timedelta(days=self.days)

    def boot_seconds(self) -> float:
        return self.clock.boot_seconds()

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


def later(table: HudiTable, days: float) -> HudiTable:
    context = open_context(table.context.storage)
    context.clock = Later(context.clock, days)
    return HudiTable(context)


def table_of(tmp_path: Path, **more: Any) -> HudiTable:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"], **more)
    table.upsert(rows(("a", "x", 1), ("b", "y", 1), ("c", "z", 1)))
    later(table, 1.5).upsert(rows(("b", "y", 2)))
    return table


def expired(table: HudiTable, days: float, options: dict[str, str]) -> list[str]:
    view = FileSystemView(table.context, load_timeline(table.context))
    return expired_partitions(view, TtlOptions.parse(options), local_now(table.context) + timedelta(days=days))


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_time_runs_from_the_last_write_or_from_the_creation(tmp_path: Path, kind: str) -> None:
    table = table_of(tmp_path, type=kind)
    assert expired(table, 1.9, DAYS) == []
    assert expired(table, 2.5, DAYS) == ["x", "z"]
    assert expired(table, 4, DAYS) == ["x", "y", "z"]
    assert expired(table, 2.5, CREATION) == ["x", "y", "z"]
    named = DAYS | {
        "hoodie.partition.ttl.strategy.class": "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"
    }
    assert expired(table, 2.5, named) == ["x", "y", "z"]


def test_selected_partitions_alone_and_at_most_so_many_at_once(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    assert expired(table, 9, DAYS | {"hoodie.partition.ttl.strategy.partition.selected": "z, y"}) == ["y", "z"]
    assert expired(table, 9, DAYS | {"hoodie.partition.ttl.strategy.max.delete.partitions": "1"}) == ["x"]
    with pytest.raises(InvalidRequestError, match="names 'w', which the table does not have"):
        expired(table, 9, DAYS | {"hoodie.partition.ttl.strategy.partition.selected": "w"})


def test_what_has_expired_is_dropped_by_one_commit_and_once(tmp_path: Path) -> None:
    table = later(table_of(tmp_path), 2.5)
    plan = table.expired_partitions(DAYS)
    assert plan is not None
    assert plan.details == ("x", "z")
    assert plan.bytes_freed > 0
    assert table.scan().count() == 3
    done = table.drop_expired_partitions(DAYS)
    assert done is not None
    assert done.figures["partitions"] == 2
    assert table.scan(["id"]).to_arrow().column(0).to_pylist() == ["b"]
    before = {i.path for i in table.context.storage.list()}
    assert table.drop_expired_partitions(DAYS) is None
    assert table.expired_partitions(DAYS) is None
    assert {i.path for i in table.context.storage.list()} == before


def test_a_partition_that_is_written_to_while_it_is_about_to_be_dropped_stays(tmp_path: Path) -> None:
    table = later(table_of(tmp_path), 2.5)
    other = later(table, 2.5)
    clock = table.context.clock
    assert isinstance(clock, Later)
    clock.when_drawing = lambda: other.upsert(rows(("a", "x", 9)))
    done = table.drop_expired_partitions(DAYS)
    assert done is not None
    assert done.figures["partitions"] == 1
    assert sorted(table.scan(["id"]).to_arrow().column(0).to_pylist()) == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give hoodie.partition.ttl.strategy.days.retain"),
        ({"hoodie.partition.ttl.strategy.days.retain": "0"}, "whole number from 1"),
        (DAYS | {"hoodie.partition.ttl.management.strategy.type": "KEEP"}, "'KEEP' is none of KEEP_BY_TIME"),
        (
            DAYS | {"hoodie.partition.ttl.strategy.class": "my.Own"},
            "'my.Own' is none of KeepByTime, KeepByCreationTime",
        ),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        table_of(tmp_path).drop_expired_partitions(options)


def test_a_table_without_partitions_has_none_that_expire(tmp_path: Path) -> None:
    table = create_table(tmp_path / "t", SCHEMA, record_key="id")
    table.insert(rows(("a", "x", 1)))
    with pytest.raises(InvalidRequestError, match="not partitioned"):
        table.drop_expired_partitions(DAYS)


def test_as_a_service_it_drops_what_has_expired(tmp_path: Path) -> None:
    table = later(table_of(tmp_path), 2.5)
    service = table.services.partition_ttl(DAYS)
    plan = service.plan()
    assert plan is not None
    assert plan.details == ("x", "z")
    (done,) = service.run()
    assert done.figures["partitions"] == 2
    assert service.run() == []


ARCHIVE = {
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}


def archived(table: HudiTable) -> HudiTable:
    """The same table when all but its newest writes have left the timeline."""
    assert aged(table).archive(ARCHIVE, force=True)
    return open_table(table.base_path)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_to_logs_counts_though_its_commit_is_archived(version: int, tmp_path: Path) -> None:
    table = table_of(tmp_path, type="MergeOnRead", version=version)
    later(table, 1.6).compact(force=True)
    later(table, 5).upsert(rows(("a", "x", 2)))
    for number in range(5):
        later(table, 5.1 + number / 10).upsert(rows(("b", "y", number)))
    table = archived(table)
    assert "x" not in {
        stat.partition_path
        for instant in load_timeline(table.context).commits
        for stat in commit_metadata(table.context, instant).stats
    }
    assert expired(table, 6.9, DAYS) == ["z"]
    assert expired(table, 7.1, DAYS) == ["x", "z"]


def test_a_log_that_does_not_tell_its_writer_is_as_old_as_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, type="MergeOnRead", version=6)
    later(table, 1.6).compact(force=True)
    later(table, 5).upsert(rows(("a", "x", 2)))
    for number in range(5):
        later(table, 5.1 + number / 10).upsert(rows(("b", "y", number)))
    table = archived(table)
    monkeypatch.setattr(ttl, "_writer", lambda ctx, log: None)
    (log,) = (tmp_path / "t" / "x").glob(".*.log.*")
    made = log.stat().st_mtime
    os.utime(log, (made, made + timedelta(days=5).total_seconds()))
    assert expired(table, 6.9, DAYS) == ["z"]
    assert expired(table, 7.1, DAYS) == ["x", "z"]


def bootstrapped(tmp_path: Path, version: int) -> HudiTable:
    """A table that was made of two folders, of which one was written to since."""
    for name in ("x", "y"):
        (tmp_path / "source" / f"city={name}").mkdir(parents=True)
        of = pa.table({"id": [name], "value": [1]})
        pq.write_table(of, tmp_path / "source" / f"city={name}" / "a.parquet")
    bootstrap_table(tmp_path / "t", tmp_path / "source", record_key="id", version=version)
    table = open_table(tmp_path / "t")
    for number in range(5):
        later(table, 1 + number / 10).upsert(pa.table({"id": ["y"], "value": [number], "city": ["y"]}))
    return table


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_bootstrapped_partition_is_as_old_as_the_bootstrap(tmp_path: Path, version: int, leaves: bool) -> None:
    table = bootstrapped(tmp_path, version)
    if leaves:
        table = archived(table)
        assert all(i.time != "00000000000001" for i in load_timeline(table.context).commits)
    assert expired(table, 1.9, DAYS) == []
    assert expired(table, 2.1, DAYS) == ["city=x"]
    assert expired(table, 1.9, CREATION) == []
    assert expired(table, 2.1, CREATION) == ["city=x", "city=y"]


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_behind_a_bootstrap_drops_no_young_partition(tmp_path: Path, version: int) -> None:
    table = bootstrapped(tmp_path, version)
    inline = {"hoodie.partition.ttl.inline": "true", "hoodie.partition.ttl.strategy.days.retain": "3650"}
    table.upsert(pa.table({"id": ["y"], "value": [9], "city": ["y"]}), options=inline)
    assert sorted(table.scan(["id"]).to_arrow().column(0).to_pylist()) == ["x", "y"]
