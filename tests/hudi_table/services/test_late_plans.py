"""Under a lock of both, a compaction that is planned while another engine writes leaves out none of
its rows."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.instants import parse_instant
from hudi_table.services import late_plans, planning
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Clock
from hudi_table.table.timeline.active import load_timeline
from tests.support.beside import OWN, carry_over, on_a_copy, seen_anew

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("v", pa.int64())])
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.wait_time_ms_between_retry": "10",
}


def row(key: str, value: int, city: str = "x") -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "city": city, "v": value}], schema=SCHEMA)


def values(table: HudiTable) -> list[int]:
    return sorted(seen_anew(table).scan().to_arrow()["v"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by=["city"], version=6, type="MergeOnRead",
        index={"type": "Bucket", "buckets": 1},
    )  # fmt: skip
    for value in (1, 2):
        made.upsert(row("a", value))
    return open_table(tmp_path / "t", lock=LOCK)


class Theirs:
    """A write of another engine, which reads now and commits later. It takes the lock for that."""

    def __init__(self, table: HudiTable, rows: pa.Table, clock: Clock | None = None) -> None:
        self.store = table.context.storage
        # A planner's claim is nothing to it, nor is the chain.
        self.before = {
            info.path: self.store.get(info.path)
            for info in self.store.list()
            if not info.path.endswith(".claim") and not (info.path.startswith(OWN) and info.path.endswith(".json"))
        }
        self.after = on_a_copy(self.before, lambda other: other.upsert(rows), clock)
        names = [path.rpartition("/")[2] for path in sorted(self.after.keys() - self.before.keys())]
        (self.requested,) = [name for name in names if name.endswith(".deltacommit.requested")]
        self.time = self.requested.partition(".")[0]
        self.store.put(f".hoodie/.heartbeat/{self.time}", b"")
        self.store.put(f".hoodie/{self.requested}", b"")

    def tells(self, *groups: tuple[str, str]) -> None:
        """Its inflight file, with the groups that it updates, and '' for inserts."""
        stats: dict[str, list[dict[str, object]]] = {}
        for partition, file_id in groups:
            stats.setdefault(partition, []).append({"fileId": file_id, "path": None, "prevCommit": "null"})
        body = json.dumps({"partitionToWriteStats": stats}).encode() if groups else b""
        self.store.put(f".hoodie/{self.time}.deltacommit.inflight", body)

    def commits(self) -> None:
        carry_over(self.before, self.after, self.store)
        self.store.delete(f".hoodie/.heartbeat/{self.time}")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_plans, "WAIT_SECONDS_MAX", 0.3)
    monkeypatch.setattr(planning, "ATTEMPTS_MAX", 2)


def planned_at(table: HudiTable) -> str:
    (plan,) = [i for i in load_timeline(table.context).pending if i.action.value == "compaction"]
    return plan.time


def while_planning(monkeypatch: pytest.MonkeyPatch, happen) -> None:
    """Behind the claim and the choice of file groups."""
    decide_late = late_plans.decide_late

    def late(txn: Transaction, touches, decide) -> None:
        monkeypatch.setattr(planning, "decide_late", decide_late)
        happen(txn)
        decide_late(txn, touches, decide)

    monkeypatch.setattr(planning, "decide_late", late)


def test_a_write_that_began_behind_the_planners_claim_and_goes_on_is_not_compacted_away(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, impatient: None
) -> None:
    begun = list[Theirs]()
    while_planning(monkeypatch, lambda txn: begun.append(Theirs(table, row("b", 7))))
    with pytest.raises(WriteConflictError, match=r"another engine's write of \d+ goes on"):
        table.schedule_compaction(force=True)
    assert not [path for path in table.context.storage.list(".hoodie") if path.path.endswith(".claim")]
    begun[0].commits()
    assert table.schedule_compaction(force=True) is not None
    table.compact()
    assert values(table) == [2, 7]


def test_a_plan_is_later_than_every_write_that_another_engine_has_begun(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So Hudi finds it when it commits: it looks at pending plans later than its own instant."""
    begun, claimed = list[Theirs](), list[str]()

    def happen(txn: Transaction) -> None:
        claimed.append(txn.time)
        begun.append(Theirs(table, row("b", 7)))
        long_ago = time.time() - 300
        os.utime(Path(table.base_path) / ".hoodie" / ".heartbeat" / begun[0].time, (long_ago, long_ago))

    while_planning(monkeypatch, happen)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    assert claimed[0] < begun[0].time < plan.instant == planned_at(table)
    names = [info.path for info in table.context.storage.list(".hoodie")]
    assert not [name for name in names if name.endswith(".claim")]
    table.compact()
    assert values(table) == [2]


def test_a_write_that_ends_while_the_planner_lets_it_go_first_is_in_the_compaction(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[Theirs]()
    while_planning(monkeypatch, lambda txn: begun.append(Theirs(table, row("b", 7))))
    sleep = SystemClock.sleep

    def sleeping(clock: SystemClock, seconds: float) -> None:
        if begun and f"{begun[0].time}.deltacommit" not in load_timeline(table.context).files:
            begun[0].commits()
        sleep(clock, seconds)

    monkeypatch.setattr(SystemClock, "sleep", sleeping)
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    assert plan.instant > begun[0].time
    table.compact()
    assert values(table) == [2, 7]


@pytest.mark.parametrize("inserts", [True, False])
def test_a_write_that_goes_on_in_another_partition_is_not_waited_for(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, impatient: None, inserts: bool
) -> None:
    def happen(txn: Transaction) -> None:
        Theirs(table, row("b", 7, "y")).tells(("y", "" if inserts else "00000000-another"))

    while_planning(monkeypatch, happen)
    assert table.schedule_compaction(force=True) is not None


@pytest.mark.parametrize("tells", [True, False])
def test_a_write_that_goes_on_in_the_same_partition_or_does_not_tell_where_is_waited_for(
    table: HudiTable, monkeypatch: pytest.MonkeyPatch, impatient: None, tells: bool
) -> None:
    def happen(txn: Transaction) -> None:
        Theirs(table, row("b", 7)).tells(*([("x", "")] if tells else []))

    while_planning(monkeypatch, happen)
    with pytest.raises(WriteConflictError, match="goes on and may change"):
        table.schedule_compaction(force=True)


def test_the_instant_of_a_plan_is_alone_on_the_timeline(table: HudiTable) -> None:
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    files = load_timeline(table.context).files
    assert [parse_instant(name) is not None for name in files if name.startswith(plan.instant)] == [True]
