"""The columns of a topic's key: the record key of a table for which nobody names one.

Of Avro a registry knows them, under the subject `TOPIC-key` or by the id in front of a key; of JSON
a key itself tells them: its schema where the converter writes one, else the names of its fields.

Facts (Debezium 3.3.1; samples in `tests/data/debezium`): a key is a record of the columns of the
primary key. A table without one has null keys, and so has the event of a truncate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hudi_table.errors import HudiError, InvalidDataError, InvalidRequestError, UnavailableError
from hudi_table.model.json_text import parse_json
from hudi_table.sources.formats.avro import FRAME
from hudi_table.sources.formats.registry import Registry
from hudi_table.sources.kafka.brokers import Brokers
from hudi_table.sources.kafka.consume import Consumer, Until
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.table.store.clock import SystemClock

MESSAGES_MAX, BYTES_MAX = 100, 4 << 20
SECONDS = 5.0
_REMEDY = "name the columns in recordKey"


class TopicKeys:
    """Keys of topics at the brokers of `settings`. It holds connections, ended by `close`."""

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str], clock: SystemClock) -> None:
        self._settings = replace(settings, keeps_keys=True)
        self._form = settings.format if settings.debezium else settings.key_format
        self._environment = environment
        self._clock = clock
        self._registry = Registry(settings.registry, environment) if settings.registry is not None else None
        self._brokers: Brokers | None = None
        self._consumer: Consumer | None = None

    def columns(self, topic: str) -> tuple[str, ...]:
        """Their names, in their order. Raises InvalidDataError where no message with a key is
        there, or the key names no columns; InvalidRequestError, UnavailableError,
        AccessDeniedError."""
        if self._form == "json":
            key = self._first(topic)
            framed = self._settings.json_registry is not None and key[:1] == b"\0"
            return _of_json(key[FRAME:] if framed else key, topic)
        if self._form != "avro" or self._registry is None:
            raise InvalidRequestError(
                f"keys of format {self._form} name no columns unless they are json, or avro with a registry: {_REMEDY}"
            )
        text = self._registry.newest_avro_schema(f"{topic}-key")
        if text is None:
            key = self._first(topic)
            if len(key) < FRAME or key[0] != 0:
                raise InvalidDataError(f"the key of topic {topic} has no id of a schema: {_REMEDY}")
            text = self._registry.avro_schema(int.from_bytes(key[1:FRAME]))
        return _of_avro(text, topic)

    def close(self) -> None:
        """End the connections."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._brokers = None, None

    def _first(self, topic: str) -> bytes:
        """The first key that the brokers have still."""
        if self._brokers is None:
            self._brokers = Brokers(self._settings, self._environment)
        there = self._brokers.extent_of([topic]).topics[topic]
        begins = {(topic, partition): offset for partition, offset in there.begin.items()}
        stops = {(topic, partition): end for partition, end in there.end.items()}
        if self._consumer is None:
            self._consumer = Consumer(self._settings, self._environment, self._clock)
        self._consumer.assign(begins)
        until = Until(MESSAGES_MAX, BYTES_MAX, stops, self._clock.boot_seconds() + SECONDS)
        found = self._consumer.read(until)
        key = next((key for key in found.keys if key is not None), None)
        if key is not None:
            return key
        if found.keys:
            raise InvalidDataError(f"the first messages of topic {topic} have no key: {_REMEDY}")
        if any(self._consumer.positions[place] < end for place, end in stops.items()):
            raise UnavailableError(f"the brokers sent no message of topic {topic} within {SECONDS:.0f} s")
        raise InvalidDataError(f"topic {topic} has no message yet that would tell its key: wait for one, or {_REMEDY}")


def _of_json(key: bytes, topic: str) -> tuple[str, ...]:
    try:
        found = parse_json(key.decode())
        names = _fields(found["schema"]) if _is_framed(found) else list(found) if isinstance(found, dict) else []
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidDataError(f"the key of topic {topic} cannot be read as json: {_REMEDY}") from error
    return _named(names, topic)


def _is_framed(key: Any) -> bool:
    return isinstance(key, dict) and key.keys() == {"schema", "payload"}


def _fields(schema: Any) -> list[str]:
    """Of a schema of Kafka Connect; nothing of one that is no struct."""
    if not isinstance(schema, dict):
        raise TypeError("no schema")
    return [str(each["field"]) for each in schema.get("fields") or ()]


def _of_avro(text: str, topic: str) -> tuple[str, ...]:
    found = parse_json(text)
    fields = found.get("fields") if isinstance(found, dict) and found.get("type") == "record" else None
    return _named([str(each["name"]) for each in fields or ()], topic)


def _named(names: list[str], topic: str) -> tuple[str, ...]:
    if not names:
        raise InvalidDataError(f"the key of topic {topic} is a value that names no column: {_REMEDY}")
    return tuple(names)


def columns_of(
    settings: KafkaSettings, environment: Mapping[str, str], clock: SystemClock, topics: tuple[str, ...]
) -> dict[str, tuple[str, ...] | HudiError]:
    """Of each topic the columns of its key, or why they are not known. Who does not answer for one
    topic is not asked for the next."""
    found: dict[str, tuple[str, ...] | HudiError] = {}
    keys = TopicKeys(settings, environment, clock)
    try:
        for topic in topics:
            try:
                found[topic] = keys.columns(topic)
            except UnavailableError as error:
                return dict.fromkeys(topics, error) | found
            except HudiError as error:
                found[topic] = error
    finally:
        keys.close()
    return found
