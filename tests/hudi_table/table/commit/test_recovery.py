"""Failed writes are rolled forward or back by whoever comes next.

Aspects: suspicion by age, the quarantine, idempotence, open rollbacks, late claims, Hudi's own
pending services.
"""

from __future__ import annotations

import os
import time

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.log.rows import delete_block
from hudi_table.errors import UnavailableError
from hudi_table.metadata.port import open_context
from hudi_table.model.timeline.chain import entry_path
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit import recovery, rollback
from hudi_table.table.commit.transaction import Transaction, begin, begin_plan
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.relisting import Listings
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.tables import commit_buckets, finish, new_context, reopen, write_file
from tests.support.written import contents, new_table, rows


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
    monkeypatch.setattr("hudi_table.table.commit.beside.heartbeat.BEAT_SECONDS_LEAST", 0.01)
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
    # The first begins the rollback, which the others find.
    for _ in range(3):
        commit_buckets(reopen(ctx.storage, suspect=0.0), [1])
        assert txn.time in {i.time for i in load_timeline(ctx).pending}
    commit_buckets(reopen(ctx.storage, quarantine=0.0, suspect=0.0), [1])
    assert txn.time not in {i.time for i in load_timeline(ctx).instants}
    assert [i.action for i in load_timeline(ctx).completed].count(Action.ROLLBACK) == 1
    assert not load_timeline(ctx).pending


def test_a_rollback_that_another_engine_planned_long_ago_waits_for_the_quarantine_of_the_abort(tmp_path):
    ctx = new_context(open_storage(str(tmp_path)))
    commit_buckets(ctx, [0])
    dead = crashed_write(ctx).instant
    theirs = Instant(draw_instant(ctx, dead.time), Action.ROLLBACK, State.REQUESTED)
    ctx.storage.put(f".hoodie/{theirs.file_name}", rollback.rollback_plan(ctx, dead, []))
    os.utime(tmp_path / ".hoodie" / theirs.file_name, (0, 0))
    for _ in range(2):
        recovery.recover(reopen(ctx.storage), load_timeline(ctx))
    assert load_timeline(ctx).claim_names(dead.time)
    recovery.recover(reopen(ctx.storage, quarantine=0.0), load_timeline(ctx))
    assert not load_timeline(ctx).claim_names(dead.time)
    assert (theirs.time, Action.ROLLBACK, State.COMPLETED) in actions(ctx)


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
    done = recovery.recover(reopen(ctx.storage, quarantine=0.0), load_timeline(ctx))
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


def two_rollbacks(ctx):
    """A dead write of which two recoveries, each of which had found none, have claimed a rollback;
    the later one of an instant that nobody else had at the time."""
    commit_buckets(ctx, [0])
    dead = crashed_write(ctx)
    recovery.abort_and_roll_back(reopen(ctx.storage), dead.instant)
    return dead, rollback._claim_rollback(reopen(ctx.storage), dead.instant, [])


@pytest.mark.parametrize("claim", ["claim", "commit.requested", "deltacommit.requested"])
def test_a_rollback_that_is_withdrawn_leaves_the_claims_of_others_at_its_instant(claim):
    ctx = new_context()
    dead, later = two_rollbacks(ctx)
    name = f".hoodie/{later.time}.{claim}"
    ctx.storage.put(name, b"")
    rollback._only_rollback(reopen(ctx.storage), dead.time)
    names = {info.path for info in ctx.storage.list_dir(".hoodie")[1]}
    assert f".hoodie/{later.file_name}" not in names
    assert name in names


def test_the_late_inflight_file_of_a_withdrawn_rollback_goes_alone():
    ctx = new_context()
    dead, later = two_rollbacks(ctx)
    rollback._only_rollback(reopen(ctx.storage), dead.time)
    late, claim = f".hoodie/{later.with_state(State.INFLIGHT).file_name}", f".hoodie/{later.time}.claim"
    for name in (late, claim):
        ctx.storage.put(name, b"")
    recovery.recover(reopen(ctx.storage), load_timeline(ctx))
    names = {info.path for info in ctx.storage.list_dir(".hoodie")[1]}
    assert late not in names
    assert claim in names


def test_a_rollback_takes_an_instant_that_nobody_else_holds():
    ctx = new_context()
    commit_buckets(ctx, [0])
    dead = crashed_write(ctx)
    planner = begin_plan(reopen(ctx.storage), Action.CLEAN)
    found = rollback._claim_rollback(reopen(ctx.storage), dead.instant, [])
    assert found.time > planner.time


def test_a_rollback_whose_instant_another_claims_at_the_same_moment_takes_the_next(monkeypatch):
    ctx = new_context()
    commit_buckets(ctx, [0])
    dead = crashed_write(ctx)
    recovering = reopen(ctx.storage)
    held: list[str] = []

    def draw(at, floor):
        drawn = draw_instant(at, floor)
        if not held:
            held.append(f".hoodie/{drawn}.claim")
            ctx.storage.put(held[0], b"")
        return drawn

    monkeypatch.setattr(rollback, "draw_instant", draw)
    found = rollback._claim_rollback(recovering, dead.instant, [])
    names = {info.path for info in ctx.storage.list_dir(".hoodie")[1]}
    assert found.time > load_timeline(ctx).planner_claims[0]
    assert held[0] in names
    assert [name for name in names if name.endswith("rollback.requested")] == [f".hoodie/{found.file_name}"]


def test_a_planner_and_a_writer_share_no_instant_though_two_recoveries_roll_back_beside_them():
    """The shortest way to it of the model (U1): every clock is behind, so everybody draws the
    newest instant + 1."""
    ctx = new_context()
    dead, later = two_rollbacks(ctx)
    planner = begin_plan(reopen(ctx.storage), Action.COMPACTION)
    rollback._only_rollback(reopen(ctx.storage), dead.time)
    writer = begin(reopen(ctx.storage), Action.DELTA_COMMIT)
    assert len({later.time, planner.time, writer.time}) == 3
    assert load_timeline(ctx).planner_claims == (planner.time,)


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


@pytest.mark.parametrize("known", [True, False], ids=["in the chain", "trimmed"])
def test_a_late_claim_of_an_archived_commit_loses_only_its_claim_file(known):
    ctx = new_context()
    first = commit_buckets(ctx, [0])
    commit_buckets(ctx, [1])
    for instant in load_timeline(ctx).instants:
        if instant.time <= first:
            for name in [instant.file_name, *load_timeline(ctx).claim_names(instant.time)]:
                ctx.storage.delete(f".hoodie/{name}")
    if not known:
        for number, _ in chain.entries_after(ctx, 0)[:-1]:
            ctx.storage.delete(entry_path(number))
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


def ended_quarantine(ctx):
    """A write whose rollback has begun, and only has to end."""
    commit_buckets(ctx, [1])
    recovery.abort_and_roll_back(reopen(ctx.storage), crashed_write(ctx).instant)


def late_claim(ctx):
    """A claim that a paused process put after the timeline had passed it."""
    ctx.storage.put(".hoodie/20200101000000000.replacecommit.requested", b"")


def dead_planner(ctx):
    """A claim that a planner left."""
    begin_plan(reopen(ctx.storage), Action.CLUSTERING)


def late_rollback(ctx):
    """The inflight file of a rollback that was withdrawn."""
    ctx.storage.put(".hoodie/20251231235959999.rollback.inflight", b"")


def dies(*_):
    raise UnavailableError("died")


@pytest.mark.parametrize("start", [begin, begin_plan])
@pytest.mark.parametrize("left", [crashed_write, ended_quarantine, late_claim, dead_planner, late_rollback])
def test_the_snapshot_of_who_recovers_is_what_recovery_left(left, start):
    ctx = new_context()
    commit_buckets(ctx, [0])
    left(ctx)
    txn = start(reopen(ctx.storage, quarantine=0.0, suspect=0.0), Action.COMMIT)
    assert set(txn.timeline.files) == set(load_timeline(ctx).files)


def test_a_write_after_a_dead_replacement_whose_rollback_ends_in_it_reads_nothing_that_is_gone(monkeypatch):
    table = new_table()
    table.upsert(rows(("a", "x", 1), ("b", "y", 1)))
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "abort", lambda *_, **__: None)
        patch.setattr(Transaction, "commit", dies)
        with pytest.raises(UnavailableError, match="died"):
            table.write(rows(("a", "x", 2), ("b", "y", 2)), operation="insert_overwrite")
    (dead,) = load_timeline(table.context).pending
    recovery.abort_and_roll_back(table.context, dead)
    misses = []
    monkeypatch.setattr(Listings, "again", lambda _, missing: misses.append(missing))
    HudiTable(open_context(table.context.storage, settings=TxnSettings(0.0, 900.0))).upsert(rows(("a", "x", 3)))
    assert misses == []
    assert load_timeline(table.context).pending == ()
    assert contents(table) == [("a", "x", 3), ("b", "y", 1)]


@pytest.mark.parametrize("action", [Action.COMPACTION, Action.CLEAN, Action.INDEXING])
def test_pending_services_of_hudi_are_left_to_hudi(action):
    ctx = new_context()
    commit_buckets(ctx, [0])
    pending = Instant("20251231000000000", action, State.REQUESTED)
    ctx.storage.put(f".hoodie/{pending.file_name}", b"")
    recovery.recover(ctx, load_timeline(ctx), eager=True)
    assert pending in load_timeline(ctx).pending


def test_of_a_log_that_others_wrote_to_a_rollback_takes_its_own_blocks_back_and_leaves_the_rest():
    """As Hudi's writers share logs."""
    ctx = new_context()
    kept, given_up, path = "20260101000000000", "20260101000001000", "p/.f-0_20260101000000000.log.1_1-0-1"
    ctx.storage.put(path, b"".join(delete_block(pa.array(["a"]), "p", time) for time in (kept, given_up)))
    taken = rollback.take_back(ctx, path, frozenset([given_up]), "20260101000002000")
    assert taken is not None
    assert taken.by == "p/.f-0_20260101000000000.log.2_1-0-1"
    assert rollback.written_by(ctx, path) == {kept, given_up}
    with ctx.storage.open_read(taken.by) as source:
        assert [(block.type, block.target) for block in scan_blocks(source)] == [(BlockType.COMMAND, given_up)]


def test_a_rollback_that_ends_at_once_puts_one_log_behind_one_that_others_wrote_to():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    path = "p/.f-0_20260101000000000.log.1_1-0-1"
    ctx.storage.put(
        path, b"".join(delete_block(pa.array(["a"]), "p", time) for time in ("20260101000000000", txn.time))
    )
    ctx.storage.put(f".hoodie/.temp/{txn.time}/{path}.marker.APPEND", b"")
    txn.abort()
    assert [info.path for info in ctx.storage.list("p") if ".log." in info.path] == [path, path.replace("1_", "2_")]
