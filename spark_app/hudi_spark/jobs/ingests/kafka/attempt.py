"""An ingest from Kafka, in this process, without a JVM, or in tasks of Spark (`tasks`): once
to the end that there is at its start, or on and on.

`Once` commits a batch after the other until it has what was there, `Backfill` what of that lies
before its end, whose reaching a commit tells for good. `Continuous` commits whatever
has come in `commitInterval`, sooner once `maxRows` or `maxBytes` are read, and ends on SIGTERM with
what it has read. Whatever fails, the next reading begins at the checkpoint of the newest commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from hudi_spark.jobs.batch import operation_of
from hudi_spark.jobs.decoding import decoding_of, dialect_of, needed_of
from hudi_spark.jobs.ingests.following import run
from hudi_spark.jobs.ingests.kafka.here import Here
from hudi_spark.jobs.ingests.streamed import Streamed
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import Shaped, Shaping, refuse_apart
from hudi_spark.jobs.sifting.error_tables import keep_refused
from hudi_spark.jobs.stopping import Stopping
from hudi_spark.jobs.target import (
    arrival_decides,
    find_table,
    index_options,
    ingest_options,
    storage_options,
    target_of,
)
from hudi_table.api import CommitResult, HudiTable, open_table
from hudi_table.errors import DataLossError, InvalidRequestError, UnsettledDataError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.job.error_tables import quarantines
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.job.positions import Extent, Positions
from hudi_table.services.ingesting import Ingest
from hudi_table.services.transforming.chain_check import check_chain
from hudi_table.sources.checkpoints import HeldPositions, current_positions
from hudi_table.sources.formats.dialects import OPERATION
from hudi_table.sources.kafka.beginnings import Elsewhere
from hudi_table.sources.kafka.consume import Until
from hudi_table.sources.kafka.settings import End, KafkaSettings
from hudi_table.sources.kafka.source import KafkaBatch, KafkaSource
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext

DISCOVER_SECONDS = 60.0
"""How often a continuous driver looks for new partitions, topics and losses."""
LATE_SECONDS = 60.0
"""How long behind the end of a range messages of before it may still come."""
FIXED = ("Earliest", "Offsets")
"""Beginnings that are the same whenever they are asked for."""
WIDER_MAX, WIDER_SECONDS_MAX = 4, 30.0
"""What a message lacks may lie behind the end of its batch. The next reading takes up to so many
times what a commit may have, and so long."""


class Way(Protocol):
    """How a batch is read and committed."""

    def following(self, start: Positions, deadline: float, told: Callable[[], bool]) -> KafkaBatch:
        """What comes behind these positions until a moment of the boot clock, or until there is
        enough for a commit, or the driver is told to end."""
        ...

    def read(self, batch: KafkaBatch, known: pa.Schema | None, before: tuple[int, int]) -> Shaped[Positions]:
        """The rows of a batch; see `Shaping.shaped`."""
        ...

    def commit(self, target: HudiTable, shaped: Shaped[Positions], held: HeldPositions | None) -> CommitResult:
        """Write them; see `Ingest.commit`."""
        ...

    def close(self) -> None:
        """Let go what the way holds."""
        ...


@dataclass(slots=True)
class _Driver:
    """An attempt at one ingest."""

    spec: JobSpec
    source: KafkaSource
    ingest: Ingest
    way: Way
    progress: Progress
    stopping: Stopping
    clock: SystemClock = field(default_factory=SystemClock)
    table: HudiTable | None = None
    done: Streamed = field(default_factory=Streamed)
    place: HeldPositions | None = None
    at: Positions | None = None
    looked: float = -DISCOVER_SECONDS
    follows: bool = False
    wider: int = 1

    @property
    def commits(self) -> int:
        """See `Turns`."""
        return self.done.commits

    def held(self) -> HeldPositions | None:
        """The checkpoint of the newest commit."""
        self.table = self.table or find_table(self.spec)
        if self.table is None:
            return None
        held = current_positions(self.table.context, self.ingest.name, self.ingest.topic)
        return replace(held, positions=held.positions.recorded) if held is not None else None

    def once(self) -> None:
        """Everything that is there now, of a range once."""
        held, end = self.held(), self.source.settings.end
        if end is not None and held is not None and held.positions.ended == end.text:
            return
        found = self.source.discover(held.positions if held is not None else None)
        if held is None and self.source.settings.position == "Latest":
            self._begin_at_end(found)
            return
        if held is None and self.table is None and self.source.falls_back_to_ends(found):
            raise InvalidRequestError(
                "there is no table yet, and partitions without a committed offset would begin at their ends again at each run: "
                "give kafka.startFrom.fallback Earliest, or mode Continuous"
            )
        positions = held.positions if held is not None else None
        while not self.stopping.told():
            batch = self.source.plan(found, positions)
            if batch is None:
                self._adopt(found, held)
                return
            shaped = self._read(batch)
            if not shaped.messages and shaped.rows.checkpoint.topics == batch.start.topics:
                # The rest waits for what belongs to it and has not come yet.
                return
            held = self._commit(shaped, held)
            # What only markers fill of a topic is passed over without a table, too.
            positions = held.positions if held is not None else shaped.rows.checkpoint

    def renew(self) -> None:
        """See `Turns`."""
        self.place = self.held()
        self.at = self.place.positions if self.place is not None else self.at
        self.looked = -DISCOVER_SECONDS

    def take(self, deadline: float) -> None:
        """See `Turns`."""
        now = self.clock.boot_seconds()
        if self.at is None or now - self.looked >= DISCOVER_SECONDS:
            before = self.at
            self.at, self.looked = self.source.start(self.source.discover(before), before), now
            self._say_away(before, self.at)
            if before is None and self.table is not None and self.source.settings.position not in FIXED:
                # A successor that came before the first message would begin somewhere else.
                self.place = self._keep(self.at, None)
                self.at = self.place.positions if self.place is not None else self.at
        if not self.follows:
            self.progress.say("it follows the topics from here")
            self.follows = True
        self.place, self.at = self._interval(self.place, self.at, deadline)

    def judge_loss(self, error: DataLossError) -> None:
        """See `Turns`."""
        # Says how much is lost, or does not raise: then the ingest is to go on without it.
        self.source.start(self.source.discover(self.at), self.at)
        if not self.source.settings.continues:
            raise error

    def _interval(
        self, held: HeldPositions | None, at: Positions, deadline: float
    ) -> tuple[HeldPositions | None, Positions]:
        window = max(0.0, deadline - self.clock.boot_seconds())
        more = max(0.0, min(window * self.wider, WIDER_SECONDS_MAX) - window)
        shaped = self._read(self.way.following(at, deadline + more, self.stopping.told))
        before = held
        if shaped.messages:
            held = self._commit(shaped, held)
        if held is not None and held is not before:
            return held, held.positions
        # Positions that moved over markers alone are not worth a commit: a successor passes them again.
        return held, shaped.rows.checkpoint

    def _read(self, batch: KafkaBatch) -> Shaped[Positions]:
        known = self.table.schema() if self.table is not None else None
        before = (self.done.messages, self.done.refused)
        while True:
            most = min(self.wider, WIDER_MAX)
            until = replace(batch.until, rows=batch.until.rows * most, bytes=batch.until.bytes * most)
            try:
                # What is still lacking then may lie farther behind: the other partitions go on to it.
                short = most == WIDER_MAX and until.deadline is None
                shaped = self.way.read(replace(batch, until=until, short=short), known, before)
            except UnsettledDataError:
                self.wider *= 2
                # One that follows waits first, for it may not have come yet.
                if until.deadline is not None or most == WIDER_MAX:
                    raise
            else:
                self.wider = 1
                return shaped

    def _adopt(self, found: Extent, held: HeldPositions | None) -> None:
        """Where nothing is to be read, the positions are made ours, with their ids, if none of ours
        stand in the table; and of a range is told that its end was reached."""
        end = self.source.settings.end
        reached = end is not None and end.timestamp < (self.clock.now().timestamp() - LATE_SECONDS) * 1000
        if self.table is not None and (held is None or not held.positions.cluster or reached):
            start = self.source.start(found, held.positions if held is not None else None)
            if end is not None and reached:
                start = replace(start, ended=end.text)
            self._keep(start, held)

    def _keep(self, start: Positions, held: HeldPositions | None) -> HeldPositions | None:
        """Commit positions without a message."""
        return self._commit(self._read(self.source.batch(start, Until(1, 1, {}))), held)

    def _say_away(self, before: Positions | None, now: Positions) -> None:
        for name in now.away.keys() - (before.away.keys() if before is not None else ()):
            self.progress.say(f"topic {name} is not there any more; its place is kept, should it come back")

    def _begin_at_end(self, found: Extent) -> None:
        if self.table is None:
            raise InvalidRequestError(
                "there is no table yet, and an ingest in mode Once that begins at Latest would never see a row to make it of: "
                "give mode Continuous, or another kafka.startFrom"
            )
        self._adopt(found, None)

    def _commit(self, shaped: Shaped[Positions], held: HeldPositions | None) -> HeldPositions | None:
        began, rows = self.clock.boot_seconds(), shaped.rows
        if self.table is None and not rows.count:
            # A table is made of the columns of its first rows.
            keep_refused(self.spec, shaped.refused)
            self.done.read(shaped)
            return held
        with target_of(self.spec, self.table, rows.schema, rows=rows.count > 0) as target:
            # Before the checkpoint passes them: an attempt that ends between the two keeps them again, in the same place.
            keep_refused(self.spec, shaped.refused)
            commit = self.way.commit(target, shaped, held)
        self.table = target
        if commit.replayed or not commit.instant:
            # Another attempt went on from the same place: what it has read counts.
            raise WriteConflictError(f"another attempt has committed as {commit.instant} what comes next")
        self.done.add(shaped, commit)
        seconds = self.clock.boot_seconds() - began
        self.progress.say(f"{commit.instant}: {counted(shaped.messages, 'message')} committed in {seconds:.1f} s")
        told = held.streamer if held is not None else None
        return HeldPositions(rows.checkpoint.recorded, commit.instant, told)


def run_kafka(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    clock = SystemClock()
    start = clock.boot_seconds()
    work = spec.work
    settings = replace(KafkaSettings.of(work["source"]), keeps_keys=quarantines(work))
    shaping = _shaping(spec, settings)
    _check_range(spec, settings)
    bounded = settings.end is not None
    # A range has a checkpoint of its own: that of Hudi Streamer is of the ingest beside it.
    topic = None if bounded else settings.only_topic
    decoding = decoding_of(spec, settings, os.environ, shaping.chain.columns)
    ingest = Ingest(
        str(work["name"]), topic, operation_of(spec), ingest_options(spec), index_options(spec), shares=not bounded
    )
    if decoding.stored is not None:
        ingest = replace(ingest, seen=decoding.stored.seen)
    source = KafkaSource(
        settings,
        os.environ,
        decoding,
        spec.attempt,
        ingest.name,
        _elsewhere(spec),
        clock,
    )
    with Stopping() as stopping:
        way = _way(spec, source, ingest, shaping, progress)
        driver = _Driver(spec, source, ingest, way, progress, stopping, clock)
        try:
            fill = run(driver, work, stopping, progress)
        finally:
            way.close()
            source.close()
            shaping.close()
    result = driver.done.result(spec, clock.boot_seconds() - start)
    return fill.told(result) if fill is not None else result


def _elsewhere(spec: JobSpec) -> Elsewhere:
    """Other locations are opened with the credentials of the table."""

    def folder(location: str) -> Storage:
        return open_storage(location, storage_options(spec, location))

    def table(location: str) -> TableContext:
        return open_table(location, storage_options=storage_options(spec, location)).context

    return Elsewhere(folder, table)


def _way(spec: JobSpec, source: KafkaSource, ingest: Ingest, shaping: Shaping, progress: Progress) -> Way:
    here = Here(source, ingest, shaping)
    if spec.engine == "Local":
        return here
    # Spark is started only by jobs that need it.
    from hudi_spark.jobs.ingests.kafka.tasks import SparkWay

    refuse_apart(spec.work.get("transform", ()))
    return SparkWay(spec, here, progress)


def _check_range(spec: JobSpec, settings: KafkaSettings) -> None:
    """Raises InvalidRequestError for a range whose rows could overwrite newer ones, or come
    twice."""
    if (spec.work.get("mode", "Once") == "Backfill") != (settings.end is not None):
        raise InvalidRequestError("mode Backfill needs kafka.endAt, and no other mode has it")
    if settings.end is None:
        return
    if spec.work["operation"] != "Upsert" or arrival_decides(spec):
        raise InvalidRequestError(
            "mode Backfill needs operation Upsert, orderingFields and mergeMode EventTime: its rows are older than those beside it"
        )
    if settings.position == "Latest":
        raise InvalidRequestError("mode Backfill does not begin at Latest: give another kafka.startFrom")
    if _is_empty(settings, settings.end):
        raise InvalidRequestError("kafka.endAt does not lie behind kafka.startFrom: nothing is between the two")


def _is_empty(settings: KafkaSettings, end: End) -> bool:
    if settings.position == "Timestamp" and end.offsets is None:
        return end.timestamp <= settings.timestamp
    if settings.offsets is None or end.offsets is None:
        return False
    begins, ends = settings.offsets.topics, end.offsets.topics
    places = [
        (begins[t].offsets[p], ends[t].offsets[p])
        for t in begins
        if t in ends
        for p in begins[t].offsets
        if p in ends[t].offsets
    ]
    return bool(places) and all(begin >= stop for begin, stop in places)


def _shaping(spec: JobSpec, settings: KafkaSettings) -> Shaping:
    """Expectations and transforms, checked before anything is read."""
    steps, by_spark = spec.work.get("transform", ()), spec.engine != "Local"
    deletes = needed_of(spec) if settings.debezium or settings.tombstones == "Delete" else []
    if settings.debezium:
        deletes += [dialect_of(spec).order, OPERATION]
    check_chain(
        steps,
        arrival_decides=arrival_decides(spec) and spec.work["operation"] == "Upsert",
        deletes=deletes,
        setting="" if settings.debezium else "kafka.tombstones",
        by_spark=by_spark,
    )
    return Shaping(spec.work, by_spark=by_spark)
