"""Another engine restores the table to before a clustering of ours, and leaves its plan (Hudi 1.1.1
and 1.2.0 on versions 8 and 9, measured): what the chain has decided of it does not come back."""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.publish import is_given_up
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.table.timeline.instants import draw_instant
from tests.support.meanwhile import AtCall
from tests.support.written import contents, keys, new_table, rows

BOTH = [("a", "x", 1), ("b", "y", 2)]


@pytest.fixture(params=[8, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def table(version: int) -> HudiTable:
    made = new_table(type="MergeOnRead", version=version, index="Simple", partitioned=False)
    made.upsert(rows(*BOTH))
    return made


def restored(table: HudiTable) -> str:
    """Its newest commit taken back as Hudi does, but for the plan; the instant."""
    ctx = table.context
    target = load_timeline(ctx).last_commit
    assert target is not None
    for path in [*commit_metadata(ctx, target).paths, ctx.layout.timeline_path(target.file_name)]:
        ctx.storage.delete(path)
    undo = Instant(draw_instant(ctx, target.time), Action.RESTORE, State.REQUESTED)
    for state in (State.REQUESTED, State.INFLIGHT):
        ctx.storage.put(ctx.layout.timeline_path(undo.with_state(state).file_name), b"")
    ctx.storage.put(ctx.layout.timeline_path(ctx.layout.completed(undo).file_name), b"")
    return target.time


def test_it_does_not_come_back_and_is_given_up(table: HudiTable) -> None:
    table.cluster(force=True)
    time = restored(table)
    caught_up(table.context)
    assert contents(table) == BOTH
    assert not load_timeline(table.context).is_completed(time)
    with pytest.raises(WriteConflictError, match="was given up"):
        table.run_clustering(time)


def test_one_of_deleted_rows_alone_does_not_hide_them_again(table: HudiTable) -> None:
    table.delete(keys(("a", "x"), ("b", "y")))
    deleted = load_timeline(table.context).last_commit
    table.cluster(force=True)
    time = restored(table)
    assert deleted is not None
    ctx = table.context
    for path in [
        *commit_metadata(ctx, deleted).paths,
        *(ctx.layout.timeline_path(n) for n in load_timeline(ctx).own_names(deleted)),
    ]:
        ctx.storage.delete(path)
    caught_up(ctx)
    assert not load_timeline(ctx).is_completed(time)
    assert contents(table) == BOTH


def test_once_it_seems_dead_its_groups_take_rows_and_who_knows_that_all_have_ended_takes_the_plan_away(
    table: HudiTable,
) -> None:
    table.cluster(force=True)
    time = restored(table)
    later = HudiTable(open_context(table.context.storage, settings=TxnSettings(suspect_after_seconds=0.0)))
    later.upsert(rows(("a", "x", 5, 2)))
    assert contents(table) == [("a", "x", 5), ("b", "y", 2)]
    assert load_timeline(table.context).claim_names(time)
    table.rollback(time, writers_stopped=True)
    assert not load_timeline(table.context).claim_names(time)
    assert contents(table) == [("a", "x", 5), ("b", "y", 2)]
    assert not [found for found in table.doctor(keys=True) if ".restore" not in found.path]


def test_one_that_others_publish_and_clean_meanwhile_is_not_given_up_at_any_interleaving(version: int) -> None:
    calls, at = 1, 0
    while at < calls:
        at += 1
        table = new_table(type="MergeOnRead", version=version, index="Simple", partitioned=False)
        table.upsert(rows(*BOTH))
        table.cluster(force=True)
        inner, clustered = table.context.storage, load_timeline(table.context).last_commit
        assert clustered is not None
        completed = table.context.layout.timeline_path(clustered.file_name)
        published, written = inner.get(completed), commit_metadata(table.context, clustered).paths
        inner.delete(completed)

        def others(
            inner: Storage = inner,
            completed: str = completed,
            published: bytes = published,
            written: set[str] = written,
        ) -> None:
            inner.put(completed, published)
            for path in written:
                inner.delete(path)

        storage = AtCall(inner, at, others)
        caught_up(open_context(storage))
        assert not is_given_up(table.context, clustered.time)
        calls = storage.calls
    assert calls > 10
