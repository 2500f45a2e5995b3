"""A compaction that was decided and then given up, as one is whose executor lost the lock before it
published, waits for nobody: other file groups are compacted beside it."""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.instants import Action
from hudi_table.services.compaction.debt import compaction_debt
from hudi_table.table.commit import decision
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.written import INDEXES, contents, new_table, rows, slices

EVERY_COMMIT = {"hoodie.compact.inline.max.delta.commits": "1"}


class KilledError(Exception):
    """An executor ends behind its decision."""


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest) -> HudiTable:
    """A row in each of two partitions, both updated, so in logs."""
    made = new_table(index=INDEXES["bucket"], type="MergeOnRead", version=request.param)
    made.insert(rows(("a", "x", 1), ("b", "y", 2)))
    made.upsert(rows(("a", "x", 10)))
    return made


def given_up(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> str:
    """The instant of a compaction of x whose executor died behind its decision, and which was given
    up then."""
    plan = table.schedule_compaction(force=True)
    assert plan is not None

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as changes:
        changes.setattr(decision.Decider, "publish", killed)
        with pytest.raises(KilledError):
            table.run_compaction(plan.instant)
    ctx = table.context
    tail = chain.read_tail(ctx)
    found = chain.find_decision(ctx, plan.instant, tail.sequence)
    assert found is not None
    assert found[1].kind is Kind.COMMIT
    assert chain.append_abort(ctx, tail, plan.instant)
    return plan.instant


def waiting(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).pending if i.action is Action.COMPACTION]


def test_other_file_groups_are_compacted_beside_it(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = given_up(table, monkeypatch)
    table.upsert(rows(("b", "y", 20)))
    done = table.compact(force=True)
    assert [result.figures["fileGroups"] for result in done] == [1.0]
    assert waiting(table) == [gone]
    assert [found.partition for found in slices(table) if found.logs] == ["x"]
    assert contents(table) == [("a", "x", 10), ("b", "y", 20)]
    assert table.compact(force=True) == []


def test_inline_compactions_go_on_beside_it(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up(table, monkeypatch)
    table.upsert(rows(("b", "y", 20)), options={"hoodie.compact.inline": "true", **EVERY_COMMIT})
    assert [found.partition for found in slices(table) if found.logs] == ["x"]


def test_it_is_no_debt_that_anybody_could_pay(table: HudiTable, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = given_up(table, monkeypatch)
    ctx = table.context
    debt = compaction_debt(FileSystemView(ctx, load_timeline(ctx)), EVERY_COMMIT)
    assert (debt.pending, debt.why) == ((), None)
    with pytest.raises(WriteConflictError, match="was given up"):
        table.run_compaction(gone)
