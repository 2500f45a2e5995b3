"""One attempt at one instant: claim, snapshot, decision, publication.

Aspects: instants only grow; a claim is exclusive; lost chain slots are read and materialised;
conflicts are found by touches; an aborted instant never commits; a decided one is published by
anybody; of what was decided, or may be, nobody is told that it was not done.
"""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pyarrow as pa
import pytest

from hudi_table.api import create_table, open_table
from hudi_table.errors import (
    AccessDeniedError,
    CommitStateUnknownError,
    HudiError,
    OutcomeUnknownError,
    UnavailableError,
    WriteAbortedError,
    WriteConflictError,
)
from hudi_table.model.names import MarkerType
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.instants import Action, State, planner_claim
from hudi_table.table.commit import recovery
from hudi_table.table.commit.publish import materialise
from hudi_table.table.commit.transaction import begin, begin_plan
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.faults import FaultPlan, FaultyStorage
from tests.support.tables import TestClock, commit_buckets, finish, memory_storage, new_context, reopen, write_file


def visible_instants(ctx):
    view = FileSystemView(ctx, load_timeline(ctx))
    return sorted(s.instant for g in view.groups() for s in g.slices)


def test_the_first_commit_of_a_table_is_preceded_by_an_empty_founding_one():
    ctx = new_context()
    time = commit_buckets(ctx, [0])
    commits = load_timeline(ctx).commits
    assert [i.time for i in commits][1:] == [time]
    assert visible_instants(ctx) == [time]


def test_writers_that_begin_a_table_at_once_all_get_through(tmp_path):
    """Each takes the others' claims for those of failed first writes, so they abort each other
    until one is alone."""
    rows = [pa.table({"id": [f"{number}"], "city": ["a"]}) for number in range(4)]
    create_table(str(tmp_path / "t"), rows[0].schema, record_key="id", partition_by="city")
    together = threading.Barrier(len(rows))

    def write(batch: pa.Table) -> None:
        table = open_table(str(tmp_path / "t"))
        together.wait()
        while True:
            try:
                table.upsert(batch)
            except WriteAbortedError:
                raise
            except WriteConflictError:
                continue
            return

    with ThreadPoolExecutor(len(rows)) as pool:
        list(pool.map(write, rows))
    assert open_table(str(tmp_path / "t")).scan().count() == len(rows)


def test_a_frozen_clock_still_draws_growing_instants():
    ctx = new_context()
    times = [commit_buckets(ctx, [0]) for _ in range(3)]
    assert times == sorted(set(times))


def test_a_clock_that_went_back_draws_instants_above_everything_decided():
    ctx = new_context()
    first = commit_buckets(ctx, [0])
    behind = reopen(ctx.storage)
    assert isinstance(behind.clock, TestClock)
    behind.clock.advance(-3600)
    assert commit_buckets(behind, [0]) > first


def test_a_writer_and_a_planner_that_draw_one_instant_do_not_both_keep_it():
    """Their claims are different files: the later one of the two sees the other's."""
    ctx = new_context()
    commit_buckets(ctx, [0])
    writing = begin(ctx, Action.COMMIT)
    planning = begin_plan(reopen(ctx.storage), Action.COMPACTION)
    assert planning.time > writing.time
    later = begin(reopen(ctx.storage), Action.COMMIT)
    assert later.time > planning.time
    names = load_timeline(ctx).files
    assert sorted(name for name in names if not name.startswith("hoodie") and planning.time in name) == [
        planner_claim(planning.time)
    ]


def test_a_plan_is_published_by_whoever_comes_next_and_its_claim_goes(monkeypatch):
    ctx = new_context()
    commit_buckets(ctx, [0])
    planning = begin_plan(ctx, Action.COMPACTION)
    with monkeypatch.context() as patch:
        patch.setattr("hudi_table.table.commit.decision.create_file_of", lambda *_: None)
        patch.setattr("hudi_table.table.commit.transaction.drop_claim", lambda *_: None)
        planning.plan(b"plan", {"instant:" + planning.time})
    assert load_timeline(ctx).planner_claims == (planning.time,)
    commit_buckets(reopen(ctx.storage), [1])
    timeline = load_timeline(ctx)
    assert timeline.planner_claims == ()
    assert [i.time for i in timeline.pending] == [planning.time]
    assert ctx.storage.get(f".hoodie/{planning.instant.file_name}") == b"plan"


def test_a_write_that_lost_its_slot_to_another_bucket_commits_after_it():
    ours, theirs = new_context(), None
    commit_buckets(ours, [0, 1])
    theirs = reopen(ours.storage)
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    stat = write_file(txn, 0)
    other = commit_buckets(theirs, [1])
    finish(txn, [stat], [0])
    assert {other, txn.time} <= {i.time for i in load_timeline(ours).commits}


def test_a_write_that_lost_its_slot_to_the_same_bucket_is_a_conflict():
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    stat = write_file(txn, 0)
    commit_buckets(reopen(ours.storage), [0])
    with pytest.raises(WriteConflictError, match="changed the same file groups"):
        finish(txn, [stat], [0])
    assert txn.time not in visible_instants(ours)


class PublishedMeanwhile:
    """A store in which another process publishes its decision between a listing of the timeline and
    the look at that one file."""

    def __init__(self, storage, path, body):
        self._storage, self._path, self._body = storage, path, body

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def head(self, path):
        if path == self._path:
            self._storage.put(path, self._body)
        return self._storage.head(path)


@pytest.mark.parametrize(
    "begins", [lambda ctx: begin(ctx, Action.COMMIT), lambda ctx: begin_plan(ctx, Action.COMPACTION)]
)
def test_a_commit_that_its_writer_publishes_while_a_snapshot_is_taken_is_in_the_snapshot(begins):
    """Decided before the tail, it is not met behind it: a compaction planned on a snapshot without
    it would leave its rows out for good."""
    ctx = new_context()
    commit_buckets(ctx, [0])
    time = commit_buckets(ctx, [1])
    path = f".hoodie/{time}.commit"
    body = ctx.storage.get(path)
    ctx.storage.delete(path)
    other = reopen(PublishedMeanwhile(ctx.storage, path, body))
    assert time in [i.time for i in begins(other).timeline.commits]


def test_a_decided_commit_that_was_not_published_is_published_by_the_next_writer():
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    stat = write_file(txn, 0)
    finish(txn, [stat], [0])
    ours.storage.delete(f".hoodie/{txn.time}.commit")
    commit_buckets(reopen(ours.storage), [1])
    assert txn.time in {i.time for i in load_timeline(ours).commits}


def test_an_archived_commit_is_never_put_back():
    ours = new_context()
    first = commit_buckets(ours, [0])
    commit_buckets(ours, [0])
    for state in State:
        instant = next(i for i in load_timeline(ours).instants if i.time == first) if state is State.REQUESTED else None
        if instant is not None:
            for name in [*load_timeline(ours).claim_names(first), instant.file_name]:
                ours.storage.delete(f".hoodie/{name}")
    entry = next(e for _, e in chain.entries_after(ours, 0) if e.instant == first)
    assert materialise(ours, entry), "who has seen it pending lists again"
    assert first not in {i.time for i in load_timeline(ours).instants}


def test_an_aborted_instant_cannot_commit():
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    stat = write_file(txn, 0)
    recovery.abort_and_roll_back(reopen(ours.storage), txn.instant)
    with pytest.raises(WriteAbortedError, match="taken for dead"):
        finish(txn, [stat], [0])
    assert txn.time not in visible_instants(ours)


def test_an_aborted_instant_has_no_right_to_write_another_file():
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    recovery.abort_and_roll_back(reopen(ours.storage), txn.instant)
    with pytest.raises(WriteAbortedError, match="aborts it"):
        write_file(txn, 0)


def test_the_right_to_write_of_another_process_is_proved_anew():
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    right = pickle.loads(pickle.dumps(txn.right))
    with right.create_file("p", "x_0-0-0_1.parquet", MarkerType.CREATE) as sink:
        sink.write(b"x")
    recovery.abort_and_roll_back(ours, txn.instant)
    with (
        pytest.raises(WriteAbortedError),
        pickle.loads(pickle.dumps(txn.right)).create_file("p", "y_0-0-0_1.parquet", MarkerType.CREATE),
    ):
        pytest.fail("the right was not proved")


def test_a_file_left_by_another_task_attempt_is_deleted_before_the_decision():
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    with txn.right.create_file("p", f"00000000-x-0_9-9-9_{txn.time}.parquet", MarkerType.CREATE) as sink:
        sink.write(b"left behind")
    finish(txn, [write_file(txn, 0)], [0])
    names = [info.path for info in ours.storage.list("p") if txn.time in info.path]
    assert len(names) == 1
    assert "9-9-9" not in names[0]


def test_markers_are_gone_after_a_commit():
    ours = new_context()
    commit_buckets(ours, [0, 1])
    assert ours.storage.list(".hoodie/.temp") == []


def test_every_decision_is_one_chain_entry_in_order():
    ours = new_context()
    times = [commit_buckets(ours, [0]) for _ in range(3)]
    entries = [entry for _, entry in chain.entries_after(ours, 0)]
    assert [e.instant for e in entries][1:] == times
    assert {e.kind for e in entries} == {Kind.COMMIT}
    assert [e.max_instant for e in entries] == sorted(e.instant for e in entries)


def test_a_second_process_of_the_same_attempt_does_not_take_the_first_ones_decision_for_its_own():
    ours = new_context()
    commit_buckets(ours, [0])
    first = begin(ours, Action.COMMIT, attempt="feed-1")
    second = begin(reopen(ours.storage), Action.COMMIT, attempt="feed-1")
    for txn in (first, second):
        txn.inflight()
    stats = [write_file(first, 0), write_file(second, 0)]
    finish(first, stats[:1], [0])
    with pytest.raises(WriteConflictError):
        finish(second, stats[1:], [0])
    assert second.time not in visible_instants(ours)


def test_a_process_that_sleeps_between_listing_and_publication_lists_again(monkeypatch):
    ctx = new_context()
    commit_buckets(ctx, [0])
    decided = commit_buckets(ctx, [1])
    last = commit_buckets(ctx, [0])
    store = ctx.storage
    entry = next(e for e in ctx.entries.values() if e.instant == decided)
    store.delete(f".hoodie/{decided}.commit")
    sleeper = reopen(store)
    sleeps = [True]

    real = chain.read_tail

    def read_tail(found):
        if sleeps:
            sleeps.pop()
            assert isinstance(sleeper.clock, TestClock)
            sleeper.clock.advance(1801)
            for name in load_timeline(found).files:
                if name.partition(".")[0] < last:
                    store.delete(f".hoodie/{name}")
        return real(found)

    monkeypatch.setattr(chain, "read_tail", read_tail)
    materialise(sleeper, entry)
    assert not sleeps
    assert [i.time for i in load_timeline(ctx).commits] == [last]


@pytest.mark.parametrize("refusal", [UnavailableError("no space left"), AccessDeniedError("the token has expired")])
def test_a_store_that_refuses_to_be_asked_again_does_not_tell_that_the_lost_request_was_not_done(
    refusal: HudiError, monkeypatch: pytest.MonkeyPatch
):
    commit_buckets(ctx := new_context(), [0])
    txn = begin(ctx, Action.COMMIT)
    stats = [write_file(txn, 0)]
    put_entry = chain.put_entry
    lost: list[tuple[int, ChainEntry]] = []

    def lost_then_refused(ctx, sequence, entry):
        if lost:
            raise refusal
        lost.append((sequence, entry))
        raise OutcomeUnknownError("no reply")

    monkeypatch.setattr(chain, "put_entry", lost_then_refused)
    with pytest.raises(CommitStateUnknownError, match=refusal.message):
        finish(txn, stats, [0])
    monkeypatch.undo()
    put_entry(ctx, *lost[0])
    commit_buckets(other := reopen(ctx.storage), [1])
    assert txn.time in {i.time for i in load_timeline(other).commits}


@pytest.mark.parametrize("refused", [".commit", "delete_all"])
def test_credentials_that_expire_behind_the_decision_do_not_make_it_a_failure(refused: str):
    class Expires(FaultyStorage):
        def put_if_absent(self, path, data):
            if path.endswith(refused):
                raise AccessDeniedError("the token has expired", path=path)
            super().put_if_absent(path, data)

        def delete_all(self, paths):
            if refused == "delete_all":
                raise AccessDeniedError("the token may not delete")
            super().delete_all(paths)

    store = memory_storage()
    commit_buckets(new_context(store), [0])
    txn = begin(reopen(Expires(store, FaultPlan())), Action.COMMIT)
    told = pytest.raises(CommitStateUnknownError, match="has expired") if refused == ".commit" else nullcontext()
    with told:
        finish(txn, [write_file(txn, 0)], [0])
    commit_buckets(other := reopen(store), [1])
    assert txn.time in {i.time for i in load_timeline(other).commits}
