"""Another engine began to take a committed write back, and died: its completed file is gone, its
files are not, or not all of them (measured on Hudi 0.15.0 and 1.2.0, merge-on-read). Whoever knows
that all writers have ended finishes it at once."""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvalidRequestError, UnsupportedTableError
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.rollback import rollback_plan
from hudi_table.table.commit.undo import restore_plan
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.instants import draw_instant
from tests.support.written import contents, new_table, rows


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest) -> HudiTable:
    made = new_table(type="MergeOnRead", version=request.param)
    made.upsert(rows(("a", "x", 1)))
    made.savepoint()
    made.upsert(rows(("a", "x", 2, 2), ("b", "y", 2)))
    return made


def begun(table: HudiTable) -> str:
    """The newest write turned back half way, as Hudi leaves it when it dies; the instant."""
    ctx = table.context
    target = load_timeline(ctx).last_commit
    assert target is not None
    undo = Instant(draw_instant(ctx, target.time), Action.ROLLBACK, State.REQUESTED)
    ctx.storage.put(ctx.layout.timeline_path(undo.file_name), rollback_plan(ctx, target, []))
    ctx.storage.put(ctx.layout.timeline_path(undo.with_state(State.INFLIGHT).file_name), b"")
    ctx.storage.delete(ctx.layout.timeline_path(target.file_name))
    return target.time


def test_who_knows_that_all_writers_have_ended_finishes_it(table: HudiTable) -> None:
    time = begun(table)
    assert table.rollback(time, writers_stopped=True).message == f"took back {time}"
    assert not [i for i in load_timeline(table.context).instants if i.time == time]
    assert not [info for info in table.context.storage.list() if time in info.path and ".txn" not in info.path]
    assert (contents(table), table.doctor(keys=True)) == ([("a", "x", 1)], ())
    assert table.rollback(time, writers_stopped=True).replayed
    table.upsert(rows(("c", "x", 3)))
    assert [key for key, *_ in contents(table)] == ["a", "c"]


def test_else_it_is_refused_and_nothing_changes(table: HudiTable) -> None:
    time = begun(table)
    before = sorted(info.path for info in table.context.storage.list())
    with pytest.raises(
        InvalidRequestError, match=f"of another engine has begun to take back {time}.*--writers-stopped"
    ):
        table.rollback(time)
    assert sorted(info.path for info in table.context.storage.list()) == before


def test_a_restore_takes_it_along(table: HudiTable) -> None:
    time = begun(table)
    (saved,) = (saved.instant for saved in table.savepoints())
    table.restore(saved, writers_stopped=True)
    assert not [info for info in table.context.storage.list() if time in info.path and ".txn" not in info.path]
    assert (contents(table), table.doctor(keys=True)) == ([("a", "x", 1)], ())


def restoring(table: HudiTable, savepoint: str) -> Instant:
    """A restore that died behind the newest of two writes: its completed file and data are gone."""
    table.upsert(rows(("c", "x", 3)))
    ctx = table.context
    newest, older = load_timeline(ctx).commits[:-3:-1]
    undo = Instant(draw_instant(ctx, newest.time), Action.RESTORE, State.REQUESTED)
    lost = [*commit_metadata(ctx, newest).paths, ctx.layout.timeline_path(newest.file_name)]
    ctx.storage.put(ctx.layout.timeline_path(undo.file_name), restore_plan([newest, older], savepoint))
    ctx.storage.put(ctx.layout.timeline_path(undo.with_state(State.INFLIGHT).file_name), b"")
    for path in lost:
        ctx.storage.delete(path)
    return undo


def test_a_restore_is_ended_too(table: HudiTable) -> None:
    (saved,) = (saved.instant for saved in table.savepoints())
    undo = restoring(table, saved)
    with pytest.raises(UnsupportedTableError, match=f"restore is pending at {undo.time}"):
        table.upsert(rows(("d", "x", 4)))
    with pytest.raises(
        InvalidRequestError, match=f"the restore {undo.time} of another engine has begun.*--writers-stopped"
    ):
        table.restore(saved)
    service = table.services.restore(saved)
    for plan in (service.plan, service(saved, plan="0" * 16).run):
        with pytest.raises(InvalidRequestError, match=f"{undo.time} of another engine is pending.*without a dry run"):
            plan()
    done = table.restore(saved, writers_stopped=True)
    assert (done.instant, done.figures["instants"]) == (undo.time, 2.0)
    assert (contents(table), table.doctor(keys=True)) == ([("a", "x", 1)], ())
    table.upsert(rows(("d", "x", 4)))
    assert contents(table) == [("a", "x", 1), ("d", "x", 4)]


def test_one_to_another_savepoint_is_named(table: HudiTable) -> None:
    (saved,) = (saved.instant for saved in table.savepoints())
    undo = restoring(table, "20200101000000000")
    with pytest.raises(
        InvalidRequestError, match=f"{undo.time} of another engine is pending, to savepoint 20200101000000000"
    ):
        table.restore(saved, writers_stopped=True)
