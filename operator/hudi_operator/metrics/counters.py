"""What is counted as it happens, from the start of the process on: reconciles, calls of the API
server, attempts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics

from hudi_operator.api.fields.spark import Launcher
from hudi_operator.api.resources import Key
from hudi_operator.metrics import catalog
from hudi_operator.metrics.catalog import Metric
from hudi_operator.metrics.resources import Documents
from hudi_operator.plan.schedule.runs import DONE
from hudi_table.model.job.jobspec import RESIDENT_BYTES

REMEMBERED_MAX = 10_000
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def new_registry() -> CollectorRegistry:
    """A registry of this process, with what it uses of its machine. When a series began is not
    told: that doubles the series."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no type for it
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


def request_counter(registry: CollectorRegistry) -> Callable[[str, str], None]:
    """What counts the calls of the API server."""
    requests = _counter(registry, catalog.API_REQUESTS)

    def called(method: str, code: str) -> None:
        requests.labels(VERBS.get(method, "other"), code).inc()

    return called


class Counters:
    """The Meter of the operator's process. For several threads at once."""

    def __init__(self, registry: CollectorRegistry, documents: Documents) -> None:
        self._documents = documents
        self._seconds = _histogram(registry, catalog.RECONCILE_SECONDS, catalog.RECONCILE_BUCKETS)
        self._errors = _counter(registry, catalog.RECONCILE_ERRORS)
        self._started = _counter(registry, catalog.ATTEMPTS_STARTED)
        self._repeated = _counter(registry, catalog.ATTEMPTS_REPEATED)
        self._ended = _counter(registry, catalog.ATTEMPTS_ENDED)
        self._recycled = _counter(registry, catalog.DRIVERS_RECYCLED)
        self._lasted = _histogram(registry, catalog.ATTEMPT_SECONDS, catalog.ATTEMPT_BUCKETS)
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], None] = {}

    def reconciled(self, key: Key, seconds: float, error: str | None) -> None:
        """A reconcile of a resource has ended, well or with the named error."""
        self._seconds.labels(key.kind).observe(seconds)
        if error is not None:
            self._errors.labels(key.kind, error).inc()

    def reported(self, key: Key, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Attempts are counted where their start and their end stand in a status for the first
        time."""
        phases = {run["name"]: run["phase"] for run in before.get("runs", ())}
        runs = list(after.get("runs", ()))
        for run in runs:
            if run["phase"] == phases.get(run["name"]):
                continue
            if run["name"] not in phases and self._is_first(key, run["name"], "start"):
                self._starts(key, run, runs)
            if run["phase"] != "Running" and self._is_first(key, run["name"], "end"):
                self._ends(key, run)

    def _starts(self, key: Key, run: Mapping[str, Any], runs: list[Mapping[str, Any]]) -> None:
        self._started.labels(_work(run), self._launcher_of(key)).inc()
        same = [other for other in runs if other.get("batch") == run.get("batch") and other["work"] == run["work"]]
        if any(other["attempt"] < run["attempt"] and other["phase"] not in DONE for other in same):
            self._repeated.labels(_work(run)).inc()

    def _ends(self, key: Key, run: Mapping[str, Any]) -> None:
        self._ended.labels(_work(run), self._launcher_of(key), run["phase"]).inc()
        if RESIDENT_BYTES in run.get("figures", {}):
            self._recycled.inc()
        if run.get("started") and run.get("finished"):
            lasted = datetime.fromisoformat(run["finished"]) - datetime.fromisoformat(run["started"])
            self._lasted.labels(_work(run)).observe(max(0.0, lasted.total_seconds()))

    def _is_first(self, key: Key, name: str, what: str) -> bool:
        """Whether this is new: the watch may bring a status back that was overtaken, and then
        nothing has happened twice."""
        with self._lock:
            known = (f"{key.namespace}/{name}", what)
            if known in self._known:
                return False
            self._known[known] = None
            if len(self._known) > REMEMBERED_MAX:
                del self._known[next(iter(self._known))]
            return True

    def _launcher_of(self, key: Key) -> str:
        """The launcher that the table of a resource names."""
        document = self._documents.get(key) or {}
        if key.kind == "TableService":
            name = document.get("spec", {}).get("tableRef", {}).get("name", "")
            document = self._documents.get(Key("HudiTable", key.namespace, name)) or {}
        return str(document.get("spec", {}).get("spark", {}).get("launcher", Launcher.AUTO.value))


def _counter(registry: CollectorRegistry, metric: Metric) -> Counter:
    return Counter(metric.name, metric.says, metric.labels, registry=registry)


def _histogram(registry: CollectorRegistry, metric: Metric, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(metric.name, metric.says, metric.labels, buckets=buckets, registry=registry)


def _work(run: Mapping[str, Any]) -> str:
    """`Ingest`, or the type of the service: names that people gave are no labels."""
    work, _, rest = str(run["work"]).partition("/")
    return f"{work}/Plan" if work != "Ingest" and rest == "Plan" else work
