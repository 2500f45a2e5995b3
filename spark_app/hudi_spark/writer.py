"""`write(df, table, operation)`: one exchange by file group, columnar merging in the tasks, one
commit by the driver.

1. A first pass over the key and partition columns counts rows per partition and refuses what cannot
   be written.
2. `hudi_table` claims an instant and plans one task per file group; the plan fixes every file id.
3. Rows get the number of their task and meet there by `repartitionById`; `mapInArrow` then writes:
   half the CPU of grouping by `applyInArrow`, and no sort (measured).
4. Tasks return write stats. Retries and speculative attempts write under write tokens of their own;
   the commit deletes what no stat names before it decides.

Where the frame is files and nothing more, tasks read these, and what meets in 3 are Arrow streams
of rows: see `source_files`.

Where the rows are few and go to logs of a bucket index, the driver writes them itself instead: see
`in_driver`.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame

from hudi_spark.arrow_schemas import written_schema
from hudi_spark.engine import SparkEngine, collect_results, result_batch
from hudi_spark.errors import as_hudi_errors
from hudi_spark.in_driver import small_rows
from hudi_spark.routing.arrow_rows import ArrowRows
from hudi_spark.routing.routes import Profile, Routing, is_numbered_by_keys, profile, route
from hudi_spark.source_files.packing import PAYLOAD, TASKS_MAX, FileRows, unpacked
from hudi_spark.source_files.plan import file_scan
from hudi_spark.worker import set_up_worker
from hudi_table.api import HudiTable, open_table
from hudi_table.arguments import OperationName
from hudi_table.codec.conform import conform
from hudi_table.errors import CommitStateUnknownError, WriteConflictError
from hudi_table.model.given import checked_call
from hudi_table.model.names import ALL_META_COLUMNS, RECORD_KEY
from hudi_table.model.options.write_options import operation_option, partitions_option
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.table.properties import with_timebased
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.services.inline import check_inline, run_inline
from hudi_table.services.validating.asked import with_validators
from hudi_table.table.commit.beside.locking import locked
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.engine.progress import TaskReport, reporting
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.attempt import Attempt, begin_attempt, find_batch
from hudi_table.write.checks.follows import Follows, check_follows
from hudi_table.write.checks.request import Prepared
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.row_values import refuse_unsound
from hudi_table.write.handles.base_file import write_file_group
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.metadata_enable import keep_metadata_for
from hudi_table.write.operations import (
    BATCH_KEY,
    WriteRequest,
    begin,
    with_retries,
    write_rows,
)
from hudi_table.write.result import CommitResult, replayed_by, result_of
from hudi_table.write.workload import FileGroupTask

TASK = "_lakeops_task"
_RESULT = "ordinal int, payload binary"


@checked_call
def write(
    df: DataFrame | None,
    table: HudiTable | str | Path,
    operation: OperationName | None = None,
    *,
    options: Mapping[str, str] | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    batch: str = "",
    partitions: Sequence[str] = (),
    attempt: str | None = None,
    progress: ProgressFunction | None = None,
    follows: Follows | None = None,
) -> CommitResult:
    """Write a DataFrame to a Hudi table and commit.

    `operation`, `options`, `extra_metadata`, `batch`, `partitions`: as for `hudi_table.write_hudi`.
    `df` is evaluated once or more, so it must give the same rows each time; persist it if it does
    not. `progress` hears the beginning and the end of each step, since tasks end in other
    processes. `follows`: the commit that the rows go on from. Raises what `write_hudi` raises.
    """
    opened = table if isinstance(table, HudiTable) else open_table(table)
    write_options = dict(options or {})
    operation_name = operation_option(operation, write_options)
    partitions = partitions_option(partitions, write_options)
    request = WriteRequest(
        operation_name, write_options, dict(extra_metadata or {}), batch, partitions, attempt=attempt, follows=follows
    )
    if df is None:
        return opened.write(
            None,
            operation=operation,
            partitions=partitions,
            options=options,
            extra_metadata=extra_metadata,
            batch=batch,
            progress=progress,
        )
    return write_frame(opened, df, request, progress)


def write_frame(
    table: HudiTable,
    df: DataFrame,
    request: WriteRequest,
    progress: ProgressFunction | None = None,
    *,
    rows: ArrowRows | None = None,
) -> CommitResult:
    """`write` of a frame. `rows`: what it is made of, where tasks have that as Arrow."""
    ctx = locked(table.context, request.options)
    check_inline(ctx, request.options)
    result = _write(ctx, df, with_validators(request), progress, rows)
    engine = reporting(SparkEngine(df.sparkSession), request.operation, progress)
    if not result.replayed:
        run_inline(ctx, result.instant, request.options, engine, max_memory=DEFAULT_MEMORY)
    return result


@logged("write")
def _write(
    ctx: TableContext,
    df: DataFrame,
    request: WriteRequest,
    progress: ProgressFunction | None,
    kept: ArrowRows | None,
) -> CommitResult:
    # A frame that was read with Hudi's columns has them of the rows' last write; this one makes its own, as Hudi's does.
    own_columns(written_schema(df.schema))
    df = df.drop(*ALL_META_COLUMNS)
    _, prepared, done = begin(ctx, written_schema(df.schema).empty_table(), request)
    if done is not None:
        return replayed_by(done, request.operation)
    rows = small_rows(df, with_timebased(ctx.config, request.options), prepared)
    if rows is not None:
        return write_rows(ctx, rows, request, reporting(LocalEngine(), request.operation, progress))
    report = TaskReport(request.operation, progress)
    report.begin(None)
    source = (kept or _of_files(df)) if is_numbered_by_keys(prepared) else None
    with as_hudi_errors():
        counted = profile(df, with_timebased(ctx.config, request.options), prepared, source)
    return with_retries(ctx, prepared, lambda: _attempt(ctx, counted, source, prepared, request, report))


def _of_files(df: DataFrame) -> ArrowRows | None:
    scan = file_scan(df)
    return FileRows(df.sparkSession, scan) if scan is not None else None


def _attempt(
    ctx: TableContext,
    counted: Profile,
    source: ArrowRows | None,
    prepared: Prepared,
    request: WriteRequest,
    report: TaskReport,
) -> CommitResult:
    keep_metadata_for(ctx, prepared)
    attempt = begin_attempt(ctx, prepared, request.attempt, request.batch)
    try:
        done = find_batch(ctx, attempt.timeline, request.batch, BATCH_KEY)
        if done is not None:
            attempt.give_up(None)
            return replayed_by(done, request.operation)
        check_follows(ctx, attempt.timeline, attempt.instant, request.follows)
        # To the end of the commit: the table's lock may be waited for.
        with attempt.txn.signs_of_life():
            with as_hudi_errors():
                routing = route(counted, attempt)
                stats = _run(routing, source, attempt, report)
            extra = dict(request.extra_metadata) | ({BATCH_KEY: request.batch} if request.batch else {})
            if request.validators is not None:
                request.validators.run(attempt, stats)
            metadata = attempt.commit(stats, extra, filled=routing.filled)
    except CommitStateUnknownError:
        raise
    except BaseException:
        # Whatever it was, the attempt is over. Tasks of a failed stage may run on, so the quarantine has to be waited out.
        with contextlib.suppress(WriteConflictError):
            attempt.txn.abort(confirmed_dead=False)
        raise
    return result_of(attempt.completed, request.operation, metadata, schema_changed=prepared.changed)


def _run(routing: Routing, source: ArrowRows | None, attempt: Attempt, report: TaskReport) -> list[WriteStat]:
    """Bring the rows of each task together, and write."""
    if not attempt.planned:
        return []
    # Rows of one key meet in one task and nowhere before, so the tasks combine them, whatever the index.
    settings = replace(
        attempt.planned[0].task.settings, combine=attempt.prepared.combines or attempt.planned[0].task.settings.combine
    )
    tasks = [replace(item.task, settings=settings) for item in attempt.planned]
    made = _Rows(TableKeys.of(attempt.ctx.config), routing.columns)
    work = partial(_write_group, tasks=_packed(tasks), right=attempt.right, rows=made)
    rows = routing.rows
    if source is not None and routing.numbering is not None and len(tasks) <= TASKS_MAX:
        rows = source.packed(routing.numbering, routing.sent)
    frame = rows.repartitionById(len(tasks), TASK).mapInArrow(work, _RESULT)
    stats: list[WriteStat] = []
    report.begin(len(tasks))
    for _, written in collect_results(frame):
        assert isinstance(written, tuple)
        stats.extend(written)
    report.whole(len(tasks))
    return stats


def _packed(tasks: Sequence[FileGroupTask]) -> bytes:
    """The plan, pickled once: settings and schema are shared by all its tasks."""
    packed: bytes = cloudpickle.dumps({task.index: task for task in tasks})
    return packed


@dataclass(frozen=True, slots=True)
class _Rows:
    """What tasks make of the rows that reach them: record keys, and the columns of the write."""

    keys: TableKeys
    columns: pa.Schema

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches in the schema `columns`."""
        for batch in batches:
            if batch.num_rows:
                keyed = batch
                if RECORD_KEY not in batch.schema.names:
                    keyed = batch.append_column(RECORD_KEY, self.keys.record_keys(batch))
                rows = conform(keyed, self.columns)
                refuse_unsound(rows)
                yield rows


def _write_group(
    batches: Iterator[pa.RecordBatch], *, tasks: bytes, right: RightToWrite, rows: _Rows
) -> Iterator[pa.RecordBatch]:
    """What one Spark task does: the rows of one file group come in, its write stats go out."""
    set_up_worker()
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return
    number = first.column(TASK)[0].as_py()
    spark = TaskContext.get()
    assert spark is not None
    # The attempt's own number in the write token keeps retries and speculative attempts apart.
    task: FileGroupTask = replace(
        cloudpickle.loads(tasks)[number], stage=spark.stageId(), attempt=spark.taskAttemptId()
    )
    came = itertools.chain([first], batches)
    if PAYLOAD in first.schema.names:
        came = itertools.chain.from_iterable(unpacked(batch.column(PAYLOAD)) for batch in came)
    stats = write_file_group(task, rows.of(came), right)
    yield result_batch(number, cloudpickle.dumps(stats))
