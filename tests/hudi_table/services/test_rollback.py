"""Rollback of the newest write: the earlier rows are back, and what must not be taken back is
refused.

Aspects: both table types, each kind of write; late helpers; writers and executors beside it; dry
runs; retries; what the chain still says of instants that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidRequestError, WriteAbortedError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.conflict_keys import file_conflict_key
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.cleaning.plan import clean_choice
from hudi_table.services.planning import Choose, Draft, publish
from hudi_table.services.restoring.plan import rollback_choice
from hudi_table.services.rewriting.resuming import resume
from hudi_table.table.commit import recovery
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.publish import materialise
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.commit.transaction import begin, begin_plan
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.savepoints import keep
from tests.support.taken_back import FIRST, KINDS, WRITES, actions, aged, files, newest, written
from tests.support.written import contents, rows, slices


@KINDS
@pytest.mark.parametrize("name", WRITES)
def test_a_rollback_brings_the_rows_and_files_of_before_back(kind, name):
    table = written(kind)
    before, timeline = files(table), actions(table)
    WRITES[name](table)
    assert contents(table) != FIRST
    done = aged(table).rollback(newest(table))
    assert contents(table) == FIRST
    new = {path for path in files(table) - before if not path.endswith(".hoodie_partition_metadata")}
    assert new == set()
    assert actions(table) == [*timeline, (Action.ROLLBACK, State.COMPLETED)]
    assert done.figures["instants"] == 1
    assert not done.replayed
    table.upsert(rows(("a", "x", 7)))
    assert ("a", "x", 7) in contents(table)
    assert table.doctor(keys=True) == ()


def test_a_rolled_back_compaction_leaves_the_logs_and_no_plan():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    before = files(table)
    table.compact(force=True)
    aged(table).rollback(newest(table))
    assert files(table) == before
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]
    assert not load_timeline(table.context).pending
    table.compact(force=True)
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]


def test_writes_are_rolled_back_one_after_the_other_newest_first():
    table = written()
    for value in range(10, 13):
        table.upsert(rows(("a", "x", value)))
    for value in (11, 10):
        aged(table).rollback(newest(table))
        assert ("a", "x", value) in contents(table)


def test_only_the_newest_write_is_rolled_back():
    table = written()
    first = newest(table)
    table.upsert(rows(("a", "x", 9)))
    with pytest.raises(InvalidRequestError, match=f"{first} is not the newest write, {newest(table)} is"):
        aged(table).rollback(first)
    with pytest.raises(InvalidRequestError, match="'20200101000000000' is no write on the timeline"):
        aged(table).rollback("20200101000000000")
    assert not load_timeline(table.context).pending


def test_a_young_write_is_rolled_back_only_if_all_writers_are_said_to_be_gone():
    table = written()
    before = sorted(info.path for info in table.context.storage.list() if ".txn" not in info.path)
    with pytest.raises(InvalidRequestError, match="could still publish it again"):
        table.rollback(newest(table))
    assert sorted(info.path for info in table.context.storage.list() if ".txn" not in info.path) == before
    table.upsert(rows(("a", "x", 9)))
    table.rollback(newest(table), writers_stopped=True)
    assert contents(table) == FIRST


def test_a_savepoint_is_not_rolled_back():
    table = written()
    keep(table)
    with pytest.raises(InvalidRequestError, match="is a savepoint"):
        aged(table).rollback(newest(table))


def test_a_write_whose_files_a_plan_is_to_rewrite_is_not_rolled_back():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    with pytest.raises(InvalidRequestError, match=f"the plan {plan.instant}"):
        aged(table).rollback(newest(table))


def test_a_write_before_which_files_were_cleaned_is_not_rolled_back():
    table = written()
    old = {item.base.path for item in slices(table) if item.base}
    table.upsert(rows(("a", "x", 9), ("c", "y", 9)))
    for path in old:
        table.context.storage.delete(path)
    with pytest.raises(InvalidRequestError, match="has been cleaned"):
        aged(table).rollback(newest(table))


def test_an_overwrite_whose_replaced_groups_were_cleaned_is_not_rolled_back():
    table = written()
    old = [item.base.path for item in slices(table) if item.base and item.partition == "x"]
    table.write(rows(("h", "x", 8)), operation="insert_overwrite")
    table.context.storage.delete(old[0])
    with pytest.raises(InvalidRequestError, match="has been cleaned"):
        aged(table).rollback(newest(table))


def test_a_pending_clean_holds_a_rollback():
    table = written()
    table.context.storage.put(".hoodie/20990101000000000.clean.requested", b"")
    with pytest.raises(InvalidRequestError, match="a clean is pending"):
        aged(table).rollback(newest(table))


def test_a_rollback_asked_for_again_is_found_done():
    table = written()
    table.upsert(rows(("a", "x", 9)))
    time = newest(table)
    first = aged(table).rollback(time)
    again = aged(table).rollback(time)
    assert again.replayed
    assert again.instant == first.instant


def test_what_the_chain_says_of_an_instant_that_was_taken_back_is_published_by_nobody():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)), batch="b1")
    taken = [newest(table)]
    aged(table).rollback(taken[0])
    table.upsert(rows(("a", "x", 8)))
    plan = table.schedule_compaction(force=True)
    table.run_compaction(plan.instant)
    taken.append(newest(table))
    aged(table).rollback(plan.instant)
    for time in taken:
        fresh = open_context(table.context.storage)
        tail = chain.read_tail(fresh)
        decision = chain.find_decision(fresh, time, tail.sequence)
        assert decision is not None
        assert decision[1].kind is Kind.ABORT
        commit = chain.find_decision(fresh, time, decision[0] - 1)
        assert commit is not None
        materialise(fresh, commit[1])
        recovery.recover(fresh, load_timeline(fresh), eager=True)
        begin(fresh, Action.DELTA_COMMIT).withdraw()
        begin_plan(fresh, Action.COMPACTION).withdraw()
        assert time not in {i.time for i in load_timeline(fresh).instants}
    with pytest.raises(InvalidRequestError, match="no pending compaction"):
        resume(table.context, Instant(plan.instant, Action.COMPACTION, State.REQUESTED))
    assert contents(table) == [("a", "x", 8), *FIRST[1:]]
    replay = table.upsert(rows(("a", "x", 9)), batch="b1")
    assert not replay.replayed
    assert ("a", "x", 9) in contents(table)


def test_a_write_that_began_before_a_rollback_conflicts_with_it_and_succeeds_when_it_is_tried_again():
    table = written()
    table.upsert(rows(("a", "x", 9)))
    other = open_context(table.context.storage)
    txn = begin(other, Action.COMMIT)
    txn.inflight()
    aged(table).rollback(newest(table))
    with pytest.raises(WriteConflictError):
        txn._decide(Kind.COMMIT, Claimed((file_conflict_key("z", "f"),)), f"{txn.time}.commit", b"{}")
    txn.abort()
    assert contents(table) == FIRST


def test_an_executor_that_began_before_a_rollback_conflicts_with_it_and_its_plan_stays():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    plan = table.schedule_compaction(force=True)
    table.upsert(rows(("b", "x", 9)))
    other = HudiTable(open_context(table.context.storage))
    at_work = resume(other.context, Instant(plan.instant, Action.COMPACTION, State.REQUESTED))
    assert at_work is not None
    aged(table).rollback(newest(table))
    with pytest.raises(WriteConflictError):
        at_work._decide(Kind.COMMIT, Claimed(()), f"{plan.instant}.commit", b"{}")
    other.run_compaction(plan.instant)
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]
    assert not any(item.logs for item in slices(table))


def test_a_process_that_remembers_the_chain_from_before_a_rollback_writes_on():
    table = written()
    mine, other = HudiTable(open_context(table.context.storage)), aged(table)
    mine.upsert(rows(("a", "x", 9)))
    other.rollback(newest(table))
    mine.upsert(rows(("b", "x", 9)))
    assert contents(table) == [("a", "x", 1), ("b", "x", 9), ("c", "y", 3)]


def test_a_failed_write_is_rolled_back_by_its_instant():
    table = written()
    txn = begin(open_context(table.context.storage), Action.COMMIT)
    txn.inflight()
    assert "leaves the timeline when nothing late" in table.rollback(txn.time).message
    with pytest.raises(InvalidRequestError, match="is not completed, so no dry run can list its files"):
        table.services.rollback(txn.time).plan()
    assert "is rolled back" in table.rollback(txn.time, writers_stopped=True).message
    assert not load_timeline(table.context).pending
    with pytest.raises(WriteAbortedError):
        txn.right.prove()


def test_a_compaction_plan_is_not_rolled_back():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    plan = table.schedule_compaction(force=True)
    with pytest.raises(InvalidRequestError, match="execute it"):
        table.rollback(plan.instant)


def test_a_dry_run_says_what_would_go_and_its_approval_does_exactly_that():
    table = written()
    table.upsert(rows(("a", "x", 9), ("d", "x", 4)))
    before = actions(table)
    plan = table.services.rollback(newest(table)).plan()
    assert plan is not None
    assert actions(table) == before
    assert plan.details == (f"commit {newest(table)}: upsert, 1 row inserted, 1 updated, 0 deleted, 1 file",)
    assert plan.bytes_freed == sum(item.size for item in slices(table) if item.instant == newest(table))
    table.services.rollback(newest(table), writers_stopped=True).execute(plan)
    assert contents(table) == FIRST


def test_a_rollback_waits_for_no_writer_that_the_option_says_has_ended():
    table = written()
    table.upsert(rows(("a", "x", 9)))

    def taken_back(**options: str) -> object:
        request = ServiceRequest(options, instant=newest(table))
        return table.services.of_type(ServiceType.ROLLBACK, request).run()

    with pytest.raises(InvalidRequestError, match="writers"):
        taken_back()
    taken_back(**{"hoodie.lakeops.writers.stopped": "true"})
    assert contents(table) == FIRST


def claimed_late(table: HudiTable, time: str) -> None:
    """The claim of an instant that a paused process drew long ago."""
    for suffix in ("commit.requested", "inflight"):
        table.context.storage.put_if_absent(f".hoodie/{time}.{suffix}", b"")


def test_a_late_claim_of_a_write_that_was_taken_back_does_not_bring_it_back():
    table = written()
    table.upsert(rows(("a", "x", 9)))
    taken = newest(table)
    aged(table).rollback(taken)
    claimed_late(table, taken)
    fresh = open_context(table.context.storage)
    recovery.recover(fresh, load_timeline(fresh))
    begin(fresh, Action.COMMIT).withdraw()
    assert taken not in {i.time for i in load_timeline(fresh).commits}
    assert contents(table) == FIRST
    aged(table).upsert(rows(("b", "x", 9)))
    assert not load_timeline(fresh).pending
    assert contents(table) == [("a", "x", 1), ("b", "x", 9), ("c", "y", 3)]


def test_the_chain_is_read_after_the_listing_before_a_decided_write_is_published(monkeypatch):
    table = written()
    table.upsert(rows(("a", "x", 9)))
    taken = newest(table)
    helper = open_context(table.context.storage)
    decision = chain.find_decision(helper, taken, chain.read_tail(helper).sequence)
    aged(table).rollback(taken)
    claimed_late(table, taken)
    assert decision is not None
    assert decision[1].kind is Kind.COMMIT
    assert not materialise(helper, decision[1])
    assert contents(table) == FIRST


def test_recovery_that_found_a_write_pending_leaves_its_files_to_the_rollback_that_aborts_it_later():
    table = written()
    table.upsert(rows(("a", "x", 9)))
    time, store = newest(table), table.context.storage
    completed = store.get(f".hoodie/{time}.commit")
    store.delete(f".hoodie/{time}.commit")
    stale = load_timeline(table.context)
    store.put(f".hoodie/{time}.commit", completed)
    tail = chain.read_tail(table.context)
    assert chain.append_abort(table.context, tail, time)
    recovery.recover(aged(table).context, stale)
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]
    assert not [i for i in load_timeline(table.context).instants if i.action is Action.ROLLBACK]


def on_second_look(choose: Choose, happen: Callable[[], object]) -> Choose:
    """The same choice; `happen` comes after the snapshot of the first claim and before its
    decision."""
    looks: list[FileSystemView] = []

    def chosen(view: FileSystemView) -> Draft | None:
        looks.append(view)
        draft = choose(view)
        if len(looks) == 2:
            happen()
        return draft

    return chosen


def test_a_rollback_that_did_not_see_a_savepoint_or_the_plan_of_a_clean_looks_again():
    for happen, why in (
        (lambda other: other.savepoint(), "is a savepoint"),
        (lambda other: other.schedule_clean({"hoodie.clean.commits.retained": "1"}, force=True), "a clean is pending"),
    ):
        table = written()
        for value in range(9, 13):
            table.upsert(rows(("a", "x", value)))
        ctx = aged(table).context
        before = contents(table)
        other = HudiTable(open_context(table.context.storage))
        choose = rollback_choice(ctx, newest(table), writers_stopped=True)
        with pytest.raises(InvalidRequestError, match=why):
            publish(ctx, Action.ROLLBACK, on_second_look(choose, lambda: happen(other)))  # noqa: B023 - called at once
        assert contents(table) == before


def test_a_clean_that_did_not_see_a_rollback_is_planned_again_and_keeps_what_came_back():
    table = written()
    for value in range(9, 13):
        table.upsert(rows(("a", "x", value)))
    ctx = open_context(table.context.storage)
    choose = clean_choice(ctx, {"hoodie.clean.commits.retained": "1"}, force=True)
    planned = publish(ctx, Action.CLEAN, on_second_look(choose, lambda: aged(table).rollback(newest(table))))
    assert planned is not None
    table.run_clean(planned.instant)
    assert contents(table) == [("a", "x", 11), *FIRST[1:]]


class Following:
    """A storage on which something happens once, when the first rollback completes."""

    def __init__(self, inner: Storage, happen: Callable[[], object]) -> None:
        self.inner = inner
        self.happen: Callable[[], object] | None = happen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        if path.endswith(".rollback") and self.happen is not None:
            happen, self.happen = self.happen, None
            happen()


@pytest.mark.parametrize("look", ["claim", "caught up"])
def test_a_rollback_that_is_decided_while_another_is_carried_out_is_carried_out_too_before_a_snapshot(look):
    table = written()
    for value in (8, 9):
        table.upsert(rows(("a", "x", value)))
    other = aged(table).context

    def decide() -> None:
        assert publish(other, Action.ROLLBACK, rollback_choice(other, newest(table), writers_stopped=True))

    decide()
    ctx = open_context(Following(table.context.storage, decide))
    timeline = caught_up(ctx)[0] if look == "caught up" else begin(ctx, Action.COMMIT).timeline
    assert [i.action for i in timeline.pending if i.action is Action.ROLLBACK] == []
    assert contents(table) == FIRST
    assert timeline.last_commit is not None
    assert timeline.last_commit.time == newest(table)
