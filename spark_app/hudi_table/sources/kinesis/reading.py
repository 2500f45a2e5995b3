"""Records of the shards of a stream, read at once, until a bound is reached; and the positions that
were come to.

A shard is read once those that it was split or merged from are drained: of a key the order stays.
What is read at once is as much as the bound of bytes has room for.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hudi_table.errors import DataLossError, UnavailableError
from hudi_table.model.job.shards import ShardPosition, ShardPositions, StreamExtent
from hudi_table.sources.kinesis.stream import READ_BYTES_MAX, IteratorExpiredError, Read, Stream, ThrottledError, millis
from hudi_table.table.store import threads
from hudi_table.table.store.at_once import REQUESTS_AT_ONCE
from hudi_table.table.store.clock import SystemClock

SILENCE_SECONDS_MAX = 60.0
READ_SECONDS, IDLE_SECONDS = 0.2, 1.0
"""Between two reads of a shard: five a second are allowed, and one that gave nothing is not asked
again at once."""
CLOCKS_APART = 60_000
"""How far, in milliseconds, the clock of AWS may be behind this one."""


Answer = tuple[str, int, Read | None]
"""Of a shard: when it was asked, and what it gave; nothing where it is to be asked again."""


@dataclass(frozen=True, slots=True)
class Until:
    """When reading ends: at so many rows or bytes, at the end of what there is (`tip`), at a moment
    of the boot clock, or when told."""

    rows: int
    bytes: int
    tip: bool = True
    deadline: float | None = None
    told: Callable[[], bool] = lambda: False


@dataclass(slots=True)
class Messages:
    """What was read: of a shard in the order of its sequence numbers, and of one that was split or
    merged before what came of it. `shards`: the shard of each message."""

    values: list[bytes | None] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    sequences: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, shard: str, records: list[Mapping[str, Any]]) -> None:
        """What one read gave."""
        values = [each["Data"] for each in records]
        self.values += values
        self.shards += [shard] * len(values)
        self.sequences += [each["SequenceNumber"] for each in records]
        self.times += [millis(each["ApproximateArrivalTimestamp"]) for each in records]
        self.keys += [each["PartitionKey"] for each in records]
        self.size += sum([len(value) for value in values])


@dataclass(slots=True)
class Reader:
    """Stands in the shards of a stream. It keeps its iterators between two reads."""

    stream: Stream
    clock: SystemClock = field(default_factory=SystemClock)
    _iterators: dict[str, tuple[ShardPosition, str]] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)

    def read(self, extent: StreamExtent, start: ShardPositions, until: Until) -> tuple[Messages, ShardPositions]:
        """Read on. Raises DataLossError, UnavailableError, AccessDeniedError."""
        found, at, done = Messages(), dict(start.shards), set[str]()
        heard = self.clock.boot_seconds()
        while not self._is_done(found, until):
            left = [name for name in self.readable(extent, at) if not (until.tip and name in done)]
            if not left and until.tip:
                break
            now = self.clock.boot_seconds()
            # Those that have waited longest come first, however many there are.
            left.sort(key=lambda name: self._due.get(name, 0.0))
            due = [name for name in left if self._due.get(name, now) <= now][: self._width(found, until)]
            if not due:
                self._pause(until, min((self._due[name] for name in left), default=now + IDLE_SECONDS) - now)
                continue
            rows = max(1, (until.rows - len(found.values)) // len(due))
            for name, asked, read in self._at_once(due, at, rows):
                if read is None:
                    self._due[name] = now + IDLE_SECONDS
                    continue
                heard = self.clock.boot_seconds()
                at[name] = self._take(found, extent, name, at[name], asked, read)
                if not read.behind:
                    done.add(name)
            if self.clock.boot_seconds() - heard > SILENCE_SECONDS_MAX:
                raise UnavailableError(
                    f"others read the stream {self.stream.settings.stream} so much that nothing was left for {SILENCE_SECONDS_MAX:.0f} s; try again later"
                )
        newest = max(found.times, default=-1)
        return found, replace(start, shards=at, newest=max(newest, start.newest))

    def readable(self, extent: StreamExtent, at: Mapping[str, ShardPosition]) -> list[str]:
        """Shards that may be read on: of a range not those that were read up to its end."""
        end = self.stream.settings.end
        return [name for name in extent.readable(at) if end < 0 or at[name].time < end]

    def _take(
        self, found: Messages, extent: StreamExtent, name: str, at: ShardPosition, asked: int, read: Read
    ) -> ShardPosition:
        """The position behind what a read gave, which was asked for at a moment."""
        now, records = self.clock.boot_seconds(), self._inside(read)
        if len(records) < len(read.records):
            # A shard of which something lies behind the end was read up to it.
            found.add(name, records)
            after = records[-1]["SequenceNumber"] if records else at.after
            return replace(at, after=after, time=self.stream.settings.end)
        self._due[name] = now + (READ_SECONDS if records or read.behind else IDLE_SECONDS)
        found.add(name, records)
        time = asked - CLOCKS_APART if not read.behind else (found.times[-1] if records else at.time)
        behind = replace(at, after=records[-1]["SequenceNumber"] if records else at.after, time=max(at.time, time))
        end = extent.shards[name].end
        if not read.next or (end and not records and not read.behind):
            self._iterators.pop(name, None)
            return replace(behind, ended=end or behind.after or "0")
        self._iterators[name] = (behind, read.next)
        return behind

    def _inside(self, read: Read) -> list[Mapping[str, Any]]:
        """The records before the first that lies behind the end of a range."""
        end = self.stream.settings.end
        times = [millis(each["ApproximateArrivalTimestamp"]) for each in read.records] if end >= 0 else []
        cut = next((place for place, time in enumerate(times) if time >= end), len(read.records))
        return list(read.records[:cut])

    def _at_once(self, names: list[str], at: Mapping[str, ShardPosition], rows: int) -> list[Answer]:
        calls = [partial(self._one, name, at[name], rows) for name in names]
        if len(calls) == 1:
            return [calls[0]()]
        pool = threads.pool(len(calls), "hudi-kinesis")
        try:
            futures = [pool.submit(contextvars.copy_context().run, call) for call in calls]
            return [future.result() for future in futures]
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, name: str, at: ShardPosition, rows: int) -> Answer:
        known = self._iterators.get(name)
        # A position that is not where the iterator is was set anew.
        place = known[1] if known is not None and _same(known[0], at) else self._iterator(name, at)
        asked = millis(self.clock.now())
        try:
            return name, asked, self.stream.read(place, rows)
        except ThrottledError:
            return name, asked, None
        except IteratorExpiredError:
            self._iterators.pop(name, None)
            return name, asked, None

    def _iterator(self, name: str, at: ShardPosition) -> str:
        try:
            return self.stream.iterator(name, at)
        except DataLossError:
            if not self.stream.settings.continues:
                raise
            return self.stream.iterator(name, ShardPosition())

    def _width(self, found: Messages, until: Until) -> int:
        """How many shards are read at once: each read may give as much as one may."""
        return max(1, min(REQUESTS_AT_ONCE, (until.bytes - found.size) // READ_BYTES_MAX))

    def _is_done(self, found: Messages, until: Until) -> bool:
        full = len(found.values) >= until.rows or found.size >= until.bytes
        late = until.deadline is not None and self.clock.boot_seconds() >= until.deadline
        return full or late or until.told()

    def _pause(self, until: Until, seconds: float) -> None:
        left = until.deadline - self.clock.boot_seconds() if until.deadline is not None else IDLE_SECONDS
        self.clock.sleep(max(0.0, min(seconds, left, READ_SECONDS)))


def _same(one: ShardPosition, other: ShardPosition) -> bool:
    return (one.after, one.start) == (other.after, other.start)
