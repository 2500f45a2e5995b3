"""Who takes back a write that died: every writer, cleaning, or nobody but who asks for it.

Aspects: the policies and their keys; several recoveries at once; a writer whose heartbeats come
late.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidOptionError, WriteAbortedError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import HOODIE
from hudi_table.model.options.write_options import FailedWrites
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.recovery import recover_failed_writes
from hudi_table.table.commit.rollback import rollback_plan
from hudi_table.table.commit.transaction import begin
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline, records_of
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.timeline.instants import draw_instant
from tests.support.crashes import copied
from tests.support.meanwhile import AtCall, Sleeper
from tests.support.tables import write_file
from tests.support.taken_back import FIRST, aged, written
from tests.support.written import contents, rows


def cleaned(ctx):
    """What a clean does first."""
    return recover_failed_writes(ctx, load_timeline(ctx), {})


def dead_write(table):
    """An instant whose writer died, as old as anybody wants it."""
    txn = begin(open_context(table.context.storage), Action.COMMIT)
    txn.inflight()
    return txn


def suspicious(table, **more):
    """The table as a process sees it that takes every pending instant for dead."""
    return HudiTable(open_context(table.context.storage, settings=TxnSettings(3600.0, 0.0, **more)))


@pytest.mark.parametrize("key", ["hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes"])
@pytest.mark.parametrize(("policy", "left"), [("EAGER", 0), ("LAZY", 1), ("never", 1)])
def test_a_writer_takes_failed_writes_back_unless_the_policy_leaves_them(key, policy, left):
    table = written()
    dead_write(table)
    suspicious(table).upsert(rows(("a", "x", 9)), options={key: policy})
    assert len(load_timeline(table.context).pending) == (1 if left else 2)
    tail = chain.read_tail(table.context)
    aborts = [e for _, e in chain.entries_after(table.context, 0) if e.kind is Kind.ABORT]
    assert (len(aborts), tail.sequence > 0) == (1 - left, True)


def test_the_table_can_name_the_policy_too():
    table = written()
    dead_write(table)
    suspicious(table, failed_writes=FailedWrites.LAZY).upsert(rows(("a", "x", 9)))
    assert [i.action for i in load_timeline(table.context).pending] == [Action.COMMIT]
    settings = TxnSettings.from_properties({"hoodie.cleaner.policy.failed.writes": "lazy"})
    assert settings.failed_writes is FailedWrites.LAZY


def test_an_unknown_policy_or_two_that_differ_are_refused():
    table = written()
    with pytest.raises(InvalidOptionError, match="'SOON' is none of EAGER, LAZY, NEVER"):
        table.upsert(rows(("a", "x", 9)), options={"hoodie.clean.failed.writes.policy": "SOON"})
    twice = {"hoodie.clean.failed.writes.policy": "LAZY", "hoodie.cleaner.policy.failed.writes": "EAGER"}
    with pytest.raises(InvalidOptionError, match="given twice"):
        table.upsert(rows(("a", "x", 9)), options=twice)


@pytest.mark.parametrize(("policy", "taken"), [("LAZY", True), ("NEVER", False)])
def test_cleaning_takes_failed_writes_back_unless_the_policy_is_never(policy, taken):
    table = written()
    txn = dead_write(table)
    cleaner = suspicious(table, failed_writes=FailedWrites.LAZY)
    cleaner.clean({"hoodie.clean.failed.writes.policy": policy}, force=True)
    decision = chain.find_decision(table.context, txn.time, chain.read_tail(table.context).sequence)
    assert (decision is not None and decision[1].kind is Kind.ABORT) is taken


def test_two_cleaners_make_one_rollback_and_the_writer_whose_heartbeats_came_late_fails_at_its_next_proof(monkeypatch):
    monkeypatch.setattr("hudi_table.table.commit.beside.heartbeat.BEAT_SECONDS_LEAST", 60.0)
    table = written()
    clock = Sleeper()
    txn = begin(open_context(table.context.storage, clock), Action.COMMIT)
    with txn.signs_of_life():
        txn.inflight()
        write_file(txn, 0, "x")
        with ThreadPoolExecutor(2) as pool:
            cleaners = [pool.submit(cleaned, suspicious(table).context) for _ in range(2)]
            assert {time for cleaner in cleaners for time in cleaner.result()} == {txn.time}
        clock.slept += txn.right.renew_seconds
        with pytest.raises(WriteAbortedError, match="was taken for dead"):
            write_file(txn, 1, "x")
        with pytest.raises(WriteAbortedError):
            txn.commit(CommitMetadata("UPSERT"), ["bucket:x/0"])
    assert contents(table) == FIRST
    aged(table).upsert(rows(("a", "x", 9)))
    timeline = load_timeline(table.context)
    assert not timeline.pending
    taken = [
        r["commitsRollback"]
        for i in timeline.completed
        if i.action is Action.ROLLBACK
        for r in records_of(table.context, i)
    ]
    assert taken == [[txn.time]]


def test_two_recoveries_that_find_two_rollbacks_of_one_write_end_with_one_at_any_interleaving(figure):
    """Two processes may claim a rollback of the same write at the same moment; the newer one is
    withdrawn under the eyes of whoever has listed it."""
    start = written()
    txn = dead_write(start)
    cleaned(suspicious(start).context)
    first = next(i for i in load_timeline(start.context).pending if i.action is Action.ROLLBACK)
    other = Instant(draw_instant(start.context, first.time), Action.ROLLBACK, State.REQUESTED)
    start.context.storage.put(f"{HOODIE}/{other.file_name}", rollback_plan(start.context, txn.instant, []))

    def recovered(store):
        table = HudiTable(open_context(store, settings=TxnSettings(0.0, 900.0)))
        cleaned(table.context)
        return table

    counting = AtCall(copied(start.context.storage), 0, lambda: None)
    recovered(counting)
    for number in range(1, counting.calls + 1):
        store = copied(start.context.storage)
        table = recovered(AtCall(store, number, partial(recovered, store)))
        timeline = load_timeline(table.context)
        assert [(i.action, i.state) for i in timeline.instants if i.action is Action.ROLLBACK] == [
            (Action.ROLLBACK, State.COMPLETED)
        ], number
        assert not timeline.pending, number
        assert contents(table) == FIRST, number
    figure(counting.calls, "interleavings")
