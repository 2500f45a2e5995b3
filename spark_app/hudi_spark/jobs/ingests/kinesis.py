"""An ingest from Kinesis, in this process, without a JVM: once to the end that there is, or on and
on.

`Once` commits a batch after the other until every shard gives nothing more. `Continuous` commits
whatever has come in `commitInterval`, sooner once `maxRows` or `maxBytes` are read, and ends on
SIGTERM with what it has read. Whatever fails, the next reading begins at the checkpoint of the
newest commit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from hudi_spark.jobs.batch import operation_of
from hudi_spark.jobs.decoding import decoder_of, judge_of
from hudi_spark.jobs.ingests.following import run
from hudi_spark.jobs.ingests.polled import check_range, refuse_spark
from hudi_spark.jobs.ingests.streamed import Streamed
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import Shaped, Shaping
from hudi_spark.jobs.sifting.error_tables import KINESIS_ERRORS, keep_refused
from hudi_spark.jobs.stopping import Stopping
from hudi_spark.jobs.target import arrival_decides, find_table, index_options, ingest_options, target_of
from hudi_table.api import HudiTable
from hudi_table.errors import DataLossError, InvalidRequestError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.job.ranges import Range
from hudi_table.model.job.shards import ShardPositions, StreamExtent
from hudi_table.services.ingesting import Ingest
from hudi_table.services.transforming.chain_check import check_chain
from hudi_table.sources.checkpoints import Held, current_shards
from hudi_table.sources.kinesis.reading import Until
from hudi_table.sources.kinesis.rows import Decoding
from hudi_table.sources.kinesis.settings import KinesisSettings
from hudi_table.sources.kinesis.source import KinesisBatch, KinesisSource
from hudi_table.table.store.clock import SystemClock

DISCOVER_SECONDS = 60.0
"""How often a continuous driver looks for new shards and losses, if no shard ends before."""
REFRESH = 4
"""A quiet stream gets a commit for each such part of its retention: without one nobody could tell
later whether something came and was lost."""


@dataclass(slots=True)
class _Driver:
    """An attempt at one ingest. `found`: the stream as it was seen at `looked`, None where that is
    too old."""

    spec: JobSpec
    source: KinesisSource
    ingest: Ingest
    shaping: Shaping
    progress: Progress
    stopping: Stopping
    clock: SystemClock = field(default_factory=SystemClock)
    table: HudiTable | None = None
    done: Streamed = field(default_factory=Streamed)
    place: Held[ShardPositions] | None = None
    at: ShardPositions | None = None
    found: StreamExtent | None = None
    looked: float = -DISCOVER_SECONDS
    follows: bool = False

    @property
    def commits(self) -> int:
        """See `Turns`."""
        return self.done.commits

    def renew(self) -> None:
        """See `Turns`."""
        self.table = self.table or find_table(self.spec)
        self.place = None
        if self.table is not None:
            self.place = current_shards(self.table.context, self.ingest.name, self.ingest.topic)
        self.at = self.place.checkpoint if self.place is not None else self.at
        self.found = None

    def once(self) -> None:
        """Everything that is there now."""
        self.renew()
        if self.place is None and self.table is None and self.source.settings.position == "Latest":
            raise InvalidRequestError(
                "there is no table yet, and an ingest in mode Once that begins at Latest would never see a row to make it of: "
                "give mode Continuous, or another kinesis.startFrom"
            )
        while not self.stopping.told():
            batch = self.source.plan(self.source.discover(), self.at)
            if batch is None:
                return
            shaped = self._read(batch)
            ended = _ended(shaped.rows.checkpoint) > _ended(batch.start)
            fresh = shaped.messages or ended or self._is_due(batch.extent, shaped.rows.checkpoint)
            if fresh:
                self._commit(shaped)
            self.at = shaped.rows.checkpoint
            if not shaped.messages and not ended:
                return

    def take(self, deadline: float) -> None:
        """See `Turns`."""
        now, source = self.clock.boot_seconds(), self.source
        if self.found is None or self.at is None or now - self.looked >= DISCOVER_SECONDS:
            self.found, self.looked = source.discover(), now
            self.at = source.start(self.found, self.at)
        if not self.follows:
            self.progress.say("it follows the stream from here")
            self.follows = True
        settings, found, start = source.settings, self.found, self.at
        until = Until(settings.max_rows, settings.max_bytes, tip=False, deadline=deadline, told=self.stopping.told)
        shaped = self._read(source.batch(found, start, until))
        reached = shaped.rows.checkpoint
        if shaped.messages or self._is_due(found, reached):
            self._commit(shaped)
        self.at = reached
        if _ended(reached) > _ended(start):
            # What it was split or merged into is to be found.
            self.found = None

    def judge_loss(self, error: DataLossError) -> None:
        """See `Turns`."""
        # Says what is lost, or does not raise: then the ingest is to go on without it.
        self.at = self.source.start(self.source.discover(), self.at)
        if not self.source.settings.continues:
            raise error

    def _is_due(self, found: StreamExtent, reached: ShardPositions) -> bool:
        """Whether positions without a record are worth a commit: the table has none of this stream,
        or those that it has are old."""
        if self.table is None:
            return False
        if self.place is None or self.place.checkpoint.id != reached.id:
            return True
        return reached.seen - self.place.checkpoint.seen >= found.kept / REFRESH

    def _read(self, batch: KinesisBatch) -> Shaped[ShardPositions]:
        known = self.table.schema() if self.table is not None else None
        before = (self.done.messages, self.done.refused)
        return self.shaping.shaped(batch.read(self.shaping.chain.read_as(known)), known, before)

    def _commit(self, shaped: Shaped[ShardPositions]) -> None:
        began, rows = self.clock.boot_seconds(), shaped.rows
        if self.table is None and not rows.count:
            # A table is made of the columns of its first rows.
            keep_refused(self.spec, shaped.refused, KINESIS_ERRORS)
            self.done.read(shaped)
            return
        with target_of(self.spec, self.table, rows.schema, rows=rows.count > 0) as target:
            # Before the checkpoint passes them: an attempt that ends between the two keeps them again, in the same place.
            keep_refused(self.spec, shaped.refused, KINESIS_ERRORS)
            commit = self.ingest.commit(target.context, rows, self.place)
        self.table = target
        if commit.replayed or not commit.instant:
            # Another attempt went on from the same place: what it has read counts.
            raise WriteConflictError(f"another attempt has committed as {commit.instant} what comes next")
        self.done.add(shaped, commit)
        self.place = Held(rows.checkpoint, commit.instant, self.place.streamer if self.place is not None else None)
        seconds = self.clock.boot_seconds() - began
        self.progress.say(f"{commit.instant}: {counted(shaped.messages, 'message')} committed in {seconds:.1f} s")


def run_kinesis(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    refuse_spark(spec, "AWS gives a shard five reads a second, which one process makes of all shards at once")
    clock, work = SystemClock(), spec.work
    start, region = clock.boot_seconds(), spec.storage.get("region")
    settings = KinesisSettings.of(work["source"], str(region) if region else None)
    check_range(spec, Range.of(work["source"]))
    latest_wins = arrival_decides(spec) and work["operation"] == "Upsert"
    check_chain(work.get("transform", ()), arrival_decides=latest_wins)
    shaping = Shaping(work)
    # A range has a checkpoint of its own: that of Hudi Streamer is of the ingest beside it.
    bounded = settings.end >= 0
    stream = None if bounded else settings.stream
    ingest = Ingest(
        str(work["name"]), stream, operation_of(spec), ingest_options(spec), index_options(spec), shares=not bounded
    )
    ratio = float(work.get("maxErrorRatio", 0.0)) if work.get("onUndecodable") == "Quarantine" else None
    decoder = decoder_of(spec, settings, settings.format, os.environ, judge_of(spec), shaping.chain.columns)
    decoding = Decoding(settings, decoder, ratio)
    source = KinesisSource(settings, os.environ, decoding, spec.attempt, ingest.name, clock)
    with Stopping() as stopping:
        driver = _Driver(spec, source, ingest, shaping, progress, stopping, clock)
        try:
            fill = run(driver, work, stopping, progress)
        finally:
            shaping.close()
    result = driver.done.result(spec, clock.boot_seconds() - start)
    return fill.told(result) if fill is not None else result


def _ended(positions: ShardPositions) -> int:
    return sum(1 for each in positions.shards.values() if each.ended)
