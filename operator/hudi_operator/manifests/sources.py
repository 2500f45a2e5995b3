"""Sources as JobSpecs tell them: moments as milliseconds, sizes as bytes. No secret is in a
source."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hudi_operator.api.ingests.custom import CustomSpec
from hudi_operator.api.ingests.databases import JdbcSpec
from hudi_operator.api.ingests.kinesis import KinesisSpec
from hudi_operator.api.ingests.source import KafkaSpec
from hudi_operator.api.ingests.statements import SqlSpec
from hudi_operator.api.ingests.upstreams import UpstreamSpec
from hudi_operator.api.schema import to_document
from hudi_operator.manifests.quantities import bytes_of, seconds_of
from hudi_table.model.digits import is_digits


def kafka_document(kafka: KafkaSpec) -> dict[str, Any]:
    """`source.kafka` of a JobSpec, as `KafkaSettings.of` reads it."""
    found: dict[str, Any] = {**to_document(kafka), "maxBytes": bytes_of(kafka.max_bytes)}
    for place in (found["startFrom"], found.get("endAt", {})):
        timestamp = place.pop("timestamp", None)
        if timestamp is not None:
            place["timestampMillis"] = millis_of(timestamp)
    return found


def kinesis_document(kinesis: KinesisSpec) -> dict[str, Any]:
    """`source.kinesis` of a JobSpec, as `KinesisSettings.of` reads it."""
    found: dict[str, Any] = {**to_document(kinesis), "maxBytes": bytes_of(kinesis.max_bytes)}
    del found["every"]  # the operator's affair
    timestamp = found["startFrom"].pop("timestamp", None)
    if timestamp is not None:
        found["startFrom"]["timestampMillis"] = millis_of(timestamp)
    return found


def custom_document(custom: CustomSpec) -> dict[str, Any]:
    """`source.custom` of a JobSpec, as `run_custom` reads it."""
    return {"name": custom.name, "options": dict(custom.options)}


def upstream_document(upstream: UpstreamSpec) -> dict[str, Any]:
    """`source.hudi` of a JobSpec, as `HudiSettings.of` reads it."""
    found: dict[str, Any] = to_document(upstream)
    del found["maxHold"]  # the operator's affair
    return found


def query_document(asked: JdbcSpec | SqlSpec) -> dict[str, Any]:
    """`source.jdbc` or `source.sql` of a JobSpec, as `JdbcSettings.of` and `QuerySettings.of` read
    them."""
    found: dict[str, Any] = to_document(asked)
    del found["every"]  # the operator's affair
    if asked.incremental is not None:
        lag = asked.incremental.lag
        found["incremental"]["lag"] = int(lag) if is_digits(lag) else int(seconds_of(lag))
    return found


def millis_of(text: str) -> int:
    """Milliseconds since 1970 of an RFC 3339 moment. Raises ValueError for another text."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
