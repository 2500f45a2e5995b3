"""Recorded storage calls of writers and recoveries are steps of the commit protocol, each at a
moment at which it is enabled.

Matrix: each operation × {no fault, a lost reply or request or an outage at each storage call}; then
the next writer, which takes the failed one for dead. The monitor itself is tried on traces with one
step missing or out of order: it refuses each.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import HudiError
from hudi_table.metadata.port import open_context
from hudi_table.model.table.config import IndexSpec, IndexType
from hudi_table.model.timeline.chain import sequence_of
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit import recovery
from hudi_table.table.commit.transaction import begin
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.faults import Fault, FaultPlan, FaultyStorage
from tests.support.protocol import ProtocolError, chain_entries, check
from tests.support.recording import RecordingStorage, Step, Trace
from tests.support.tables import commit_buckets, finish, memory_storage, new_context, reopen, write_file

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
OPERATIONS = (
    "insert",
    "upsert",
    "delete",
    "bulk_insert",
    "insert_overwrite",
    "insert_overwrite_table",
    "delete_partition",
)
FAULTS = (Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.UNAVAILABLE)


def rows(*items: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def new_store() -> Storage:
    return open_storage(f"memory://{uuid.uuid4().hex}/t")


def table_with_two_commits() -> Storage:
    store = new_store()
    create(
        store, TableSpec(SCHEMA, "id", partition_by=["city"], index=IndexSpec(IndexType.BUCKET, 2), name="t", version=6)
    )
    upsert(store, ("a", "x", 1), ("b", "y", 2))
    upsert(store, ("c", "x", 3))
    return store


def copied(store: Storage) -> Storage:
    twin = new_store()
    for info in store.list():
        twin.put(info.path, store.get(info.path))
    return twin


def opened(store: Storage, *, suspect: float = 900.0) -> HudiTable:
    return HudiTable(open_context(store, settings=TxnSettings(3600.0, suspect)))


def upsert(store: Storage, *items: tuple[str, str, int], suspect: float = 900.0) -> None:
    opened(store, suspect=suspect).write(rows(*items), operation="upsert", engine=LocalEngine(1))


def run(store: Storage, operation) -> None:
    table, engine = opened(store), LocalEngine(1)
    if operation == "delete_partition":
        table.write(None, operation=operation, partitions=["x"], engine=engine)
    else:
        table.write(rows(("a", "x", 9), ("d", "z", 4)), operation=operation, engine=engine)


def last_instant(store: Storage) -> str:
    entries = chain_entries(store)
    return entries[max(entries)].instant


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_call_of_a_write_is_an_enabled_step(operation: str) -> None:
    store, trace = table_with_two_commits(), Trace()
    run(RecordingStorage(store, trace, "W"), operation)
    monitor = check(trace.steps, chain_entries(store))
    assert monitor.finished("W", last_instant(store)), str(trace)
    assert {"claim", "inflight", "decision", "publication"} <= monitor.seen
    assert operation == "delete_partition" or {"marker", "file"} <= monitor.seen


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_every_call_beside_a_fault_is_an_enabled_step_and_so_is_the_next_writers(
    operation: str, figure: Callable[[int, str], None]
) -> None:
    start, counting = table_with_two_commits(), FaultPlan()
    run(FaultyStorage(copied(start), counting), operation)
    for number in range(1, len(counting.calls) + 1):
        store, trace, fault = copied(start), Trace(), FAULTS[number % len(FAULTS)]
        plan = FaultPlan(number, fault)
        try:
            run(RecordingStorage(FaultyStorage(store, plan), trace, "W"), operation)
        except HudiError:
            # How it ends is not this test's subject.
            assert plan.fired
        upsert(RecordingStorage(store, trace, "N"), ("n", "x", 7), suspect=0.0)
        monitor = check(trace.steps, chain_entries(store))
        assert monitor.finished("N", last_instant(store)), f"{fault} at {plan.fired}\n{trace}"
    figure(len(counting.calls), "traces beside a fault")


def failed_write(store: Storage, trace: Trace) -> str:
    """A writer that dies between its file and its decision; returns its instant."""
    txn = begin(reopen(RecordingStorage(store, trace, "W")), Action.COMMIT)
    txn.inflight()
    write_file(txn, 0)
    return txn.time


def recover(store: Storage, trace: Trace, *, quarantine: float) -> None:
    ctx = reopen(RecordingStorage(store, trace, "B"), quarantine=quarantine, suspect=0.0)
    recovery.recover(ctx, load_timeline(ctx))


def test_every_call_of_a_recovery_is_an_enabled_step() -> None:
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0])
    time = failed_write(store, trace)
    recover(store, trace, quarantine=3600.0)
    assert time in {i.time for i in load_timeline(reopen(store)).pending}, "it stays pending in its quarantine"
    recover(store, trace, quarantine=0.0)
    monitor = check(trace.steps, chain_entries(store))
    assert "rollback" in monitor.seen
    assert time not in {i.time for i in load_timeline(reopen(store)).instants}


def test_a_recovery_that_rolls_forward_publishes_only_what_it_read_in_the_chain() -> None:
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0])
    time = commit_buckets(reopen(store), [0])
    store.delete(f".hoodie/{time}.commit")
    recover(store, trace, quarantine=3600.0)
    monitor = check(trace.steps, chain_entries(store))
    assert "publication" in monitor.seen
    blind = [step for step in trace.steps if sequence_of(step.key) is None]
    with pytest.raises(ProtocolError, match="the decision comes before publication"):
        check(blind, chain_entries(store))


def test_a_writer_that_lost_its_slot_reads_it_before_it_goes_on() -> None:
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0, 1])
    txn = begin(reopen(RecordingStorage(store, trace, "W")), Action.COMMIT)
    txn.inflight()
    stat = write_file(txn, 0)
    commit_buckets(reopen(RecordingStorage(store, trace, "X")), [1])
    finish(txn, [stat], [0])
    entries = chain_entries(store)
    assert check(trace.steps, entries).finished("W", txn.time)
    lost = max(entries) - 1
    unread = [s for s in trace.steps if not (s.process == "W" and s.call == "get" and sequence_of(s.key) == lost)]
    with pytest.raises(ProtocolError, match="skipped unread"):
        check(unread, entries)


def good_trace() -> tuple[Storage, list[Step]]:
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0])
    ctx = reopen(RecordingStorage(store, trace, "W"))
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    finish(txn, [write_file(txn, 0), write_file(txn, 1)], [0, 1])
    return store, trace.steps


def essential(step: Step) -> str | None:
    """The step of the protocol that a call of a good trace is, or None for a call that may be left
    out."""
    key = step.key
    names: Sequence[tuple[str, bool]] = (
        ("tail", step.call == "list" and key.endswith("/.txn") and step.condition == ""),
        ("claim", step.call == "put" and key.endswith(".requested")),
        ("snapshot", step.call == "list_dir" and key == ".hoodie"),
        ("inflight", step.call == "put" and key.endswith(".inflight")),
        ("chain seen", step.call == "list" and key.endswith("/.txn")),
        ("marker", step.call == "put" and "/.temp/" in key),
        ("file", step.call == "write"),
        ("decision", step.call == "put" and sequence_of(key) is not None),
    )
    return next((name for name, true in names if true), None)


def test_the_monitor_refuses_a_trace_without_any_one_of_its_steps() -> None:
    store, steps = good_trace()
    entries = chain_entries(store)
    check(steps, entries)
    tried = set()
    for index, step in enumerate(steps):
        name = essential(step)
        if name is not None:
            tried.add(name)
            with pytest.raises(ProtocolError):
                check(steps[:index] + steps[index + 1 :], entries)
    assert tried >= {"tail", "claim", "snapshot", "inflight", "marker", "file", "decision"}


def test_the_monitor_wants_the_claim_of_a_proof_seen_by_itself_or_in_the_snapshot() -> None:
    store, steps = good_trace()
    entries = chain_entries(store)
    unseen = [step for step in steps if not (step.call == "head" and step.key.endswith(".requested"))]
    assert len(unseen) < len(steps)
    check(unseen, entries)
    without = [
        replace(step, keys=tuple(key for key in step.keys if not key.endswith(".requested")))
        if step.call == "list_dir"
        else step
        for step in unseen
    ]
    with pytest.raises(ProtocolError, match="the right is proved before files"):
        check(without, entries)


def test_the_monitor_refuses_steps_out_of_order() -> None:
    store, steps = good_trace()
    entries, names = chain_entries(store), [essential(step) for step in steps]
    for earlier, later in (("marker", "file"), ("inflight", "marker"), ("claim", "snapshot"), ("file", "decision")):
        i, j = names.index(earlier), names.index(later)
        swapped = [*steps[:i], steps[j], *steps[i:j], *steps[j + 1 :]]
        with pytest.raises(ProtocolError):
            check(swapped, entries)


@pytest.mark.parametrize("ending", [".requested", ".commit"])
def test_the_monitor_refuses_timeline_files_that_are_not_created_exclusively(ending: str) -> None:
    store, steps = good_trace()
    plain = [replace(s, condition="") if s.call == "put" and s.key.endswith(ending) else s for s in steps]
    with pytest.raises(ProtocolError, match="exclusively"):
        check(plain, chain_entries(store))


@pytest.mark.parametrize("key", [".hoodie/elsewhere", "x/notes.txt", ".hoodie/20260101000000000.clean"])
def test_the_monitor_refuses_a_write_that_is_no_step(key: str) -> None:
    with pytest.raises(ProtocolError, match="no step"):
        check([Step("W", "put", key)], {})


def test_the_monitor_refuses_a_deletion_of_files_before_the_abort() -> None:
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0])
    failed_write(store, trace)
    recover(store, trace, quarantine=0.0)
    hasty = [s for s in trace.steps if not (s.process == "B" and sequence_of(s.key) is not None)]
    with pytest.raises(ProtocolError, match="abort"):
        check(hasty, chain_entries(store))
