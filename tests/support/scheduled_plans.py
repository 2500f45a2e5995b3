"""What tests of ingests in mode Scheduled are made of."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hudi_operator.api.status import HudiTableStatus, ScheduleStatus
from hudi_operator.plan.effects import Effect, Launch, SetStatus
from hudi_operator.plan.observed import Observed, Problem, SourceObservation, TableObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.positions import Extent, TopicExtent
from tests.support.manifests import ingest, manifest, spec, stored
from tests.support.plans import FILES, NOW, desired, of, status_of, table

HOURLY = "0 * * * *"
KAFKA = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["orders"]}}
JDBC = {"type": "Jdbc", "jdbc": {"url": "postgresql://db:5432/shop", "table": "orders"}}
SOURCES: dict[str, tuple[dict[str, Any], SourceObservation]] = {
    "Files": ({}, SourceObservation("feed", FILES)),
    "Jdbc": ({"source": JDBC}, SourceObservation("feed")),
    "Kafka": (
        {"source": KAFKA},
        SourceObservation("feed", extent=Extent("c", {"orders": TopicExtent("one", {0: 0}, {0: 10}, {0: 10})})),
    ),
}


class Story:
    """A table with one ingest: statuses are carried over, runs end as the test says."""

    def __init__(self, schedule: str | None = HOURLY, kind: str = "Jdbc", **changes: Any) -> None:
        source, self.source = SOURCES[kind]
        self.changes: dict[str, Any] = {"mode": "Scheduled", "schedule": schedule, **source, **changes}
        self.of: dict[str, Any] = {}
        self.table: TableObservation | None = table()
        self.problem: Problem | None = None
        self.status: dict[str, Any] | None = None
        self.generation = 1
        self.runs: tuple[Any, ...] = ()
        self.now: datetime = NOW
        self.effects: list[Effect] = []

    def look(self, later: timedelta = timedelta(0)) -> Story:
        """One judgement, some time after the last."""
        self.now += later
        wanted = desired(self.status, self.generation, ingest=[ingest(**self.changes)], **self.of)
        observed = Observed(table=self.table, sources=(self.source,), runs=self.runs, problem=self.problem)
        self.effects = plan_table(wanted, observed, self.now)
        (told,) = of(SetStatus, self.effects)
        self.status = told.status
        self.runs = (*(launch.run for launch in of(Launch, self.effects)), *self.runs)
        return self

    def change(self, **changes: Any) -> Story:
        """Another generation of the ingest."""
        self.changes |= changes
        self.generation += 1
        return self

    def end(self, phase: str = "Succeeded", **changes: Any) -> Story:
        """The newest run ends."""
        newest, *rest = self.runs
        finished = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.runs = (replace(newest, phase=phase, finished=finished, **changes), *rest)
        return self

    @property
    def started(self) -> list[str]:
        """The moments for which runs are begun."""
        return [launch.run.batch or "" for launch in of(Launch, self.effects)]

    @property
    def schedule(self) -> ScheduleStatus:
        found: HudiTableStatus = status_of(self.effects)
        schedule = found.ingest[0].schedule
        assert schedule is not None
        return schedule

    @property
    def document(self) -> dict[str, Any]:
        """The table as it is stored."""
        fields = spec(**({"ingest": [ingest(**self.changes)]} | self.of))
        return stored(manifest(**fields), generation=self.generation, status=self.status)
