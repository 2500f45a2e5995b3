"""What waits in partitions, and how long the brokers keep it: what the topics say of their
retention, and one look at the oldest messages that wait.

One request asks for the configuration of all topics. One consumer reads a first batch of each
partition, for a few seconds at the most; it joins no group. Of so many partitions as are asked,
those come first that are named first, and of these those in which most waits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_table.errors import AccessDeniedError
from hudi_table.model.job.retention import Limits, Retention, Unread
from hudi_table.sources.kafka.brokers import Brokers, Place, unmade
from hudi_table.sources.kafka.client import QUIET, Complaints, as_hudi, load_client
from hudi_table.sources.kafka.settings import KafkaSettings, consumer_config
from hudi_table.table.store.ports import Clock

PARTITIONS_MAX, SECONDS_MAX, CALL_SECONDS = 200, 5.0, 0.1
SAMPLE_ROWS, FETCH_BYTES, PREFETCH_KIB = 1_000, 16 << 10, 4 << 10


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in partitions, of those that told; `told` are also those that hold nothing but
    markers."""

    unread: tuple[Unread, ...] = ()
    told: frozenset[Place] = frozenset()


def limits_of(brokers: Brokers, waits: Mapping[Place, tuple[int, int]]) -> dict[str, Limits]:
    """How long the topics keep messages in which some wait. Raises what `Brokers.limits` does."""
    topics = {topic for (topic, _), (_, count) in waits.items() if count}
    return brokers.limits(topics) if topics else {}


def retention_of(limits: Mapping[str, Limits], waits: Mapping[Place, tuple[int, int]], found: Waiting) -> Retention:
    """What is known of the retention of what waits."""
    asked = {place for place, (_, count) in waits.items() if count and limits[place[0]].bound}
    unread = tuple(each for each in found.unread if (each.topic, each.partition) in asked)
    return Retention(limits, unread, len(asked - found.told))


def waiting_of(
    settings: KafkaSettings,
    environment: Mapping[str, str],
    waits: Mapping[Place, tuple[int, int]],
    clock: Clock,
    first: Collection[str] = (),
) -> Waiting:
    """One look at what waits; `waits`: of each partition from which offset on, and how many
    messages at most; `first`: topics that come before others. Raises AccessDeniedError,
    UnavailableError, InvalidRequestError."""
    some = {place: told for place, told in waits.items() if told[1]}
    places = sorted(some, key=lambda place: (place[0] not in first, -some[place][1], place))[:PARTITIONS_MAX]
    if not places:
        return Waiting()
    now = int(clock.now().timestamp() * 1000)
    look = _Look(settings, environment, {place: some[place][0] for place in places}, now)
    try:
        look.until(clock, clock.boot_seconds() + SECONDS_MAX)
    finally:
        look.close()
    unread = [
        Unread(*place, some[place][1], millis, look.sizes[place] / look.counts[place])
        for place, millis in look.oldest.items()
        if millis is not None
    ]
    return Waiting(tuple(unread), frozenset(look.oldest))


class _Look:
    """The first messages of partitions. `oldest`: the timestamp of each first one, None where there
    is none but markers; where it is later than `now`, the earliest of those read with it: a wrong
    clock of one producer tells nothing of what others have written behind it."""

    def __init__(
        self, settings: KafkaSettings, environment: Mapping[str, str], at: Mapping[Place, int], now: int
    ) -> None:
        kafka = load_client()
        self.oldest: dict[Place, int | None] = {}
        self.sizes, self.counts = dict.fromkeys(at, 0), dict.fromkeys(at, 0)
        self._brokers, self._wanted, self._now = settings.brokers, set(at), now
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
        if millis >= 0:
            if place not in self.oldest:
                self._client.pause([load_client().TopicPartition(*place)])
            known = self.oldest.get(place)
            if known is None or known > max(millis, self._now):
                self.oldest[place] = millis
        self.counts[place] += 1
        self.sizes[place] += len(message.value() or b"") + len(message.key() or b"")
