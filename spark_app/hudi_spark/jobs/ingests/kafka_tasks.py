"""A batch of Kafka in tasks of Spark: each reads a range of offsets itself and makes rows of it; no
message goes through the driver.

1. Tasks read their ranges, keep the messages on their disks, and say which columns these have.
2. The driver unites the columns. Tasks make rows of the messages again, now in its types, ask the
   expectations, and say what is refused. What was read a second time, as after the loss of an
   executor, must be what was read first.
3. Spark does the SELECTs, and `hudi_spark.write` commits.

What a message, a tombstone or an expectation means is what it means in one process: it is the same
code. A partition of change events is one range, for a value that an event leaves alone is that of
an event before it.
"""

from __future__ import annotations

import functools
import itertools
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel, cloudpickle
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

import hudi_spark
from hudi_spark.jobs.batch import operation_of
from hudi_spark.jobs.ingest_spark import arrow_schema, data_errors, in_spark_types, report_tasks, started, transformed
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import Shaped, Shaping, counting
from hudi_spark.jobs.target import arrival_decides
from hudi_spark.routing.key_columns import partition_path_column, record_key_column
from hudi_spark.worker import set_up_worker
from hudi_table import errors
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.conform import conform
from hudi_table.errors import HudiError, InvalidDataError, UnavailableError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.job.positions import Positions
from hudi_table.model.job.variables import SOURCE_VARIABLES
from hudi_table.model.names import IS_DELETED
from hudi_table.services.ingesting import Ingest
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import HeldPositions
from hudi_table.sources.formats.dialects import DIALECTS
from hudi_table.sources.formats.unions import united
from hudi_table.sources.kafka.brokers import by_place
from hudi_table.sources.kafka.ranges import Bounds, Range, packed, ranges_of, reached_of, read_range, unpacked
from hudi_table.sources.kafka.refusing import ERROR_SCHEMA
from hudi_table.sources.kafka.rows import Decoding
from hudi_table.sources.kafka.source import KafkaBatch, KafkaSource, rows_of
from hudi_table.sources.kafka.where import PREFIX
from hudi_table.table.store.clock import SystemClock

_ITEMS = "ordinal int, payload binary"
_KEPT = "ordinal int, told binary, data binary"
_CHUNK_ROWS = 65_536
_LOOK_SECONDS = 0.5
_ARRIVAL, _RANK = "_lakeops_arrival", "_lakeops_rank"
Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Tools:
    """What tasks make rows with; its secrets travel as those of the store do."""

    decoding: Decoding
    work: Mapping[str, Any]
    environment: Mapping[str, str] = field(repr=False)
    ingest: str = ""
    attempt: str = ""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a task is asked of one batch. `known`: types that are wanted; `most`: messages that the
    batch has at most."""

    tools: bytes = field(repr=False)
    known: pa.Schema | None
    start: Positions
    most: int

    def rows(self, wanted: Range, batches: Sequence[pa.RecordBatch]) -> Rows[Positions]:
        """Rows of the messages of a range."""
        tools = _unpacked(self.tools)
        messages = unpacked(batches, wanted.place)
        decoding = replace(tools.decoding, most=self.most)
        return rows_of(messages, decoding, self.known, (tools.ingest, tools.attempt), self.start)


@dataclass(frozen=True, slots=True)
class _Read:
    """What a task says of a range: the offset behind it, how many messages are in it, the offset of
    the last one, their bytes and newest time; the columns of their rows, or the error that there
    are none."""

    wanted: Range
    reached: int
    count: int
    last: int
    bytes: int
    newest: int
    schema: pa.Schema | None = None
    error: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Made:
    """What a task says of the rows of a range."""

    count: int
    messages: int
    refused: pa.Table
    dropped: int


@dataclass(frozen=True, slots=True)
class SparkShaped(Shaped[Positions]):
    """What is to be committed, as a frame; the batches of `rows` are empty."""

    frame: DataFrame | None = None


@functools.lru_cache(maxsize=1)
def _unpacked(tools: bytes) -> Tools:
    """Kept by a worker from task to task: a registry is asked once for a schema."""
    found: Tools = pickle.loads(tools)  # noqa: S301 - the driver's own, see tests/tidy/test_dangers.py
    return found


@dataclass(slots=True)
class SparkWay:
    """How the driver of a Kafka ingest reads and commits by Spark. Ended by `close`."""

    spec: JobSpec
    source: KafkaSource
    ingest: Ingest
    shaping: Shaping
    progress: Progress
    row_bytes: float = 0.0
    _spark: SparkSession | None = None
    _tools: bytes = b""
    _kept: ExitStack = field(default_factory=ExitStack)

    def following(self, start: Positions, deadline: float, told: Callable[[], bool]) -> KafkaBatch:
        """What has come once there is enough for a commit, or it is time for one."""
        settings, clock = self.source.settings, self.source.clock
        rows = settings.max_rows
        if self.row_bytes:
            rows = min(rows, int(settings.max_bytes / self.row_bytes) + 1)
        while True:
            stops = by_place(self.source.brokers.extent_of(list(start.topics)).ends)
            there = sum(max(0, stops.get(place, at) - at) for place, at in by_place(start).items())
            if there >= rows or told() or clock.boot_seconds() >= deadline:
                return self.source.batch(start, replace(self.source.until, stops=stops, strict=True))
            clock.sleep(max(0.0, min(_LOOK_SECONDS, deadline - clock.boot_seconds())))

    def read(self, batch: KafkaBatch, known: pa.Schema | None, before: tuple[int, int]) -> Shaped[Positions]:
        """See `Way`."""
        self._kept.close()
        wanted = self.shaping.chain.read_as(known)
        bounds = Bounds(
            batch.until.rows,
            batch.until.bytes,
            self._parallelism(),
            self.row_bytes,
            whole=self.source.settings.debezium,
        )
        ranges = ranges_of(by_place(batch.start), batch.until.stops or {}, bounds)
        if not ranges:
            return self._nothing(batch.reached({}, -1), wanted)
        spark = self._session()
        most = sum(each.stop - each.start for each in ranges)
        asked = _Asked(self._packed_tools(), wanted, batch.start, most)
        with data_errors(), report_tasks(spark, self.progress):
            kept, told = self._read_ranges(spark, ranges, asked)
            self.source.confirm(batch.start)
            numbers, at = reached_of(ranges, [each.reached for each in told])
            found = [told[number] for number in numbers]
            reached = batch.reached(at, max(each.newest for each in found))
            self._learn(found)
            if not any(each.count for each in found):
                return self._nothing(reached, wanted)
            columns = _columns(found)
            return self._make(
                kept, dict(zip(numbers, found, strict=True)), replace(asked, known=columns), reached, before
            )

    def commit(self, target: HudiTable, shaped: Shaped[Positions], held: HeldPositions | None) -> CommitResult:
        """See `Way`."""
        rows = shaped.rows
        if not isinstance(shaped, SparkShaped) or shaped.frame is None:
            return self.ingest.commit(target.context, rows, held)
        request = self.ingest.request(target.context, rows.checkpoint, held)
        with data_errors(), report_tasks(self._session(), self.progress):
            return hudi_spark.write(
                self._newest(shaped.frame, target),
                target,
                operation_of(self.spec),
                options=request.options,
                extra_metadata=request.extra_metadata,
                batch=request.batch,
                follows=request.follows,
            )

    def close(self) -> None:
        """Let go what tasks have kept."""
        self._kept.close()

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

    def _learn(self, found: Sequence[_Read]) -> None:
        count = sum(each.count for each in found)
        if count:
            self.row_bytes = max(1.0, sum(each.bytes for each in found) / count)

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
        self, spark: SparkSession, ranges: Sequence[Range], asked: _Asked
    ) -> tuple[DataFrame, list[_Read]]:
        rows = [(ordinal, pickle.dumps(each)) for ordinal, each in enumerate(ranges)]
        frame = spark.createDataFrame(rows, _ITEMS).repartitionById(len(rows), "ordinal")
        kept = self._keep(frame.mapInArrow(functools.partial(_read, asked=asked), _KEPT))
        told = _told(kept)
        return kept, [told[ordinal] for ordinal in range(len(ranges))]

    def _make(
        self,
        kept: DataFrame,
        found: Mapping[int, _Read],
        asked: _Asked,
        reached: Positions,
        before: tuple[int, int],
    ) -> SparkShaped:
        for each in found.values():
            if each.error is not None:
                raise _raised(*each.error)
        assert asked.known is not None
        task = functools.partial(_make, asked=asked, found=dict(found))
        made = self._keep(kept.select("ordinal", "data").where("data is not null").mapInArrow(task, _KEPT))
        told: list[_Made] = list(_told(made).values())
        refused = pa.concat_tables([ERROR_SCHEMA.empty_table(), *(each.refused for each in told)])
        messages, dropped = sum(each.messages for each in told), sum(each.dropped for each in told)
        self.shaping.check_counts(refused, messages, before)
        frame = _frame(made, asked.known)
        chain = self.spec.work.get("transform", ())
        schema = asked.known
        if chain:
            frame = transformed(self._session(), frame, chain)
            schema = arrow_schema(frame)
        count = sum(each.count for each in told)
        rows = Rows(schema, schema.empty_table().to_reader(), reached, count, refused)
        return SparkShaped(counting(rows, refused), messages, refused, dropped, frame)

    def _newest(self, frame: DataFrame, target: HudiTable) -> DataFrame:
        """Where of two rows with one key the later one wins: the last of each key. Rows lose their
        order on the way to the tasks that write them."""
        if self.ingest.operation != "upsert" or not arrival_decides(self.spec):
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
        same = Window.partitionBy(_RANK + "_key", _RANK + "_path").orderBy(sf.col(_ARRIVAL).desc())
        last = numbered.withColumn(_RANK, sf.row_number().over(same))
        return last.where(sf.col(_RANK) == 1).select(*(f"`{name.replace('`', '``')}`" for name in names))


def _columns(found: Sequence[_Read]) -> pa.Schema:
    """The columns of all ranges, those that the ingest adds last."""
    own = {IS_DELETED, *(name for dialect in DIALECTS.values() for name in dialect.own.names)}
    schemas = [each.schema for each in found if each.schema is not None]
    return united(schemas, lambda name: name in own or name.startswith(PREFIX))


def _told(frame: DataFrame) -> dict[int, Any]:
    """What tasks say, by the number of their range."""
    answers = frame.select("ordinal", "told").where("told is not null").collect()
    return {row["ordinal"]: pickle.loads(row["told"]) for row in answers}  # noqa: S301 - of our own tasks, see tests/tidy/test_dangers.py


def _raised(name: str, message: str) -> HudiError:
    kind = getattr(errors, name)
    found: HudiError = kind(message)
    return found


def _frame(made: DataFrame, schema: pa.Schema) -> DataFrame:
    """The rows that tasks have kept, in Spark's types."""
    spark_schema, target = in_spark_types(schema)

    def rows(batches: Batches) -> Batches:
        set_up_worker()
        for _, found in _packets(batches):
            for each in found:
                yield conform(each, target)

    return made.select("ordinal", "data").where("data is not null").mapInArrow(rows, spark_schema)


def _packets(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Sequence[pa.RecordBatch]]]:
    """(number of the range, batches) of what is kept of it, part by part."""
    for batch in batches:
        for ordinal, data in zip(batch.column("ordinal").to_pylist(), batch.column("data"), strict=True):
            with pa.ipc.open_stream(data.as_buffer()) as stream:
                yield ordinal, list(stream)


def _packet(ordinal: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return _answer(ordinal, None, sink.getvalue().to_pybytes())


def _answer(ordinal: int, told: bytes | None, data: bytes | None) -> pa.RecordBatch:
    arrays = [pa.array([ordinal], pa.int32()), pa.array([told], pa.binary()), pa.array([data], pa.binary())]
    return pa.record_batch(arrays, names=["ordinal", "told", "data"])


def _read(batches: Batches, *, asked: _Asked) -> Batches:
    """What the first task of a range does."""
    set_up_worker()
    tools = _unpacked(asked.tools)
    for batch in batches:
        for ordinal, payload in zip(
            batch.column("ordinal").to_pylist(), batch.column("payload").to_pylist(), strict=True
        ):
            wanted: Range = pickle.loads(payload)  # noqa: S301 - the driver's own, see tests/tidy/test_dangers.py
            messages, reached = read_range(tools.decoding.settings, tools.environment, wanted, SystemClock())
            parts = packed(messages)
            yield from (_packet(ordinal, part) for part in parts)
            times = [int(np.max(each)) for each in messages.times if len(each)]
            told = _Read(
                wanted,
                reached,
                len(messages.values),
                int(messages.offsets[-1][-1]) if parts else -1,
                messages.size,
                max(times, default=-1),
            )
            yield _answer(ordinal, pickle.dumps(_looked_at(told, parts, asked)), None)


def _looked_at(told: _Read, parts: Sequence[pa.RecordBatch], asked: _Asked) -> _Read:
    """With the columns of the rows. An error counts only if nothing before the range ends the
    batch."""
    try:
        return replace(told, schema=asked.rows(told.wanted, parts).schema)
    except HudiError as error:
        return replace(told, error=(type(error).__name__, error.message))


def _make(batches: Batches, *, asked: _Asked, found: Mapping[int, _Read]) -> Batches:
    """What the second task of a range does."""
    set_up_worker()
    work = _unpacked(asked.tools).work
    for ordinal, packets in itertools.groupby(_packets(batches), lambda packet: packet[0]):
        if ordinal not in found:
            continue
        told = found[ordinal]
        parts = [part for _, some in packets for part in some]
        if (sum(map(len, parts)), parts[-1].column("offset")[-1].as_py()) != (told.count, told.last):
            wanted = told.wanted
            raise UnavailableError(
                f"partition {wanted.partition} of topic {wanted.topic} was read again, and what lies from offset {wanted.start} on is no longer what it was: "
                "another attempt reads it as it is now"
            )
        with closing(Shaping(work)) as shaping:
            rows = _fitting(asked.rows(told.wanted, parts), asked)
            judged = shaping.judged(rows)
            count = 0
            for batch in judged.rows.batches:
                for start in range(0, len(batch), _CHUNK_ROWS):
                    part = batch.slice(start, _CHUNK_ROWS)
                    count += len(part)
                    yield _packet(ordinal, part)
        yield _answer(ordinal, pickle.dumps(_Made(rows.count, judged.messages, judged.refused, judged.dropped)), None)


def _fitting(rows: Rows[Positions], asked: _Asked) -> Rows[Positions]:
    """In the columns of all ranges. What does not fit is as a message that cannot be decoded."""
    assert asked.known is not None
    try:
        table = conform(rows.batches.read_all(), asked.known)
        return replace(rows, schema=asked.known, batches=table.to_reader(), count=len(table))
    except InvalidDataError as error:
        decoding = _unpacked(asked.tools).decoding
        assert rows.origin is not None
        why = f"cannot be read as {decoding.settings.format}: its schema does not fit the others: {error.message}"
        if decoding.error_ratio is None:
            raise InvalidDataError(f"{rows.origin.place(0)} {why}") from error
        refused = rows.origin.refused(range(rows.count), [f"the value {why}"] * rows.count, [""] * rows.count)
        none = pa.nulls(len(refused), ERROR_SCHEMA.field("rule").type)
        refused = refused.set_column(refused.schema.get_field_index("rule"), ERROR_SCHEMA.field("rule"), none)
        assert rows.refused is not None
        kept = asked.known.empty_table().to_reader()
        return replace(
            rows, schema=asked.known, batches=kept, count=0, refused=pa.concat_tables([rows.refused, refused])
        )
