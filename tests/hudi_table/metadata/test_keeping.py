"""A metadata table through the life of its table: writes, cleans, compactions, building, going
back, each beside others.

Omitted: faults at single calls (`test_crash_metadata.py`), what Hudi makes of it
(`tests/interop/test_metadata_table.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import HudiError
from hudi_table.metadata.building_plans import pending_buildings
from hudi_table.metadata.cleaning import SLICES_KEPT, oldest_needed
from hudi_table.metadata.compaction import DELTAS_MAX
from hudi_table.metadata.indexing import build_metadata, finish_buildings
from hudi_table.metadata.table import MetadataTable, read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.metadata.upkeep import keep_metadata
from hudi_table.table.commit.undo import restore_plan
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.aged import AgedStorage
from tests.support.crashes import FIRST, LATER, LATER_LOGS, LAYOUTS, LOG_LAYOUTS, copied, opened, prepared, read, rows
from tests.support.meanwhile import AfterPut, AtCall, SlowListing
from tests.support.scale import scaled

ENABLE = {"hoodie.metadata.enable": "true"}
CLEAN = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "2"}
ONE_VERSION = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
NEXT = ("next", "x", 9)
KINDS = [LAYOUTS[0], LAYOUTS[3], *LOG_LAYOUTS, LATER, LATER_LOGS]
kinds = pytest.mark.parametrize("layout", KINDS, ids=str)


def with_metadata(layout, deltas: int = 1) -> Storage:
    store = prepared(layout)
    for _ in range(deltas):
        opened(store).write(rows(FIRST[2]), operation="upsert", options=ENABLE)
    return store


def half_built(layout) -> Storage:
    """A table whose metadata table is planned, by a process that died then."""
    store = prepared(layout)

    class DeadError(Exception):
        pass

    def die() -> None:
        raise DeadError

    with pytest.raises(DeadError):
        build_metadata(opened(AfterPut(store, ".indexing.inflight", die)).context)
    return store


def upserted(store: Any) -> None:
    opened(store).write(rows(NEXT), operation="upsert")


def finished(store: Storage) -> None:
    finish_buildings(opened(store).context)


def loaded(store: Storage) -> MetadataTable:
    ctx = opened(store).context
    table = MetadataTable.load(ctx, load_timeline(ctx))
    assert table is not None
    return table


def agrees(store: Storage) -> bool:
    assert read_partitions(opened(store).context).ready == ("files",)
    assert differences(opened(store).context) == []
    return True


@kinds
def test_it_agrees_after_every_write_and_clean_and_stays_small(layout):
    store = with_metadata(layout)
    for number in range(scaled(14)):
        opened(store).write(
            rows((f"e{number}", "xyz"[number % 3], 4), ("a", "x", number)), operation="upsert", options=CLEAN
        )
        assert agrees(store)
    opened(store).write(rows(("b", "x", 0)), operation="delete")
    opened(store).write(None, operation="delete_partition", partitions=["y" if layout.partitioned else ""])
    opened(store).clean(CLEAN, force=True)
    assert agrees(store)
    group = loaded(store).groups["files"][0]
    assert len(group.slices) <= SLICES_KEPT
    assert len(group.latest.logs) <= 12


@kinds
def test_archiving_leaves_what_its_logs_need(layout):
    store = with_metadata(layout)
    few = {"hoodie.archive.automatic": "true", "hoodie.keep.min.commits": "11", "hoodie.keep.max.commits": "12"}
    for number in range(14):
        opened(AgedStorage(store)).write(rows(("a", "x", number)), operation="upsert", options=few)
    timeline = load_timeline(opened(store).context)
    assert len(timeline.commits) <= 13
    oldest = oldest_needed(loaded(store))
    assert oldest in {"", *(i.time for i in timeline.completed)}
    assert agrees(store)


def test_its_own_timeline_is_archived():
    store = with_metadata(KINDS[1])
    for number in range(42):
        opened(AgedStorage(store)).write(rows(("a", "x", number)), operation="upsert")
    assert agrees(store)
    assert len(loaded(store).timeline.completed) < 42
    assert store.list(f"{METADATA_TABLE}/.hoodie/archived")


def test_its_own_timeline_has_no_hole_though_it_is_archived_while_it_is_listed():
    store = with_metadata(KINDS[1])
    shrunk = False
    while not shrunk:
        before, known = copied(store), [i.time for i in loaded(store).timeline.completed]
        opened(AgedStorage(store)).write(rows(("a", "x", len(known))), operation="upsert")
        shrunk = len(loaded(store).timeline.completed) < len(known)
    shown = set()
    for at in range(0, len(before.list(METADATA_TABLE)), 8):
        here = copied(before)
        write = partial(opened(AgedStorage(here)).write, rows(("a", "x", 99)), operation="upsert")
        slow = SlowListing(here, at, write, folder=METADATA_TABLE)
        times = [i.time for i in loaded(slow).timeline.completed]
        assert slow.happen is None
        assert times[0] in known
        rest = known[known.index(times[0]) :]
        assert times[: len(rest)] == rest, at
        shown.add(times[0])
    assert known[0] not in shown, "a listing that was torn was taken"


@kinds
def test_a_write_that_was_begun_before_the_building_writes_to_what_is_built(layout):
    store = prepared(layout)
    # The files of the write are marked, then the metadata table is built, then the files appear and the write is decided.
    hooked = AfterPut(store, "/MARKERS0", lambda: build_metadata(opened(store).context))
    opened(hooked).write(rows(("a", "x", 9), ("n", "x", 1)), operation="upsert")
    assert hooked.happen is None
    assert agrees(store)


@kinds
def test_a_clean_beside_the_building_tells_it_what_it_deletes(layout):
    store = prepared(layout)
    for number in range(2):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    planned = opened(store).schedule_clean(ONE_VERSION, force=True)
    assert planned is not None
    hooked = AfterPut(store, ".clean.inflight", lambda: build_metadata(opened(store).context))
    opened(hooked).run_clean(planned.instant)
    assert hooked.happen is None
    assert agrees(store)


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_write_before_any_call_of_a_building_costs_nobody_the_metadata_table(layout, figure):
    start = prepared(layout)
    counting = AtCall(copied(start), 0, lambda: None)
    build_metadata(opened(counting).context)
    for number in range(1, counting.calls + 1):
        store = copied(start)
        build_metadata(opened(AtCall(store, number, partial(upserted, store))).context)
        assert agrees(store), number
        assert NEXT in read(store), number
    figure(counting.calls, "interleavings")


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_building_that_ends_before_any_call_of_a_write_costs_nobody_the_metadata_table(layout, figure):
    start = half_built(layout)
    counting = AtCall(copied(start), 0, lambda: None)
    upserted(counting)
    for number in range(1, counting.calls + 1):
        store = copied(start)
        upserted(AtCall(store, number, partial(finished, store)))
        assert agrees(store), number
        assert NEXT in read(store), number
    figure(counting.calls, "interleavings")


def test_a_building_that_died_is_finished_by_the_next_that_wants_it_and_meanwhile_written_to():
    store = half_built(KINDS[0])
    ctx = opened(store).context
    assert read_partitions(ctx).inflight == ("files",)
    assert len(pending_buildings(ctx, load_timeline(ctx))) == 1
    opened(store).write(rows(("d", "x", 4)), operation="upsert")
    assert read_partitions(ctx).inflight == ("files",)
    assert any("files/.files-0000-0" in i.path and ".log.2_" in i.path for i in store.list(METADATA_TABLE))
    twin = copied(store)
    opened(twin).write(rows(("e", "x", 4)), operation="upsert", options=ENABLE)
    assert agrees(twin)
    opened(store, suspect=0.0).write(rows(("e", "x", 4)), operation="upsert")
    assert agrees(store)
    assert not finish_buildings(ctx)


@pytest.mark.parametrize("layout", [KINDS[0], KINDS[-1]], ids=str)
def test_a_building_that_died_with_its_partitions_ready_is_finished_by_writes_and_holds_no_compaction(layout):
    """Nothing is inflight, so no write looked for it, and the metadata table grew for ever."""
    store = prepared(layout)

    class DeadError(Exception):
        pass

    class Dying(AfterPut):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if ".indexing" in path and ".requested" not in path:
                raise DeadError
            store.put_if_absent(path, data)

    with pytest.raises(DeadError):
        build_metadata(opened(Dying(store, "", lambda: None)).context)
    assert [i.action for i in load_timeline(opened(store).context).pending] == [Action.INDEXING]
    for number in range(DELTAS_MAX + 1):
        opened(store, suspect=0.0).write(rows(("a", "x", number)), operation="upsert")
    assert not load_timeline(opened(store).context).pending
    assert any(i.action is Action.COMMIT for i in loaded(store).timeline.commits)
    assert agrees(store)


@kinds
def test_going_back_drops_it_and_the_next_write_that_wants_it_builds_it(layout):
    store = with_metadata(layout)
    table = opened(store)
    table.savepoint()
    table.write(rows(("s", "x", 1)), operation="upsert")
    table.restore(table.savepoints()[0].instant, writers_stopped=True)
    assert store.list(METADATA_TABLE) == []
    opened(store).write(rows(("u", "x", 1)), operation="upsert")
    assert store.list(METADATA_TABLE) == []
    last = opened(store).write(rows(("t", "x", 1)), operation="upsert", options=ENABLE)
    assert agrees(store)
    opened(store).rollback(last.instant, writers_stopped=True)
    assert store.list(METADATA_TABLE) == []
    assert read(store) == {*FIRST, ("u", "x", 1)}


def test_a_file_that_a_pending_restore_of_another_engine_deleted_makes_it_no_wrong_one():
    """Files go before their entries: Hudi writes to the metadata table when all are gone."""
    store = with_metadata(LAYOUTS[0])
    ctx = opened(store).context
    newest = load_timeline(ctx).commits[-1]
    store.delete(max(commit_metadata(ctx, newest).paths))
    assert [item.what for item in differences(ctx)] == ["is listed and is not there"]
    store.put(".hoodie/20981231000000000.restore.requested", restore_plan([newest], "20200101000000000"))
    assert differences(opened(store).context) == []


@kinds
def test_the_option_false_drops_it(layout):
    store = with_metadata(layout)
    opened(store).write(rows(("t", "x", 1)), operation="upsert", options={"hoodie.metadata.enable": "false"})
    assert store.list(METADATA_TABLE) == []
    assert read_partitions(opened(store).context).all == ()


def test_an_option_that_is_no_truth_value_is_refused():
    with pytest.raises(HudiError, match="neither 'true' nor 'false'"):
        opened(prepared(KINDS[0])).write(
            rows(FIRST[0]), operation="upsert", options={"hoodie.metadata.enable": "maybe"}
        )


@kinds
def test_compaction_and_clustering_of_the_data_are_told_too(layout):
    store = with_metadata(layout)
    table: HudiTable = opened(store)
    for number in range(3):
        table.write(rows(("a", "x", number), (f"m{number}", "x", 1)), operation="upsert")
    if layout.type is TableType.MERGE_ON_READ:
        assert table.compact(force=True)
        assert agrees(store)
    keep_metadata(table.context, 1)
    assert agrees(store)


def test_a_log_of_a_pending_write_of_another_engine_is_missing_nowhere():
    store = with_metadata(LATER_LOGS)
    (item, *_) = opened(store).files().to_pylist()
    time = "20991231000000000"
    store.put(f"{item['partition']}/.{item['file_id']}_{time}.log.1_0-7-9", b"half of a log")
    for state in (State.REQUESTED, State.INFLIGHT):
        store.put(f".hoodie/timeline/{Instant(time, Action.DELTA_COMMIT, state).file_name}", b"")
    assert agrees(store)
    assert opened(store).scan().count() == 3
