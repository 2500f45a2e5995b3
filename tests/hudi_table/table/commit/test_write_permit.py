"""The right to write and the freshness of the tail (section 2.7 of
`docs/explanation/commit-protocol.md`).

Aspects: what ends a right (claim gone, abort, commit, trimmed chain, lost reply); how long a proof
lasts, and for whom; what a process that slept may still decide and publish; in which form files are
marked.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from hudi_table.errors import CommitStateUnknownError, OutcomeUnknownError, UnavailableError, WriteAbortedError
from hudi_table.model.names import CHAIN, MarkerType
from hudi_table.model.timeline.chain import entry_path
from hudi_table.model.timeline.instants import Action
from hudi_table.services.archiving.execute import archive
from hudi_table.table.commit import recovery, rollback
from hudi_table.table.commit.markers import MarkedFile, marked_files
from hudi_table.table.commit.transaction import begin
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.support.faults import Fault, FaultPlan, FaultyStorage
from tests.support.recording import RecordingStorage, Trace
from tests.support.tables import commit_buckets, finish, memory_storage, new_context, reopen, write_file

HOUR = 3600.0


class SleepyStorage(FaultyStorage):
    """A storage whose process sleeps right after its first write of a chain entry, or right before
    it sends a completed commit; the rest of the world goes on."""

    def __init__(self, inner, plan):
        super().__init__(inner, plan)
        self.sleep = self.sleep_over_commit = None

    def put_if_absent(self, path, data):
        if path.endswith(".commit") and self.sleep_over_commit is not None:
            sleep, self.sleep_over_commit = self.sleep_over_commit, None
            sleep()
        try:
            super().put_if_absent(path, data)
        finally:
            if "/.txn/" in path and self.sleep is not None:
                sleep, self.sleep = self.sleep, None
                sleep()


def troubled(**plan):
    """(context, its storage) of a table with one commit; faults at calls as `plan` says."""
    storage = memory_storage()
    commit_buckets(new_context(storage), [0])
    ctx = reopen(storage)
    ctx.storage = SleepyStorage(storage, FaultPlan(**plan))
    return ctx, ctx.storage


def started(ctx):
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    return txn, [write_file(txn, 0)]


def test_a_committed_instant_gives_no_right_to_a_stray_attempt():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn, stats = started(ctx)
    stray = pickle.loads(pickle.dumps(txn.right))
    finish(txn, stats, [0])
    with pytest.raises(WriteAbortedError, match="came too late"):
        stray.prove()


def test_a_missing_claim_ends_the_right():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn, _ = started(ctx)
    ctx.storage.delete(f".hoodie/{txn.right.claim}")
    with pytest.raises(WriteAbortedError, match="its claim is gone"):
        txn.right.prove()


def test_a_trimmed_chain_ends_the_right():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn, _ = started(ctx)
    commit_buckets(reopen(ctx.storage), [1])
    ctx.storage.delete(entry_path(txn.right.tail))
    with pytest.raises(WriteAbortedError, match="trimmed"):
        txn.right.prove()


def test_entries_of_others_do_not_end_the_right_and_are_read_once():
    trace = Trace()
    storage = memory_storage()
    ctx = new_context(RecordingStorage(storage, trace))
    commit_buckets(ctx, [0])
    txn, _ = started(ctx)
    commit_buckets(reopen(storage), [1])
    txn.right.prove()
    newest = entry_path(txn.right.tail)
    txn.right.prove()
    assert sum(step.call == "get" and step.key == newest for step in trace.steps) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST])
@pytest.mark.parametrize(("method", "part"), [("head", ".requested"), ("list", ".txn")])
def test_a_proof_whose_reply_is_lost_is_none(method, part, fault):
    ctx, store = troubled()
    txn = begin(ctx, Action.COMMIT)
    store.plan = FaultPlan(1, fault, only=lambda call: call.method == method and part in call.path)
    with pytest.raises(UnavailableError):
        write_file(txn, 0)
    assert not store.inner.list(f".hoodie/.temp/{txn.time}")
    assert store.plan.fired


def test_one_proof_serves_all_files_of_a_process_for_a_quarter_of_the_quarantine():
    trace = Trace()
    ctx = new_context(RecordingStorage(memory_storage(), trace))
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    del trace.steps[:]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda bucket: write_file(txn, bucket), range(8)))

    def proofs():
        return sum(step.call == "head" and step.key.endswith(".requested") for step in trace.steps)

    assert proofs() == 1
    ctx.clock.sleep(txn.right.renew_seconds)
    write_file(txn, 8)
    assert proofs() == 2


class Meanwhile:
    """A storage on which something happens between the listing behind a claim and the next look at
    the chain."""

    def __init__(self, inner):
        self._inner, self._claim = inner, None
        self.act: Callable[[str], object] = lambda _: None

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def put_if_absent(self, path, data):
        self._inner.put_if_absent(path, data)
        if path.endswith(".requested"):
            self._claim = path

    def list(self, prefix="", **more):
        claim, self._claim = self._claim, None
        if claim is not None and prefix == CHAIN:
            self.act(claim.rpartition("/")[2].partition(".")[0])
        return self._inner.list(prefix, **more)


def test_an_abort_behind_the_listing_that_shows_the_claim_ends_the_right():
    store = memory_storage()
    commit_buckets(new_context(store), [0])
    other = reopen(store)
    storage = Meanwhile(store)
    storage.act = lambda time: chain.append_abort(other, chain.read_tail(other), time)
    ctx = reopen(storage)
    txn = begin(ctx, Action.COMMIT, reads=lambda _: None)
    assert txn.right.is_aborted
    with pytest.raises(WriteAbortedError, match="aborts it"):
        write_file(txn, 0)


def test_the_first_proof_takes_the_claim_from_the_snapshot_and_is_as_old_as_it():
    trace, store = Trace(), memory_storage()
    commit_buckets(new_context(store), [0])
    storage = Meanwhile(RecordingStorage(store, trace))
    ctx = reopen(storage)
    storage.act = lambda _: ctx.clock.sleep(100.0)
    txn = begin(ctx, Action.COMMIT, reads=lambda _: None)
    txn.inflight()
    write_file(txn, 0)

    def looks():
        return sum(step.call == "head" and step.key.endswith(".requested") for step in trace.steps)

    assert looks() == 0
    ctx.clock.sleep(txn.right.renew_seconds - 99.0)
    write_file(txn, 1)
    assert looks() == 1


def test_a_file_that_was_put_under_a_proof_before_the_abort_goes_with_the_quarantine():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn, _ = started(ctx)
    other = reopen(ctx.storage)
    recovery.abort_and_roll_back(other, txn.instant, confirmed_dead=False)
    late = write_file(txn, 1)
    assert ctx.storage.head(late.path)
    with pytest.raises(WriteAbortedError):
        finish(txn, [late], [1])
    recovery.abort_and_roll_back(other, txn.instant, confirmed_dead=True)
    assert not [info for info in ctx.storage.list("p") if txn.time in info.path]


def test_markers_of_one_process_are_two_requests_and_those_of_another_stand_beside_them():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    names = [f"{number}_0-0-0_{txn.time}.parquet" for number in range(4)]
    files = [MarkedFile("p", name, MarkerType.CREATE) for name in names]
    txn.right.mark(files[:2], txn.inflight, batched=True)
    other = pickle.loads(pickle.dumps(txn.right))
    for right, name in ((txn.right, names[0]), (txn.right, names[2]), (other, names[3])):
        with right.create_file("p", name, MarkerType.CREATE) as sink:
            sink.write(b"x")
    folder = f".hoodie/.temp/{txn.time}"
    found = {info.path.rpartition("/")[2]: ctx.storage.get(info.path) for info in ctx.storage.list(folder)}
    assert found.pop("MARKERS.type") == b"TIMELINE_SERVER_BASED"
    assert found["MARKERS0"].decode() == "".join(f"p/{name}.marker.CREATE\n" for name in names[:2])
    assert len(found) == 3
    assert marked_files(ctx, txn.time) == [f"p/{name}" for name in names]
    recovery.abort_and_roll_back(reopen(ctx.storage), txn.instant, confirmed_dead=True)
    assert not [info for info in ctx.storage.list("p") if txn.time in info.path]
    assert not ctx.storage.list(folder)


def test_a_process_that_slept_while_it_wrote_a_file_proves_again_before_the_file_appears():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)

    def sleep_over_an_abort():
        with txn.right.create_file("p", f"x_0-0-0_{txn.time}.parquet", MarkerType.CREATE) as sink:
            sink.write(b"x")
            recovery.abort_and_roll_back(reopen(ctx.storage), txn.instant)
            ctx.clock.sleep(HOUR)

    with pytest.raises(WriteAbortedError, match="aborts it"):
        sleep_over_an_abort()
    assert not [info for info in ctx.storage.list("p") if txn.time in info.path]


@pytest.mark.parametrize("is_reply_lost", [False, True])
@pytest.mark.parametrize(
    ("ends", "is_own", "left"), [("abort", True, 0), ("rollback", True, 0), ("abort", False, 0), ("commit", False, 2)]
)
def test_a_process_that_slept_between_its_proof_and_its_file_takes_back_what_is_nobody_elses(
    ends, is_own, left, is_reply_lost
):
    """Its rows would appear once the timeline begins behind the instant. What an executor wrote may
    be the file of the one that commits."""
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    right, storage = pickle.loads(pickle.dumps(txn.right)), ctx.storage
    right.is_own, right._clock = is_own, ctx.clock

    def others_go_on():
        ctx.clock.sleep(HOUR)
        if ends == "commit":
            finish(txn, [write_file(txn, 1)], [1])
        else:
            recovery.abort_and_roll_back(reopen(storage), txn.instant, confirmed_dead=ends == "rollback")

    class SleepsBeforeAFile(FaultyStorage):
        @contextmanager
        def open_write(self, path):
            with super().open_write(path) as sink:
                yield sink
                others_go_on()
            if is_reply_lost:
                raise OutcomeUnknownError("the reply is lost", path=path)

    right._storage = SleepsBeforeAFile(storage, FaultPlan())
    with pytest.raises(WriteAbortedError), right.create_file("p", f"x_0-0-0_{txn.time}.parquet", MarkerType.CREATE) as sink:  # fmt: skip
        sink.write(b"x")
    assert len([info for info in storage.list("p") if txn.time in info.path]) == left


def test_a_writer_that_slept_before_its_decision_looks_whether_its_tail_was_trimmed():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn, stats = started(ctx)
    commit_buckets(reopen(ctx.storage), [0])
    for number in range(1, txn.tail.sequence + 2):
        ctx.storage.delete(entry_path(number))
    commit_buckets(ctx := reopen(ctx.storage), [1])
    txn.ctx.clock.sleep(8 * 24 * HOUR)
    with pytest.raises(WriteAbortedError, match="trimmed"):
        finish(txn, stats, [0])
    assert txn.time not in {i.time for i in load_timeline(ctx).commits}


def test_a_writer_that_slept_over_an_unknown_decision_reports_that_it_does_not_know():
    ctx, store = troubled()
    txn, stats = started(ctx)
    store.plan = FaultPlan(1, Fault.LOST_REQUEST, only=lambda call: "/.txn/" in call.path)
    store.sleep = lambda: ctx.clock.sleep(8 * 24 * HOUR)
    with pytest.raises(CommitStateUnknownError, match="no longer records"):
        finish(txn, stats, [0])


def test_a_lost_decision_is_read_back_and_published():
    ctx, store = troubled()
    txn, stats = started(ctx)
    store.plan = FaultPlan(1, Fault.LOST_REPLY, only=lambda call: "/.txn/" in call.path)
    finish(txn, stats, [0])
    assert store.plan.fired
    assert txn.time in {i.time for i in load_timeline(ctx).commits}


KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def archived_while_asleep(ctx, store, time, seconds=HOUR + 1):
    """What others do while the process sleeps: they publish its commit, add some, and archive its
    own."""

    def sleep():
        ctx.clock.sleep(seconds)
        helper = reopen(store.inner)
        commit_buckets(helper, [1])
        assert f"{time}.commit" in load_timeline(helper).files
        for _ in range(3):
            commit_buckets(helper, [1])
        assert archive(reopen(store.inner, quarantine=-1.0), KEEP, force=True) is not None
        # Who lists before the sleep holds the archiver back, and yet it may have gone before it looked.
        for name in [*load_timeline(helper).claim_names(time), f"{time}.commit"]:
            store.inner.delete(f".hoodie/{name}")

    return sleep


@pytest.mark.parametrize("over", ["sleep", "sleep_over_commit"])
def test_a_writer_that_slept_before_its_publication_does_not_bring_back_an_archived_commit(over):
    ctx, store = troubled()
    txn, stats = started(ctx)
    setattr(store, over, archived_while_asleep(ctx, store, txn.time))
    finish(txn, stats, [0])
    assert store.sleep is store.sleep_over_commit is None
    assert txn.time not in {i.time for i in load_timeline(reopen(store.inner)).instants}


def test_a_helper_that_slept_over_the_publication_of_another_does_not_bring_back_an_archived_commit():
    ctx, store = troubled()
    txn, stats = started(ctx)
    finish(txn, stats, [0])
    store.inner.delete(f".hoodie/{txn.time}.commit")
    helper = reopen(store.inner)
    helper.storage = SleepyStorage(store.inner, FaultPlan())
    helper.storage.sleep_over_commit = archived_while_asleep(helper, store, txn.time)
    commit_buckets(helper, [2])
    assert helper.storage.sleep_over_commit is None
    assert txn.time not in {i.time for i in load_timeline(reopen(store.inner)).instants}


def test_a_writer_that_slept_over_its_publication_publishes_what_nobody_archived():
    ctx, store = troubled()
    txn, stats = started(ctx)
    store.sleep_over_commit = lambda: ctx.clock.sleep(HOUR + 1)
    finish(txn, stats, [0])
    assert txn.time in {i.time for i in load_timeline(ctx).commits}


def test_a_rollback_that_another_engine_planned_is_aborted_in_the_chain_first():
    ctx = new_context(quarantine=60.0)
    commit_buckets(ctx, [0])
    txn, stats = started(ctx)
    rollback._claim_rollback(reopen(ctx.storage), txn.instant, [])
    other = reopen(ctx.storage)
    recovery.recover(other, load_timeline(other))
    with pytest.raises(WriteAbortedError, match="taken for dead"):
        finish(txn, stats, [0])


def test_a_recovery_that_slept_does_not_abort_what_was_archived_and_trimmed_meanwhile():
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn, stats = started(ctx)
    asleep = reopen(ctx.storage)
    suspected = load_timeline(asleep)
    finish(txn, stats, [0])
    commit_buckets(reopen(ctx.storage), [1])
    for name in [*load_timeline(ctx).claim_names(txn.time), f"{txn.time}.commit"]:
        ctx.storage.delete(f".hoodie/{name}")
    for number in range(1, txn.tail.sequence + 2):
        ctx.storage.delete(entry_path(number))
    assert recovery.recover(asleep, suspected, eager=True) == ()
    assert [info for info in ctx.storage.list("p") if txn.time in info.path]
