"""A batch of Kafka in tasks of Spark: each reads a range of offsets itself and makes rows of it;
no message goes through the driver.

1. Tasks read their ranges, make rows of the messages, ask the expectations, keep the rows on their
   disks, and say what is refused. Where a range has columns that the table lacks they keep the
   messages, and say which columns.
2. The driver unites the columns. If they are not those of every range, tasks make the rows again.
   What was read a second time, as after the loss of an executor, must be what was read first.
3. Spark does the SELECTs, and `hudi_spark.write` commits. Without SELECTs no row becomes one of
   Spark: the tasks that write get them as Arrow.

Few messages the driver reads itself, and makes rows of them: Spark is asked for the SELECTs alone,
and for a write that grows with the table. Rows that go to logs of buckets need no JVM then.

What a message, a tombstone or an expectation means is what it means in one process: it is the same
code. A partition of change events is one range, for a value that an event leaves alone is that of
an event before it.
"""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark import StorageLevel, cloudpickle
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from hudi_spark.in_driver import go_to_few_logs
from hudi_spark.jobs.ingest_spark import arrow_schema, data_errors, in_spark_types, report_tasks, started, transformed
from hudi_spark.jobs.ingests.kafka.here import Here
from hudi_spark.jobs.ingests.kafka.kept import KeptRows
from hudi_spark.jobs.ingests.kafka.parts import Asked, ReadRange, Tools, is_own, make_part, read_part
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import Shaped, Shaping, counting
from hudi_spark.jobs.sifting.parts import KEPT, told_of
from hudi_spark.jobs.target import arrival_decides
from hudi_spark.routing.key_columns import partition_path_column, record_key_column
from hudi_spark.writer import write_frame
from hudi_table import errors
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError, UnsettledDataError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.job.positions import Positions
from hudi_table.model.job.variables import SOURCE_VARIABLES
from hudi_table.model.table.properties import with_timebased
from hudi_table.services.ingesting import Ingest, commit_behind
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import HeldPositions
from hudi_table.sources.formats.unions import united
from hudi_table.sources.kafka.brokers import Place, by_place
from hudi_table.sources.kafka.consume import Until
from hudi_table.sources.kafka.ranges import Bounds, Range, ranges_of, reached_of
from hudi_table.sources.kafka.refusing import ERROR_SCHEMA, KafkaOrigin
from hudi_table.sources.kafka.source import KafkaBatch, KafkaSource
from hudi_table.write.checks.request import resolve_index
from hudi_table.write.operations import WriteRequest

HERE_ROWS, HERE_BYTES = 200_000, 32 << 20
"""So many messages of a commit the driver reads itself."""
TOGETHER_ROWS, TOGETHER_BYTES = HERE_ROWS, HERE_BYTES
"""So many it reads of a batch of which tasks could not settle each partition alone."""
_ITEMS = "ordinal int, payload binary"
_LOOK_SECONDS = 0.5
_ARRIVAL, _RANK = "_lakeops_arrival", "_lakeops_rank"


@dataclass(frozen=True, slots=True)
class SparkShaped(Shaped[Positions]):
    """What is to be committed, as a frame; the batches of `rows` are empty."""

    frame: DataFrame | None = None
    kept: KeptRows | None = None


@dataclass(slots=True)
class SparkWay:
    """How the driver of a Kafka ingest reads and commits by Spark. Ended by `close`."""

    spec: JobSpec
    here: Here
    progress: Progress
    row_bytes: float = 0.0
    _rate: float = 0.0
    _read_at: float = 0.0
    _spark: SparkSession | None = None
    _tools: bytes = b""
    _kept: ExitStack = field(default_factory=ExitStack)

    @property
    def source(self) -> KafkaSource:
        """Of the ingest."""
        return self.here.source

    @property
    def ingest(self) -> Ingest:
        """What commits."""
        return self.here.ingest

    @property
    def shaping(self) -> Shaping:
        """What happens to rows."""
        return self.here.shaping

    def following(self, start: Positions, deadline: float, told: Callable[[], bool]) -> KafkaBatch:
        """What the driver reads as it comes, where that is little; else what has come once there is
        enough for a commit, or it is time for one."""
        settings, clock = self.source.settings, self.source.clock
        rows = settings.max_rows
        if self.row_bytes:
            rows = min(rows, int(settings.max_bytes / self.row_bytes) + 1)
        while True:
            stops = by_place(self.source.brokers.extent_of(list(start.topics), start.topics).ends)
            there = _count(start, stops)
            if self._are_few(there + self._rate * max(0.0, deadline - clock.boot_seconds())):
                return self.source.batch(start, replace(self._until_many(), deadline=deadline, told=told))
            if there >= rows or told() or clock.boot_seconds() >= deadline:
                return self.source.batch(start, replace(self.source.until, stops=stops, strict=True))
            clock.sleep(max(0.0, min(_LOOK_SECONDS, deadline - clock.boot_seconds())))

    def read(self, batch: KafkaBatch, known: pa.Schema | None, before: tuple[int, int]) -> Shaped[Positions]:
        """See `Way`. What one partition alone lacks is looked for in all of them."""
        self._kept.close()
        if batch.until.stops is None or self._are_few(_count(batch.start, batch.until.stops)):
            return self._read_here(batch, self._until_many(), known, before)
        try:
            return self._read_apart(batch, known, before)
        except UnsettledDataError:
            self._kept.close()
            times = max(1, batch.until.rows // self.source.settings.max_rows)
            most = replace(batch.until, rows=TOGETHER_ROWS * times, bytes=TOGETHER_BYTES * times)
            return self._read_here(replace(batch, short=True), most, known, before)

    def _read_apart(self, batch: KafkaBatch, known: pa.Schema | None, before: tuple[int, int]) -> Shaped[Positions]:
        """What tasks make of a batch, each of a partition or of a part of one."""
        assert batch.until.stops is not None
        stored = self.source.decoding.stored
        if stored is not None:
            # Tasks may look at rows of the table, and tell nobody.
            stored.seen()
            stored.note()
        wanted = self.shaping.chain.read_as(known)
        bounds = Bounds(
            batch.until.rows,
            batch.until.bytes,
            self._parallelism(),
            self.row_bytes,
            whole=self.source.settings.debezium,
        )
        ranges = ranges_of(by_place(batch.start), batch.until.stops, bounds)
        if not ranges:
            return self._nothing(batch.reached({}, -1), wanted)
        spark = self._session()
        most = sum(each.stop - each.start for each in ranges)
        asked = Asked(self._packed_tools(), wanted, batch.start, most)
        with data_errors(), report_tasks(spark, self.progress):
            kept, told = self._read_ranges(spark, ranges, asked)
            schemas = frozenset[int]().union(*(each.schemas for each in told))
            if any(each.made is None and each.count and each.schemas != schemas for each in told):
                # What a field fills that had another name follows from all schemas of a commit.
                self._kept.close()
                asked = replace(asked, schemas=schemas)
                kept, told = self._read_ranges(spark, ranges, asked)
            self.source.confirm(batch.start)
            numbers, at = reached_of(ranges, [each.reached for each in told])
            found = [told[number] for number in numbers]
            reached = batch.reached(at, max(each.newest for each in found))
            self._learn(sum(each.count for each in found), sum(each.bytes for each in found))
            if not any(each.count for each in found):
                return self._nothing(reached, wanted)
            columns = _columns(found)
            return self._make(
                kept, dict(zip(numbers, found, strict=True)), replace(asked, known=columns), reached, before
            )

    def commit(self, target: HudiTable, shaped: Shaped[Positions], held: HeldPositions | None) -> CommitResult:
        """See `Way`."""
        rows = shaped.rows
        ingest, deleted = self.ingest.without_older(target.context, rows, held)
        request = ingest.request(target.context, rows.checkpoint, held)
        done = self._written(target, shaped, request)
        return replace(done, rows_deleted=done.rows_deleted + deleted)

    def _written(self, target: HudiTable, shaped: Shaped[Positions], request: WriteRequest) -> CommitResult:
        rows = shaped.rows
        frame = shaped.frame if isinstance(shaped, SparkShaped) else None
        if frame is None:
            table = rows.batches.read_all()
            config = with_timebased(target.context.config, request.options)
            if not rows.count or go_to_few_logs(table, config, resolve_index(config, request.options)[0]):
                return commit_behind(target.context, table.to_reader(), request)
            frame = self._frame(table)
        newest = self._newest(frame, target)
        kept = shaped.kept if isinstance(shaped, SparkShaped) and newest is frame else None
        with data_errors(), report_tasks(self._session(), self.progress):
            return write_frame(target, newest, request, rows=kept)

    def close(self) -> None:
        """Let go what tasks have kept."""
        self._kept.close()

    def _are_few(self, messages: float) -> bool:
        """Whether the driver reads so many itself."""
        return messages <= HERE_ROWS and messages * self.row_bytes <= HERE_BYTES

    def _until_many(self) -> Until:
        until = self.source.until
        return replace(until, rows=min(until.rows, HERE_ROWS), bytes=min(until.bytes, HERE_BYTES))

    def _read_here(
        self, batch: KafkaBatch, most: Until, known: pa.Schema | None, before: tuple[int, int]
    ) -> Shaped[Positions]:
        """What is in the batch, or as much of it as the driver takes at once."""
        until = replace(batch.until, rows=min(batch.until.rows, most.rows), bytes=min(batch.until.bytes, most.bytes))
        rows = self.here.rows(replace(batch, until=until), known)
        if isinstance(rows.origin, KafkaOrigin):
            self._learn(len(rows.origin.messages.values), rows.origin.messages.size)
        judged = self.shaping.judged(rows)
        self.shaping.check_counts(judged.refused, judged.messages, before)
        rows = counting(judged.rows, judged.refused)
        chain = self.spec.work.get("transform", ())
        if not (chain and rows.count):
            return replace(judged, rows=rows)
        with data_errors():
            frame = transformed(self._session(), self._frame(rows.batches.read_all()), chain)
            schema = arrow_schema(frame)
        rows = replace(rows, schema=schema, batches=schema.empty_table().to_reader())
        return SparkShaped(rows, judged.messages, judged.refused, judged.dropped, frame)

    def _frame(self, rows: pa.Table) -> DataFrame:
        """Rows that the driver has."""
        schema, wanted = in_spark_types(rows.schema)
        return self._session().createDataFrame(conform(rows, wanted), schema)

    def _session(self) -> SparkSession:
        if self._spark is None:
            self._spark = started(self.spec, self.progress, short=False)
        return self._spark

    def _parallelism(self) -> int:
        return int(self._session().sparkContext.defaultParallelism)

    def _packed_tools(self) -> bytes:
        if not self._tools:
            source = self.source
            environment = {name: os.environ[name] for name in SOURCE_VARIABLES if name in os.environ}
            # Expectations are asked in tasks; the SELECTs are Spark's.
            work = {**self.spec.work, "transform": []}
            tools = Tools(source.decoding, work, environment, source.ingest, source.attempt)
            self._tools = cloudpickle.dumps(tools)
        return self._tools

    def _learn(self, messages: int, size: int) -> None:
        """How large messages are, and how many come in a second."""
        now = self.source.clock.boot_seconds()
        self._rate = messages / max(now - self._read_at, 0.001) if self._read_at else 0.0
        self._read_at = now
        if messages:
            self.row_bytes = max(1.0, size / messages)

    def _nothing(self, reached: Positions, known: pa.Schema | None) -> Shaped[Positions]:
        schema = known if known is not None else pa.schema([])
        rows = Rows(schema, schema.empty_table().to_reader(), reached, 0)
        return Shaped(rows, 0, ERROR_SCHEMA.empty_table(), 0)

    def _keep(self, frame: DataFrame) -> DataFrame:
        """On the disks of the executors, until the next batch is read."""
        kept = frame.persist(StorageLevel.DISK_ONLY)
        self._kept.callback(kept.unpersist)
        return kept

    def _read_ranges(
        self, spark: SparkSession, ranges: Sequence[Range], asked: Asked
    ) -> tuple[DataFrame, list[ReadRange]]:
        rows = [(ordinal, pickle.dumps(each)) for ordinal, each in enumerate(ranges)]
        frame = spark.createDataFrame(rows, _ITEMS).repartitionById(len(rows), "ordinal")
        kept = self._keep(frame.mapInArrow(functools.partial(read_part, asked=asked), KEPT))
        told = told_of(kept)
        return kept, [told[ordinal] for ordinal in range(len(ranges))]

    def _make(
        self,
        kept: DataFrame,
        found: Mapping[int, ReadRange],
        asked: Asked,
        reached: Positions,
        before: tuple[int, int],
    ) -> SparkShaped:
        for each in found.values():
            if each.error is not None:
                raise _raised(*each.error)
        columns = asked.known
        assert columns is not None
        told = [each.made for each in found.values() if each.made is not None]
        expects = bool(self.spec.work.get("expectations"))
        if not all(each.fits(columns, asked=expects) for each in found.values()):
            task = functools.partial(make_part, asked=asked, found=dict(found))
            kept = self._keep(kept.mapInArrow(task, KEPT))
            told = list(told_of(kept).values())
        refused = pa.concat_tables([ERROR_SCHEMA.empty_table(), *(each.refused for each in told)])
        messages, dropped = sum(each.messages for each in told), sum(each.dropped for each in told)
        self.shaping.check_counts(refused, messages, before)
        made = KeptRows.of(kept, found, columns)
        frame, schema = made.whole(), columns
        chain = self.spec.work.get("transform", ())
        if chain:
            frame = transformed(self._session(), frame, chain)
            schema = arrow_schema(frame)
        count = sum(each.count for each in told)
        # A truncate is of a topic of one partition, and that is one range.
        since = next((each.since for each in found.values() if each.since is not None), None)
        rows = Rows(schema, schema.empty_table().to_reader(), reached, count, refused, since=since)
        return SparkShaped(counting(rows, refused), messages, refused, dropped, frame, None if chain else made)

    def _newest(self, frame: DataFrame, target: HudiTable) -> DataFrame:
        """Where of two rows with one key the later one wins, and of change events where both are of
        one place in the log: the last of each key. Rows lose their order on the way to the tasks
        that write them."""
        last_wins = arrival_decides(self.spec)
        if self.ingest.operation != "upsert" or not (last_wins or self.source.settings.debezium):
            return frame
        config = target.context.config
        names = frame.columns
        numbered = frame.withColumns(
            {
                _ARRIVAL: sf.monotonically_increasing_id(),
                _RANK + "_key": record_key_column(frame, config),
                _RANK + "_path": partition_path_column(frame, config),
            }
        )
        same = Window.partitionBy(_RANK + "_key", _RANK + "_path").orderBy(
            *(() if last_wins else [sf.col(name).desc() for name in self.spec.table["orderingFields"]]),
            sf.col(_ARRIVAL).desc(),
        )
        last = numbered.withColumn(_RANK, sf.row_number().over(same))
        return last.where(sf.col(_RANK) == 1).select(*(f"`{name.replace('`', '``')}`" for name in names))


def _count(start: Positions, stops: Mapping[Place, int]) -> int:
    """Offsets between the two."""
    return sum(max(0, stops.get(place, at) - at) for place, at in by_place(start).items())


def _columns(found: Sequence[ReadRange]) -> pa.Schema:
    """The columns of all ranges, those that the ingest adds last."""
    return united([each.schema for each in found if each.schema is not None], is_own)


def _raised(name: str, message: str) -> HudiError:
    kind = getattr(errors, name)
    found: HudiError = kind(message)
    return found
