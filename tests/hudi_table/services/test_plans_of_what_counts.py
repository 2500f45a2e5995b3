"""Plans and savepoints name files of decided commits alone, and a plan that names a file that is
gone holds nothing up.

Aspects: a write that has put its files and is not decided, beside planners of every service; a log
that goes while it is planned; a plan that names a log that never counted; one that names a file
whose rows count; a log compaction that is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import CorruptTableError, InvalidRequestError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.service.services import ServicePlan
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.compaction import debt
from hudi_table.services.compaction.execute import run_compaction
from hudi_table.table.commit import recovery
from hudi_table.table.commit.pending_plans import held_groups
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.rows import log_scan
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.view.clustering_plans import planned_clustering
from hudi_table.table.view.compaction_plans import PlannedSlice, parse_plan, plan_body, planned_slices
from tests.support.undecided import lose
from tests.support.written import INDEXES, contents, new_table, rows

BUCKETS = {"hoodie.bucket.index.num.buckets": "5"}
KEEP = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
LOST = rows(("a", "x", 99), ("n", "z", 99))
"""An update, and the first row of a partition."""
ROWS = [("a", "x", 12), ("b", "y", 2)]


def logs(index: str = "simple") -> HudiTable:
    """Keys a and b in x and y; of a, a base file and two logs."""
    table = new_table(index=INDEXES[index], type="MergeOnRead")
    table.insert(rows(("a", "x", 1), ("b", "y", 2)))
    table.compact(force=True)
    for value in (11, 12):
        table.upsert(rows(("a", "x", value)))
    return table


def compaction(table: HudiTable) -> ServicePlan | None:
    return table.schedule_compaction(force=True)


def log_compaction(table: HudiTable) -> ServicePlan | None:
    return table.services.log_compaction(force=True).schedule()


def clustering(table: HudiTable) -> ServicePlan | None:
    return table.schedule_clustering(force=True)


def resize(table: HudiTable) -> ServicePlan | None:
    return table.services.resize(5).schedule()


def named(table: HudiTable, time: str) -> set[str]:
    """The files that the pending plan of an instant names."""
    (instant,) = [i for i in load_timeline(table.context).pending if i.time == time]
    if instant.action is Action.REPLACE_COMMIT:
        plan = planned_clustering(table.context, instant)
        slices: list[PlannedSlice] = [] if plan is None else list(plan.slices)
    else:
        slices = planned_slices(table.context, instant)
    return {path for item in slices for path in (item.base_path, *item.log_paths) if path is not None}


def files(table: HudiTable) -> set[str]:
    return {info.path for info in table.context.storage.list() if not info.path.startswith(".hoodie/")}


@pytest.mark.parametrize(
    ("plan", "index"),
    [(compaction, "simple"), (log_compaction, "simple"), (clustering, "simple"), (compaction, "bucket"), (resize, "bucket")],
)  # fmt: skip
def test_a_plan_names_no_file_of_a_write_that_is_not_decided(
    plan: Callable[[HudiTable], ServicePlan | None], index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = logs(index)
    before, found = files(table), []
    lose(table, LOST, lambda _: found.append(plan(table)), monkeypatch)
    (planned,) = found
    assert planned is not None
    assert named(table, planned.instant) <= before
    assert "z" not in {path.partition("/")[0] for path in named(table, planned.instant)}


@pytest.mark.parametrize("plan", [compaction, log_compaction])
def test_a_log_that_goes_while_it_is_planned_is_not_named(
    plan: Callable[[HudiTable], ServicePlan | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner looks once before it claims its instant and once after; the write gives up before
    the second look."""
    table, looks, real = logs(), [], log_scan.rows_of

    def meanwhile(txn: Transaction) -> ServicePlan | None:
        def rows_of(storage: Any, path: str) -> frozenset[str] | None:
            looks.append(path)
            if len(looks) == 2:
                txn.abort()
            return real(storage, path)

        monkeypatch.setattr(debt, "rows_of", rows_of)
        planned = plan(table)
        monkeypatch.setattr(debt, "rows_of", real)
        return planned

    found = []
    lose(table, LOST, lambda txn: found.append(meanwhile(txn)), monkeypatch)
    assert len(looks) == 2
    assert found[0] is not None
    assert named(table, found[0].instant) <= files(table)


def test_a_resize_beside_a_write_that_gives_up_is_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = logs("bucket")
    lose(table, LOST, lambda _: resize(table), monkeypatch)
    table.resize_buckets(5)
    assert contents(table) == ROWS
    assert load_timeline(table.context).pending == ()


def test_a_savepoint_beside_a_write_that_gives_up_can_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    table = logs()
    lose(table, LOST, lambda _: table.savepoint(), monkeypatch)
    (kept,) = table.savepoints()
    assert {f"{partition}/{name}" for partition, names in kept.files.items() for name in names} <= files(table)
    table.upsert(rows(("a", "x", 13)))
    table.restore(kept.instant, writers_stopped=True)
    assert contents(table) == ROWS


def with_a_log_that_never_counted(table: HudiTable, action: Action) -> Instant:
    """A pending plan as releases up to now could make it: one of its logs was a failed write's,
    which has taken it away."""
    planned = (compaction if action is Action.COMPACTION else log_compaction)(table)
    assert planned is not None
    instant = Instant(planned.instant, action, State.REQUESTED)
    path = f".hoodie/{instant.file_name}"
    (item,) = parse_plan(table.context.storage.get(path))
    last = item.logs[-1]
    lost = last.replace(last.rpartition("_")[2], "20991231-235959999-0")
    slices = [
        PlannedSlice(item.partition, item.file_id, item.base_instant, item.base, (*item.logs, lost), item.metrics)
    ]
    strategy = None if action is Action.COMPACTION else "org.apache.hudi.Any"
    table.context.storage.put(path, plan_body(slices, strategy))
    return instant


def execute(table: HudiTable, instant: Instant) -> None:
    if instant.action is Action.COMPACTION:
        table.run_compaction(instant.time)
    else:
        table.compact_logs()


PLANNED = pytest.mark.parametrize("action", [Action.COMPACTION, Action.LOG_COMPACTION])


@PLANNED
def test_a_plan_that_names_a_log_that_never_counted_is_executed_and_archiving_passes_it(action: Action) -> None:
    table = logs()
    instant = with_a_log_that_never_counted(table, action)
    assert not [found for found in table.doctor() if "names this file" in found.message]
    execute(table, instant)
    assert contents(table) == ROWS
    assert instant.time in {i.time for i in load_timeline(table.context).commits}
    for value in range(4):
        table.upsert(rows(("b", "y", value)))
    table.compact(force=True)
    hasty = HudiTable(open_context(table.context.storage, settings=TxnSettings(0.0, 900.0)))
    hasty.archive(KEEP, force=True)
    assert instant.time not in {i.time for i in load_timeline(table.context).instants}


@PLANNED
def test_a_plan_that_names_a_file_whose_rows_count_and_that_is_gone_is_refused_by_its_name(action: Action) -> None:
    table = logs()
    planned = (compaction if action is Action.COMPACTION else log_compaction)(table)
    assert planned is not None
    gone = max(path for path in named(table, planned.instant) if ".log." in path)
    table.context.storage.delete(gone)
    assert [found.path for found in table.doctor() if "names this file" in found.message] == [gone]
    with pytest.raises(CorruptTableError, match="whose rows count, and it is gone") as caught:
        execute(table, Instant(planned.instant, action, State.REQUESTED))
    assert caught.value.path == gone


def test_a_log_compaction_is_given_up_by_name_and_planned_again() -> None:
    table = logs()
    planned = log_compaction(table)
    assert planned is not None
    table.rollback(planned.instant, writers_stopped=True)
    assert planned.instant not in {i.time for i in load_timeline(table.context).instants}
    assert contents(table) == ROWS
    (done,) = table.compact_logs(force=True)
    assert done.instant > planned.instant
    assert contents(table) == ROWS


def test_a_log_compaction_that_is_given_up_holds_nothing_and_goes_after_its_quarantine() -> None:
    table = logs()
    planned = log_compaction(table)
    assert planned is not None
    assert "leaves the timeline when nothing late can come" in table.rollback(planned.instant).message
    ctx = table.context
    assert held_groups(ctx, load_timeline(ctx)) == {}
    assert table.compact_logs(force=True)
    with pytest.raises(WriteConflictError, match="was given up"):
        run_compaction(ctx, planned.instant, LocalEngine(), max_memory=1 << 26, action=Action.LOG_COMPACTION)
    aged = open_context(ctx.storage, settings=TxnSettings(0.0, 900.0))
    assert recovery.recover(aged, load_timeline(aged)) == (planned.instant,)
    assert planned.instant not in {i.time for i in load_timeline(ctx).instants}
    assert contents(table) == ROWS


def test_a_compaction_by_whose_plan_writers_have_named_their_logs_is_not_given_up() -> None:
    table = logs()
    planned = compaction(table)
    assert planned is not None
    with pytest.raises(InvalidRequestError, match="named their logs by it"):
        table.rollback(planned.instant)
