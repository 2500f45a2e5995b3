"""Another engine completes or plans something between our snapshot and our decision; the chain
knows nothing of it.

Matrix: what it does × what ours does there: ours fails where one of the two would be lost, and
stands where neither is. With a retry both are there. The other engine is ours on a copy, without
the chain. Omitted: real Hudi beside ours, which is in `tests/interop/test_beside.py`.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.cli import main
from hudi_table.errors import WriteAbortedError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.table.commit.foreign_writers import foreign_commits
from hudi_table.table.commit.rollback import rollback_plan
from hudi_table.table.commit.transaction import Transaction, begin
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import load_timeline
from tests.support.beside import another_engine, before_our_decision, seen_anew
from tests.support.meanwhile import Sleeper
from tests.support.recording import RecordingStorage, Trace

SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int64())])
RETRY = {"hoodie.write.num.retries.on.conflict.failures": "1"}
Act = Callable[[HudiTable], object]


def rows(*items: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


def new_table(index: str, kind="CopyOnWrite") -> HudiTable:
    asked: Any = {"type": "Bucket", "buckets": 2} if index == "bucket" else "Simple"
    table = create_table(
        f"memory://{uuid.uuid4().hex}/t", SCHEMA, record_key="id", partition_by=["p"], index=asked, type=kind, version=6
    )
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)))
    return table


def values(table: HudiTable) -> list[tuple[str, int]]:
    found = seen_anew(table).scan().to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True))


def upserts(*items: tuple[str, str, int]) -> Act:
    return lambda table: table.upsert(rows(*items))


CONFLICTS: dict[str, tuple[str, Act, tuple[str, str, int]]] = {
    "updates the same group": ("simple", upserts(("b", "x", 7)), ("a", "x", 5)),
    "updates the same bucket": ("bucket", upserts(("a", "x", 7)), ("a", "x", 5)),
    "inserts into the partition of an insert": ("simple", upserts(("n", "z", 7)), ("n", "z", 5)),
    "overwrites the partition": ("simple", lambda t: t.write(rows(("q", "x", 7)), operation="insert_overwrite"), ("a", "x", 5)),
    "drops the partition": ("simple", lambda t: t.write(None, operation="delete_partition", partitions=["x"]), ("a", "x", 5)),
    "adds a column": (
        "simple",
        lambda t: t.upsert(rows(("c", "y", 7)).append_column("w", pa.array([1], pa.int64()))),
        ("a", "x", 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("case", CONFLICTS)
def test_a_write_beside_one_of_another_engine_that_would_be_lost_is_a_conflict_and_a_retry_keeps_both(
    case: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, theirs, ours = CONFLICTS[case]
    expected = new_table(index, kind)
    theirs(expected)
    alone = values(expected)
    if case != "adds a column":
        seen_anew(expected).upsert(rows(ours))
    table = new_table(index, kind)
    with monkeypatch.context() as patch:
        before_our_decision(patch, table, theirs)
        with pytest.raises(WriteConflictError, match="another engine"):
            table.upsert(rows(ours))
    assert values(table) == alone
    table = new_table(index, kind)
    before_our_decision(monkeypatch, table, theirs)
    if case == "adds a column":
        # The rows were taken in for the schema before: who writes again is told the new one.
        with pytest.raises(WriteConflictError, match="schema was changed"):
            table.upsert(rows(ours), options=RETRY)
    else:
        table.upsert(rows(ours), options=RETRY)
        assert values(table) == values(expected)


STANDS: dict[str, tuple[str, Act, tuple[str, str, int]]] = {
    "another partition": ("simple", upserts(("c", "y", 7), ("n", "y", 7)), ("a", "x", 5)),
    "an insert into another partition": ("simple", upserts(("n", "z", 7)), ("m", "x", 5)),
    "an insert of another engine beside an update": (
        "simple",
        lambda t: t.write(rows(("n", "x", 7)), operation="bulk_insert"),
        ("a", "x", 5),
    ),
    "another bucket": ("bucket", upserts(("c", "y", 7)), ("a", "x", 5)),
    "a savepoint": ("simple", lambda t: t.savepoint(), ("a", "x", 5)),
}


@pytest.mark.parametrize("case", STANDS)
def test_a_write_beside_one_of_another_engine_that_touches_nothing_of_it_stands(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, theirs, ours = STANDS[case]
    expected, table = new_table(index), new_table(index)
    theirs(expected)
    seen_anew(expected).upsert(rows(ours))
    before_our_decision(monkeypatch, table, theirs)
    table.upsert(rows(ours))
    assert values(table) == values(expected)


def test_a_write_to_a_log_whose_slice_another_engine_plans_to_compact_is_a_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = new_table("bucket", "MergeOnRead")
    table.upsert(rows(("a", "x", 2)))
    before_our_decision(monkeypatch, table, lambda other: other.schedule_compaction(force=True))
    with pytest.raises(WriteConflictError, match="another engine plans to rewrite"):
        table.upsert(rows(("a", "x", 5)))
    table.upsert(rows(("a", "x", 5)))
    table.compact()
    assert ("a", 5) in values(table)


def test_a_write_to_a_group_that_another_engine_clusters_is_a_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table("simple")
    before_our_decision(monkeypatch, table, lambda other: other.cluster(force=True))
    with pytest.raises(WriteConflictError, match="another engine"):
        table.upsert(rows(("a", "x", 5)))


def test_a_compaction_is_planned_again_with_the_log_that_another_engine_wrote_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = new_table("bucket", "MergeOnRead")
    table.upsert(rows(("a", "x", 2)))
    before_our_decision(monkeypatch, table, upserts(("a", "x", 7)))
    table.schedule_compaction(force=True)
    table.compact()
    assert ("a", 7) in values(table)


def test_a_plan_of_ours_that_another_engine_executed_meanwhile_is_not_committed_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = new_table("bucket", "MergeOnRead")
    table.upsert(rows(("a", "x", 2)))
    table.schedule_compaction(force=True)
    before_our_decision(monkeypatch, table, lambda other: other.compact())
    before = values(table)
    with pytest.raises(WriteConflictError, match="another engine has executed the same plan"):
        table.compact()
    assert values(table) == before


def test_what_another_engine_does_while_an_executor_proves_its_right_anew_to_decide_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its last listing goes beside that of its markers; where a proof follows, another listing
    follows that."""
    table = new_table("bucket", "MergeOnRead")
    table.upsert(rows(("a", "x", 2)))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    clock = Sleeper()
    ours = HudiTable(open_context(table.context.storage, clock))
    commit, prove, acts = Transaction.commit, RightToWrite.prove, [lambda: another_engine(table, lambda o: o.compact())]

    def late(txn: Transaction, *given: Any) -> None:
        clock.slept += txn.right.renew_seconds + 1
        monkeypatch.setattr(RightToWrite, "prove", proving)
        commit(txn, *given)

    def proving(right: RightToWrite) -> None:
        prove(right)
        if acts:
            acts.pop()()

    monkeypatch.setattr(Transaction, "commit", late)
    with pytest.raises(WriteConflictError, match="another engine has executed the same plan"):
        ours.run_compaction(plan.instant)
    assert not acts


def test_a_write_that_another_engine_takes_for_failed_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi rolls pending writes back when it begins one, unless it is told to be lazy: claim and
    files are gone then."""

    def roll_back(other: HudiTable) -> None:
        (pending,) = load_timeline(other.context).pending
        time = pending.time
        for info in other.context.storage.list():
            if time in info.path:
                other.context.storage.delete(info.path)

    table = new_table("simple")
    before_our_decision(monkeypatch, table, roll_back)
    with pytest.raises(WriteAbortedError, match="another engine takes the instant"):
        table.upsert(rows(("a", "x", 5)))
    assert values(table) == [("a", 1), ("b", 1), ("c", 1)]


def test_a_write_that_another_engine_has_planned_to_take_back_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(other: HudiTable) -> None:
        (pending,) = load_timeline(other.context).pending
        target = Instant(pending.time, Action.COMMIT, State.INFLIGHT)
        name = ".hoodie/20981231000000000.rollback.requested"
        other.context.storage.put(name, rollback_plan(other.context, target, []))

    table = new_table("simple")
    before_our_decision(monkeypatch, table, plan)
    with pytest.raises(WriteAbortedError, match="another engine takes the instant"):
        table.upsert(rows(("a", "x", 5)))


def test_a_metadata_table_that_another_engine_built_meanwhile_misses_no_file_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = new_table("simple")
    before_our_decision(monkeypatch, table, lambda other: other.build_metadata())
    table.upsert(rows(("n", "z", 5)), options=RETRY)
    assert ("n", 5) in values(table)
    assert not [finding for finding in seen_anew(table).doctor() if finding.severity == "error"]


def test_commits_of_others_of_ours_are_told_from_those_of_another_engine() -> None:
    table = new_table("simple")
    table.upsert(rows(("a", "x", 2)))
    another_engine(table, upserts(("a", "x", 3)))
    table = seen_anew(table)
    table.upsert(rows(("a", "x", 4)))
    timeline = load_timeline(table.context)
    found = foreign_commits(table.context, timeline)
    assert found == (timeline.commits[-2],)


def test_the_command_tells_of_foreign_writers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = f"{tmp_path}/t"
    table = create_table(base, SCHEMA, record_key="id", partition_by=["p"], version=6)
    table.upsert(rows(("a", "x", 1)))
    assert main(["info", base, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["foreignWriters"] is None
    another_engine(table, upserts(("a", "x", 3)))
    assert main(["info", base]) == 0
    newest = load_timeline(table.context).commits[-1].time
    assert f"1 of the newest 3 commits, the last at {newest}" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("known", "listings", "gets"), [(False, 3, 1), (True, 2, 0)])
def test_a_commit_makes_as_many_requests_as_the_protocol_says(known: bool, listings: int, gets: int) -> None:
    """docs/explanation/commit-protocol.md section 9: the listing before the decision is one of
    them, beside the files and their proofs."""
    store, trace = new_table("bucket").context.storage, Trace()
    ctx = open_context(RecordingStorage(store, trace))
    if known:
        chain.read_tail(ctx)
    del trace.steps[:]
    txn = begin(ctx, Action.COMMIT)
    txn.inflight()
    txn.commit(CommitMetadata("UPSERT"), [f"instant:{txn.time}"])
    calls = Counter(step.call for step in trace.steps if ".temp" not in step.key)
    assert (calls["list"] + calls["list_dir"], calls["get"] + calls["head"], calls["put"]) == (listings, gets, 4)
