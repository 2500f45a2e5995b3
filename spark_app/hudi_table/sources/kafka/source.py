"""`Kafka`: what the topics have, from the positions that the table's commits hold."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hudi_table.errors import DataLossError, InvalidRequestError, UnsettledDataError
from hudi_table.model.job.positions import (
    Extent,
    Positions,
    TopicPositions,
    known_of,
    lost,
    words_of,
)
from hudi_table.sources.base import Rows
from hudi_table.sources.formats.values import Early
from hudi_table.sources.kafka.ahead import Ahead
from hudi_table.sources.kafka.beginnings import GIVEN, Elsewhere, beginning_of
from hudi_table.sources.kafka.brokers import Brokers, Place, by_place
from hudi_table.sources.kafka.consume import Consumer, Messages, Until, cut_before, without_halves
from hudi_table.sources.kafka.ranges import Bounds, ranges_of
from hudi_table.sources.kafka.refusing import KafkaOrigin
from hudi_table.sources.kafka.rows import Decoding
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.where import Where
from hudi_table.table.store import threads
from hudi_table.table.store.clock import SystemClock

_REMEDY = "give onDataLoss: Continue to go on without them, or set another checkpoint (hudictl checkpoint set)"


@dataclass(frozen=True, slots=True)
class KafkaBatch:
    """Messages from `start` on, as far as `until` says. `short`: of each partition its share, and
    where a message lacks what others bring, up to that: the others are read on meanwhile."""

    source: KafkaSource
    start: Positions
    until: Until
    short: bool = False

    @property
    def name(self) -> str:
        """Of where it begins."""
        return self.start.batch

    def read(self, known: pa.Schema | None) -> Rows[Positions]:
        """Their rows, and the positions that were come to. Raises what `Decoding.rows` does; of a
        short batch UnsettledDataError only where nothing would be left."""
        source = self.source
        messages, at = source.messages(by_place(self.start), self._shares() if self.short else self.until, known)
        source.confirm(self.start)
        while True:
            newest = max([int(np.max(times)) for times in messages.times if len(times)], default=-1)
            reached = self.reached(at, newest)
            try:
                return rows_of(messages, source.decoding, known, (source.ingest, source.attempt), reached)
            except UnsettledDataError as error:
                if not self.short:
                    raise
                messages, at = cut_before(messages, at, error.places)
                if not messages.values:
                    raise

    def _shares(self) -> Until:
        """Of each partition its share, so that what waits in one is read beside what it waits for
        in another."""
        start, until = by_place(self.start), self.until
        ranges = ranges_of(start, until.stops or {}, Bounds(until.rows, until.bytes, 1, whole=True))
        return replace(until, stops={**start, **{each.place: each.stop for each in ranges}}, strict=True)

    def reached(self, at: Mapping[Place, int], newest: int) -> Positions:
        """The positions of a commit that holds what comes before `at`; `newest`: the greatest
        timestamp in it, -1 for none.

        One of the future counts as now, also where an earlier commit holds it: else a single
        producer whose clock is wrong would have the table be newer than all that comes for years.
        """
        topics = dict(self.start.topics)
        for name, topic in self.start.topics.items():
            topics[name] = replace(topic, offsets={p: max(o, at.get((name, p), o)) for p, o in topic.offsets.items()})
        now = int(self.source.clock.now().timestamp() * 1000)
        newest = min(max(newest, self.start.newest), now)
        return replace(self.start, topics=topics, attempt=self.source.attempt, newest=newest)


def rows_of(
    messages: Messages, decoding: Decoding, known: pa.Schema | None, who: tuple[str, str], reached: Positions
) -> Rows[Positions]:
    """The rows of messages, and those of the error table. `who`: names of the ingest and of its
    attempt. Raises what `Decoding.rows` does."""
    where = Where(messages, len(by_place(reached)))
    found = decoding.rows(messages, known, where)
    ids = {name: topic.id for name, topic in reached.topics.items()}
    origin = KafkaOrigin(messages, where, found.order, *who, ids)
    faults = found.faults
    refused = origin.table([each.place for each in faults], [each.why for each in faults], [None] * len(faults))
    return Rows(
        found.table.schema, found.table.to_reader(), reached, len(found.table), refused, origin, found.read, found.since
    )


@dataclass(slots=True)
class KafkaSource:
    """The topics of an ingest, as its attempt `attempt` sees them. Ended by `close`. `elsewhere`:
    how what others have left is opened, None where nobody begins there."""

    settings: KafkaSettings
    environment: Mapping[str, str] = field(repr=False)
    decoding: Decoding
    attempt: str
    ingest: str = ""
    elsewhere: Elsewhere | None = None
    clock: SystemClock = field(default_factory=SystemClock)
    _brokers: Brokers | None = None
    _consumer: Consumer | None = None
    _ahead: Ahead | None = None
    _decodes: Executor | None = None

    @property
    def brokers(self) -> Brokers:
        """The cluster, asked when it is needed first."""
        if self._brokers is None:
            self._brokers = Brokers(self.settings, self.environment)
        return self._brokers

    @property
    def consumer(self) -> Consumer:
        """The one consumer."""
        if self._consumer is None:
            self._consumer = Consumer(self.settings, self.environment, self.clock)
        return self._consumer

    def discover(self, before: Positions | None = None) -> Extent:
        """What the brokers have now; `before`: where it stood, in topics that they had."""
        return self.brokers.extent(before.topics if before is not None else ())

    def plan(self, found: Extent, before: Positions | None) -> KafkaBatch | None:
        """All that is there, within `maxRows` and `maxBytes`; None where everything is read.

        Raises DataLossError where the brokers no longer have what comes next, unless `onDataLoss`
        is Continue.
        """
        start = self.start(found, before)
        stops = by_place(found.ends)
        if all(start.topics[topic].offsets[partition] >= end for (topic, partition), end in stops.items()):
            return None
        return self.batch(start, replace(self.until, stops=stops, strict=self.settings.end is not None))

    @property
    def until(self) -> Until:
        """As much as one commit holds."""
        return Until(self.settings.max_rows, self.settings.max_bytes)

    def batch(self, start: Positions, until: Until) -> KafkaBatch:
        """What is read from these positions on."""
        return KafkaBatch(self, start, until)

    def start(self, found: Extent, before: Positions | None) -> Positions:
        """Where to read on: at the positions before; at the beginning of partitions and topics that
        came since; at first where `startFrom` says. What is passed over stands in them until a
        commit holds it. Of topics that are not there their places are kept."""
        given = before if before is not None else self._given(found)
        losses = lost(found, given)
        if losses and not self.settings.continues:
            raise DataLossError(f"{words_of(losses)}; {_REMEDY}")
        first = before is None
        begins = self._first(found, given) if first else {}
        topics = {}
        for name, there in found.topics.items():
            held = known_of(found, before, name)
            offsets = {}
            for partition, begin in there.begin.items():
                at = held.offsets.get(partition, begin) if held is not None else begins.get((name, partition), begin)
                high = max(there.high.get(partition, 0), there.end[partition])
                # Beyond its end it was cut back: what is there now is read from the beginning.
                offsets[partition] = begin if not begin <= at <= high else at
            topics[name] = TopicPositions(there.id, offsets)
        held_before = before or Positions("", {})
        skipped = (*held_before.skipped, *(each.skipped for each in losses))
        place = replace(held_before, cluster=found.cluster, topics=topics, attempt=self.attempt)
        return replace(place, ended="", skipped=skipped, away=held_before.without(topics))

    def falls_back_to_ends(self, found: Extent) -> bool:
        """Whether an ingest without a checkpoint begins at the end of some partition, for its
        consumer group has committed nothing there."""
        if (self.settings.position, self.settings.fallback) != ("ConsumerGroup", "Latest"):
            return False
        given = self._given(found)
        return given is not None and bool(by_place(found.ends).keys() - by_place(given).keys())

    def messages(
        self, start: Mapping[Place, int], until: Until, known: pa.Schema | None = None
    ) -> tuple[Messages, dict[Place, int]]:
        """Messages from these positions on, and the positions that were come to; into columns of
        the table they are decoded as they come. Where there are as many as a commit may have, those
        of the next one are read meanwhile."""
        consumer, ahead, found = self.consumer, self._ahead, None
        self._ahead = None
        if ahead is not None and ahead.is_of(start, until):
            found = ahead.end()
        elif ahead is not None:
            ahead.drop()
        if found is None:
            consumer.assign(start)
            found = consumer.none(self._early(known))
        messages, at = without_halves(consumer.read(until, found), consumer.positions)
        if at == consumer.positions and until.is_full(messages):
            self._ahead = Ahead(consumer, until, self._early(known))
        return messages, at

    def _early(self, known: pa.Schema | None) -> Early | None:
        if self._decodes is None:
            self._decodes = threads.pool(1, "hudi-decode")
        return self.decoding.early(known, self._decodes)

    def confirm(self, start: Positions) -> None:
        """Raise DataLossError if a topic was made again since it was planned: what was read may be
        of the other one."""
        for name, (number, _) in self.brokers.described(list(start.topics), start.topics).items():
            if start.topics[name].id != number:
                raise DataLossError(
                    f"topic {name} was deleted and made again while it was read: its id was {start.topics[name].id} and is {number}; {_REMEDY}"
                )

    def close(self) -> None:
        """End the connections."""
        if self._ahead is not None:
            self._ahead.drop()
        if self._consumer is not None:
            self._consumer.close()
        if self._decodes is not None:
            self._decodes.shutdown(cancel_futures=True)
        self._consumer, self._brokers, self._ahead, self._decodes = None, None, None, None

    def _given(self, found: Extent) -> Positions | None:
        """Where an ingest without a checkpoint begins, if offsets say so."""
        settings = self.settings
        if settings.position == "Offsets" and settings.offsets is not None:
            unknown = [name for name in settings.offsets.topics if name not in found.topics]
            if unknown:
                raise InvalidRequestError(
                    f"kafka.startFrom.offsets names topic {unknown[0]}, which is none of the source's"
                )
            return settings.offsets
        if settings.position in GIVEN and self.elsewhere is not None:
            return beginning_of(settings, self.ingest, found, self.brokers, self.elsewhere)
        return None

    def _first(self, found: Extent, given: Positions | None) -> dict[Place, int]:
        ends = by_place(found.ends)
        settings = self.settings
        if settings.position == "Latest":
            return ends
        if settings.position == "Timestamp":
            at = self.brokers.at_time(ends, settings.timestamp)
            return {place: offset if offset >= 0 else ends[place] for place, offset in at.items()}
        known = {name: known_of(found, given, name) for name in found.topics}
        begins = by_place(Positions("", {name: each for name, each in known.items() if each is not None}))
        if settings.position == "ConsumerGroup" and settings.fallback == "Latest":
            return {**ends, **begins}
        return begins
