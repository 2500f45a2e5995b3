"""Executing a published plan: each slice's logs merged into a new base file, or into one log, then
one commit.

A plan can be executed by anybody, by several at once, and again after a crash: all write the same
files, and one entry of the chain commits them. A compaction excludes nobody: whoever wrote after
its plan has seen it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.lifecycle import resolve_metadata_partitions
from hudi_table.model.counts import counted
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.compaction.late_writes import refuse_late_writes
from hudi_table.services.compaction.lost_files import last_plan, seconds_left
from hudi_table.services.file_filters import options_of_rewrite
from hudi_table.services.rewriting.run import Rewrite, Task, run_rewrite
from hudi_table.services.rewriting.sources import SliceSources, commit_of, service_metadata
from hudi_table.table.commit.missing_files import never_counted
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.engine.local_engine import at_a_store
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import fetch_bodies, load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_history
from hudi_table.write.handles.compact import CompactionTask, log_place


@relists
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
    """Execute the plan of `instant`, a compaction's or a log compaction's, or find it executed.
    `writers_stopped`: no process is left that began before files of the plan were given up.

    Raises InvalidRequestError if there is no such plan, or files of it were given up, or its commit
    taken back, a moment ago, WriteConflictError while another engine takes it back,
    CorruptTableError that names a file whose rows count and that is gone, CommitStateUnknownError
    if the store stopped answering: run it again. Whatever it raises, the plan stays, and may be
    executed again.
    """
    refuse_unsupported(ctx.config)
    WriteOptions.parse(options or {})
    plan = Instant(instant, action, State.REQUESTED)
    done = run_rewrite(
        ctx,
        plan,
        engine,
        lambda txn: _Compaction(ctx, txn, options or {}, engine, max_memory, writers_stopped=writers_stopped),
        excludes=False,
    )
    if done is None:
        return _result(plan, commit_of(ctx, load_timeline(ctx), plan.time), replayed=True)
    return _result(plan, done.committed)


_DECODED = 8
"""Bytes of rows in memory over those of their files, or more."""


class _Compaction(Rewrite):
    def __init__(
        self,
        ctx: TableContext,
        txn: Transaction,
        options: Mapping[str, str],
        engine: Engine,
        max_memory: int,
        *,
        writers_stopped: bool,
    ) -> None:
        if not writers_stopped:
            _check_quarantine_over(ctx, txn)
        check_history(ctx, txn.timeline)
        self._ctx, self._txn, self._options = ctx, txn, options
        self._engine, self._memory = engine, max(1, max_memory // (2 * engine.parallelism))

    def tasks(self) -> list[CompactionTask]:
        """See `Rewrite`."""
        ctx, txn = self._ctx, self._txn
        resolve_metadata_partitions(ctx)
        # Everything that the files hold follows from the plan and the timeline before it.
        planned = last_plan(ctx, txn.instant, txn.tail.sequence)
        what = f"the {txn.instant.action.value} planned at {txn.time}"
        past = txn.timeline.until(txn.time)
        options, found, _ = at_once(
            ctx.storage,
            lambda: options_of_rewrite(ctx, self._options, planned),
            lambda: never_counted(ctx, past, planned, what),
            lambda: fetch_bodies(ctx, past.commits[-1:]),
        )
        refuse_late_writes(ctx, txn.timeline, txn.instant, found)
        sources = SliceSources(ctx, txn, options, memory=self._memory)
        of_logs = txn.instant.action is Action.LOG_COMPACTION
        return [
            sources.merged(number, item, found, log_place(ctx.layout, item, txn.time) if of_logs else None)
            for number, item in enumerate(planned)
        ]

    def engine(self, tasks: Sequence[Task]) -> Engine:
        """See `Rewrite`."""
        sizes = (task.sizes.values() for task in tasks if isinstance(task, CompactionTask))
        held = max((_DECODED * sum(found) for found in sizes), default=0)
        return at_a_store(self._engine, self._ctx.storage, held, self._memory * self._engine.parallelism)

    def commit(self, stats: list[WriteStat]) -> tuple[CommitMetadata, frozenset[str]]:
        """See `Rewrite`. It excludes nobody."""
        operation_type = "LOG_COMPACT" if self._txn.instant.action is Action.LOG_COMPACTION else "COMPACT"
        metadata = service_metadata(self._ctx, self._txn, operation_type, stats)
        return replace(metadata, compacted=True), frozenset()


def _check_quarantine_over(ctx: TableContext, txn: Transaction) -> None:
    left = seconds_left(ctx, txn.time, txn.tail.sequence)
    if left > 0:
        raise InvalidRequestError(
            f"the commit of the compaction planned at {txn.time} was taken back, or files of it were given up, and a process that began "
            f"before could still write: execute it in {left:.0f} s; after files were given up it can be at once, if all processes that write "
            "the table have ended and the files are given up again with that word (writers_stopped=True, --writers-stopped)",
            base_path=ctx.base_path,
            instant=txn.time,
        )


def _result(plan: Instant, metadata: CommitMetadata | None, *, replayed: bool = False) -> ServiceResult:
    """The figures of a committed compaction; zeros if it has been archived meanwhile."""
    stats = metadata.stats if metadata else ()
    figures = {
        "fileGroups": float(len(stats)),
        "logFiles": float(sum(stat.extra.get("totalLogFilesCompacted") or 0 for stat in stats)),
        "rowsWritten": float(sum(stat.num_writes for stat in stats)),
        "bytesWritten": float(sum(stat.total_write_bytes for stat in stats)),
    }
    message = f"{counted(len(stats), 'file group')} compacted, {counted(int(figures['rowsWritten']), 'row')}"
    service = ServiceType.LOG_COMPACTION if plan.action is Action.LOG_COMPACTION else ServiceType.COMPACTION
    return ServiceResult(service, plan.time, message, figures, replayed)
