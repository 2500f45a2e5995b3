"""Gauges of the resources, computed from their documents at each scrape: of what is deleted nothing
remains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hudi_operator.api.documents import is_driver, running_of
from hudi_operator.api.resources import Key
from hudi_operator.metrics import catalog
from hudi_operator.metrics.catalog import Metric
from hudi_operator.plan.status.conditions import FRESH, LATE
from hudi_table.table.store.ports import Clock

TABLES_MAX = 2_000
"""Tables with series of their own: some forty each."""
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
Sample = tuple[str, tuple[str, ...], float]
"""Name, labels, value."""


class Documents(Protocol):
    """Resources as they were last seen."""

    def keys(self) -> list[Key]:
        """Every resource, sorted."""
        ...

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """Its document, or None."""
        ...


class ResourceGauges(Collector):
    """The series of all HudiTables, HudiTableSets and TableServices; of the first `most` tables, if
    there are more."""

    def __init__(self, documents: Documents, clock: Clock, most: int = TABLES_MAX) -> None:
        self._documents = documents
        self._clock = clock
        self._most = most

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The families, without samples."""
        return [family(metric) for metric in (*catalog.TABLES, *catalog.SETS, *catalog.SERVICES)]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All families, with the samples of now."""
        families = {metric.name: family(metric) for metric in (*catalog.TABLES, *catalog.SETS, *catalog.SERVICES)}
        tables = {(key.namespace, key.name) for key in self._chosen()}
        for key in self._documents.keys():  # noqa: SIM118 - it is no mapping
            document = self._documents.get(key)
            if document is None:
                continue
            if key.kind == "HudiTable" and (key.namespace, key.name) in tables:
                samples = table_samples(key, document, self._clock.now())
            elif key.kind == "HudiTableSet":
                samples = set_samples(key, document)
            elif key.kind == "TableService" and (key.namespace, _table_of(document)) in tables:
                samples = service_samples(key, document)
            else:
                continue
            for name, labels, value in samples:
                families[name].add_metric(labels, value)
        yield from families.values()

    def left_out(self) -> int:
        """How many tables have no series."""
        return max(0, len(self._tables()) - self._most)

    def _tables(self) -> list[Key]:
        return [key for key in self._documents.keys() if key.kind == "HudiTable"]  # noqa: SIM118 - it is no mapping

    def _chosen(self) -> list[Key]:
        return self._tables()[: self._most]


def family(metric: Metric) -> GaugeMetricFamily:
    """A family without samples."""
    return GaugeMetricFamily(metric.name, metric.says, labels=metric.labels)


def table_samples(key: Key, document: Mapping[str, Any], now: datetime) -> Iterator[Sample]:
    """The samples of one HudiTable. What its status does not say has none."""
    labels = (key.namespace, key.name)
    status = document.get("status") or {}
    yield from _conditions("hudi_table_condition", labels, status, catalog.TABLE_CONDITIONS)
    yield "hudi_table_suspended", labels, float(bool(document["spec"].get("suspend")))
    late = [each for each in status.get("conditions", ()) if each["type"] == FRESH and each.get("reason") in LATE]
    yield "hudi_table_late", labels, float(bool(late))
    yield "hudi_table_attempts_running", labels, len(running_of(document))
    if status.get("tableVersion") is not None:
        yield "hudi_table_version", labels, status["tableVersion"]
    timeline, data = status.get("timeline"), status.get("data")
    if timeline is not None:
        yield "hudi_table_pending_instants", labels, len(timeline.get("pending", ()))
        oldest = timeline.get("oldestPending")
        if oldest is not None and not _may_be_at_work_on(document, oldest):
            yield "hudi_table_oldest_pending_timestamp_seconds", labels, datetime.fromisoformat(oldest).timestamp()
        yield "hudi_table_timeline_commits", labels, timeline.get("commits", 0)
        yield "hudi_table_timeline_files", labels, timeline.get("files", 0)
        last = timeline.get("lastTime")
        if last is not None:
            moment = datetime.fromisoformat(last)
            yield "hudi_table_last_commit_timestamp_seconds", labels, moment.timestamp()
            yield "hudi_table_freshness_seconds", labels, max(0.0, (now - moment).total_seconds())
    if data is not None:
        yield from _data(labels, data)
    for service in status.get("services", ()):
        of = (*labels, service["type"])
        yield "hudi_table_commits_since", of, service.get("commitsSince", 0)
        yield "hudi_table_pending_plans", of, len(service.get("pending", ()))
    for ingest in status.get("ingest", ()):
        yield from _ingest((*labels, ingest["name"]), ingest)
    for callback in status.get("callbacks", ()):
        of = (*labels, callback["name"])
        yield "hudi_table_callback_lag_seconds", of, seconds_of(callback.get("lag", "0s"))
        yield "hudi_table_callback_failing", of, float("lastError" in callback)


def _ingest(labels: tuple[str, ...], ingest: Mapping[str, Any]) -> Iterator[Sample]:
    yield "hudi_table_ingest_lag_seconds", labels, seconds_of(ingest.get("lag", "0s"))
    coming = ingest.get("schedule", {}).get("next")
    if coming is not None:
        moment = datetime.fromisoformat(coming)
        yield "hudi_table_ingest_next_run_timestamp_seconds", labels, moment.timestamp()
    yield "hudi_table_ingest_pending_files", labels, ingest.get("pendingFiles", 0)
    yield "hudi_table_ingest_refused_messages", labels, ingest.get("refusedMessages", 0)
    for name, field in {"pending_messages": "pendingMessages", "pending_bytes": "pendingBytes", "rate": "rate"}.items():
        if field in ingest:
            yield f"hudi_table_ingest_{name}", labels, ingest[field]
    if "retentionRemaining" in ingest:
        yield "hudi_table_ingest_retention_remaining_seconds", labels, seconds_of(ingest["retentionRemaining"])
    for name, field in {"newest_event": "newestEventTime", "watermark": "watermark"}.items():
        if field in ingest:
            moment = datetime.fromisoformat(ingest[field])
            yield f"hudi_table_ingest_{name}_timestamp_seconds", labels, moment.timestamp()


def set_samples(key: Key, document: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of one HudiTableSet."""
    status, labels = document.get("status") or {}, (key.namespace, key.name)
    yield from _conditions("hudi_table_set_condition", labels, status, catalog.SET_CONDITIONS)
    yield "hudi_table_set_suspended", labels, float(bool(document["spec"].get("suspend")))
    if status.get("topics") is not None:
        yield "hudi_table_set_topics", labels, status["topics"]
    counts = {"tables": "tables", "tables_ready": "readyTables", "tables_failing": "failingTables"}
    for name, field in {**counts, "topics_vanished": "vanishedTopics"}.items():
        yield f"hudi_table_set_{name}", labels, status.get(field, 0)


def service_samples(key: Key, document: Mapping[str, Any]) -> Iterator[Sample]:
    """The samples of one TableService."""
    spec, status = document["spec"], document.get("status") or {}
    labels = (key.namespace, key.name, _table_of(document), str(spec.get("type", "")))
    yield from _conditions("hudi_service_condition", labels, status, catalog.SERVICE_CONDITIONS)
    yield "hudi_service_suspended", labels, float(bool(spec.get("suspend")))
    yield "hudi_service_attempts_running", labels, len(running_of(document))
    yield "hudi_service_failures", labels, status.get("failures", 0)
    plan = status.get("plan")
    yield "hudi_service_plan_waits", labels, float(plan is not None)
    if plan is not None:
        yield "hudi_service_plan_bytes_freed", labels, plan.get("bytesFreed", 0)
    if status.get("bytesToClean") is not None:
        yield "hudi_service_bytes_to_clean", labels, status["bytesToClean"]
    moments = {"last": status.get("lastRunTime"), "next": (status.get("schedule") or {}).get("next")}
    for which, text in moments.items():
        if text is not None:
            yield f"hudi_service_{which}_run_timestamp_seconds", labels, datetime.fromisoformat(text).timestamp()


def seconds_of(duration: str) -> float:
    """`5m12s` → 312, as `human_duration` writes it."""
    return float(sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([dhms])", duration)))


def _data(labels: tuple[str, ...], data: Mapping[str, Any]) -> Iterator[Sample]:
    for field in ("records", "files", "partitions", "bytes"):
        if data.get(field) is not None:
            yield f"hudi_table_{field}", labels, data[field]
    yield "hudi_table_log_bytes", labels, data.get("logBytes", 0)
    if data.get("smallFileRatio") is not None:
        yield "hudi_table_small_file_ratio", labels, float(data["smallFileRatio"])


def _conditions(
    name: str, labels: tuple[str, ...], status: Mapping[str, Any], known: tuple[str, ...]
) -> Iterator[Sample]:
    true = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
    for condition in known:
        yield name, (*labels, condition), float(condition in true)


def _may_be_at_work_on(document: Mapping[str, Any], began: str) -> bool:
    """Whether an attempt is at work that may have begun something at that moment. A driver that has
    no end always is, and completes what it begins at each interval."""
    attempts = (run for run in running_of(document) if not is_driver(run))
    return any(run.get("started", "") <= began for run in attempts)


def _table_of(document: Mapping[str, Any]) -> str:
    return str(document.get("spec", {}).get("tableRef", {}).get("name", ""))
