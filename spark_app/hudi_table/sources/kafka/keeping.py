"""How long the brokers keep what waits: what the topics say of their retention, and one look at the
oldest messages that wait.

One request asks for the configuration of all topics. One consumer reads a first batch of each
partition, for a few seconds at the most; it joins no group. Of so many partitions as are asked,
those come first in which most waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_table.errors import AccessDeniedError
from hudi_table.model.job.retention import Retention, Unread
from hudi_table.sources.kafka.brokers import Brokers, Place, unmade
from hudi_table.sources.kafka.client import QUIET, Complaints, as_hudi, load_client
from hudi_table.sources.kafka.settings import KafkaSettings, consumer_config
from hudi_table.table.store.ports import Clock

PARTITIONS_MAX, SECONDS_MAX, CALL_SECONDS = 200, 5.0, 0.1
SAMPLE_ROWS, FETCH_BYTES, PREFETCH_KIB = 1_000, 16 << 10, 4 << 10


def retention_of(
    settings: KafkaSettings,
    environment: Mapping[str, str],
    brokers: Brokers,
    waits: Mapping[Place, tuple[int, int]],
    clock: Clock,
) -> Retention:
    """What is known of the retention of what waits; `waits`: of each partition from which offset
    on, and how many messages at most. Raises AccessDeniedError, UnavailableError,
    InvalidRequestError."""
    some = {place: told for place, told in waits.items() if told[1]}
    if not some:
        return Retention({})
    limits = brokers.limits({topic for topic, _ in some})
    asked = sorted((place for place in some if limits[place[0]].bound), key=lambda place: (-some[place][1], place))
    places = asked[:PARTITIONS_MAX]
    if not places:
        return Retention(limits)
    look = _Look(settings, environment, {place: some[place][0] for place in places})
    try:
        look.until(clock, clock.boot_seconds() + SECONDS_MAX)
    finally:
        look.close()
    unread = [
        Unread(*place, some[place][1], millis, look.sizes[place] / look.counts[place])
        for place, millis in look.oldest.items()
        if millis is not None
    ]
    return Retention(limits, tuple(unread), len(asked) - len(look.oldest))


class _Look:
    """The first messages of partitions. `oldest`: the timestamp of each first one, None where there
    is none but markers."""

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str], at: Mapping[Place, int]) -> None:
        kafka = load_client()
        self.oldest: dict[Place, int | None] = {}
        self.sizes, self.counts = dict.fromkeys(at, 0), dict.fromkeys(at, 0)
        self._brokers, self._wanted = settings.brokers, set(at)
        self._complaints = Complaints()
        small = {"fetch.message.max.bytes": FETCH_BYTES, "queued.max.messages.kbytes": PREFETCH_KIB}
        config = {**consumer_config(settings, environment).config, **small, "isolation.level": "read_uncommitted"}
        try:
            self._client = kafka.Consumer({**config, "error_cb": self._complaints}, logger=QUIET)
        except (kafka.KafkaException, ValueError, TypeError) as error:
            raise unmade(error, settings) from error
        self._client.assign([kafka.TopicPartition(*place, offset) for place, offset in at.items()])

    def until(self, clock: Clock, deadline: float) -> None:
        """Read until every partition has told, or to a moment of the boot clock. Raises
        AccessDeniedError."""
        while self._wanted - self.oldest.keys() and clock.boot_seconds() < deadline:
            for message in self._client.consume(SAMPLE_ROWS, CALL_SECONDS):
                self._take(message)
            if self._complaints.denied:
                raise as_hudi(self._complaints.worst, self._brokers)

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _take(self, message: Any) -> None:
        place, error = (message.topic(), message.partition()), message.error()
        if error is not None:
            if error.name() == "_PARTITION_EOF":
                self.oldest.setdefault(place, None)
            elif isinstance(found := as_hudi(error, self._brokers, self._complaints), AccessDeniedError):
                raise found
            return
        millis = message.timestamp()[1]
        if place not in self.oldest and millis >= 0:
            self.oldest[place] = millis
            self._client.pause([load_client().TopicPartition(*place)])
        self.counts[place] += 1
        self.sizes[place] += len(message.value() or b"") + len(message.key() or b"")
