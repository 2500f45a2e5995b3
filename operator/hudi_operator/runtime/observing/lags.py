"""How far the ingests of a table are behind their streams, partition by partition, as somebody asks
for it who reaches the store and the streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_operator.api.ingests.ingest import IngestSpec
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.sources import kafka_document, kinesis_document
from hudi_operator.runtime.observing.stores import storage_options
from hudi_table.errors import TableNotFoundError
from hudi_table.metadata.port import open_context
from hudi_table.model.job.lag import PartitionLag
from hudi_table.sources.checkpoints import current_positions, current_shards
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Clock
from hudi_table.table.timeline.context import TableContext


def lags_of(
    spec: HudiTableSpec, ingest: IngestSpec, secret: Mapping[str, str], environment: Mapping[str, str], clock: Clock
) -> tuple[list[PartitionLag], str]:
    """Of one ingest from Kafka or Kinesis, with what is lost in words. `secret`: credentials of the
    store; `environment`: those of the stream. Raises HudiError where one of them cannot be seen."""
    try:
        context = open_context(open_storage(spec.location, storage_options(spec, spec.location, secret)), clock)
    except TableNotFoundError:
        context = None
    source = ingest.source
    if source.kafka is not None:
        document = {"format": source.format, "kafka": kafka_document(source.kafka)}
        return _of_kafka(ingest.name, document, environment, context, clock)
    assert source.kinesis is not None
    return _of_kinesis(ingest, kinesis_document(source.kinesis), spec.storage.region, environment, context, clock), ""


def _of_kafka(
    name: str, document: Mapping[str, Any], environment: Mapping[str, str], context: TableContext | None, clock: Clock
) -> tuple[list[PartitionLag], str]:
    # The client is loaded by tables that have such an ingest.
    from hudi_table.sources.kafka.lags import lags_of as of_topics
    from hudi_table.sources.kafka.settings import KafkaSettings

    settings = KafkaSettings.of(document)
    topic = settings.topics[0] if len(settings.topics) == 1 and settings.pattern is None else None
    held = current_positions(context, name, topic) if context is not None else None
    return of_topics(settings, environment, held.positions if held is not None else None, clock)


def _of_kinesis(
    ingest: IngestSpec,
    document: Mapping[str, Any],
    region: str | None,
    environment: Mapping[str, str],
    context: TableContext | None,
    clock: Clock,
) -> list[PartitionLag]:
    from hudi_table.sources.kinesis.settings import KinesisSettings
    from hudi_table.sources.kinesis.tip import lags_of as of_shards

    settings = KinesisSettings.of({"kinesis": document}, region)
    held = current_shards(context, ingest.name, settings.stream) if context is not None else None
    return of_shards(settings, environment, held.checkpoint, clock) if held is not None else []
