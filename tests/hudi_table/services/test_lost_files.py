"""Lost files of a pending compaction are given up by name, and nothing else: the plan is written
again without them and then executed.

Aspects: a log, a base file, all files of a group; what is refused; rows written beside the plan
stay; an executor that began by the earlier plan; the wait for the quarantine; a fault at every
storage call; archiving passes the plan; `hudictl rollback --lost` and the doctor's advice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_table import open_table
from hudi_table.api import HudiTable
from hudi_table.cli import main
from hudi_table.errors import CorruptTableError, InvalidRequestError, WriteAbortedError
from hudi_table.metadata.port import open_context
from hudi_table.services.compaction import execute
from hudi_table.services.compaction.execute import run_compaction
from hudi_table.services.compaction.lost_files import compaction_at
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.view.compaction_plans import PlannedSlice, planned_slices
from tests.support.crashes import copied
from tests.support.fault_points import after_each_fault
from tests.support.written import INDEXES, contents, new_table, rows

KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
BESIDE = ("c", "x", 33)


def scheduled(uri: str | None = None, index: str = "simple") -> tuple[HudiTable, str]:
    """Of a and d a base file, a log of a = 11 and one of d = 12, a compaction of them, and c = 33,
    a log by its plan."""
    table = new_table(
        uri, index=INDEXES[index] if index != "bucket" else {"type": "Bucket", "buckets": 1}, type="MergeOnRead"
    )
    table.insert(rows(("a", "x", 1), ("c", "x", 2), ("d", "x", 3)))
    table.compact(force=True)
    table.upsert(rows(("a", "x", 11)))
    table.upsert(rows(("d", "x", 12)))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    table.upsert(rows(BESIDE))
    return table, plan.instant


def hasty(table: HudiTable) -> HudiTable:
    """The table with no quarantine."""
    return HudiTable(open_context(table.context.storage, settings=TxnSettings(0.0, 900.0)))


def lose(table: HudiTable, time: str, *which: int) -> list[str]:
    """Delete files of the plan: the base file is number 0."""
    (item,) = _plan(table, time)
    gone = [item.paths[number] for number in which]
    for path in gone:
        table.context.storage.delete(path)
    return gone


def _plan(table: HudiTable, time: str) -> list[PlannedSlice]:
    return planned_slices(table.context, compaction_at(time))


@pytest.mark.parametrize("index", ["simple", "bucket"])
@pytest.mark.parametrize(
    ("which", "left"),
    [
        ((1,), [("a", "x", 1), BESIDE, ("d", "x", 12)]),
        ((2,), [("a", "x", 11), BESIDE, ("d", "x", 3)]),
        ((0,), [("a", "x", 11), BESIDE, ("d", "x", 12)]),
        ((0, 1, 2), [BESIDE]),
    ],
    ids=["a log", "the last log", "the base file", "all files"],
)
def test_a_compaction_is_executed_without_what_is_lost_and_keeps_what_was_written_beside_its_plan(
    index: str, which: tuple[int, ...], left: list[tuple[Any, ...]]
) -> None:
    table, time = scheduled(index=index)
    gone = lose(table, time, *which)
    with pytest.raises(CorruptTableError, match="--lost FILE"):
        table.run_compaction(time)
    done = table.rollback(time, lost=gone, writers_stopped=True)
    assert done.figures == {"filesGivenUp": len(gone)}
    assert contents(table) == left
    assert time in {i.time for i in load_timeline(table.context).commits}
    again = table.rollback(time, lost=gone, writers_stopped=True)
    assert again.replayed
    table.upsert(rows(("a", "x", 99)))
    table.compact(force=True)
    assert ("a", "x", 99) in contents(table)


def test_archiving_passes_a_compaction_whose_lost_files_were_given_up() -> None:
    table, time = scheduled()
    gone = lose(table, time, 1)
    table.rollback(time, lost=gone, writers_stopped=True)
    for value in range(4):
        table.upsert(rows(("d", "x", value)))
    table.compact(force=True)
    hasty(table).archive(KEEP, force=True)
    assert time not in {i.time for i in load_timeline(table.context).instants}
    assert not [found for found in table.doctor() if found.path in gone]


def test_what_is_given_up_must_be_named_exactly() -> None:
    table, time = scheduled()
    there = _plan(table, time)[0].paths
    with pytest.raises(InvalidRequestError, match="none of its files is lost, execute it"):
        table.rollback(time, lost=[there[1]])
    gone = lose(table, time, 1, 2)
    with pytest.raises(InvalidRequestError, match="is gone too; name all files"):
        table.rollback(time, lost=gone[:1])
    with pytest.raises(InvalidRequestError, match="these are: "):
        table.rollback(time, lost=[*gone, there[0]])
    with pytest.raises(InvalidRequestError, match="no pending compaction"):
        table.rollback("20200101000000000", lost=gone)


def test_nobody_executes_the_new_plan_before_the_quarantine_has_passed() -> None:
    table, time = scheduled()
    gone = lose(table, time, 1)
    assert "gives up 1 file; what is left of it can be executed in" in table.rollback(time, lost=gone).message
    with pytest.raises(InvalidRequestError, match="were given up"):
        table.run_compaction(time)
    assert table.compact(force=True) == []
    table.upsert(rows(("a", "x", 50)))
    (done,) = hasty(table).compact(force=False)
    assert done.instant == time
    assert contents(table) == [("a", "x", 50), BESIDE, ("d", "x", 12)]


@pytest.mark.parametrize("step", ["before its proof", "before its files", "before its commit"])
def test_an_executor_that_began_by_the_earlier_plan_ends_and_commits_nothing(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, time = scheduled()
    told: list[bool] = []

    def meanwhile(_: object) -> None:
        if not told:
            told.append(True)
            HudiTable(open_context(table.context.storage)).rollback(time, lost=lose(table, time, 1))

    if step == "before its files":
        mark = RightToWrite.mark

        def marked(right: RightToWrite, *more: Any, **named: Any) -> None:
            mark(right, *more, **named)
            meanwhile(right)

        monkeypatch.setattr(RightToWrite, "mark", marked)
    elif step == "before its proof":
        real = execute._Compaction.tasks

        def tasks(work: Any) -> Any:
            found = real(work)
            meanwhile(work)
            return found

        monkeypatch.setattr(execute._Compaction, "tasks", tasks)
    else:
        commit = Transaction.commit

        def later(txn: Transaction, *more: Any) -> None:
            meanwhile(txn)
            commit(txn, *more)

        monkeypatch.setattr(Transaction, "commit", later)
    with pytest.raises((WriteAbortedError, InvalidRequestError), match="were given up"):
        run_compaction(table.context, time, LocalEngine(1), max_memory=1 << 26)
    monkeypatch.undo()
    assert time not in {i.time for i in load_timeline(table.context).commits}
    with pytest.raises(InvalidRequestError, match="were given up"):
        run_compaction(table.context, time, LocalEngine(1), max_memory=1 << 26)
    hasty(table).compact()
    assert contents(table) == [("a", "x", 1), BESIDE, ("d", "x", 12)]


@pytest.mark.parametrize("stopped", [False, True], ids=["writers go on", "writers have ended"])
def test_a_fault_at_any_storage_call_of_giving_up_loses_no_other_row(
    stopped: bool, figure: Callable[[int, str], None]
) -> None:
    table, time = scheduled()
    start = table.context.storage
    gone = lose(table, time, 1)
    left = [("a", "x", 1), BESIDE, ("d", "x", 12)]

    def give_up(store: Any) -> None:
        HudiTable(open_context(store)).rollback(time, lost=gone, writers_stopped=stopped)

    done = 0
    for point in after_each_fault(start, give_up):
        store, where = copied(point.store), point.where
        other = HudiTable(open_context(store))
        assert contents(other) == left, where
        other.upsert(rows(("e", "x", 5)))
        give_up(store)
        hasty(other).compact()
        assert contents(other) == [*left, ("e", "x", 5)], where
        assert time in {i.time for i in load_timeline(other.context).commits}, where
        done += 1
    figure(done, "crash points")


def test_hudictl_gives_lost_files_up_as_the_doctor_advises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = str(tmp_path / "t")
    table, time = scheduled(uri)
    (path,) = lose(table, time, 1)
    (found,) = [f for f in open_table(uri).doctor() if "names this file" in f.message]
    assert f"hudictl rollback BASE {time} --lost {path} --yes" in found.advice
    assert main(["rollback", uri, time, "--lost", path, "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert "1 row of " in json.loads(printed.out)["details"][0]
    assert "nothing was changed" in printed.err
    assert main(["rollback", uri, time, "--lost", path, "--yes", "--writers-stopped"]) == 0
    assert "what is left of it is executed" in capsys.readouterr().out
    assert contents(open_table(uri)) == [("a", "x", 1), BESIDE, ("d", "x", 12)]
