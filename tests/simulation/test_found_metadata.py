"""Dropping a metadata table beside building one, each as the few steps that it takes: what sleeps
in one harms no table of the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import UnavailableError
from hudi_table.metadata.lifecycle import MetadataDroppedWarning
from hudi_table.metadata.port import open_context
from hudi_table.metadata.table import MetadataTable, read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.metadata_table import EMPTY_LOG_TOKEN, parse_hfile
from hudi_table.model.names import METADATA_TABLE, PROPERTIES, parse_log_file
from hudi_table.model.timeline.instants import Action
from hudi_table.table.store.ports import Objects, Storage
from hudi_table.table.timeline.active import load_timeline
from tests.support.crashes import FIRST, LAYOUTS, opened, prepared, read, rows
from tests.support.sleeping import Killed, Patient, Sleeps, waking

SIMPLE = next(layout for layout in LAYOUTS if layout.index.value == "Simple" and not layout.partitioned)
FOLDER = f"{METADATA_TABLE}/"
NOTE = FOLDER + ".hoodie/dropping-"


@dataclass
class Aged:
    """A store in which the notes of drops are as old as those of the dead."""

    inner: Storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def list(self, prefix: str = "", **more: Any) -> Objects:
        found = self.inner.list(prefix, **more)
        back = timedelta(hours=2)
        return [replace(i, modified=i.modified - back) if i.path.startswith(NOTE) else i for i in found]


def deletes_of_it(call: str, path: str, data: bytes) -> bool:
    return call == "delete" and path.startswith(FOLDER)


def names_ready(call: str, path: str, data: bytes) -> bool:
    return path == PROPERTIES and b"\nhoodie.table.metadata.partitions=files" in data


def names_inflight(call: str, path: str, data: bytes) -> bool:
    return path == PROPERTIES and b"\nhoodie.table.metadata.partitions.inflight=" in data


def base_file(call: str, path: str, data: bytes) -> bool:
    return path.endswith(".hfile")


def dead_at(meant: Callable[[str, str, bytes], bool], store: Storage, run: Callable[[HudiTable], object]) -> None:
    with pytest.raises(Killed):
        run(waking(Sleeps(store, meant, lambda: None, dies=True)))


def build(table: HudiTable) -> object:
    return table.build_metadata()


def drop(table: HudiTable) -> object:
    return table.drop_metadata()


def nothing_is_hidden(store: Storage, *more: tuple[str, str, int]) -> None:
    """What is named as ready is there and lists every row; and it can be written to."""
    assert read(store) == {*FIRST, *more}
    ctx = opened(store).context
    table = MetadataTable.load(ctx, load_timeline(ctx))
    if table is not None and table.partitions.ready:
        assert differences(ctx) == []
    with warnings.catch_warnings():
        # Which of them says that it drops what is named wrongly is not the matter here.
        warnings.simplefilter("ignore", MetadataDroppedWarning)
        opened(store).write(rows(("z", "x", 26)), operation="upsert")
    assert read(store) == {*FIRST, *more, ("z", "x", 26)}
    table = MetadataTable.load(ctx, load_timeline(ctx))
    assert (table is not None) or not read_partitions(ctx).all, "it is named, and not there"


def can_be_built(store: Storage) -> None:
    opened(store).build_metadata()
    ctx = opened(store).context
    table = MetadataTable.load(ctx, load_timeline(ctx))
    assert table is not None
    assert "files" in table.partitions.ready
    assert differences(ctx) == []
    assert not [info for info in store.list(METADATA_TABLE) if info.path.startswith(NOTE)]


@pytest.mark.parametrize("sleeper", [drop, build], ids=["a drop", "a build that drops first"])
def test_who_slept_before_deleting_takes_nothing_of_what_was_built_meanwhile(
    sleeper: Callable[[HudiTable], object],
) -> None:
    """It had listed files of names that every metadata table has."""
    store = prepared(SIMPLE)
    if sleeper is drop:
        opened(store).build_metadata()
    else:
        dead_at(names_inflight, store, build)

    def dropped_and_built() -> None:
        opened(store).drop_metadata()
        with suppress(UnavailableError):
            waking(store).build_metadata()

    with suppress(Killed):
        sleeper(waking(Sleeps(store, deletes_of_it, dropped_and_built)))
    nothing_is_hidden(store)
    can_be_built(store)


def test_a_drop_that_slept_longer_than_its_note_holds_ends() -> None:
    store = prepared(SIMPLE)
    opened(store).build_metadata()
    clock = Patient()

    def slept() -> None:
        clock.slept += 2000.0
        can_be_built(Aged(store))

    with pytest.raises(UnavailableError, match="drop it again"):
        HudiTable(open_context(Sleeps(store, deletes_of_it, slept), clock)).drop_metadata()
    nothing_is_hidden(store)


def test_a_record_index_is_not_built_with_the_shards_that_a_drop_has_left() -> None:
    store = prepared(SIMPLE)
    shards = [0]

    def third_shard(call: str, path: str, data: bytes) -> bool:
        shards[0] += deletes_of_it(call, path, data) and "record_index/.record-index" in path
        return shards[0] == 3

    def dropped_in_part() -> None:
        dead_at(third_shard, store, drop)

    with pytest.raises(UnavailableError, match="is being dropped"):
        waking(Sleeps(store, names_inflight, dropped_in_part)).build_metadata(["record_index"])
    nothing_is_hidden(store)
    opened(Aged(store)).build_metadata(["record_index"])
    names = map(parse_hfile, (info.path.rpartition("/")[2] for info in store.list(METADATA_TABLE)))
    logs = [parse_log_file(info.path.rpartition("/")[2]) for info in store.list(f"{METADATA_TABLE}/record_index")]
    assert len({log.file_id for log in logs if log is not None}) == 10
    assert {name.file_id for name in names if name is not None}


@pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
def test_a_building_that_slept_before_it_named_its_partitions_names_no_later_one(dies: bool) -> None:
    """What was begun in its place had no base file yet: no row was there."""
    store = prepared(SIMPLE)

    def another_is_begun() -> None:
        opened(store).build_metadata()
        opened(store).drop_metadata()
        dead_at(base_file, store, build)

    with pytest.raises(Killed) if dies else suppress(UnavailableError):
        waking(Sleeps(store, names_ready, another_is_begun, dies=dies)).build_metadata()
    nothing_is_hidden(store)
    can_be_built(store)


def test_a_building_that_slept_behind_a_drop_names_nothing() -> None:
    store = prepared(SIMPLE)

    def dropped() -> None:
        opened(store).drop_metadata()

    with suppress(UnavailableError):
        waking(Sleeps(store, names_ready, dropped)).build_metadata()
    nothing_is_hidden(store)
    can_be_built(store)


def named_and_gone() -> Storage:
    """A table whose properties name a metadata table that is not there: who put them had slept."""
    store = prepared(SIMPLE)
    opened(store).build_metadata()
    for info in store.list(METADATA_TABLE):
        store.delete(info.path)
    return store


def test_a_write_forgets_a_metadata_table_that_is_named_and_not_there() -> None:
    nothing_is_hidden(named_and_gone())


def test_a_metadata_table_that_is_named_and_not_there_is_built() -> None:
    store = named_and_gone()
    assert opened(store).build_metadata()
    can_be_built(store)
    nothing_is_hidden(store)


def test_a_planner_that_lost_leaves_no_groups_in_the_table_of_the_other() -> None:
    """Its first logs, of an instant of its own, would be file groups that nobody fills."""
    store = prepared(SIMPLE)
    begun: list[str] = []

    def first_log(call: str, path: str, data: bytes) -> bool:
        return path.startswith(f"{FOLDER}files/.files-")

    def built() -> None:
        begun.extend(load_timeline(opened(store).context).planner_claims)
        opened(store).build_metadata()

    with suppress(UnavailableError):
        waking(Sleeps(store, first_log, built)).build_metadata()
    assert begun
    assert not [info.path for info in store.list(METADATA_TABLE) if begun[0] in info.path]
    nothing_is_hidden(store)
    can_be_built(store)


def test_a_write_to_the_building_that_was_not_decided_is_not_lost() -> None:
    """Of two plans, begun at one moment, that of the later instant has lost, and lies there until
    its planner finds out."""
    store = prepared(SIMPLE)

    def begun_beside_and_written() -> None:
        (plan,) = [i for i in load_timeline(opened(store).context).pending if i.action is Action.INDEXING]
        for info in store.list(f"{METADATA_TABLE}/files"):
            if parse_log_file(info.path.rpartition("/")[2]) is not None:
                store.put(info.path.replace(plan.time, str(int(plan.time) + 1)), store.get(info.path))
        opened(store).write(rows(("d", "x", 4)), operation="upsert")

    waking(Sleeps(store, base_file, begun_beside_and_written)).build_metadata()
    nothing_is_hidden(store, ("d", "x", 4))
    can_be_built(store)


def test_a_write_behind_a_building_that_was_given_up_is_not_lost() -> None:
    """The planner that lost takes its first logs back, and the other building ends, while a writer
    sleeps before its own log."""
    store = prepared(SIMPLE)
    dead_at(base_file, store, build)
    (plan,) = [i for i in load_timeline(opened(store).context).pending if i.action is Action.INDEXING]
    lost = [
        info.path.replace(plan.time, str(int(plan.time) + 1))
        for info in store.list(f"{METADATA_TABLE}/files")
        if info.path.endswith(f"_{EMPTY_LOG_TOKEN}")
    ]

    def of_the_writer(call: str, path: str, data: bytes) -> bool:
        return path.startswith(f"{FOLDER}files/.files-")

    def given_up_and_built() -> None:
        for path in lost:
            store.delete(path)
        opened(store).build_metadata()

    for path in lost:
        store.put(path, b"")
    waking(Sleeps(store, of_the_writer, given_up_and_built)).write(rows(("d", "x", 4)), operation="upsert")
    nothing_is_hidden(store, ("d", "x", 4))
    can_be_built(store)


def test_a_plan_to_compact_what_was_dropped_holds_nothing_of_what_was_built_later() -> None:
    """The chain's plan may appear long after: logs that carried its instant were on no slice that
    readers see."""
    store = prepared(SIMPLE)
    opened(store).build_metadata()
    planned: dict[str, bytes] = {}

    def plan(call: str, path: str, data: bytes) -> bool:
        if path.startswith(FOLDER) and path.endswith(".compaction.requested"):
            planned[path] = data
        return bool(planned)

    compacts = {"hoodie.metadata.compact.max.delta.commits": "1"}
    with pytest.raises(Killed):
        waking(Sleeps(store, plan, lambda: None, dies=True)).write(
            rows(("d", "x", 4)), operation="upsert", options=compacts
        )
    opened(store).drop_metadata()
    opened(store).build_metadata()
    for path, data in planned.items():
        store.put(path, data)
    nothing_is_hidden(store, ("d", "x", 4))
    opened(store).write(rows(("e", "x", 5)), operation="upsert", options=compacts)
    assert not planned.keys() & {info.path for info in store.list(METADATA_TABLE)}
    ctx = opened(store).context
    assert "files" in read_partitions(ctx).ready
    assert differences(ctx) == []
