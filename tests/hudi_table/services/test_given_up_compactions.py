"""A compaction that was taken back, by a process of ours whose executor lost the lock before it
published, or by another engine that rolls back what was begun of it, waits for nobody, and loses
its file groups to nobody: others are compacted beside it, and its plan is executed again.

Aspects: what others do meanwhile; when it is executed again, under which name; who slept over it;
another engine's rollback, alive, ended or left; a fault at every storage call.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidRequestError, WriteAbortedError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.names import parse_base_file
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.compaction.debt import compaction_debt
from hudi_table.table.commit import decision
from hudi_table.table.commit.beside.locking import with_lock
from hudi_table.table.commit.foreign_writers import is_overtaken
from hudi_table.table.commit.publish import create_file_of
from hudi_table.table.commit.recovery import recover
from hudi_table.table.commit.rollback import complete, rollback_plan
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.crashes import copied
from tests.support.fault_points import after_each_fault
from tests.support.taken_back import aged
from tests.support.written import INDEXES, contents, new_table, rows, slices

EVERY_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}
LATER = "20981231000000000"
ROWS = [("a", "x", 10), ("b", "y", 20)]


class KilledError(Exception):
    """An executor ends behind its decision."""


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest) -> HudiTable:
    """A row in each of two partitions, that of x updated, so in a log."""
    made = new_table(index=INDEXES["bucket"], type="MergeOnRead", version=request.param)
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    made.upsert(rows(("a", "x", 10)))
    return made


def planned(table: HudiTable) -> str:
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    return plan.instant


def decided(table: HudiTable, time: str, monkeypatch: pytest.MonkeyPatch) -> ChainEntry:
    """The commit of an executor that died behind its decision."""

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as changes:
        changes.setattr(decision.Decider, "publish", killed)
        with pytest.raises(KilledError):
            table.run_compaction(time)
    found = chain.find_decision(table.context, time, chain.read_tail(table.context).sequence)
    assert found is not None
    assert found[1].kind is Kind.COMMIT
    return found[1]


def given_up(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> ChainEntry:
    """A compaction of x whose executor died behind its decision, and which was given up then: its
    commit."""
    entry = decided(table, planned(table), monkeypatch)
    assert chain.append_abort(table.context, chain.read_tail(table.context), entry.instant)
    return entry


def begun_rollback(table: HudiTable, time: str) -> Instant:
    """What another engine has planned to take back of a compaction that it, or one of ours, has
    begun."""
    rollback, ctx = Instant(LATER, Action.ROLLBACK, State.REQUESTED), table.context
    target = Instant(time, Action.COMPACTION, State.INFLIGHT)
    ctx.storage.put(ctx.layout.timeline_path(rollback.file_name), rollback_plan(ctx, target, []))
    return rollback


def taken_back_by_another(table: HudiTable, time: str) -> None:
    """What another engine does before it executes a plan that was begun: the data files go, and the
    plan stays."""
    ctx, rollback = table.context, begun_rollback(table, time)
    for path in bases_of(table, time):
        ctx.storage.delete(path)
    complete(ctx, rollback, b"")


def bases_of(table: HudiTable, time: str) -> list[str]:
    paths = [info.path for info in table.context.storage.list() if not info.path.startswith(".hoodie/")]
    found = [(path, parse_base_file(path.rpartition("/")[2])) for path in paths]
    return [path for path, name in found if name is not None and name.instant == time]


def waiting(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).pending if i.action is Action.COMPACTION]


def completed(table: HudiTable, time: str) -> list[str]:
    return [i.file_name for i in load_timeline(table.context).commits if i.time == time]


def with_logs(table: HudiTable) -> list[str]:
    return [found.partition for found in slices(table) if found.logs]


def test_other_file_groups_are_compacted_beside_it(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = given_up(table, monkeypatch).instant
    table.upsert(rows(("b", "y", 20)))
    done = table.compact(force=True)
    assert [result.figures["fileGroups"] for result in done] == [1.0]
    assert waiting(table) == [gone]
    assert with_logs(table) == ["x"]
    assert contents(table) == ROWS
    assert table.compact(force=True) == []


def test_inline_compactions_go_on_beside_it(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up(table, monkeypatch)
    table.upsert(rows(("b", "y", 20)), options={"hoodie.compact.inline": "true", **EVERY_COMMIT})
    assert with_logs(table) == ["x"]


def test_it_is_no_debt_that_anybody_could_pay_yet(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = given_up(table, monkeypatch).instant
    ctx = table.context
    debt = compaction_debt(FileSystemView(ctx, load_timeline(ctx)), EVERY_COMMIT)
    assert (debt.pending, debt.why) == ((), None)
    with pytest.raises(InvalidRequestError, match=r"was taken back.* execute it in \d+ s"):
        table.run_compaction(gone)


def test_behind_the_quarantine_it_is_executed_again_with_what_was_written_beside_it(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = given_up(table, monkeypatch)
    table.upsert(rows(("a", "x", 11)))
    assert contents(table) == [("a", "x", 11), ("b", "y", 2)]
    (done,) = aged(table).compact(force=True)[:1]
    assert (done.instant, done.figures["rowsWritten"]) == (first.instant, 1.0)
    assert waiting(table) == []
    assert completed(table, first.instant) == [first.name], "the name that the first decision gave it"
    assert contents(table) == [("a", "x", 11), ("b", "y", 2)]
    table.upsert(rows(("a", "x", 12)))
    table.compact(force=True)
    assert with_logs(table) == []
    assert contents(table) == [("a", "x", 12), ("b", "y", 2)]


def test_who_slept_over_it_finds_its_file_there_and_makes_no_second_one(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = given_up(table, monkeypatch)
    aged(table).compact(force=True)
    assert create_file_of(table.context, first, table.context.clock.boot_seconds())
    assert completed(table, first.instant) == [first.name]
    assert contents(table) == [("a", "x", 10), ("b", "y", 2)]


def test_a_second_executor_that_dies_behind_its_decision_is_published_by_the_next_writer(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = given_up(table, monkeypatch)
    second = decided(aged(table), first.instant, monkeypatch)
    assert (second.kind, second.name) == (Kind.COMMIT, first.name)
    table.upsert(rows(("b", "y", 20)))
    assert completed(table, first.instant) == [first.name]
    assert contents(table) == ROWS


def test_what_overtook_the_first_decision_does_not_overtake_the_second(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = planned(table)
    decided(table, time, monkeypatch)
    taken_back_by_another(table, time)
    ctx = table.context
    assert chain.append_abort(ctx, chain.read_tail(ctx), time)
    second = decided(aged(table), time, monkeypatch)
    assert not is_overtaken(ctx, second, load_timeline(ctx), chain.read_tail(ctx).sequence)


@pytest.mark.parametrize("locked", [False, True])
def test_a_decided_compaction_whose_files_another_engine_took_back_is_not_published_but_executed_again(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, locked: bool
) -> None:
    time = planned(table)
    decided(table, time, monkeypatch)
    taken_back_by_another(table, time)
    if locked:
        lock = {
            "hoodie.write.lock.provider": "FileSystemBasedLockProvider",
            "hoodie.write.lock.filesystem.path": str(tmp_path),
        }
        table = HudiTable(with_lock(table.context, lock))
    table.upsert(rows(("b", "y", 20)))
    assert waiting(table) == [time]
    assert contents(table) == ROWS
    aged(table).compact(force=True)
    assert waiting(table) == []
    assert len(bases_of(table, time)) == 1
    assert contents(table) == ROWS


def test_an_executor_whose_files_another_engine_took_back_meanwhile_decides_nothing(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, commit = planned(table), Transaction.commit

    def late(txn: Transaction, *more: Any) -> None:
        taken_back_by_another(table, time)
        commit(txn, *more)

    with monkeypatch.context() as changes:
        changes.setattr(Transaction, "commit", late)
        with pytest.raises(WriteAbortedError, match="another engine takes the instant"):
            table.run_compaction(time)
    assert completed(table, time) == []
    assert contents(table) == [("a", "x", 10), ("b", "y", 2)]
    table.run_compaction(time)
    assert waiting(table) == []
    assert contents(table) == [("a", "x", 10), ("b", "y", 2)]


def test_while_another_engine_takes_it_back_others_go_on_and_nobody_executes_it(table: HudiTable) -> None:
    time = planned(table)
    begun_rollback(table, time)
    table.upsert(rows(("b", "y", 20)))
    done = table.compact(force=True)
    assert [result.figures["fileGroups"] for result in done] == [1.0]
    assert waiting(table) == [time]
    ctx = table.context
    assert compaction_debt(FileSystemView(ctx, load_timeline(ctx)), EVERY_COMMIT).pending == ()
    with pytest.raises(WriteConflictError, match="execute it once the rollback has ended"):
        table.run_compaction(time)
    assert contents(table) == ROWS
    complete(ctx, Instant(LATER, Action.ROLLBACK, State.REQUESTED), b"")
    assert table.run_compaction(time).figures["rowsWritten"] == 1.0
    assert contents(table) == ROWS


def test_a_rollback_that_another_engine_has_left_is_ended_by_the_next_recovery_and_deletes_nothing(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = planned(table)
    decided(table, time, monkeypatch)
    rollback = begun_rollback(table, time)
    before = bases_of(table, time)
    table.upsert(rows(("b", "y", 20)))
    assert rollback in load_timeline(table.context).pending, "it may be about to end it"
    aged(table).upsert(rows(("b", "y", 21)))
    assert [i.time for i in load_timeline(table.context).pending] in ([time], [])
    assert bases_of(table, time) == before
    aged(table).compact(force=True)
    assert waiting(table) == []
    assert contents(table) == [("a", "x", 10), ("b", "y", 21)]


def test_a_fault_at_any_storage_call_of_executing_it_again_loses_no_row_and_another_ends_it(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, figure: Callable[[int, str], None]
) -> None:
    time, done = given_up(table, monkeypatch).instant, 0
    table.upsert(rows(("b", "y", 20)))
    for point in after_each_fault(table.context.storage, lambda store: _opened(store).run_compaction(time)):
        other, where = _opened(copied(point.store)), point.where
        assert contents(other) == ROWS, where
        other.upsert(rows(("a", "x", 30)))
        other.compact(force=True)
        assert waiting(other) == [], where
        assert len(completed(other, time)) == 1, where
        assert contents(other) == [("a", "x", 30), ("b", "y", 20)], where
        done += 1
    figure(done, "crash points")


def test_a_fault_at_any_storage_call_of_ending_another_engines_rollback_loses_no_row(
    table: HudiTable, figure: Callable[[int, str], None]
) -> None:
    time, done = planned(table), 0
    begun_rollback(table, time)

    def ends(store: Storage) -> None:
        ctx = _opened(store).context
        assert recover(ctx, load_timeline(ctx)) == (time,)

    for point in after_each_fault(table.context.storage, ends):
        other, where = _opened(copied(point.store)), point.where
        other.upsert(rows(("b", "y", 20)))
        other.compact(force=True)
        assert waiting(other) == [], where
        assert contents(other) == ROWS, where
        done += 1
    figure(done, "crash points")


def _opened(store: Storage) -> HudiTable:
    """The table as a process sees it for which no quarantine runs."""
    return HudiTable(open_context(store, settings=TxnSettings(0.0, 900.0)))
