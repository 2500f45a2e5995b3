"""`Kinesis`: what a stream has, from the positions that the table's commits hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hudi_table.errors import DataLossError
from hudi_table.model.job.shards import ShardPositions, StreamExtent, begun, losses, words_of
from hudi_table.sources.base import Rows
from hudi_table.sources.kinesis.reading import Reader, Until
from hudi_table.sources.kinesis.rows import Decoding, KinesisOrigin, Where
from hudi_table.sources.kinesis.settings import KinesisSettings
from hudi_table.sources.kinesis.stream import Stream, millis
from hudi_table.table.store.clock import SystemClock

REMEDY = "give onDataLoss: Continue to go on with what there is"


@dataclass(frozen=True, slots=True)
class KinesisBatch:
    """Records from `start` on, as far as `until` says."""

    source: KinesisSource
    extent: StreamExtent
    start: ShardPositions
    until: Until

    @property
    def name(self) -> str:
        """Of where it begins."""
        return self.start.batch

    def read(self, known: pa.Schema | None) -> Rows[ShardPositions]:
        """Their rows, and the positions that were come to."""
        source = self.source
        messages, reached = source.reader.read(self.extent, self.start, self.until)
        where = Where(self.start.stream, messages)
        found = source.decoding.rows(messages, known, where)
        origin = KinesisOrigin(where, found.order, source.ingest, source.attempt, self.start.id)
        faults = found.faults
        refused = origin.table([each.place for each in faults], [each.why for each in faults], [None] * len(faults))
        return Rows(found.table.schema, found.table.to_reader(), reached, len(found.table), refused, origin)


@dataclass(slots=True)
class KinesisSource:
    """The stream of an ingest, as its attempt `attempt` sees it."""

    settings: KinesisSettings
    environment: Mapping[str, str] = field(repr=False)
    decoding: Decoding
    attempt: str
    ingest: str = ""
    clock: SystemClock = field(default_factory=SystemClock)
    _reader: Reader | None = None

    @property
    def reader(self) -> Reader:
        """The one reader, made when it is needed first."""
        if self._reader is None:
            self._reader = Reader(Stream(self.settings, self.environment), self.clock)
        return self._reader

    def discover(self) -> StreamExtent:
        """What the stream has now."""
        return self.reader.stream.extent()

    def plan(self, found: StreamExtent, before: ShardPositions | None) -> KinesisBatch | None:
        """All that is there, within `maxRows` and `maxBytes`; None where every shard was read to
        its end. Raises what `start` does."""
        end = self.settings.end
        if before is not None and end >= 0 and all(each.ended or each.time >= end for each in before.shards.values()):
            return None  # What the stream no longer has was read.
        start = self.start(found, before)
        if not self.reader.readable(found, start.shards):
            return None
        return self.batch(found, start, Until(self.settings.max_rows, self.settings.max_bytes))

    def batch(self, found: StreamExtent, start: ShardPositions, until: Until) -> KinesisBatch:
        """Records from these positions on."""
        return KinesisBatch(self, found, start, until)

    def start(self, found: StreamExtent, before: ShardPositions | None) -> ShardPositions:
        """Where reading goes on, or begins. Raises DataLossError where the stream no longer has
        what comes next, unless `onDataLoss` is Continue."""
        now = millis(self.clock.now())
        lost = losses(found, before, now) if before is not None else []
        if lost and not self.settings.continues:
            raise DataLossError(f"{words_of(lost)}; {REMEDY}")
        latest = self.settings.position == "Latest"
        moment = now if latest else self.settings.timestamp if self.settings.position == "Timestamp" else -1
        held = begun(found, before, moment=moment, latest=latest, attempt=self.attempt)
        if not lost:
            return held
        # What was lost is told once.
        shards = {name: replace(each, time=-1) for name, each in held.shards.items()}
        return replace(held, shards=shards)
