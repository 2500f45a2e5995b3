"""A fault at every storage call of what writes to the metadata table: where it is ready, it lists
what is committed, before and after the next write, and readers see the old or the new rows.

Matrix: {bucket partitioned, simple flat, and the same with logs} × {a write, the write that builds
it, a write beside a failed one, a compaction of it, a clean of the table} × each storage call ×
{crash before, crash after, torn write, lost reply}, on an in-memory store.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.metadata.keys import bloom_keys
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.definitions import noted_secondary
from hudi_table.metadata.delta.rollback import instants_written
from hudi_table.metadata.reading import read_entries
from hudi_table.metadata.table import MetadataTable, read_partitions
from hudi_table.metadata.validate import committed_files, differences
from hudi_table.model.metadata_table import MetadataPartition, SecondaryPartition
from hudi_table.model.table.config import TableType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.narrowed import StorageBelow
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.listing import list_data_files
from tests.support.crashes import (
    FIRST,
    LATER,
    LATER_LOGS,
    LAYOUTS,
    LOG_LAYOUTS,
    OPERATIONS,
    Layout,
    Rows,
    copied,
    opened,
    prepared,
    read,
    rows,
    with_a_failed_write,
)
from tests.support.fault_points import Faulted, after_each_fault, attempt, check_next_write, check_outcome, on_table
from tests.support.faults import Fault, FaultPlan, FaultyStorage

STRIDE = 5
ENABLE = {"hoodie.metadata.enable": "true"}
INDEXES = ("column_stats", "bloom_filters")
INDEXES_ON = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
KINDS = [LAYOUTS[0], LAYOUTS[3], *LOG_LAYOUTS, LATER, LATER_LOGS]


def with_metadata(layout: Layout) -> Storage:
    """The table of three rows with a metadata table, whose delta has a log."""
    store = prepared(layout)
    table = opened(store)
    table.write(rows(FIRST[2]), operation="upsert", options=ENABLE)
    assert table.context.config.metadata_partitions == ("files",)
    return store


@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("layout", KINDS, ids=str)
def test_a_fault_at_any_call_of_a_write_leaves_rows_and_metadata_that_agree(layout, name, figure):
    operation, expected = OPERATIONS[name]
    run = Run(with_metadata(layout), operation, frozenset(expected(layout)))
    figure(run.every_point(), "crash points")
    assert run.kept == run.points, "no fault of a write costs the metadata table"


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_fault_at_any_call_of_a_write_leaves_indexes_of_every_file(layout, figure):
    operation, expected = OPERATIONS["upsert"]
    store = prepared(layout)
    opened(store).write(rows(FIRST[2]), operation="upsert", options=ENABLE | INDEXES_ON)
    assert opened(store).context.config.metadata_partitions == ("bloom_filters", "column_stats", "files")
    run = Run(store, operation, frozenset(expected(layout)))
    figure(run.every_point(), "crash points")
    assert run.kept == run.points


@pytest.mark.parametrize("layout", [LATER, LATER_LOGS], ids=str)
def test_a_fault_at_any_call_of_the_making_of_an_index_leaves_no_note_of_one_that_is_not_there(layout, figure):
    store = prepared(layout)
    opened(store).build_metadata(["record_index"])
    left, name, count = 0, "secondary_index_by_v", 0
    for found in after_each_fault(store, on_table(lambda table: table.create_index("by_v", "value")), stride=STRIDE):
        count += 1
        table = opened(found.store, suspect=0.0)
        there = name in read_partitions(table.context).all
        left += not there and noted_secondary(table.context, SecondaryPartition(name)) is not None
        # The first gives up the claim of who died, if one was left.
        for number in range(2):
            table.write(rows(("next", "x", 100 + number)), operation="upsert")
        table = opened(found.store)
        noted = noted_secondary(table.context, SecondaryPartition(name)) is not None
        assert noted == (name in read_partitions(table.context).ready), found.where
        assert ("next", "x", 101) in read(found.store), found.where
        assert table.create_index("by_v", "value") != noted, found.where
    figure(count, "crash points")
    assert left, "some died between the note and the plan"


@pytest.mark.parametrize("layout", KINDS, ids=str)
def test_a_fault_at_any_call_of_the_write_that_builds_it_leaves_none_or_one_that_agrees(layout, figure):
    extra = ("d", "x", 4)

    def build(table: HudiTable) -> None:
        table.write(rows(extra), operation="upsert", options=ENABLE)

    run = Run(prepared(layout), build, frozenset({*FIRST, extra}))
    figure(run.every_point(), "crash points")
    assert run.kept


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_fault_while_a_failed_write_is_recovered_leaves_nothing_of_it_in_the_metadata(layout, figure):
    operation, expected = OPERATIONS["upsert"]
    store = with_a_failed_write(with_metadata(layout))
    run = Run(store, operation, frozenset(expected(layout)), suspect=0.0)
    figure(run.every_point(), "crash points")


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_fault_at_any_call_of_its_compaction_leaves_one_that_agrees(layout, figure):
    store = with_metadata(layout)
    opened(store).write(rows(("a", "x", 1)), operation="upsert")
    run = Run(store, lambda table: compact_metadata(table.context, 1), read(store))
    figure(run.every_point(), "crash points")
    assert run.kept == run.points


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_fault_at_any_call_of_a_clean_leaves_one_that_agrees_once_the_clean_has_ended(layout, figure):
    store = with_metadata(layout)
    opened(store).write(rows(("a", "x", 1)), operation="upsert")
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    planned = opened(store).schedule_clean(ONE_VERSION, force=True)
    assert planned is not None

    def clean(table: HudiTable) -> None:
        table.run_clean(planned.instant, engine=LocalEngine(1))

    run = Run(store, clean, read(store), finish=lambda table: table.run_clean(planned.instant))
    figure(run.every_point(), "crash points")
    assert run.kept == run.points


def test_a_write_that_was_given_up_leaves_no_log_and_no_instant_in_the_metadata():
    store = with_metadata(KINDS[0])
    before = {info.path for info in store.list(".hoodie/metadata")}
    counting = FaultPlan()
    OPERATIONS["upsert"][0](opened(FaultyStorage(copied(store), counting)))
    decided = next(c.number for c in counting.calls if c.method == "put_if_absent" and "/.txn/" in c.path)
    plan = FaultPlan(at=decided, fault=Fault.CRASH_BEFORE)

    def write() -> None:
        OPERATIONS["upsert"][0](opened(FaultyStorage(store, plan)))

    assert attempt(write) == "crashed"
    assert {info.path for info in store.list(".hoodie/metadata")} > before
    opened(store, suspect=0.0).write(rows(("next", "x", 100)), operation="upsert")
    timeline = load_timeline(opened(store).context)
    dead = {i.time for i in timeline.pending}
    assert dead
    assert not dead & instants_written(store)


class Run:
    """One operation with every fault at every call. `kept` counts the points after which the
    metadata table was ready."""

    def __init__(
        self,
        start: Storage,
        operation: Callable[[HudiTable], object],
        new: Rows,
        *,
        suspect: float = 900.0,
        finish: Callable[[HudiTable], object] | None = None,
    ) -> None:
        self.start, self.operation, self.suspect, self.finish = start, operation, suspect, finish
        self.old, self.new = read(start), new
        self.points = self.kept = 0

    def every_point(self) -> int:
        # In `make test` a part of them, another for each operation: all take ten minutes.
        for point in after_each_fault(self.start, on_table(self.operation, suspect=self.suspect), stride=STRIDE):
            self.check(point)
            self.points += 1
        return self.points

    def check(self, point: Faulted) -> None:
        store, where = point.store, point.where
        check_outcome(read(store), self.old, self.new, point.outcome, where)
        if self.finish is not None:
            # Between the deletion of a file and the end of the clean it is listed, and gone: no snapshot reads it.
            self.finish(opened(store))
        agree(store, where)
        for suspect in point.suspects:
            after = copied(store)
            check_next_write(after, self.old, self.new, suspect, where)
            agree(after, f"{where}, after the next write")
        self.kept += is_ready(store)


def is_ready(store: Storage) -> bool:
    return "files" in read_partitions(opened(store).context).ready


def agree(store: Storage, where: str) -> None:
    ctx = opened(store).context
    found = differences(ctx)
    assert not found, f"{where}: {found}"
    timeline = load_timeline(ctx)
    table = MetadataTable.load(ctx, timeline) if timeline.has_metadata else None
    for partition in set(table.partitions.ready) & set(INDEXES) if table else ():
        assert table is not None
        bases = {name for _, name in committed_files(list_data_files(store), timeline) if name.endswith(".parquet")}
        missing = bases - indexed(table, MetadataPartition(partition), bases)
        assert not missing, f"{where}: {partition} lacks {missing}"


def indexed(table: MetadataTable, partition: MetadataPartition, names: set[str]) -> set[str]:
    """The files that an index has an entry of."""
    entries = read_entries(table, partition)
    if entries is None:
        return set()
    if partition is MetadataPartition.COLUMN_STATS:
        return {record["file_name"] for record in entries["stats"].to_pylist()}
    keys = set(entries["key"].to_pylist())
    parts = [info.path.rpartition("/")[::2] for info in list_data_files(opened_storage(table))]
    ids = {name: bloom_keys(pa.array([folder]), pa.array([name]))[0].as_py() for folder, name in parts}
    return {name for name in names if ids.get(name) in keys}


def opened_storage(table: MetadataTable) -> Storage:
    """The storage of the data table."""
    below = table.ctx.storage
    assert isinstance(below, StorageBelow)
    return below.outer
