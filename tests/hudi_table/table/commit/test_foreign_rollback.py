"""Another engine takes a live write back, its claim too, while the writer still has the right to
write: what the writer puts there after that never counts."""

from __future__ import annotations

import pytest

from hudi_table.errors import WriteAbortedError
from hudi_table.model.names import TEMP, BaseFileName, MarkerType, bucket_file_id
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.archiving.execute import archive
from hudi_table.table.commit import recovery, rollback
from hudi_table.table.commit.transaction import Transaction, begin
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import draw_instant
from hudi_table.table.timeline.layout import encode_record
from tests.support.aged import AgedStorage
from tests.support.tables import commit_buckets, finish, new_context, reopen, write_file

KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}


def taken_back(ctx: TableContext, txn: Transaction, *, ends: bool) -> Instant:
    """As Hudi does: a plan, the files and markers deleted, the claim too, a report, unless it dies
    before that."""
    undo = Instant(draw_instant(ctx, txn.time), Action.ROLLBACK, State.REQUESTED)
    ctx.storage.put(f".hoodie/{undo.file_name}", rollback.rollback_plan(ctx, txn.instant, []))
    ctx.storage.put(f".hoodie/{undo.with_state(State.INFLIGHT).file_name}", b"")
    for info in ctx.storage.list():
        if txn.time in info.path and undo.time not in info.path:
            ctx.storage.delete(info.path)
    if ends:
        report = rollback.rollback_record(ctx, txn.instant, undo.time, [])
        rollback.complete(ctx, undo, encode_record("HoodieRollbackMetadata", report))
    return undo


def left(ctx: TableContext, time: str) -> list[str]:
    return [info.path for folder in ("p", TEMP) for info in ctx.storage.list(folder) if time in info.path]


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "dies"])
def test_a_writer_that_learns_of_it_deletes_what_it_wrote_after_it(ends: bool) -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    stats = [write_file(txn, 0)]
    taken_back(ctx, txn, ends=ends)
    stats.append(write_file(txn, 1))
    assert left(ctx, txn.time)
    with pytest.raises(WriteAbortedError):
        finish(txn, stats, [0, 1])
    txn.abort()
    assert left(ctx, txn.time) == []


def test_of_a_writer_that_died_after_it_the_files_go_before_the_timeline_passes_them() -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    write_file(txn, 0)
    taken_back(ctx, txn, ends=True)
    write_file(txn, 1)
    for _ in range(4):
        commit_buckets(ctx, [0])
    assert left(ctx, txn.time)
    assert archive(reopen(ctx.storage, quarantine=-1.0), KEEP, force=True) is not None
    assert load_timeline(ctx).commits[0].time > txn.time
    assert left(ctx, txn.time) == []


def test_one_of_before_the_first_commit_whose_engine_died_is_ended_and_holds_no_archiving() -> None:
    """The first job of another engine has failed, the second died while it took that back."""
    ctx = new_context()
    failed = Instant("20250101000000000", Action.COMMIT, State.INFLIGHT)
    undo = Instant("20250101000000001", Action.ROLLBACK, State.REQUESTED)
    ctx.storage.put(f".hoodie/{undo.file_name}", rollback.rollback_plan(ctx, failed, []))
    ctx.storage.put(f".hoodie/{undo.with_state(State.INFLIGHT).file_name}", b"")
    for _ in range(5):
        commit_buckets(ctx, [0])
    later = reopen(ctx.storage, quarantine=-1.0)
    assert load_timeline(later).has_passed(failed.time)
    assert archive(later, KEEP, force=True) is None
    assert recovery.recover(later, load_timeline(later)) == (failed.time,)
    assert not load_timeline(later).pending
    assert undo.with_state(State.COMPLETED).file_name in load_timeline(later).files
    assert archive(later, KEEP, force=True) is not None


def test_files_of_an_instant_that_may_be_archived_are_left_alone() -> None:
    ctx = new_context()
    times = [commit_buckets(ctx, [0]) for _ in range(5)]
    assert archive(reopen(ctx.storage, quarantine=-1.0), KEEP, force=True) is not None
    before = left(ctx, times[0])
    assert before
    recovery.give_up_unclaimed(ctx, times[0], confirmed_dead=True)
    recovery.give_up_unclaimed(ctx, times[-1], confirmed_dead=True)
    assert left(ctx, times[0]) == before
    assert left(ctx, times[-1])
    # Another engine takes back all that the timeline has left: what is archived counts all the same.
    for instant in load_timeline(ctx).commits:
        ctx.storage.delete(f".hoodie/{instant.file_name}")
    recovery.give_up_unclaimed(ctx, times[0], confirmed_dead=True)
    assert left(ctx, times[0]) == before


class OldButRollbacks(AgedStorage):
    """All was written hours ago, but what was taken back was a moment ago."""

    def _older(self, info: ObjectInfo) -> ObjectInfo:
        return info if ".rollback" in info.path else super()._older(info)


def test_archiving_waits_for_a_writer_that_has_no_marker_yet_and_may_put_one() -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    write_file(txn, 0)
    for _ in range(4):
        commit_buckets(ctx, [0])
    taken_back(ctx, txn, ends=True)
    assert archive(reopen(OldButRollbacks(ctx.storage)), KEEP, force=True) is None
    write_file(txn, 1)
    assert archive(reopen(AgedStorage(ctx.storage)), KEEP, force=True) is not None
    assert load_timeline(ctx).commits[0].time > txn.time
    assert left(ctx, txn.time) == []


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "dies"])
def test_archiving_waits_as_long_as_the_writer_of_what_was_taken_back_may_still_write(ends: bool) -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    write_file(txn, 0)
    for _ in range(4):
        commit_buckets(ctx, [0])
    taken_back(ctx, txn, ends=ends)
    name = str(BaseFileName(bucket_file_id(txn.seed, "p", 1), "0-0-0", txn.time))
    with txn.right.create_file("p", name, MarkerType.CREATE) as sink:
        assert archive(reopen(OldButRollbacks(ctx.storage)), KEEP, force=True) is None
        sink.write(b"rows")
    for _ in range(2):
        recovery.recover(reopen(AgedStorage(ctx.storage)), load_timeline(reopen(AgedStorage(ctx.storage))))
    assert archive(reopen(AgedStorage(ctx.storage)), KEEP, force=True) is not None
    assert load_timeline(ctx).commits[0].time > txn.time
    assert left(ctx, txn.time) == []


def recovered(ctx: TableContext, *, quarantine: float = 3600.0) -> tuple[str, ...]:
    return recovery.recover(reopen(ctx.storage, quarantine=quarantine), load_timeline(ctx))


def is_open(ctx: TableContext, undo: Instant) -> bool:
    return undo.time in {instant.time for instant in load_timeline(ctx).pending}


def test_a_rollback_that_another_engine_is_about_to_end_is_left_to_it_until_it_seems_to_have_died() -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    undo = taken_back(ctx, txn, ends=False)
    assert recovered(ctx) == ()
    assert is_open(ctx, undo)
    assert recovered(ctx, quarantine=0.0) == (txn.time,)
    assert not is_open(ctx, undo)


def test_what_a_writer_of_ours_put_behind_it_is_found_by_its_markers_whoever_ended_it() -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    write_file(txn, 1)
    taken_back(ctx, txn, ends=False)
    name = str(BaseFileName(bucket_file_id(txn.seed, "p", 0), "0-0-0", txn.time))
    with txn.right.create_file("p", name, MarkerType.CREATE) as sink:
        recovered(ctx)
        recovered(ctx, quarantine=0.0)
        sink.write(b"rows")
    for _ in range(4):
        commit_buckets(ctx, [0])
    assert archive(reopen(ctx.storage, quarantine=-1.0), KEEP, force=True) is not None
    assert load_timeline(ctx).commits[0].time > txn.time
    assert left(ctx, txn.time) == []


def test_an_abort_in_the_chain_stands_for_its_quarantine_when_another_engine_has_taken_the_claim() -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    recovery.abort_and_roll_back(ctx, txn.instant)
    for name in load_timeline(ctx).claim_names(txn.time):
        ctx.storage.delete(f".hoodie/{name}")
    assert recovered(ctx) == ()
    assert recovered(ctx, quarantine=0.0) == (txn.time,)


def test_recovery_leaves_the_instant_alone_for_which_it_works() -> None:
    ctx = new_context()
    commit_buckets(ctx, [0])
    txn = begin(ctx, Action.COMMIT)
    undo = Instant(draw_instant(ctx, txn.time), Action.ROLLBACK, State.REQUESTED)
    ctx.storage.put(f".hoodie/{undo.file_name}", rollback.rollback_plan(ctx, txn.instant, []))
    timeline = load_timeline(ctx)
    done = recovery.recover(reopen(ctx.storage, quarantine=0.0), timeline, own=txn.instant.file_name)
    assert done == ()
    assert load_timeline(ctx).claim_names(txn.time)


def test_files_of_an_instant_that_the_timeline_has_passed_survive_a_rollback_that_comes_late() -> None:
    ctx = new_context()
    times = [commit_buckets(ctx, [0]) for _ in range(5)]
    assert archive(reopen(ctx.storage, quarantine=-1.0), KEEP, force=True) is not None
    before = left(ctx, times[0])
    undo = Instant(draw_instant(ctx, times[-1]), Action.ROLLBACK, State.REQUESTED)
    late = Instant(times[0], Action.COMMIT, State.REQUESTED)
    ctx.storage.put(f".hoodie/{undo.file_name}", rollback.rollback_plan(ctx, late, []))
    recovered(ctx, quarantine=0.0)
    assert left(ctx, times[0]) == before != []
