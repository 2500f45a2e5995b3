"""Messages as the client hands them out, in batches, until a bound is reached; and the positions
that were come to.

Facts (librdkafka 2.16, `read_committed`): markers and aborted messages are passed over, so offsets
have holes; the event of a partition's end tells its offset, which is the last stable one. A batch
call yields at most so many messages and holds them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hudi_table.errors import DataLossError, InvalidRequestError, UnavailableError
from hudi_table.sources.formats.values import Early
from hudi_table.sources.kafka.brokers import Place, unmade
from hudi_table.sources.kafka.client import QUIET, Complaints, as_hudi, load_client
from hudi_table.sources.kafka.settings import KafkaSettings, consumer_config
from hudi_table.table.store.clock import SystemClock

CALL_ROWS_FIRST, CALL_ROWS_MAX = 10, 20_000
CALL_SECONDS = 0.25
SILENCE_SECONDS_MAX = 60.0
HALVES_MAX = 2
"""A delete and its tombstone."""
OLD_KEY, NEW_KEY = "__debezium.oldkey", "__debezium.newkey"
Offsets = npt.NDArray[np.int64]


@dataclass(slots=True)
class Messages:
    """What was read, in the order in which it came: of a partition in the order of its offsets.
    `places`: the number of each message's (topic, partition) in `names`. `old_keys`: of change
    events the keys before, as their headers say them; empty where another event tells the row of
    the key that comes in this one's place. `early`: decodes the values as they come."""

    names: list[Place]
    values: list[bytes | None] = field(default_factory=list)
    places: list[npt.NDArray[np.int32]] = field(default_factory=list)
    offsets: list[Offsets] = field(default_factory=list)
    times: list[Offsets] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    headers: list[Any] = field(default_factory=list)
    size: int = 0
    old_keys: list[bytes | None] = field(default_factory=list)
    early: Early | None = None

    def where(self, kept: npt.NDArray[np.bool_]) -> Messages:
        """Some of them; their bytes are told of all."""
        left = np.flatnonzero(kept).tolist()
        return Messages(
            self.names,
            [self.values[row] for row in left],
            [np.concatenate(self.places)[kept]],
            [np.concatenate(self.offsets)[kept]],
            [np.concatenate(self.times)[kept]],
            [self.keys[row] for row in left] if self.keys else [],
            [self.headers[row] for row in left] if self.headers else [],
            self.size,
            [self.old_keys[row] for row in left] if self.old_keys else [],
        )


@dataclass(frozen=True, slots=True)
class Until:
    """When reading ends: at so many rows or bytes, at these positions, at a moment of the boot
    clock, or when told. `strict`: nothing behind the positions is read along, as what the client
    has at hand else is."""

    rows: int
    bytes: int
    stops: Mapping[Place, int] | None = None
    deadline: float | None = None
    told: Callable[[], bool] = lambda: False
    strict: bool = False

    def is_full(self, found: Messages) -> bool:
        """Whether a commit may not have more."""
        return len(found.values) >= self.rows or found.size >= self.bytes


class Consumer:
    """A consumer that stands at positions of its own. It prefetches between two reads.

    The client may stand elsewhere: behind what was left out, or nowhere after an error. `_left`
    says so, until the client is told anew.
    """

    def __init__(self, settings: KafkaSettings, environment: Mapping[str, str], clock: SystemClock) -> None:
        kafka = load_client()
        self._settings = settings
        self._complaints = Complaints()
        self._clock = clock
        self._names: list[Place] = []
        self._numbers: dict[Place, int] = {}
        self._at: Offsets = np.zeros(0, np.int64)
        self._left = False
        self._row_bytes = 0.0
        secrets = consumer_config(settings, environment)
        try:
            self._client = kafka.Consumer({**secrets.config, "error_cb": self._complaints}, logger=QUIET)
        except (kafka.KafkaException, ValueError, TypeError) as error:
            raise unmade(error, settings) from error

    @property
    def positions(self) -> dict[Place, int]:
        """The next offset of each partition."""
        return dict(zip(self._names, self._at.tolist(), strict=True))

    def assign(self, positions: Mapping[Place, int]) -> None:
        """Stand at these positions, and at no others."""
        if positions == self.positions and not self._left:
            return
        kafka = load_client()
        self._left = False
        self._names = sorted(positions)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._at = np.array([positions[name] for name in self._names], np.int64)
        self._client.assign([kafka.TopicPartition(topic, part, positions[topic, part]) for topic, part in self._names])

    def none(self, early: Early | None = None) -> Messages:
        """Nothing of where it stands yet, for `read`."""
        return Messages(self._names, early=early)

    def read(self, until: Until, found: Messages | None = None, *, waits: bool = True) -> Messages:
        """Read on, behind `found` if that was read before. `waits`: it does not end where nothing
        has come yet. Raises DataLossError where the brokers no longer have what comes next,
        UnavailableError, AccessDeniedError."""
        found = found or self.none()
        heard = self._clock.boot_seconds()
        stops = self._stops(until.stops)
        while not self._is_done(found, until, stops):
            got = self._client.consume(self._call_rows(found, until), self._call_seconds(until))
            if got:
                self._take(found, got, stops if until.strict else None)
                heard = self._clock.boot_seconds()
            elif self._complaints.denied:
                raise as_hudi(self._complaints.worst, self._settings.brokers)
            elif not waits:
                break
            elif stops is not None and self._clock.boot_seconds() - heard > SILENCE_SECONDS_MAX:
                raise self._silent()
        return found

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def _stops(self, stops: Mapping[Place, int] | None) -> Offsets | None:
        return None if stops is None else np.array([stops.get(name, 0) for name in self._names], np.int64)

    def _is_done(self, found: Messages, until: Until, stops: Offsets | None) -> bool:
        late = until.deadline is not None and self._clock.boot_seconds() >= until.deadline
        return until.is_full(found) or late or (stops is not None and bool((self._at >= stops).all())) or until.told()

    def _call_rows(self, found: Messages, until: Until) -> int:
        """As many as are wanted still, by the size of those before: what a call yields is held,
        whatever its size."""
        left = until.rows - len(found.values)
        if self._row_bytes:
            fit = int((until.bytes - found.size) / self._row_bytes) + 1
            return max(1, min(left, CALL_ROWS_MAX, fit))
        return max(1, min(left, CALL_ROWS_FIRST))

    def _call_seconds(self, until: Until) -> float:
        if until.deadline is None:
            return CALL_SECONDS
        return max(0.01, min(CALL_SECONDS, until.deadline - self._clock.boot_seconds()))

    def _take(self, found: Messages, got: list[Any], stops: Offsets | None) -> None:
        good = [message for message in got if message.error() is None]
        # What was read behind a stop before it was one stays read; the event of a partition's end is no reason to go there.
        limit = np.maximum(stops, self._at) if stops is not None else None
        if len(good) < len(got):
            for message in got:
                if message.error() is not None:
                    self._event(message)
        if stops is not None:
            good = self._before(good, stops)
        if good:
            self._add(found, good)
        if limit is not None:
            self._at = np.minimum(self._at, limit)

    def _before(self, good: list[Any], stops: Offsets) -> list[Any]:
        """Those before the stops. What comes behind one says that there is no more before it."""
        kept = []
        for message in good:
            number = self._numbers[message.topic(), message.partition()]
            if message.offset() < stops[number]:
                kept.append(message)
            else:
                self._at[number] = max(self._at[number], stops[number])
        self._left = self._left or len(kept) < len(good)
        return kept

    def _add(self, found: Messages, good: list[Any]) -> None:
        """Each attribute is a call of the client, a message at a time; what follows is columns."""
        values = [message.value() for message in good]
        partitions = [message.partition() for message in good]
        topics = [message.topic() for message in good] if len({topic for topic, _ in self._names}) > 1 else None
        only = self._names[0][0]
        pairs = zip(topics, partitions, strict=True) if topics is not None else ((only, part) for part in partitions)
        numbers = self._numbers
        places = np.array([numbers[pair] for pair in pairs], np.int32)
        offsets = np.array([message.offset() for message in good], np.int64)
        np.maximum.at(self._at, places, offsets + 1)
        size = sum([len(value) for value in values if value is not None])
        found.values += values
        found.places.append(places)
        found.offsets.append(offsets)
        found.times.append(np.array([message.timestamp()[1] for message in good], np.int64))
        wanted = self._settings
        if "key" in wanted.metadata or wanted.tombstones == "Delete" or wanted.keeps_keys:
            keys = [message.key() for message in good]
            size += sum([len(key) for key in keys if key is not None])
            found.keys += keys
        if "headers" in wanted.metadata:
            headers = [message.headers() for message in good]
            size += sum([len(name) + len(value or b"") for each in headers for name, value in each or ()])
            found.headers += headers
        if wanted.debezium:
            found.old_keys += [_old_key(message.headers()) for message in good]
        found.size += size
        if found.early is not None:
            found.early.more(found.values, found.size)
        self._row_bytes = max(1.0, size / len(good))

    def _event(self, message: Any) -> None:
        error = message.error()
        name = error.name()
        if name == "_PARTITION_EOF":
            number = self._numbers.get((message.topic(), message.partition()))
            if number is not None:
                self._at[number] = max(self._at[number], message.offset())
            return
        if name in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"):
            self._left = True
            raise DataLossError(
                f"partition {message.partition()} of topic {message.topic()} has no more what comes next: {error.str()}"
            )
        found = as_hudi(error, self._settings.brokers, self._complaints)
        # The client goes on by itself where a broker is away; silence is bounded by who waits. A topic of a pattern
        # that is deleted is seen by who asks the brokers.
        borne = (UnavailableError,) if self._settings.pattern is None else (UnavailableError, InvalidRequestError)
        if not isinstance(found, borne):
            raise found

    def _silent(self) -> Exception:
        worst = self._complaints.worst
        if worst is not None:
            return as_hudi(worst, self._settings.brokers, self._complaints)
        return UnavailableError(f"the brokers at {self._settings.brokers} sent nothing for {SILENCE_SECONDS_MAX:.0f} s")


def _old_key(headers: list[tuple[str, bytes | None]] | None) -> bytes | None:
    for name, value in headers or ():
        if name == OLD_KEY:
            return value
        if name == NEW_KEY:
            return b""
    return None


def without_halves(found: Messages, at: Mapping[Place, int]) -> tuple[Messages, dict[Place, int]]:
    """Messages up to the halves of changes of keys whose others have not come yet, and the
    positions there. A delete whose create another commit takes would take a large value along that
    the create does not tell. Topics of several partitions have no order between the two."""
    reached = dict(at)
    if b"" not in found.old_keys:
        return found, reached
    topics = [topic for topic, _ in found.names]
    places, offsets = np.concatenate(found.places), np.concatenate(found.offsets)
    kept = np.ones(len(places), bool)
    for number, (topic, partition) in enumerate(found.names):
        own = np.flatnonzero(places == number)[-HALVES_MAX:].tolist() if topics.count(topic) == 1 else []
        while own and found.old_keys[own[-1]] == b"":
            kept[own[-1]] = False
            reached[topic, partition] = int(offsets[own.pop()])
    return found.where(kept), reached


def cut_before(found: Messages, at: Mapping[Place, int], rows: Sequence[int]) -> tuple[Messages, dict[Place, int]]:
    """Messages of each partition up to the first of `rows`, and the positions there."""
    reached, bad = dict(at), np.asarray(rows)
    places, offsets = np.concatenate(found.places), np.concatenate(found.offsets)
    kept = np.ones(len(places), bool)
    for number in np.unique(places[bad]).tolist():
        first = int(offsets[bad[places[bad] == number]].min())
        kept &= (places != number) | (offsets < first)
        reached[found.names[number]] = first
    return found.where(kept), reached
