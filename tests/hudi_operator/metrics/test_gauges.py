"""Gauges of resources: what a document says, and nothing of what is gone. No API server: documents
as one stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from hudi_operator.api.resources import Key
from hudi_operator.metrics import catalog
from hudi_operator.metrics.resources import ResourceGauges, seconds_of
from tests.support.manifests import manifest, spec, stored
from tests.support.set_manifests import set_spec
from tests.support.tables import TestClock

STATUS = {
    "conditions": [
        {"type": "Ready", "status": "True"},
        {"type": "Fresh", "status": "False", "reason": "MessagesWaiting"},
        {"type": "Clean", "status": "Unknown"},
        {"type": "Somebody/Else", "status": "True"},
    ],
    "timeline": {
        "commits": 12,
        "files": 40,
        "pending": ["a", "b"],
        "oldestPending": "2026-01-01T00:00:01Z",
        "lastTime": "2026-01-01T00:00:00Z",
    },
    "data": {"files": 24, "partitions": 3, "bytes": 1000, "smallFileRatio": "0.08", "logBytes": 5},
    "services": [{"type": "Cleaning", "commitsSince": 7, "pending": ["x"]}],
    "ingest": [
        {
            "name": "feed",
            "lag": "5m12s",
            "pendingFiles": 2,
            "pendingBytes": 90,
            "retentionRemaining": "2d3h",
            "rate": 7.5,
            "refusedMessages": 3,
            "newestEventTime": "2026-01-01T00:00:10Z",
            "watermark": "2026-01-01T00:00:20Z",
        }
    ],
    "callbacks": [{"name": "hook", "lag": "1m5s", "lastError": "the receiver answered 503"}, {"name": "well"}],
    "runs": [{"name": "r2", "phase": "Running", "started": "2026-01-01T00:00:02Z"}, {"name": "r1", "phase": "Failed"}],
}
LABELS = {metric.name: metric.labels for metric in catalog.EVERY}


class Documents(dict[Key, Mapping[str, Any]]):
    """Resources as a cluster keeps them."""

    def keys(self) -> list[Key]:  # type: ignore[override]
        return sorted(super().keys())


@pytest.fixture
def documents() -> Documents:
    service = stored(manifest("shrink", "TableService", tableRef={"name": "flights"}, type="Cleaning"), status={
        "conditions": [{"type": "Ready", "status": "False"}],
        "runs": [{"phase": "Running"}, {"phase": "Failed"}],
        "plan": {"digest": "ab", "why": "", "bytesFreed": 77},
        "failures": 2,
        "bytesToClean": 99,
        "schedule": {"next": "2026-01-02T00:00:00Z"},
    })  # fmt: skip
    return Documents(
        {
            Key("HudiTable", "lake", "flights"): stored(manifest(**spec()), status=STATUS),
            Key("HudiTable", "lake", "new"): stored(manifest("new", **spec(suspend=True))),
            Key("TableService", "lake", "shrink"): service,
        }
    )


def series(documents: Documents, most: int = 100) -> dict[str, dict[tuple[str, ...], float]]:
    """Name → labels without the namespace → value, as a scrape tells them."""
    registry = CollectorRegistry()
    registry.register(ResourceGauges(documents, TestClock(), most))
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            namespace, *others = (sample.labels[label] for label in LABELS[sample.name])
            assert namespace == "lake"
            found.setdefault(sample.name, {})[tuple(others)] = sample.value
    return found


def test_a_table_is_told_as_its_status_says(documents: Documents) -> None:
    found = series(documents)
    labels = ("flights",)
    assert {name: values[labels] for name, values in found.items() if labels in values} == {
        "hudi_table_suspended": 0,
        "hudi_table_late": 1,
        "hudi_table_attempts_running": 1,
        "hudi_table_pending_instants": 2,
        "hudi_table_oldest_pending_timestamp_seconds": 1767225601,
        "hudi_table_timeline_commits": 12,
        "hudi_table_timeline_files": 40,
        "hudi_table_last_commit_timestamp_seconds": 1767225600,
        "hudi_table_freshness_seconds": (TestClock().now().timestamp() - 1767225600),
        "hudi_table_files": 24,
        "hudi_table_partitions": 3,
        "hudi_table_bytes": 1000,
        "hudi_table_log_bytes": 5,
        "hudi_table_small_file_ratio": 0.08,
    }
    assert found["hudi_table_commits_since"] == {("flights", "Cleaning"): 7}
    assert found["hudi_table_pending_plans"] == {("flights", "Cleaning"): 1}
    assert found["hudi_table_callback_lag_seconds"] == {("flights", "hook"): 65, ("flights", "well"): 0}
    assert found["hudi_table_callback_failing"] == {("flights", "hook"): 1, ("flights", "well"): 0}
    assert found["hudi_table_ingest_lag_seconds"] == {("flights", "feed"): 312}
    assert found["hudi_table_ingest_retention_remaining_seconds"] == {("flights", "feed"): 2 * 86_400 + 3 * 3_600}
    assert found["hudi_table_ingest_rate"] == {("flights", "feed"): 7.5}
    assert found["hudi_table_ingest_refused_messages"] == {("flights", "feed"): 3}
    assert found["hudi_table_ingest_newest_event_timestamp_seconds"] == {("flights", "feed"): 1767225610}
    assert found["hudi_table_ingest_watermark_timestamp_seconds"] == {("flights", "feed"): 1767225620}
    assert found["hudi_table_ingest_pending_files"] == {("flights", "feed"): 2}
    assert found["hudi_table_ingest_pending_bytes"] == {("flights", "feed"): 90}


@pytest.mark.parametrize(
    ("status", "reason", "late"),
    [
        ("False", "MessagesWaiting", 1),
        ("False", "CommitsWaiting", 1),
        ("False", "FilesLate", 1),
        ("False", "FilesWaiting", 0),
        ("False", "NothingCommitted", 0),
        ("Unknown", "SourceNotAsked", 0),
        ("True", "UpToDate", 0),
    ],
)
def test_a_table_is_late_by_its_own_freshness_alone(documents: Documents, status: str, reason: str, late: int) -> None:
    fresh = {"type": "Fresh", "status": status, "reason": reason}
    documents[Key("HudiTable", "lake", "flights")] = stored(manifest(**spec()), status={"conditions": [fresh]})
    assert series(documents)["hudi_table_late"] == {("flights",): late, ("new",): 0}


def test_every_condition_of_ours_is_one_or_zero_and_those_of_others_are_no_series(documents: Documents) -> None:
    conditions = series(documents)["hudi_table_condition"]
    assert {name for (table, name), value in conditions.items() if table == "flights" and value} == {"Ready"}
    assert {value for (table, _), value in conditions.items() if table == "new"} == {0}
    assert ("flights", "Somebody/Else") not in conditions
    assert len(conditions) == 2 * 18


def test_what_a_status_does_not_say_has_no_series(documents: Documents) -> None:
    found = series(documents)
    assert found["hudi_table_suspended"][("new",)] == 1
    assert ("new",) not in found["hudi_table_bytes"]
    assert "hudi_table_records" not in found


def test_bytes_that_are_not_known_are_not_none(documents: Documents) -> None:
    key = Key("HudiTable", "lake", "streamed")
    documents[key] = stored(manifest("streamed", **spec()), status={"ingest": [{"name": "feed", "pendingMessages": 3}]})
    found = series(documents)
    assert found["hudi_table_ingest_pending_messages"][("streamed", "feed")] == 3
    assert ("streamed", "feed") not in found["hudi_table_ingest_pending_bytes"]


def test_a_service_is_told_as_its_status_says(documents: Documents) -> None:
    found = series(documents)
    labels = ("shrink", "flights", "Cleaning")
    assert found["hudi_service_failures"][labels] == 2
    assert found["hudi_service_attempts_running"][labels] == 1
    assert found["hudi_service_plan_waits"][labels] == 1
    assert found["hudi_service_plan_bytes_freed"][labels] == 77
    assert found["hudi_service_bytes_to_clean"][labels] == 99
    assert found["hudi_service_next_run_timestamp_seconds"][labels] == 1767312000
    assert labels not in found.get("hudi_service_last_run_timestamp_seconds", {})


def test_a_set_is_told_as_its_status_says(documents: Documents) -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "NameCollision", "status": "True"}],
        "topics": 9, "tables": 8, "readyTables": 6, "failingTables": 3, "vanishedTopics": 1,
    }  # fmt: skip
    documents[Key("HudiTableSet", "lake", "shop")] = stored(
        manifest("shop", "HudiTableSet", **set_spec()), status=status
    )
    documents[Key("HudiTableSet", "lake", "new")] = stored(manifest("new", "HudiTableSet", **set_spec(suspend=True)))
    found = series(documents)
    told = {name: values[("shop",)] for name, values in found.items() if ("shop",) in values}
    assert told == {
        "hudi_table_set_suspended": 0, "hudi_table_set_topics": 9, "hudi_table_set_tables": 8, "hudi_table_set_tables_ready": 6,
        "hudi_table_set_tables_failing": 3, "hudi_table_set_topics_vanished": 1,
    }  # fmt: skip
    conditions = found["hudi_table_set_condition"]
    assert {name for (of, name), value in conditions.items() if of == "shop" and value} == {"NameCollision"}
    assert ("new",) not in found["hudi_table_set_topics"]
    assert found["hudi_table_set_suspended"][("new",)] == 1


def test_of_a_table_that_is_gone_nothing_remains(documents: Documents) -> None:
    assert any("flights" in labels for values in series(documents).values() for labels in values)
    for key in [each for each in documents if each.name != "new"]:
        del documents[key]
    assert {labels[0] for values in series(documents).values() for labels in values} == {"new"}


def test_more_tables_than_the_limit_have_no_series_and_are_counted(documents: Documents) -> None:
    found = series(documents, most=1)
    assert {labels[0] for name, values in found.items() for labels in values if name.startswith("hudi_table")} == {
        "flights"
    }
    assert ResourceGauges(documents, TestClock(), 1).left_out() == 1


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0), ("59s", 59), ("5m12s", 312), ("3d4h", 273_600), ("2h", 7200)])
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
