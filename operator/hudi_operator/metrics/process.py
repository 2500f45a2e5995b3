"""Gauges of the operator's own process, read from its parts at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hudi_operator.api.resources import KINDS
from hudi_operator.metrics import catalog
from hudi_operator.metrics.health import Health
from hudi_operator.metrics.resources import ResourceGauges, family


class ProcessGauges(Collector):
    """The state of the operator itself. A process that waits for the Lease knows no resources and
    reports none."""

    def __init__(self, health: Health, resources: ResourceGauges) -> None:
        self._health = health
        self._resources = resources

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The families, without samples."""
        return [family(metric) for metric in catalog.PROCESS]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All families, with the samples of now."""
        operator = self._health.operator
        depth, oldest = operator.queue.waiting()
        reconciles = operator.workers.reconciles()
        values = {
            "hudi_operator_leader": float(self._health.leading),
            "hudi_operator_queue_depth": depth,
            "hudi_operator_queue_oldest_seconds": oldest,
            "hudi_operator_workers": operator.workers.working(),
            "hudi_operator_workers_busy": len(reconciles),
            "hudi_operator_reconcile_oldest_seconds": max((seconds for _, seconds in reconciles), default=0.0),
            "hudi_operator_watch_behind_seconds": self._health.hearing.behind_seconds(),
            "hudi_operator_namespaces_missing": len(self._health.hearing.missing()),
            "hudi_operator_tables_left_out": self._resources.left_out(),
        }
        kinds = Counter(key.kind for key in operator.cluster.keys())  # noqa: SIM118 - it is no mapping
        for metric in catalog.PROCESS:
            found = family(metric)
            if metric.labels:
                for kind in KINDS:
                    found.add_metric([kind], kinds[kind])
            else:
                found.add_metric([], values[metric.name])
            yield found
