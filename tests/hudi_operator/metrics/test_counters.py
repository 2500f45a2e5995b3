"""What is counted: each start and each end of an attempt once, by work, launcher and outcome;
looks; calls of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hudi_operator.api.resources import Key
from hudi_operator.metrics.counters import Counters, new_registry, request_counter

TABLE, SERVICE = Key("HudiTable", "lake", "flights"), Key("TableService", "lake", "nightly")
DOCUMENTS: dict[Key, Mapping[str, Any]] = {
    TABLE: {"spec": {"spark": {"launcher": "Job"}}},
    SERVICE: {"spec": {"tableRef": {"name": "flights"}}},
}


class Known:
    """Documents of two resources."""

    def keys(self) -> list[Key]:
        return sorted(DOCUMENTS)

    def get(self, key: Key) -> Mapping[str, Any] | None:
        return DOCUMENTS.get(key)


@pytest.fixture
def registry() -> CollectorRegistry:
    return new_registry()


@pytest.fixture
def counters(registry: CollectorRegistry) -> Counters:
    return Counters(registry, Known())


def run(number: int, phase: str, work: str = "Ingest/feed", **more: Any) -> dict[str, Any]:
    return {"name": f"flights-{number}", "work": work, "phase": phase, "attempt": number, "batch": "b", **more}


def status(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"runs": list(runs)}


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(f"hudi_operator_{name}", labels) or 0.0


def test_an_attempt_is_counted_once_when_it_starts_and_once_when_it_ends(
    counters: Counters, registry: CollectorRegistry
) -> None:
    running = status(run(1, "Running"))
    ended = status(run(1, "Succeeded", started="2026-01-01T00:00:00Z", finished="2026-01-01T00:00:07Z"))
    counters.reported(TABLE, {}, running)
    counters.reported(TABLE, running, running)
    counters.reported(TABLE, running, ended)
    # The watch brings back what was overtaken, and the same is reported again.
    counters.reported(TABLE, running, ended)
    counters.reported(TABLE, {}, running)
    of = {"work": "Ingest", "launcher": "Job"}
    assert value(registry, "attempts_started_total", **of) == 1
    assert value(registry, "attempts_ended_total", **of, outcome="Succeeded") == 1
    assert value(registry, "attempt_seconds_sum", work="Ingest") == 7


def test_a_driver_that_ended_for_want_of_memory_is_counted(counters: Counters, registry: CollectorRegistry) -> None:
    running = status(run(1, "Running"), run(2, "Running"))
    ended = status(run(1, "Succeeded", figures={"commits": 3.0, "residentBytes": 1.0}), run(2, "Succeeded", figures={}))
    counters.reported(TABLE, running, ended)
    assert value(registry, "drivers_recycled_total") == 1


def test_what_had_ended_before_this_process_began_is_not_counted(
    counters: Counters, registry: CollectorRegistry
) -> None:
    old = status(run(1, "Failed"))
    counters.reported(TABLE, old, old)
    assert value(registry, "attempts_ended_total", work="Ingest", launcher="Job", outcome="Failed") == 0


def test_a_repeat_is_told_apart_from_a_new_batch(counters: Counters, registry: CollectorRegistry) -> None:
    failed = run(1, "Failed")
    counters.reported(TABLE, status(failed), status(run(2, "Running"), failed))
    counters.reported(TABLE, status(failed), status(run(3, "Running", batch="other"), failed))
    assert value(registry, "attempts_repeated_total", work="Ingest") == 1
    assert value(registry, "attempts_started_total", work="Ingest", launcher="Job") == 2


def test_a_service_has_the_launcher_of_its_table_and_a_dry_run_is_told_apart(
    counters: Counters, registry: CollectorRegistry
) -> None:
    counters.reported(SERVICE, {}, status(run(1, "Running", "Clustering/Plan"), run(2, "Running", "Clustering")))
    assert value(registry, "attempts_started_total", work="Clustering/Plan", launcher="Job") == 1
    assert value(registry, "attempts_started_total", work="Clustering", launcher="Job") == 1


def test_looks_and_calls_are_counted_by_name(counters: Counters, registry: CollectorRegistry) -> None:
    counters.reconciled(TABLE, 0.2, None)
    counters.reconciled(TABLE, 0.3, "Unavailable")
    called = request_counter(registry)
    called("PATCH", "200")
    called("GET", "unreachable")
    assert value(registry, "reconcile_seconds_count", kind="HudiTable") == 2
    assert value(registry, "reconcile_errors_total", kind="HudiTable", error="Unavailable") == 1
    assert value(registry, "api_requests_total", verb="patch", code="200") == 1
    assert value(registry, "api_requests_total", verb="get", code="unreachable") == 1
