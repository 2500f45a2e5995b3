"""Ranges of offsets: a batch in parts, each read by a process of its own, and their messages as
columns, as which they wait until rows are made of them.

A part ends at its stop, or with the message that fills its share of `maxBytes`: what it reads
follows from the log alone, so that a task that runs again reads the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.sources.kafka.brokers import Place
from hudi_table.sources.kafka.consume import Consumer, Messages, Until, without_halves
from hudi_table.sources.kafka.settings import KafkaSettings
from hudi_table.sources.kafka.where import METADATA_TYPES
from hudi_table.table.store.clock import SystemClock

OFFSETS_LEAST = 10_000
"""A part of fewer offsets costs more to begin than to read."""
CHUNK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets `start` to `stop` of a partition, as far as `bytes` go; one message in any case.
    `alone`: its topic has no other partition."""

    topic: str
    partition: int
    start: int
    stop: int
    bytes: int
    alone: bool = False

    @property
    def place(self) -> Place:
        """Its partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one commit takes, and in how many parts. `row_bytes`: what a message took before, 0
    where that is not known. `whole`: a partition is one part, whatever is in it."""

    rows: int
    bytes: int
    parts: int
    row_bytes: float = 0.0
    whole: bool = False


def ranges_of(start: Mapping[Place, int], stops: Mapping[Place, int], bounds: Bounds) -> list[Range]:
    """What is read next between these offsets, of each partition its share, in the order of their
    offsets. While nobody knows how large messages are, no partition is parted: what lies behind a
    part that its bytes have ended would be read in vain."""
    left = {place: stops[place] - at for place, at in sorted(start.items()) if stops.get(place, 0) > at}
    total = sum(left.values())
    wanted = min(total, bounds.rows)
    if bounds.row_bytes:
        wanted = max(1, min(wanted, int(bounds.bytes / bounds.row_bytes)))
    found: list[Range] = []
    passed = 0
    for place, count in left.items():
        taken = (passed + count) * wanted // total - passed * wanted // total
        passed += count
        if bounds.whole:
            # A change event may wait for one of another partition, and is read beside it then.
            taken = max(1, taken)
        pieces = 1
        if bounds.row_bytes and not bounds.whole:
            pieces = max(1, min(bounds.parts * taken // wanted, taken // OFFSETS_LEAST))
        cuts = [start[place] + taken * number // pieces for number in range(pieces + 1)]
        for begin, end in itertools.pairwise(cuts):
            if end > begin:
                alone = sum(topic == place[0] for topic, _ in start) == 1
                found.append(Range(*place, begin, end, max(1, bounds.bytes * (end - begin) // wanted), alone))
    return found


def read_range(
    settings: KafkaSettings, environment: Mapping[str, str], wanted: Range, clock: SystemClock
) -> tuple[Messages, int]:
    """The messages of a range, and the offset behind them. Raises what `Consumer.read` does."""
    consumer = Consumer(settings, environment, clock)
    try:
        consumer.assign({wanted.place: wanted.start})
        stops = {wanted.place: wanted.stop}
        read = consumer.read(Until(wanted.stop - wanted.start, wanted.bytes, stops, strict=True))
        found, reached = _cut(read, wanted.bytes, consumer.positions[wanted.place])
        if wanted.alone:
            found, at = without_halves(found, {wanted.place: reached})
            reached = at[wanted.place]
        return found, reached
    finally:
        consumer.close()


def _cut(found: Messages, most: int, reached: int) -> tuple[Messages, int]:
    """Without what came behind the message that fills the bytes, as the client had it at hand."""
    columns = _columns(found)
    sizes = np.fromiter((len(value or b"") for value in found.values), np.int64, len(found.values))
    if found.keys:
        sizes += np.fromiter((len(key or b"") for key in found.keys), np.int64, len(found.keys))
    ends = np.cumsum(sizes)
    count = int(np.searchsorted(ends, most)) + 1
    if count >= len(ends):
        return found, reached
    offsets, times = columns
    kept = Messages(
        found.names,
        found.values[:count],
        [np.zeros(count, np.int32)],
        [offsets[:count]],
        [times[:count]],
        found.keys[:count],
        found.headers[:count],
        int(ends[count - 1]),
        found.old_keys[:count],
    )
    return kept, int(offsets[count])


def _columns(found: Messages) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets and times."""
    if not found.offsets:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(found.offsets), np.concatenate(found.times)


def packed(found: Messages) -> list[pa.RecordBatch]:
    """Messages of one partition as columns, in batches of bounded size."""
    offsets, times = _columns(found)
    columns = {
        "offset": pa.array(offsets),
        "time": pa.array(times),
        "value": pa.array(found.values, pa.large_binary()),
    }
    if found.keys:
        columns["key"] = pa.array(found.keys, pa.large_binary())
    if found.headers:
        pairs = [None if h is None else [{"key": k, "value": v} for k, v in h] for h in found.headers]
        columns["headers"] = pa.array(pairs, METADATA_TYPES["headers"])
    if found.old_keys:
        columns["old_key"] = pa.array(found.old_keys, pa.binary())
    whole = pa.record_batch(columns)
    rows = max(1, len(offsets) * CHUNK_BYTES // max(1, found.size))
    return [whole.slice(start, rows) for start in range(0, len(offsets), rows)]


def unpacked(batches: Sequence[pa.RecordBatch], place: Place) -> Messages:
    """What `packed` was given, of one partition."""
    found = Messages([place])
    for batch in batches:
        values = batch.column("value")
        found.values += values.to_pylist()
        found.places.append(np.zeros(len(batch), np.int32))
        found.offsets.append(batch.column("offset").to_numpy())
        found.times.append(batch.column("time").to_numpy())
        if "key" in batch.schema.names:
            found.keys += batch.column("key").to_pylist()
        if "old_key" in batch.schema.names:
            found.old_keys += batch.column("old_key").to_pylist()
        if "headers" in batch.schema.names:
            found.headers += [
                None if pairs is None else [(each["key"], each["value"]) for each in pairs]
                for pairs in batch.column("headers").to_pylist()
            ]
    return found


def reached_of(ranges: Sequence[Range], reached: Sequence[int]) -> tuple[list[int], dict[Place, int]]:
    """The numbers of those ranges that follow on one another, and how far each partition is read:
    what lies behind a range that its bytes have ended is left for the next commit."""
    kept: list[int] = []
    at: dict[Place, int] = {}
    for number, (wanted, stop) in enumerate(zip(ranges, reached, strict=True)):
        if at.get(wanted.place, wanted.start) == wanted.start:
            kept.append(number)
            at[wanted.place] = stop
    return kept, at
