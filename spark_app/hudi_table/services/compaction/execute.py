"""Executing a published plan: each slice's logs merged into a new base file, or into one log, then one commit.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same files, and one entry of
the chain commits them. A compaction excludes nobody: whoever wrote after its plan has seen it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from hudi_table.codec.avro.schema import avro_text_for
from hudi_table.errors import (
    CorruptTableError,
    InvalidRequestError,
    InvariantError,
    UnsupportedTableError,
    WriteAbortedError,
)
from hudi_table.metadata.lifecycle import settle_metadata
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.read.plan import META_FIELDS
from hudi_table.services.file_filters import options_of_rewrite
from hudi_table.table.commit.lost_files import last_plan, seconds_left, waits
from hudi_table.table.commit.missing_files import never_counted
from hudi_table.table.commit.pending_plans import given_up_log_compactions
from hudi_table.table.commit.transaction import Transaction, resume
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.rows.log_merge import SliceMerge
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import looks_again
from hudi_table.table.timeline.schemas import table_avro_schema, table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_renames
from hudi_table.write.handles.compact import CompactionTask, compact_file_group, compact_logs, log_place
from hudi_table.write.workload import FileGroupTask, Mode, WriteSettings


@looks_again
@logged("compaction")
def run_compaction(
    ctx: TableContext,
    instant: str,
    engine: Engine,
    options: Mapping[str, str] | None = None,
    *,
    max_memory: int,
    action: Action = Action.COMPACTION,
    writers_stopped: bool = False,
) -> ServiceResult:
    """Execute the plan of `instant`, a compaction's or a log compaction's, or find it executed. `writers_stopped`: no process is left that
    began before files of the plan were given up.

    Raises InvalidRequestError if there is no such plan, or files of it were given up a moment ago, CorruptTableError that names a file whose rows count and that is gone,
    CommitStateUnknownError if the store stopped answering: run it again. Whatever it raises, the plan stays, and may be executed again.
    """
    refuse_unsupported(ctx.config)
    WriteOptions.parse(options or {})
    plan = Instant(instant, action, State.REQUESTED)
    txn = resume(ctx, plan)
    if txn is None:
        return _result(ctx, plan, replayed=True)
    if not writers_stopped:
        _check_settled(ctx, txn)
    check_renames(ctx, txn.timeline)
    settle_metadata(ctx)
    try:
        tasks = _tasks(ctx, txn, options or {}, max(1, max_memory // (2 * engine.parallelism)))
        with txn.signs_of_life():
            txn.inflight()
            stats = engine.map(partial(_run, txn.right), tasks)
            txn.commit(_metadata(ctx, txn, stats), ())
    except (WriteAbortedError, InvariantError, CorruptTableError):
        # Another executor may have been faster: its commit is this one's too, its markers are gone, and perhaps what it read.
        if resume(ctx, plan) is None:
            return _result(ctx, plan, replayed=True)
        raise
    return _result(ctx, plan)


def pending_instants(ctx: TableContext, timeline: Timeline, action: Action = Action.COMPACTION) -> list[str]:
    """The instants of published plans that can be executed, oldest first: none that was given up, or of which files were a moment ago."""
    found = [instant for instant in timeline.pending if instant.action is action]
    if action is Action.LOG_COMPACTION:
        gone = given_up_log_compactions(ctx, timeline)
        return [instant.time for instant in found if instant not in gone]
    return [instant.time for instant in found if not waits(ctx, instant.time)]


def _check_settled(ctx: TableContext, txn: Transaction) -> None:
    left = seconds_left(ctx, txn.time, txn.tail.sequence)
    if left > 0:
        raise InvalidRequestError(
            f"files of the compaction planned at {txn.time} were given up, and a process that began before could still write what they "
            f"held: execute it in {left:.0f} s, or end all processes that write the table and give the files up again with that word "
            "(writers_stopped=True, --writers-stopped)",
            base_path=ctx.base_path,
            instant=txn.time,
        )


def _run(right: RightToWrite, task: CompactionTask) -> WriteStat:
    work = compact_file_group if task.file.log is None else compact_logs
    return work(task, right.for_thread())


def _tasks(ctx: TableContext, txn: Transaction, options: Mapping[str, str], memory: int) -> list[CompactionTask]:
    """Everything that the files hold follows from the plan and the timeline before it."""
    past = txn.timeline.until(txn.time)
    schema = table_schema(ctx, past)
    if schema is None:
        raise UnsupportedTableError(f"table {ctx.config.name!r} has no schema yet", base_path=ctx.base_path)
    text = avro_text_for(schema, table_name=ctx.config.name, previous=table_avro_schema(ctx, past))
    visible = VisibleInstants.of(txn.timeline, txn.time)
    merge = SliceMerge.of(ctx.config, pa.schema([*META_FIELDS, *schema]))
    planned = last_plan(ctx, txn.instant, txn.tail.sequence)
    chosen = options_of_rewrite(ctx, options, planned)
    settings = WriteSettings.of_rewrite(chosen, schema, text, filters=ctx.config.needs_filters, memory_bytes=memory)
    absent = never_counted(ctx, past, planned, f"the {txn.instant.action.value} planned at {txn.time}")
    return [
        CompactionTask(_file(txn, number, item, settings), item, visible, merge, absent)
        for number, item in enumerate(planned)
    ]


def _file(txn: Transaction, number: int, item: PlannedSlice, settings: WriteSettings) -> FileGroupTask:
    log = log_place(item) if txn.instant.action is Action.LOG_COMPACTION else None
    return FileGroupTask(
        partition=item.partition,
        file_id=item.file_id,
        instant=txn.time,
        index=number,
        mode=Mode.LOG if log else Mode.CREATE if item.base is None else Mode.MERGE,
        settings=settings,
        seed=uuid.UUID(int=0),
        base_path=item.base_path,
        prev_commit=item.base_instant,
        log=log,
    )


def _metadata(ctx: TableContext, txn: Transaction, stats: list[WriteStat]) -> CommitMetadata:
    text = table_avro_schema(ctx, txn.timeline.until(txn.time))
    return CommitMetadata(
        operation_type="LOG_COMPACT" if txn.instant.action is Action.LOG_COMPACTION else "COMPACT",
        stats=tuple(sorted(stats, key=lambda stat: (stat.partition_path, stat.path))),
        extra_metadata={SCHEMA_KEY: text} if text else {},
        compacted=True,
    )


def _result(ctx: TableContext, plan: Instant, *, replayed: bool = False) -> ServiceResult:
    """The figures of a committed compaction; zeros if it has been archived meanwhile."""
    found = next((i for i in load_timeline(ctx).commits if i.time == plan.time), None)
    stats = commit_metadata(ctx, found).stats if found else ()
    figures = {
        "fileGroups": float(len(stats)),
        "logFiles": float(sum(stat.extra.get("totalLogFilesCompacted") or 0 for stat in stats)),
        "rowsWritten": float(sum(stat.num_writes for stat in stats)),
        "bytesWritten": float(sum(stat.total_write_bytes for stat in stats)),
    }
    message = f"{len(stats)} file groups compacted, {int(figures['rowsWritten']):,} rows"
    service = ServiceType.LOG_COMPACTION if plan.action is Action.LOG_COMPACTION else ServiceType.COMPACTION
    return ServiceResult(service, plan.time, message, figures, replayed)
