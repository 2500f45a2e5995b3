"""What the topics of an ingest hold, and how long the brokers keep what it has not read."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.ingests.source import KafkaSpec
from hudi_operator.manifests.sources import kafka_document
from hudi_operator.plan.observed import Problem, SourceObservation
from hudi_operator.runtime.observing.problems import problem_of
from hudi_table.errors import HudiError
from hudi_table.model.job.positions import Extent, Positions, unread
from hudi_table.model.job.retention import Retention
from hudi_table.table.store.ports import Clock


def topics_of(
    ingest: IngestSpec, kafka: KafkaSpec, environment: Mapping[str, str], held: Positions | None, clock: Clock
) -> SourceObservation:
    """How far topics go, as the brokers tell. `environment`: with which credentials they are asked.
    `held`: where the ingest is."""
    # The client is loaded by tables that have such an ingest.
    from hudi_table.sources.kafka.brokers import Brokers
    from hudi_table.sources.kafka.keeping import Waiting, limits_of, retention_of, waiting_of
    from hudi_table.sources.kafka.settings import KafkaSettings

    name = ingest.name
    document = {"format": ingest.source.format, "kafka": kafka_document(kafka)}
    try:
        settings = KafkaSettings.of(document)
        if settings.end is not None and held is not None and held.ended == settings.end.text:
            return SourceObservation(name, extent=Extent("", {}), retention=Retention({}))  # it is in the table
        brokers = Brokers(settings, environment)
        extent = brokers.extent()
    except HudiError as error:
        return SourceObservation(name, problem=problem_of(error))
    if held is None:
        return SourceObservation(name, extent=extent)
    waits, limits, waiting = unread(extent, held), None, Waiting()
    kept: Retention | Problem
    try:
        limits = limits_of(brokers, waits)
    except HudiError as error:
        # What jobs may, the operator may not; and a look that fails keeps no job from being started.
        kept = problem_of(error)
    try:
        first = [topic for topic, each in (limits or {}).items() if each.bound]
        waiting = waiting_of(settings, environment, waits, clock, first)
        if limits is not None:
            kept = retention_of(limits, waits, waiting)
    except HudiError as error:
        kept = problem_of(error)
    return SourceObservation(name, extent=extent, retention=kept, unread=waiting.unread, told=waiting.told)
