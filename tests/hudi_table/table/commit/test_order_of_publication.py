"""What was decided appears in the order of the chain, and the next decision does not wait for it.

Aspects: a writer passes what others decided without publishing it, decides, and publishes that
before its own; so does whoever recovers; a plan that its walk comes to is there before it goes on;
what was deleted does not come back under another's claim; slots that others took are read at once,
beside a listing of what is new, which shows what another engine does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit import publish, recovery
from hudi_table.table.commit.decision import Decider
from hudi_table.table.commit.transaction import Transaction, begin, begin_plan
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from tests.support.decided import Killed, begun, decided_only, killed_before_publication
from tests.support.recording import RecordingStorage, Step, Trace
from tests.support.tables import commit_buckets, finish, memory_storage, new_context, reopen, write_file


def shown(ctx: TableContext) -> list[str]:
    return [i.time for i in load_timeline(ctx).commits][1:]


def published(steps: list[Step]) -> list[str]:
    """The completed files that were put, in order."""
    puts = (step.key for step in steps if step.call == "put" and step.key.endswith(".commit"))
    return [key.rpartition("/")[2].partition(".")[0] for key in puts]


def in_turn(store: Storage) -> tuple[Transaction, list[str]]:
    """An attempt, and three later ones that were decided before it and are not published: the
    oldest last."""
    commit_buckets(new_context(store), [9])
    trace = Trace()
    ours = begin(reopen(RecordingStorage(store, trace)), Action.COMMIT)
    ours.inflight()
    others = [begun(store) for _ in range(3)]
    return ours, [decided_only(store, bucket, txn) for bucket, txn in enumerate(reversed(others), 1)]


def test_what_was_decided_before_a_write_is_published_before_it_and_behind_its_decision():
    store = memory_storage()
    ours, before = in_turn(store)
    trace: Trace = ours.ctx.storage.trace  # type: ignore[attr-defined]
    trace.steps.clear()
    finish(ours, [write_file(ours, 0)], [0])
    assert published(trace.steps) == [*before, ours.time]
    decided = next(
        n for n, step in enumerate(trace.steps) if step.call == "put" and ".txn/" in step.key and step.result == "ok"
    )
    assert not published(trace.steps[:decided])
    assert shown(ours.ctx)[1:] == sorted([*before, ours.time])


def test_recovery_publishes_in_the_order_of_the_chain_whatever_the_instants_are():
    store = memory_storage()
    ours, before = in_turn(store)
    ours.abort()
    trace = Trace()
    ctx = reopen(RecordingStorage(store, trace))
    recovery.recover(ctx, load_timeline(ctx))
    assert published(trace.steps) == before
    assert before != sorted(before)


def test_the_writer_of_a_commit_that_is_taken_back_meanwhile_does_not_hold_up_who_comes_behind_it():
    store = memory_storage()
    commit_buckets(new_context(store), [9])
    ours, *others = begun(store), begun(store), begun(store)
    given_up, stands = (decided_only(store, bucket, txn) for bucket, txn in enumerate(others, 1))
    ctx = reopen(store)
    assert chain.append_abort(ctx, chain.read_tail(ctx), given_up)
    finish(ours, [write_file(ours, 0)], [0])
    assert shown(ours.ctx)[1:] == sorted([stands, ours.time])


def test_a_plan_that_the_walk_comes_to_is_there_before_the_decision_and_all_that_was_decided_before_it():
    store = memory_storage()
    commit_buckets(new_context(store), [9])
    trace = Trace()
    ours = begin(reopen(RecordingStorage(store, trace)), Action.COMMIT)
    ours.inflight()
    before = decided_only(store, 1)
    planner = begin_plan(reopen(store), Action.COMPACTION)
    store.delete(f".hoodie/{before}.commit")
    with killed_before_publication(), suppress(Killed):
        planner.plan(b"", {"another group"})
    trace.steps.clear()
    finish(ours, [write_file(ours, 0)], [0])
    puts = [
        step.key
        for step in trace.steps
        if step.call == "put" and step.key.startswith(".hoodie/") and step.result == "ok"
    ]
    names = [key.removeprefix(".hoodie/") for key in puts]
    plan = f"{planner.time}.compaction.requested"
    slot = next(name for name in names if name.startswith(".txn/"))
    assert [n for n in names if n in (f"{before}.commit", plan, slot, f"{ours.time}.commit")] == [
        f"{before}.commit", plan, slot, f"{ours.time}.commit",
    ]  # fmt: skip


def test_a_plan_whose_file_is_older_than_its_entry_says_nothing_of_what_was_decided_before():
    """As that of a clean, which tells the chain what it has deleted."""
    store = memory_storage()
    commit_buckets(new_context(store), [9])
    ours, other = begun(store), begun(store)
    before = decided_only(store, 1, other)
    ctx = reopen(store)
    tail = chain.read_tail(ctx)
    clean = f"{int(tail.max_instant) + 1}"
    store.put(f".hoodie/{clean}.clean.inflight", b"")
    told = ChainEntry.of(Kind.PLAN, clean, "clean", ("delta",), f"{clean}.clean.inflight", b"", max_instant=clean)
    chain.put_entry(ctx, tail.sequence + 1, told)
    finish(ours, [write_file(ours, 0)], [0])
    assert shown(ours.ctx)[1:] == sorted([before, ours.time])
    last = decided_only(store, 3)
    store.delete(f".hoodie/{before}.commit")
    entry = next(e for _, e in chain.entries_after(ctx, 0) if e.instant == last)
    store.delete(f".hoodie/{ours.time}.commit")
    publish.materialise(reopen(store), entry)
    assert shown(reopen(store))[1:] == sorted([before, ours.time, last])


def test_a_plan_that_was_deleted_does_not_come_back_under_the_claim_of_a_writer_that_drew_its_time():
    store = memory_storage()
    commit_buckets(new_context(store), [9])
    planner = begin_plan(reopen(store), Action.SAVEPOINT)
    planner.plan(b"kept", {"cleaning"})
    (entry,) = [e for _, e in chain.entries_after(planner.ctx, 0) if e.kind is Kind.PLAN]
    path = f".hoodie/{entry.name}"
    store.delete(path)
    store.put(f".hoodie/{planner.time}.commit.requested", b"")
    assert publish.materialise(reopen(store), entry)
    assert path not in {info.path for info in store.list(".hoodie")}


@pytest.mark.parametrize(("others", "looks"), [(1, 1), (3, 1), (5, 2), (11, 2)])
def test_slots_that_others_took_are_read_several_at_once(others: int, looks: int):
    """Each look begins with a listing, and that of the first is of the whole."""
    store, trace = memory_storage(), Trace()
    commit_buckets(new_context(store), [9])
    ours = begin(reopen(RecordingStorage(store, trace)), Action.COMMIT)
    ours.inflight()
    stat = write_file(ours, 0)
    for bucket in range(1, others + 1):
        commit_buckets(reopen(store), [bucket])
    trace.steps.clear()
    finish(ours, [stat], [0])
    listed = [step for step in trace.steps if step.call == "list" and step.key == ".hoodie"]
    assert len(listed) == looks
    assert sum(step.call == "list_dir" and step.key == ".hoodie" for step in trace.steps) == 1
    slots = [step for step in trace.steps if step.call == "put" and step.key.startswith(".hoodie/.txn/")]
    assert [step.result for step in slots] == ["ok"]


def beside_another_engine(act: Callable[[Storage, str], None]) -> Transaction:
    """An attempt that has lost a slot to another writer of ours, while another engine does
    something."""
    store = memory_storage()
    commit_buckets(new_context(store), [9])
    ours = begun(store)
    stat = write_file(ours, 0)
    real = Decider._look
    done = list[bool]()

    def look(self: Decider, number: int) -> object:
        if not done:
            done.append(True)
            act(store, ours.time)
        return real(self, number)

    commit_buckets(reopen(store), [1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Decider, "_look", look)
        finish(ours, [stat], [0])
    return ours


def foreign_commit(store: Storage, bucket: int) -> None:
    """Another engine's commit of a bucket, newer than all: the chain has no entry of it."""
    writer = reopen(store)
    known = {info.path for info in store.list(".hoodie/.txn")}
    commit_buckets(writer, [bucket])
    for info in store.list(".hoodie/.txn"):
        if info.path not in known:
            store.delete(info.path)


def test_what_another_engine_commits_while_a_writer_walks_is_a_conflict():
    with pytest.raises(WriteConflictError, match="another engine"):
        beside_another_engine(lambda store, _: foreign_commit(store, 0))


def test_what_another_engine_commits_elsewhere_while_a_writer_walks_is_none():
    ours = beside_another_engine(lambda store, _: foreign_commit(store, 5))
    assert ours.time in shown(ours.ctx)


def test_a_metadata_table_that_another_engine_builds_while_a_writer_walks_is_seen():
    def build(store: Storage, _: str) -> None:
        properties = store.get(".hoodie/hoodie.properties") if _exists(store) else b""
        store.put(".hoodie/hoodie.properties", properties + b"\nhoodie.table.metadata.partitions=files\n")
        store.put(".hoodie/metadata/.hoodie/hoodie.properties", b"")

    with pytest.raises(WriteConflictError, match="metadata table"):
        beside_another_engine(build)


def _exists(store: Storage) -> bool:
    return any(info.path == ".hoodie/hoodie.properties" for info in store.list(".hoodie"))


def test_what_another_engine_commits_while_a_plan_is_published_is_a_conflict():
    """What was listed beside the slots is older than that."""
    store = memory_storage()
    commit_buckets(new_context(store), [9])
    ours = begun(store)
    stat = write_file(ours, 0)
    planner = begin_plan(reopen(store), Action.COMPACTION)
    with killed_before_publication(), suppress(Killed):
        planner.plan(b"", {"another group"})
    real = publish.materialise

    def slow(ctx: TableContext, entry: ChainEntry) -> bool:
        foreign_commit(store, 0)
        return real(ctx, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hudi_table.table.commit.decision.materialise", slow)
        with pytest.raises(WriteConflictError, match="another engine"):
            finish(ours, [stat], [0])
