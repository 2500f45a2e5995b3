"""Compaction of the metadata table beside writes, cleans and dead processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.log.rows import delete_block
from hudi_table.metadata import compaction
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.metadata.port import open_context
from hudi_table.metadata.validate import differences
from hudi_table.model.names import METADATA_TABLE, LogFileName
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.cleaning.execute import run_clean
from hudi_table.table.commit.rollback import rollback_plan
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from tests.hudi_table.metadata.test_keeping import KINDS, ONE_VERSION, agrees, kinds, loaded, upserted, with_metadata
from tests.support.crashes import FIRST, LAYOUTS, opened, read, rows
from tests.support.meanwhile import AfterCreate, AfterPut


@kinds
def test_a_write_beside_a_compaction_writes_its_delta_again_and_not_its_data(layout):
    store = with_metadata(layout, deltas=3)
    data: list[int] = []

    def compact() -> None:
        data.append(len(store.list("x" if layout.partitioned else "")))
        assert compact_metadata(opened(store).context, 1)

    hooked = AfterPut(store, ".log.", compact)
    hooked.part = f"{METADATA_TABLE}/files/.files-0000-0"
    result = opened(hooked).write(rows(("a", "x", 9), ("n", "x", 1)), operation="upsert")
    assert hooked.happen is None
    assert agrees(store)
    own = [info.path for info in store.list(METADATA_TABLE) if result.instant[8:] in info.path and ".log." in info.path]
    # It completed once, behind the compaction: what it had said before is gone.
    ended = [info for info in store.list(f"{METADATA_TABLE}/.hoodie") if info.path.endswith(".deltacommit")]
    assert sum(info.path.rpartition("/")[2].startswith(result.instant) for info in ended) == 1
    newest = loaded(store).groups["files"][0].latest
    assert newest.base is not None
    assert own == [f"{METADATA_TABLE}/{log.path}" for log in newest.logs]
    assert {("a", "x", 9), ("n", "x", 1)} <= read(store)


@kinds
def test_a_compaction_beside_a_write_that_decides_first_is_planned_again_and_loses_nothing(layout):
    store = with_metadata(layout, deltas=3)
    writer = opened(store)
    hooked = AfterPut(store, "", lambda: None)
    table = opened(hooked)
    # The write takes the slot of the chain that the planner is about to take.
    inner_create = store.put_if_absent
    once = [lambda: writer.write(rows(("q", "x", 1)), operation="upsert")]

    def create(path: str, body: bytes) -> None:
        if path.startswith(".hoodie/.txn/") and once:
            once.pop()()
        inner_create(path, body)

    hooked.put_if_absent = create  # type: ignore[attr-defined]
    assert compact_metadata(table.context, 1)
    assert not once
    assert agrees(store)
    assert ("q", "x", 1) in read(store)


def test_a_log_that_goes_while_the_metadata_table_is_planned_is_not_named(monkeypatch):
    table = opened(with_metadata(LAYOUTS[0], 3))
    with monkeypatch.context() as patch:
        patch.setattr(compaction, "rows_of", lambda *_: None)
        assert not compact_metadata(table.context, 1)
    assert compact_metadata(table.context, 1)
    assert differences(table.context) == []


def die_before_the_decision(store: Storage) -> None:
    """A write whose delta is whole."""
    dead = AfterPut(store, f"{METADATA_TABLE}/files/.files-0000-0", lambda: None)

    class DeadError(Exception):
        pass

    def die(path: str, body: bytes) -> None:
        if "/.txn/" in path:
            raise DeadError
        store.put_if_absent(path, body)

    dead.put_if_absent = die  # type: ignore[attr-defined]
    with pytest.raises(DeadError):
        opened(dead).write(rows(("a", "x", 9), ("n", "x", 1)), operation="upsert")
    assert dead.happen is None


@kinds
def test_it_is_compacted_while_a_dead_write_waits_to_be_rolled_back_to_its_end(layout):
    """What a rollback takes back in the quarantine never counts: the compaction leaves it there."""
    store = with_metadata(layout, deltas=3)
    die_before_the_decision(store)
    opened(store, suspect=0.0).write(rows(("e", "x", 4)), operation="upsert")
    pending = load_timeline(opened(store).context).pending
    assert {instant.action for instant in pending} >= {Action.ROLLBACK}
    assert compact_metadata(opened(store).context, 1)
    assert agrees(store)
    HudiTable(open_context(store, settings=TxnSettings(0.0, 0.0))).write(rows(("f", "x", 4)), operation="upsert")
    assert not load_timeline(opened(store).context).pending
    assert agrees(store)
    assert read(store) == {*FIRST, ("e", "x", 4), ("f", "x", 4)}


@kinds
def test_a_write_that_is_taken_back_behind_a_compaction_and_beside_a_clean_costs_nobody_the_metadata_table(layout):
    store = with_metadata(layout, deltas=3)
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    die_before_the_decision(store)
    assert compact_metadata(opened(store).context, 1)
    assert opened(store).schedule_clean(ONE_VERSION, force=True)
    opened(store, suspect=0.0).write(rows(("f", "x", 4)), operation="upsert")
    assert Action.CLEAN in {instant.action for instant in load_timeline(opened(store).context).pending}
    assert agrees(store)
    assert read(store) == {*FIRST, ("f", "x", 4)}


def test_it_is_not_compacted_beside_what_a_pending_rollback_of_another_engine_has_written_to_it():
    """Its blocks will count once it completes, and it writes nothing again."""
    store = with_metadata(KINDS[0], deltas=3)
    ctx = opened(store).context
    newest = load_timeline(ctx).commits[-1]
    rollback = Instant("20981231000000000", Action.ROLLBACK, State.REQUESTED)
    base = loaded(store).groups["files"][0].latest.instant
    log = f"{METADATA_TABLE}/files/{LogFileName('files-0000-0', base, 9, '0-3-5')}"
    store.put(f".hoodie/{rollback.file_name}", rollback_plan(ctx, newest, []))
    store.put(log, delete_block(pa.array(["z"]), "files", rollback.time))
    assert not compact_metadata(opened(store).context, 1)
    store.delete(log)
    assert compact_metadata(opened(store).context, 1)


class DeadError(Exception):
    """Of a process that has died."""


def dies_behind_its_decision(store: Storage, before: Callable[[], object]) -> Any:
    """The storage of a process: something happens right before it decides, and nothing behind
    that."""
    dying, happened = AfterPut(store, "", lambda: None), list[object]()

    def die(*_: Any) -> None:
        raise DeadError

    def create(path: str, body: bytes) -> None:
        if "/.txn/" in path and not happened:
            happened.append(before())
        store.put_if_absent(path, body)
        if "/.txn/" in path:
            for call in ("put", "put_if_absent", "delete"):
                setattr(dying, call, die)
            raise DeadError

    dying.put_if_absent = create  # type: ignore[attr-defined]
    return dying


def clean_planned_beside(store: Storage, act: Callable[[HudiTable], object]) -> str:
    """The instant of a clean that was planned right before another process decided, and died."""
    cleans: list[Any] = []
    dying = dies_behind_its_decision(
        store, lambda: cleans.append(opened(store).schedule_clean(ONE_VERSION, force=True))
    )
    with pytest.raises(DeadError):
        act(opened(dying))
    return cleans[0].instant


@pytest.mark.parametrize("layout", KINDS[:2], ids=str)
def test_a_clean_tells_behind_a_compaction_that_is_decided_and_not_yet_on_the_timeline(layout):
    """The compaction was listed before the clean's plan; its process dies behind its decision."""
    store = with_metadata(layout, deltas=3)
    clean = clean_planned_beside(store, lambda table: compact_metadata(table.context, 1))
    run_clean(opened(store).context, clean, LocalEngine())
    assert any(compact_metadata(opened(store).context, 1) for _ in range(2))
    assert agrees(store)


@pytest.mark.parametrize("layout", KINDS[:2], ids=str)
def test_the_log_of_a_clean_stands_behind_that_of_a_write_that_it_has_published(layout):
    """A reader of Hudi stops at a log of an instant that has not completed for it."""
    store = with_metadata(layout, deltas=3)
    clean = clean_planned_beside(store, lambda table: table.write(rows(("a", "x", 9)), operation="upsert"))
    before = {log.name for log in loaded(store).groups["files"][0].latest.logs}
    run_clean(opened(store).context, clean, LocalEngine())
    logs = {log.name for log in loaded(store).groups["files"][0].latest.logs}
    [of_clean] = logs - before
    assert of_clean.version > max(name.version for name in before)
    assert agrees(store)


@kinds
def test_an_executor_of_a_clean_that_another_has_completed_and_archived_meanwhile_records_nothing(layout):
    store = with_metadata(layout)
    for number in range(3):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    plan = opened(store).schedule_clean(ONE_VERSION, force=True)
    assert plan is not None

    def complete_and_archive() -> None:
        run_clean(opened(store).context, plan.instant, LocalEngine())
        names = [info.path for info in store.list(".hoodie") if ".clean" in info.path and plan.instant in info.path]
        assert len(names) == 3
        for name in names:
            store.delete(name)

    late = AfterPut(store, ".clean.inflight", complete_and_archive)
    run_clean(opened(late).context, plan.instant, LocalEngine())
    assert late.happen is None
    assert agrees(store)
    assert opened(store).doctor() == ()


@kinds
def test_a_planner_that_dies_before_it_has_dropped_its_claim_holds_no_write(layout):
    store = with_metadata(layout, deltas=3)

    class DeadError(Exception):
        pass

    def die() -> None:
        raise DeadError

    hooked = AfterCreate(store, f"{METADATA_TABLE}/.hoodie/", die)
    with pytest.raises(DeadError):
        compact_metadata(opened(hooked).context, 1)
    assert load_timeline(opened(store).context).planner_claims
    upserted(store)
    assert agrees(store)
    assert not load_timeline(opened(store).context).planner_claims
