"""What an attempt costs beside others: its requests do not grow with how many failed, or were
faster.

Aspects: failed writes in their quarantine; slots of the chain that others took; claims below what
was listed.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import begin
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.support.recording import RecordingStorage, Step, Trace
from tests.support.tables import TestClock, commit_buckets, finish, memory_storage, new_context, reopen, write_file


def steps_of_a_commit(failed: int) -> list[Step]:
    """Of a commit beside so many failed writes, which wait for the end of their quarantine."""
    store = memory_storage()
    commit_buckets(new_context(store), [0])
    for _ in range(failed):
        begin(reopen(store), Action.COMMIT).abort(confirmed_dead=False)
    trace = Trace()
    ctx = reopen(RecordingStorage(store, trace))
    load_timeline(ctx)
    chain.entries_after(ctx, 0)
    trace.steps.clear()
    commit_buckets(ctx, [0])
    assert len(load_timeline(ctx).pending) == 2 * failed
    return trace.steps


def test_a_commit_asks_for_the_chain_no_more_often_beside_many_failed_writes():
    def asked(steps: list[Step]) -> int:
        return sum(step.call in ("list", "head") and step.key.startswith(".hoodie/.txn") for step in steps)

    assert asked(steps_of_a_commit(8)) == asked(steps_of_a_commit(2))


@pytest.mark.parametrize("faster", [1, 6])
def test_a_commit_that_many_were_faster_than_looks_at_the_whole_timeline_once_before_its_slot(faster):
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0, 1])
    ctx = reopen(RecordingStorage(store, trace))
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    stat = write_file(txn, 0)
    for _ in range(faster):
        commit_buckets(reopen(store), [1])
    trace.steps.clear()
    finish(txn, [stat], [0])
    assert sum(step.call == "list_dir" and step.key == ".hoodie" for step in trace.steps) == 1
    refused = [step for step in trace.steps if step.call == "put" and step.result == "ObjectExists"]
    assert refused == []


def test_a_claim_is_drawn_above_what_this_process_has_listed():
    """Its clock is behind another's, and the tail that it remembers is older than the other's
    commit."""
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [0])
    ctx = reopen(RecordingStorage(store, trace))
    commit_buckets(ctx, [0])
    ahead = reopen(store)
    assert isinstance(ahead.clock, TestClock)
    ahead.clock.moment += timedelta(hours=2)
    commit_buckets(ahead, [0])
    load_timeline(ctx)
    trace.steps.clear()
    begin(ctx, Action.COMMIT)
    assert [step.call for step in trace.writes()] == ["put"]
