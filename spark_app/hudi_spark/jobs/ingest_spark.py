"""The Spark path of an ingest: tasks read the source files, one SELECT shapes the rows,
`hudi_spark.write` commits them.

Files are read by pyarrow in tasks, through the storage port: pyspark's wheel holds no filesystem
for object stores, and one reader for all stores means one set of type rules.
"""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

import hudi_spark
from hudi_spark.arrow_schemas import written_schema
from hudi_spark.engine import SparkEngine
from hudi_spark.errors import as_hudi_errors
from hudi_spark.frames import changes_frame, scan_frame
from hudi_spark.jobs.batch import Batch, delete_options, operation_of, settle_deletes, write_options
from hudi_spark.jobs.decoding import needed_of
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.session import session
from hudi_spark.jobs.target import storage_options, target_of
from hudi_spark.worker import set_up_worker
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.cdc import BEFORE, DELETE, OP
from hudi_table.read.changes.query import Changes
from hudi_table.services.ingesting import Behind
from hudi_table.services.select_check import SOURCE
from hudi_table.services.transforming.steps import Chain, Transforms, table_step
from hudi_table.sources.files.reading import Form, file_batches, file_schema, parquet_batches, unified_schema
from hudi_table.sources.hudi.source import HudiBatch
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext

SPLIT_BYTES = 64 << 20
REPORT_SECONDS = 5.0
DATA_EXCEPTION = "22"
"""Class of the SQL states of values that an expression cannot take."""
SHORT_BYTES_MAX = 64 << 20
FILE, NUMBER = "_lakeops_file", "_lakeops_number"
"""Columns of rows that are judged: which file of the batch, and the number of the row in it, from
1."""
Judge = Callable[[SparkSession, DataFrame], DataFrame]
"""Those rows that are taken."""


@dataclass(frozen=True, slots=True)
class Split:
    """What one task reads: a file, the number `file` of the batch, and of a Parquet file the row
    groups `start` to `stop` (-1: all of it). `before`: rows of it that come before."""

    path: str
    start: int = 0
    stop: int = -1
    file: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a commit records of its ingest, and behind which one it stands."""

    extra_metadata: Mapping[str, str]
    place: Behind


def write_spark(
    spec: JobSpec, table: HudiTable | None, batch: Batch, progress: Progress, judge: Judge | None = None
) -> CommitResult:
    """Read, transform, write. `judge`: which rows are taken, that have the columns FILE and NUMBER
    then. Raises HudiError; a transform that Spark refuses is an
    InvalidRequestError."""
    spark = started(spec, progress, short=batch.size <= SHORT_BYTES_MAX)
    with data_errors():
        known = table.schema() if table is not None else None
        rows = source_frame(spark, spec, batch, known, numbered=judge is not None)
        rows = judge(spark, rows) if judge is not None else rows
        rows = transformed(spark, rows, batch.transform)
        return write_rows(spark, spec, table, rows, Recorded(batch.extra_metadata, batch.behind), progress)


def write_upstream(
    spec: JobSpec,
    table: HudiTable | None,
    context: TableContext,
    batch: HudiBatch,
    recorded: Recorded,
    progress: Progress,
    *,
    judge: Judge | None = None,
) -> CommitResult:
    """The same of what changed in the table of `context`. Of a key that was deleted there and is
    written again only the row is taken."""
    spark = started(spec, progress, short=False)
    with data_errors():
        chain = spec.work.get("transform", ())
        rows = scan_frame(spark, context, batch.scan.plan)
        if batch.marks:
            rows = rows.withColumn(IS_DELETED, functions.lit(False))
        rows = judge(spark, rows) if judge is not None else rows
        rows = transformed(spark, rows, chain)
        if batch.changes is not None:
            gone = _deletes(spark, context, batch.changes, chain)
            index = table.context.config.index if table is not None else None
            # Where keys are looked up in all partitions, a row that has moved has the key of its delete.
            names = spec.table["recordKey"] if index is not None and index.type.is_global else needed_of(spec)
            again = [functions.col(f"gone.`{name}`").eqNullSafe(functions.col(f"rows.`{name}`")) for name in names]
            rows = rows.unionByName(gone.alias("gone").join(rows.alias("rows"), again, "left_anti"))
        return write_rows(spark, spec, table, rows, recorded, progress)


def delete_upstream(
    spec: JobSpec, table: HudiTable, context: TableContext, changes: Changes, place: Behind, progress: Progress
) -> CommitResult:
    """Delete here, whatever its ordering value, what was deleted in the table of `context`."""
    spark = started(spec, progress, short=False)
    with data_errors(), report_tasks(spark, progress):
        gone = _deletes(spark, context, changes, spec.work.get("transform", ())).select(needed_of(spec))
        options = delete_options(spec, table)
        done = hudi_spark.write(gone, table, "delete", options=options, batch=place.batch, follows=place.follows)
        settle_deletes(table, SparkEngine(spark))
        return done


def _deletes(
    spark: SparkSession, context: TableContext, changes: Changes, chain: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """What was deleted there, as the transforms make it, with the values of before."""
    gone = changes_frame(spark, context, changes.plan).where(functions.col(OP) == DELETE).select(f"{BEFORE}.*")
    return transformed(spark, gone.withColumn(IS_DELETED, functions.lit(True)), chain)


def started(spec: JobSpec, progress: Progress, *, short: bool) -> SparkSession:
    """The session of a job. Raises UnavailableError."""
    progress.say("starting Spark")
    began = SystemClock().now().timestamp()
    spark = session(spec, short=short)
    progress.say(f"Spark runs; its JVM was there after {spark.sparkContext.startTime / 1000 - began:.1f} s")
    return spark


@contextmanager
def data_errors() -> Iterator[None]:
    """Errors of tasks and of values as ours."""
    try:
        with as_hudi_errors():
            yield
    except PySparkException as error:
        if (error.getSqlState() or "").startswith(DATA_EXCEPTION):
            raise InvalidDataError(f"the transform fails on some row: {_first_line(error)}") from error
        raise


def _first_line(error: PySparkException) -> str:
    return str(error).strip().splitlines()[0]


def write_rows(
    spark: SparkSession,
    spec: JobSpec,
    table: HudiTable | None,
    rows: DataFrame,
    recorded: Recorded,
    progress: Progress,
    *,
    schema: pa.Schema | None = None,
) -> CommitResult:
    """Write a frame as one commit. `schema`: that of a table which is made for it, where Spark's
    types say less."""
    operation, tasks = operation_of(spec), spark.sparkContext.defaultParallelism
    progress.say(f"{operation} into {spec.table['location']} on Spark, {tasks} tasks at once")
    with target_of(spec, table, schema or arrow_schema(rows)) as target, report_tasks(spark, progress):
        return hudi_spark.write(
            rows,
            target,
            operation,
            options=write_options(spec, target),
            extra_metadata=recorded.extra_metadata,
            batch=recorded.place.batch,
            follows=recorded.place.follows,
        )


@contextmanager
def report_tasks(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Reports every few seconds which part of Spark's tasks is done."""
    done = threading.Event()

    def report() -> None:
        tracker = spark.sparkContext.statusTracker()
        last_text = ""
        while not done.wait(REPORT_SECONDS):
            stages = [(stage, tracker.getStageInfo(stage)) for stage in tracker.getActiveStageIds()]
            text = ", ".join(
                f"stage {stage}: {info.numCompletedTasks} of {info.numTasks} tasks done"
                for stage, info in stages
                if info
            )
            if text and text != last_text:
                last_text = text
                progress.say(text)

    reporter = threading.Thread(target=report, name="progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()


def in_spark_types(schema: pa.Schema) -> tuple[StructType, pa.Schema]:
    """The schema of a frame, and that of the batches that tasks give it. Raises
    InvalidSchemaError."""
    try:
        spark_schema = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    except PySparkException as error:
        raise InvalidSchemaError(f"the source's columns do not fit Spark: {error}") from error
    return spark_schema, to_arrow_schema(spark_schema, timezone="UTC")


def source_frame(
    spark: SparkSession, spec: JobSpec, batch: Batch, known: pa.Schema | None, *, numbered: bool = False
) -> DataFrame:
    """The rows of all files of a batch, with the union of their columns. `known`: the columns of
    the table; `numbered`: behind these stand FILE and NUMBER."""
    storage = open_storage(batch.path, storage_options(spec, batch.path))
    paths = [f.path for f in batch.files]
    with closing(Chain(Transforms.of(batch.transform, by_spark=True), spec.work["source"].get("columns"))) as chain:
        form = batch.form(chain.read_as(known))
    schema = unified_schema({path: file_schema(storage, path, form) for path in paths})
    own = [pa.field(FILE, pa.int32()), pa.field(NUMBER, pa.int64())] if numbered else []
    spark_schema, target = in_spark_types(pa.schema([*schema, *own]))
    splits = _splits(storage, paths, batch.format)
    reopen = storage.reopen()

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        store = reopen()
        for wanted in batches:
            for payload in wanted.column("payload").to_pylist():
                split: Split = pickle.loads(payload)  # noqa: S301 - the driver's own, see tests/tidy/test_dangers.py
                count = split.before
                for found in _read_split(store, split, form, schema):
                    yield conform(_numbered(found, split.file, count) if numbered else found, target)
                    count += len(found)

    rows = [(ordinal, pickle.dumps(split)) for ordinal, split in enumerate(splits)]
    frame = spark.createDataFrame(rows, "ordinal int, payload binary")
    return frame.repartitionById(len(splits), "ordinal").mapInArrow(read, spark_schema)


def _numbered(rows: pa.RecordBatch, file: int, before: int) -> pa.RecordBatch:
    numbers = pa.array(np.arange(before + 1, before + len(rows) + 1))
    return rows.append_column(FILE, pa.repeat(pa.scalar(file, pa.int32()), len(rows))).append_column(NUMBER, numbers)


def transformed(spark: SparkSession, source: DataFrame, chain: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The source after every step. The texts were checked before this is called."""
    for step in chain:
        sql = step.get("sql")
        source = _in_tasks(source, dict(step)) if sql is None else _selected(spark, source, str(sql))
    return source


def _in_tasks(source: DataFrame, step: dict[str, Any]) -> DataFrame:
    """After flatten, batch by batch, or after a function, of which each task gives its rows as one
    table. What columns come out, they are asked with no rows. Raises InvalidRequestError, and
    InvalidSchemaError where a task's answer has others."""
    schema, target = in_spark_types(table_step(step)(arrow_schema(source).empty_table()).schema)
    whole = "function" in step

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        call = table_step(step)
        filled = (each for each in batches if each.num_rows)
        parts = [list(filled)] if whole else ([each] for each in filled)
        for part in filter(None, parts):
            made = call(pa.Table.from_batches(part))
            if made.schema.names != target.names:
                raise InvalidSchemaError(
                    f"transform {step} gives {', '.join(made.schema.names)} of rows, and {', '.join(target.names)} of none: "
                    "its columns must not depend on the rows"
                )
            for batch in made.to_batches():
                yield conform(batch, target)

    return source.mapInArrow(work, schema)


def _selected(spark: SparkSession, source: DataFrame, sql: str) -> DataFrame:
    source.createOrReplaceTempView(SOURCE)
    try:
        rows = spark.sql(sql)
        rows.schema  # noqa: B018 - analysis happens here under Spark Connect
        return rows
    except (AnalysisException, ParseException) as error:
        raise InvalidRequestError(f"Spark refuses the transform: {_first_line(error)}") from error


def arrow_schema(rows: DataFrame) -> pa.Schema:
    """The schema of a frame in Arrow's types."""
    return written_schema(rows.schema)


def _splits(storage: Storage, paths: Sequence[str], form: str) -> list[Split]:
    if form != "parquet":
        return [Split(path, file=number) for number, path in enumerate(paths)]
    import pyarrow.parquet as pq

    splits = []
    for number, path in enumerate(paths):
        with storage.open_read(path) as source, pq.ParquetFile(source) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            sizes = [group.total_byte_size for group in groups]
            before = [0, *itertools.accumulate(group.num_rows for group in groups)]
        start, total = 0, 0
        for i, size in enumerate(sizes):
            if total and total + size > SPLIT_BYTES:
                splits.append(Split(path, start, i, number, before[start]))
                start, total = i, 0
            total += size
        splits.append(Split(path, start, len(sizes), number, before[start]))
    return splits


def _read_split(storage: Storage, split: Split, form: Form, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if form.name == "parquet":
        yield from parquet_batches(storage, split.path, range(split.start, split.stop))
    else:
        yield from file_batches(storage, split.path, form, schema)
