"""Every guard of the commit protocol that concerns one writer and its recovery is needed.

Each row names a guard of `docs/explanation/commit-protocol.md` section 7, what removes it from the
code, and a scenario. With the guard the scenario holds, without it the scenario breaks. Omitted:
guards of services that do not exist yet (archiving, cleaning, plans), and the order of reading the
tail and claiming, which `test_protocol_trace.py` holds call by call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_table.errors import HudiError, WriteConflictError
from hudi_table.model.names import MarkerType
from hudi_table.model.options.write_options import FailedWrites
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.instants import Action, Instant, format_instant_time
from hudi_table.table.commit import publish, recovery, rollback, snapshot, transaction
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.decision import Decider
from hudi_table.table.commit.foreign_writers import Neighbours
from hudi_table.table.commit.markers import Marks
from hudi_table.table.commit.transaction import Transaction, begin, begin_plan
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.store.remote import ObjectStorage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.decided import begun, decided_only
from tests.support.faults import Fault, FaultPlan, FaultyStorage
from tests.support.tables import TestClock, commit_buckets, finish, new_context, reopen, write_file

Patch = pytest.MonkeyPatch


def commits(ctx: TableContext) -> list[str]:
    return [i.time for i in load_timeline(ctx).commits]


def visible(ctx: TableContext) -> list[str]:
    groups = FileSystemView(ctx, load_timeline(ctx)).groups()
    return sorted(s.instant for group in groups for s in group.slices)


def crashed(ctx: TableContext) -> Transaction:
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    write_file(txn, 0)
    return txn


def two_writers_of_one_clock_never_share_an_instant() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    first = begin(ours, Action.COMMIT)
    assert begin(reopen(ours.storage), Action.COMMIT).time != first.time


def a_new_instant_is_newer_than_everything_completed() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    ahead = reopen(ours.storage)
    assert isinstance(ahead.clock, TestClock)
    ahead.clock.advance(60)
    theirs = commit_buckets(ahead, [1])
    assert begin(ours, Action.COMMIT).time > theirs


def an_aborted_instant_is_never_drawn_again() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    dead = crashed(ours).instant
    recovery.abort_and_roll_back(ours, dead, confirmed_dead=True)
    for name in [name for name in load_timeline(ours).files if ".rollback" in name]:
        ours.storage.delete(f".hoodie/{name}")
    assert begin(reopen(ours.storage), Action.COMMIT).time != dead.time


def a_snapshot_holds_every_decision_before_it() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    decided = commit_buckets(ours, [0])
    ours.storage.delete(f".hoodie/{decided}.commit")
    # By itself, whoever recovers failed writes or not.
    txn = begin(reopen(ours.storage), Action.COMMIT, failed_writes=FailedWrites.NEVER)
    assert decided in {i.time for i in txn.timeline.commits}


def nothing_is_visible_before_what_was_decided_before_it() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    txn, other = begun(ours.storage), begun(ours.storage)
    decided = decided_only(ours.storage, 1, other)
    finish(txn, [write_file(txn, 2)], [2])
    assert decided in commits(ours)


def a_deleted_plan_stays_away() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    planner = begin_plan(ours, Action.SAVEPOINT)
    planner.plan(b"kept", {"cleaning"})
    entry = next(e for _, e in chain.entries_after(ours, 0) if e.kind is Kind.PLAN)
    ours.storage.delete(f".hoodie/{entry.name}")
    ours.storage.put(f".hoodie/{planner.time}.commit.requested", b"")
    publish.materialise(ours, entry)
    assert entry.name not in load_timeline(ours).files


def a_write_of_the_same_bucket_meanwhile_is_a_conflict() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    txn = crashed(ours)
    theirs = commit_buckets(reopen(ours.storage), [0])
    with pytest.raises(WriteConflictError):
        finish(txn, [], [0])
    assert commits(ours)[-1] == theirs


def a_commit_of_another_engine_meanwhile_is_a_conflict() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    txn = crashed(ours)
    commit_buckets(reopen(ours.storage), [0])
    ours.storage.delete(".hoodie/.txn/00000000000000000003.json")
    with pytest.raises(WriteConflictError, match="another engine"):
        finish(txn, [], [0])


def a_decision_whose_reply_is_lost_is_read_back() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    plan = FaultPlan(
        at=1, fault=Fault.LOST_REPLY, only=lambda call: call.path.startswith(".hoodie/.txn/") and call.writes
    )
    faulty = reopen(FaultyStorage(ours.storage, plan))
    assert commit_buckets(faulty, [0]) in commits(ours)
    assert plan.fired


def an_aborted_writer_that_wakes_up_commits_nothing() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    recovery.abort_and_roll_back(reopen(ours.storage), txn.instant)
    with pytest.raises(HudiError):
        finish(txn, [], [1])
    assert txn.time not in commits(ours)


def an_aborted_writer_that_wakes_up_writes_nothing() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    recovery.abort_and_roll_back(reopen(ours.storage), txn.instant)
    with pytest.raises(HudiError):
        write_file(txn, 0)
    assert not [info for info in ours.storage.list("p") if txn.time in info.path]


def a_decided_write_is_never_rolled_back() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    decided = commit_buckets(ours, [0])
    ours.storage.delete(f".hoodie/{decided}.commit")
    recovery.recover(reopen(ours.storage), load_timeline(ours), eager=True)
    assert decided in visible(ours)


def a_file_that_arrives_late_is_swept_before_its_claim_goes() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    dead = crashed(ours)
    commit_buckets(reopen(ours.storage, suspect=0.0), [1])
    commit_buckets(reopen(ours.storage, suspect=0.0), [1])
    ours.storage.put(f"p/00000000-late-0_0-0-0_{dead.time}.parquet", b"late")
    commit_buckets(reopen(ours.storage, suspect=0.0, quarantine=0.0), [1])
    assert not [info for info in ours.storage.list("p") if dead.time in info.path]


def a_late_claim_of_an_archived_commit_costs_no_data() -> None:
    ours = new_context()
    first = commit_buckets(ours, [0])
    commit_buckets(ours, [1])
    archive_until(ours, first)
    ours.storage.put(f".hoodie/{first}.commit.requested", b"")
    recovery.recover(reopen(ours.storage), load_timeline(ours), eager=True)
    assert first in visible(ours)


def an_archived_commit_is_not_put_back() -> None:
    ours = new_context()
    first = commit_buckets(ours, [0])
    commit_buckets(ours, [1])
    entry = next(e for _, e in chain.entries_after(ours, 0) if e.instant == first)
    archive_until(ours, first)
    ours.storage.put(f".hoodie/{first}.commit.requested", b"")
    publish.materialise(ours, entry)
    assert first not in commits(ours)


def files_of_other_task_attempts_are_gone_before_the_decision() -> None:
    ours = new_context()
    commit_buckets(ours, [0])
    txn = begin(ours, Action.COMMIT)
    txn.inflight()
    with txn.right.create_file("p", f"00000007-x-0_9-9-9_{txn.time}.parquet", MarkerType.CREATE) as sink:
        sink.write(b"left behind")
    finish(txn, [write_file(txn, 0)], [0])
    assert len([info for info in ours.storage.list("p") if txn.time in info.path]) == 1


def files_of_a_failed_first_write_stay_invisible() -> None:
    ours = new_context()
    failed = "20251231000000000"
    for name in (f".hoodie/{failed}.commit.requested", f"p/00000000-f-0_0-0-0_{failed}.parquet"):
        ours.storage.put(name, b"")
    time = commit_buckets(ours, [1])
    assert visible(ours) == [time]


def archive_until(ctx: TableContext, last: str) -> None:
    for instant in load_timeline(ctx).instants:
        if instant.time <= last:
            for name in [instant.file_name, *load_timeline(ctx).claim_names(instant.time)]:
                ctx.storage.delete(f".hoodie/{name}")


def without_exclusive_claims(patch: Patch) -> None:
    original = ObjectStorage.put_if_absent

    def put(self: ObjectStorage, path: str, data: bytes) -> None:
        self.put(path, data) if path.endswith(".requested") else original(self, path, data)

    patch.setattr(ObjectStorage, "put_if_absent", put)


def without_the_chain_decision(patch: Patch) -> None:
    def decide(
        self: Decider, kind: Kind, claimed: Claimed, file: Instant | str, data: bytes
    ) -> tuple[ChainEntry, float]:
        name = file if isinstance(file, str) else self.ctx.layout.completed(file).file_name
        keys = claimed.conflict_keys
        entry = ChainEntry.of(kind, self.time, self.attempt, keys, name, data, max_instant=self.time)
        return entry, self.ctx.clock.boot_seconds()

    patch.setattr(Decider, "decide", decide)


def without_read_back(patch: Patch) -> None:
    def lost(self: Decider, *_: Any) -> None:
        raise WriteConflictError("412 taken for a failure")

    patch.setattr(Decider, "_lost_slot", lost)


def without_an_abort_entry(patch: Patch) -> None:
    def only_delete(ctx: TableContext, instant: Instant, *, confirmed_dead: bool = False) -> list[str]:
        return rollback.roll_back(ctx, load_timeline(ctx), instant, over=confirmed_dead)

    patch.setattr(recovery, "abort_and_roll_back", only_delete)
    # The listing before the decision shows the rollback too; the entry is what excludes a decision behind that listing.
    without_a_look_at_others(patch)


def without_a_look_at_others(patch: Patch) -> None:
    patch.setattr(Neighbours, "relist", lambda self, look: None)


def without_the_rule_on_late_claims(patch: Patch) -> None:
    def roll_back(ctx: TableContext, _: Any, instant: Instant) -> None:
        for path in rollback._files_of(ctx, instant.time):
            ctx.storage.delete(path)

    patch.setattr(recovery, "delete_claim", roll_back)


def without_the_founding_commit(patch: Patch) -> None:
    def begin_at_once(ctx: TableContext, action: Action) -> Transaction:
        txn = transaction._claim(ctx, action, "attempt")
        recovery.recover(ctx, txn.timeline, own=txn.right.claim)
        return txn

    patch.setattr("tests.support.tables.begin", begin_at_once)


def take_any_snapshot(patch: Patch) -> None:
    # A listing is looked at twice: whether it is one of the claim, and once it is whole.
    for module in (snapshot, transaction):
        patch.setattr(module, "holds", lambda *_: True)


def a_bare_clock(ctx: TableContext, floor: str) -> str:
    del floor
    # A clock of its own value only; it moves on, or nobody would ever get a claim.
    assert isinstance(ctx.clock, TestClock)
    ctx.clock.advance(0.001)
    return format_instant_time(ctx.clock.now())


GUARDS: dict[str, tuple[Callable[[Patch], Any], Callable[[], None]]] = {
    "exclusive claim": (without_exclusive_claims, two_writers_of_one_clock_never_share_an_instant),
    "freshness (step 3)": (
        take_any_snapshot,
        a_new_instant_is_newer_than_everything_completed,
    ),
    "no reuse of chained instants": (
        lambda patch: patch.setattr(transaction, "draw_instant", a_bare_clock),
        an_aborted_instant_is_never_drawn_again,
    ),
    "materialise predecessors": (
        lambda patch: patch.setattr(snapshot, "materialise_predecessors", lambda *_: False),
        a_snapshot_holds_every_decision_before_it,
    ),
    "published in order": (
        lambda patch: patch.setattr(Decider, "publish_passed", lambda self: None),
        nothing_is_visible_before_what_was_decided_before_it,
    ),
    "a plan appears under its own claim": (
        lambda patch: patch.setattr(publish, "_claims", lambda timeline, entry: timeline.claim_names(entry.instant)),
        a_deleted_plan_stays_away,
    ),
    "conflict check": (
        lambda patch: patch.setattr(Claimed, "excluded_by", lambda *_: False),
        a_write_of_the_same_bucket_meanwhile_is_a_conflict,
    ),
    "read-back on 412": (without_read_back, a_decision_whose_reply_is_lost_is_read_back),
    "decision before publish": (without_the_chain_decision, an_aborted_writer_that_wakes_up_commits_nothing),
    "abort entry": (without_an_abort_entry, an_aborted_writer_that_wakes_up_commits_nothing),
    "right to write": (
        lambda patch: patch.setattr(RightToWrite, "_prove", lambda *_: None),
        an_aborted_writer_that_wakes_up_writes_nothing,
    ),
    "chain scan in recovery": (
        lambda patch: patch.setattr(chain, "find_decisions", lambda *_: {}),
        a_decided_write_is_never_rolled_back,
    ),
    "quarantine + sweep": (
        lambda patch: patch.setattr(recovery, "_quarantine_over", lambda *_: True),
        a_file_that_arrives_late_is_swept_before_its_claim_goes,
    ),
    "late claims never rolled back": (
        without_the_rule_on_late_claims,
        a_late_claim_of_an_archived_commit_costs_no_data,
    ),
    "late claims never helped": (
        lambda patch: patch.setattr(publish, "_may_appear", lambda *_: True),
        an_archived_commit_is_not_put_back,
    ),
    "timeline listed before the decision": (
        without_a_look_at_others,
        a_commit_of_another_engine_meanwhile_is_a_conflict,
    ),
    "attempts reconciled against markers": (
        lambda patch: patch.setattr(transaction, "reconcile_attempts", lambda *_: Marks()),
        files_of_other_task_attempts_are_gone_before_the_decision,
    ),
    "founding commit": (without_the_founding_commit, files_of_a_failed_first_write_stay_invisible),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_with_the_guard_the_scenario_holds(guard):
    GUARDS[guard][1]()


@pytest.mark.parametrize("guard", GUARDS)
def test_without_the_guard_the_scenario_breaks(guard, monkeypatch):
    remove, scenario = GUARDS[guard]
    remove(monkeypatch)
    with pytest.raises((AssertionError, HudiError, pytest.fail.Exception)):
        scenario()
