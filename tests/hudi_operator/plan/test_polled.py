"""What is planned for continuous drivers of sources of which only their job finds out what waits:
one at a time, one successor, and what the status says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch, Stop
from hudi_operator.plan.observed import (
    CommittedCheckpoint,
    Observed,
    QueueDepth,
    SourceObservation,
    TableObservation,
)
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.model.job.shards import ShardPosition, ShardPositions
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, NOW, desired, status_of, table

FILES = {"type": "Files", "path": "s3://landing/orders/", "format": "parquet"}
QUEUE = {"type": "Sqs", "queue": "https://sqs.eu-central-1.amazonaws.com/123456789012/landing"}
BY = {"incremental": {"column": "at"}}
ORDERS = [{"name": "orders", "location": "s3://lake/orders"}]
SOURCES: dict[str, dict[str, Any]] = {
    "files": FILES,
    "queue": {**FILES, "notifications": QUEUE},
    "database": {"type": "Jdbc", "jdbc": {"url": "postgresql://db/shop", "table": "orders", **BY}},
    "statement": {"type": "Sql", "sql": {"query": "SELECT * FROM orders", "tables": ORDERS, **BY}},
    "package": {"type": "Custom", "custom": {"name": "shop.api"}},
}
HELD: dict[str, Checkpoint | Mark | QueryMark | CustomMark] = {
    "files": Checkpoint("b1", "a", ("1.parquet",), frozenset({1})),
    "queue": Checkpoint("b1", "a", ("1.parquet",), frozenset({1})),
    "database": Mark("b1", "a", "at", "2026-01-01 00:00:00", 1, "7"),
    "statement": QueryMark("b1", "a", "s", {}, "at", "2026-01-01 00:00:00"),
    "package": CustomMark("b1", "a", "shop.api", "7"),
}
DOES = {
    "files": "the files at s3://landing/orders/",
    "queue": "its queue",
    "database": "its database",
    "statement": "the tables of its statement",
    "package": "shop.api",
}
KINDS = list(SOURCES)


def held(kind: str) -> TableObservation:
    return table(checkpoints={"feed": CommittedCheckpoint(HELD[kind], COMMIT.time)})


def planned(
    kind: str, found: TableObservation | None, *runs: RunStatus, seen: SourceObservation | None = None, **of: Any
) -> list[Effect]:
    generation = of.pop("generation", 1)
    asked = {"mode": "Continuous", "commitInterval": "2s", **of}
    wanted = desired(generation=generation, ingest=[ingest(source=SOURCES[kind], **asked)])
    seen = seen or SourceObservation("feed", queue=QueueDepth(0, 0) if kind == "queue" else None)
    return plan_table(wanted, Observed(table=found, sources=(seen,), runs=runs), NOW)


def launches(effects: list[Effect]) -> list[Launch]:
    return [effect for effect in effects if isinstance(effect, Launch)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_driver_follows_its_source_and_has_one_successor(kind: str) -> None:
    """Whether or not anything is seen to wait."""
    (first,) = launches(planned(kind, None))
    work = first.spec.work
    assert (first.spec.engine, work["mode"], work["commitIntervalSeconds"]) == ("Local", "Continuous", 2.0)
    said = next(c.message for c in status_of(planned(kind, None)).conditions if c.type == "Reconciling")
    assert said.endswith(f"it follows {DOES[kind]}")
    assert not launches(planned(kind, held(kind), first.run))
    lost = replace(first.run, phase="Lost", finished=rfc3339(NOW - timedelta(hours=1)))
    (second,) = launches(planned(kind, held(kind), lost))
    assert second.run.name != first.run.name
    assert not launches(planned(kind, held(kind), second.run, lost))


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_of_another_manifest_is_ended(kind: str) -> None:
    (first,) = launches(planned(kind, None))
    effects = planned(kind, held(kind), first.run, generation=2)
    assert [each.name for each in effects if isinstance(each, Stop)] == [first.run.name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_whose_source_is_away_is_started_again_as_often_as_it_takes(kind: str) -> None:
    (first,) = launches(planned(kind, None))
    failed = replace(first.run, phase="Failed", reason="Unavailable", finished=rfc3339(NOW - timedelta(hours=1)))
    runs = tuple(replace(failed, attempt=number, name=f"a{number}") for number in range(30, 0, -1))
    assert launches(planned(kind, None, *runs))


def test_files_are_told_how_large_a_commit_may_be() -> None:
    (launch,) = launches(planned("files", None))
    assert launch.spec.work["source"]["maxBytes"] == 256 << 20
    wanted = desired(ingest=[ingest(source={**FILES, "maxBytes": "1Gi"})])
    waits = SourceObservation("feed", (SourceFile("1", 5, "v", NOW),))
    (once,) = launches(plan_table(wanted, Observed(sources=(waits,)), NOW))
    assert once.spec.work["source"]["maxBytes"] == 1 << 30
    plain = plan_table(desired(ingest=[ingest(source=FILES)]), Observed(sources=(waits,)), NOW)
    assert "maxBytes" not in launches(plain)[0].spec.work["source"]


@pytest.mark.parametrize(("age", "limit", "status"), [(30, None, "True"), (61, None, "False"), (61, "5m", "True")])
def test_files_may_wait_for_as_long_as_freshness_says(age: int, limit: str | None, status: str) -> None:
    waits = SourceObservation("feed", (SourceFile("2.parquet", 5, "v", NOW - timedelta(seconds=age)),))
    effects = planned("files", held("files"), seen=waits, **({"freshness": limit} if limit else {}))
    told = status_of(effects)
    assert next(c.status for c in told.conditions if c.type == "Fresh") == status
    assert (told.ingest[0].pending_files, told.ingest[0].pending_bytes) == (1, 5)


@pytest.mark.parametrize("kind", ["database", "statement"])
def test_the_status_tells_the_greatest_value_that_was_read(kind: str) -> None:
    told = status_of(planned(kind, held(kind)))
    assert told.ingest[0].position == "2026-01-01 00:00:00"
    fresh = next(c for c in told.conditions if c.type == "Fresh")
    assert fresh.message == "the operator does not ask the source of feed: its driver finds out what is new"


def test_a_job_is_told_to_leave_out_rows_whose_key_is_stored() -> None:
    (launch,) = launches(planned("package", None, operation="Insert", dropDuplicates=True))
    assert launch.spec.work["dropDuplicates"] is True
    (launch,) = launches(planned("package", None, operation="Insert"))
    assert "dropDuplicates" not in launch.spec.work


def ranged(source: dict[str, Any], *runs: RunStatus, seen: SourceObservation | None = None) -> list[Effect]:
    wanted = desired(ingest=[ingest(name="feed", mode="Backfill", source=source)])
    return plan_table(wanted, Observed(sources=(seen or SourceObservation("feed"),), runs=runs), NOW)


def test_a_range_of_a_stream_is_not_late_and_nothing_of_it_is_at_risk() -> None:
    """What lies behind the range is another ingest's."""
    source = {"type": "Kinesis", "format": "json", "kinesis": {"stream": "orders"}, "range": {"until": "2026-01-01T00:00:00Z"}}  # fmt: skip
    wanted = desired(ingest=[ingest(name="feed", mode="Backfill", source=source)])
    positions = ShardPositions("orders", "arn", {"shardId-000000000000": ShardPosition("7", time=1)})
    found = table(checkpoints={"feed": CommittedCheckpoint(positions, COMMIT.time)})
    told = status_of(plan_table(wanted, Observed(table=found, sources=(SourceObservation("feed"),)), NOW))
    conditions = {each.type: each.status for each in told.conditions}
    assert conditions["Fresh"] == "True"
    assert "AtRisk" not in conditions


def test_a_range_of_a_database_is_taken_once() -> None:
    source = {**SOURCES["database"], "range": {"since": "2026-01-01", "until": "2026-02-01"}}
    (first,) = launches(ranged(source))
    assert first.spec.work["mode"] == "Backfill"
    assert first.spec.work["source"]["range"] == {"since": "2026-01-01", "until": "2026-02-01", "by": "Modified"}
    failed = replace(first.run, phase="Failed", reason="Unavailable", finished=rfc3339(NOW - timedelta(hours=1)))
    assert launches(ranged(source, failed))
    for phase in ("Succeeded", "NothingToDo"):
        done = replace(first.run, phase=phase, finished=rfc3339(NOW - timedelta(hours=1)))
        assert not launches(ranged(source, done))
