"""Failed writes are rolled forward or back by whoever comes next.

Aspects: suspicion by age, the quarantine, idempotence, open rollbacks, late claims, Hudi's own pending services.
"""

from __future__ import annotations

import time

import pytest

from hudi_table.model.instants import Action, Instant, State
from hudi_table.table import recovery
from hudi_table.table.timeline import load_timeline
from hudi_table.table.transaction import begin
from hudi_table.table.view import FileSystemView
from tests.support.tables import commit_buckets, finish, new_context, reopen, write_file


def crashed_write(ctx):
    """A write that stops after its file."""
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    write_file(txn, 0)
    return txn


def files_of(ctx, time):
    return [info.path for info in ctx.storage.list("p") if time in info.path]


def actions(ctx):
    return [(i.time, i.action, i.state) for i in load_timeline(ctx).instants]


def test_a_young_pending_write_is_left_alone():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    commit_buckets(reopen(ctx.storage), [1])
    assert files_of(ctx, txn.time)
    assert txn.time in {i.time for i in load_timeline(ctx).pending}


def test_a_pending_write_without_a_sign_of_life_is_aborted_and_its_files_deleted():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    commit_buckets(reopen(ctx.storage, suspect=0.0), [1])
    assert not files_of(ctx, txn.time)


def test_a_long_write_shows_signs_of_life_and_is_left_alone(monkeypatch):
    monkeypatch.setattr("hudi_table.table.transaction.BEAT_SECONDS_LEAST", 0.01)
    ctx = new_context(suspect=0.03)
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    other = reopen(ctx.storage, suspect=2.0)
    with txn.signs_of_life():
        time.sleep(2.5)
        commit_buckets(other, [1])
    assert files_of(ctx, txn.time)
    txn.abort()
    assert not ctx.storage.list(".hoodie/.heartbeat")


def test_an_aborted_write_stays_pending_until_its_quarantine_ends():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    other = reopen(ctx.storage, suspect=0.0)
    commit_buckets(other, [1])
    assert txn.time in {i.time for i in load_timeline(ctx).pending}
    commit_buckets(reopen(ctx.storage, quarantine=0.0, suspect=0.0), [1])
    assert txn.time not in {i.time for i in load_timeline(ctx).instants}
    assert [i.action for i in load_timeline(ctx).completed].count(Action.ROLLBACK) == 1
    assert not load_timeline(ctx).pending


def test_a_file_that_arrives_during_the_quarantine_is_swept():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    commit_buckets(reopen(ctx.storage, suspect=0.0), [1])
    late = f"p/00000000-late-0_0-0-0_{txn.time}.parquet"
    ctx.storage.put(late, b"late")
    commit_buckets(reopen(ctx.storage, quarantine=0.0, suspect=0.0), [1])
    assert not files_of(ctx, txn.time)


def test_recovery_that_stopped_anywhere_is_finished_by_the_next_one():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    recovery.abort_and_roll_back(ctx, txn.instant)
    for name in load_timeline(ctx).claim_names(txn.time):
        ctx.storage.delete(f".hoodie/{name}")
    done = recovery.recover(reopen(ctx.storage), load_timeline(ctx))
    assert done == (txn.time,)
    assert not load_timeline(ctx).pending
    assert recovery.recover(ctx, load_timeline(ctx)) == ()


def test_two_recoveries_make_one_rollback():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = crashed_write(ctx)
    for _ in range(2):
        recovery.abort_and_roll_back(reopen(ctx.storage), txn.instant, confirmed_dead=True)
    assert [a for _, a, _ in actions(ctx)].count(Action.ROLLBACK) == 1


def test_a_decided_write_is_rolled_forward_never_back():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    finish(txn, [write_file(txn, 0)], [0])
    ctx.storage.delete(f".hoodie/{txn.time}.commit")
    recovery.recover(reopen(ctx.storage), load_timeline(ctx), eager=True)
    assert txn.time in {i.time for i in load_timeline(ctx).commits}
    assert files_of(ctx, txn.time)


def test_a_late_claim_of_an_archived_commit_loses_only_its_claim_file():
    ctx = new_context()
    first = commit_buckets(ctx, [0])
    commit_buckets(ctx, [1])
    for instant in load_timeline(ctx).instants:
        if instant.time <= first:
            for name in [instant.file_name, *load_timeline(ctx).claim_names(instant.time)]:
                ctx.storage.delete(f".hoodie/{name}")
    ctx.storage.put(f".hoodie/{first}.commit.requested", b"")
    recovery.recover(reopen(ctx.storage), load_timeline(ctx), eager=True)
    assert files_of(ctx, first)
    assert first not in {i.time for i in load_timeline(ctx).instants}


def test_files_of_a_failed_first_write_never_become_visible():
    ctx = new_context()
    failed = "20251231000000000"
    ctx.storage.put(f".hoodie/{failed}.commit.requested", b"")
    ctx.storage.put(f".hoodie/{failed}.inflight", b"")
    ctx.storage.put(f"p/00000000-f-0_0-0-0_{failed}.parquet", b"rows")
    ctx.storage.put("p/.hoodie_partition_metadata", b"")
    time = commit_buckets(ctx, [1])
    groups = FileSystemView(ctx, load_timeline(ctx)).groups()
    assert [s.instant for g in groups for s in g.slices] == [time]


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLEAN, Action.INDEXING])
def test_pending_services_of_hudi_are_left_to_hudi(action):
    ctx = new_context()
    commit_buckets(ctx, [0])
    pending = Instant("20251231000000000", action, State.REQUESTED)
    ctx.storage.put(f".hoodie/{pending.file_name}", b"")
    recovery.recover(ctx, load_timeline(ctx), eager=True)
    assert pending in load_timeline(ctx).pending
