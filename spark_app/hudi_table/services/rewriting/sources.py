"""What every rewrite of planned slices reads and writes, a clustering's or a resize's, and when its
plan is void."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_table.codec.avro.schema import avro_text_for
from hudi_table.errors import CommitStateUnknownError, HudiError, UnsupportedTableError, WriteConflictError
from hudi_table.model.names import join, parse_log_file
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Instant
from hudi_table.read.schema import META_FIELDS
from hudi_table.table.commit import recovery
from hudi_table.table.commit.conflicts import CLUSTER
from hudi_table.table.commit.missing_files import PlannedFiles
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.rows.log_scan import VisibleInstants, rows_of
from hudi_table.table.rows.row_order import check_columns
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_avro_schema, table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import ClusteringPlan
from hudi_table.table.view.compaction_plans import PlannedSlice
from hudi_table.table.view.file_system_view import FileSystemView, LogFile
from hudi_table.write.handles.compact import CompactionTask
from hudi_table.write.settings import WriteSettings
from hudi_table.write.workload import FileGroupTask, LogPlace, Mode

_NO_SEED = uuid.UUID("6f1a3c52-8d0e-4c0b-9a57-2b9a3c1d7e44")
WRITER_BYTES = 32 << 20
"""Memory that decides how long row groups are: the same for every executor, so that the files
are."""


def give_up(ctx: TableContext, instant: Instant, error: HudiError) -> None:
    """Give a void plan up, and say so in the error."""
    error.add_note(f"what was planned at {instant.time} is given up; plan a new one")
    with contextlib.suppress(CommitStateUnknownError):
        recovery.abort_plan(ctx, instant)


def check_unmoved(ctx: TableContext, timeline: Timeline, plan: ClusteringPlan) -> int:
    """The bytes of the planned slices. Raises WriteConflictError that names one that is not its
    group's newest any more."""
    latest = {(item.partition, item.file_id): item for item in FileSystemView(ctx, timeline).latest_slices()}
    visible = VisibleInstants.of(timeline)
    read = 0
    for item in plan.slices:
        found = latest.get((item.partition, item.file_id))
        if found is not None:
            read += found.size
            files = {
                name for name in PlannedSlice.of(found).files if name in item.files or _counts(ctx, item, name, visible)
            }
        if found is None or files != set(item.files):
            raise WriteConflictError(
                f"file group {item.file_id} of partition {item.partition!r} was written to since its {'resize' if plan.is_resize else 'clustering'} was planned; "
                "plan it again",
                base_path=ctx.base_path,
            )
    return read


def _counts(ctx: TableContext, item: PlannedSlice, name: str | None, visible: VisibleInstants) -> bool:
    """Whether a file that the plan does not name holds rows that a reader sees. Of a log with the
    token of a write that has not completed the blocks tell: Hudi 1.1.1 takes over the token of the
    log before its own."""
    parsed = None if name is None else parse_log_file(name)
    if parsed is None:
        return name is not None
    instant = LogFile(name or "", 0, parsed).instant
    if instant is None or instant in visible:
        return True
    rows = rows_of(ctx.storage, join(item.partition, name or ""))
    return rows is not None and any(writer in visible for writer in rows)


def rewrite_metadata(
    ctx: TableContext, txn: Transaction, plan: ClusteringPlan, stats: Iterable[WriteStat], **more: str
) -> CommitMetadata:
    """The commit that puts new file groups in the place of the planned ones; `more` is said in it
    beside the schema."""
    metadata = service_metadata(ctx, txn, CLUSTER, stats)
    return replace(metadata, extra_metadata={**metadata.extra_metadata, **more}, replaced=replaced_by(plan))


def service_metadata(
    ctx: TableContext, txn: Transaction, operation_type: str, stats: Iterable[WriteStat]
) -> CommitMetadata:
    """The commit of a service, which changes no schema: with the one that the table had when it was
    planned."""
    text = table_avro_schema(ctx, txn.timeline.until(txn.time))
    return CommitMetadata(
        operation_type=operation_type,
        stats=tuple(sorted(stats, key=lambda stat: (stat.partition_path, stat.path))),
        extra_metadata={SCHEMA_KEY: text} if text else {},
    )


def rewrite_figures(metadata: CommitMetadata | None, plan: ClusteringPlan | None) -> dict[str, float]:
    """The figures of a committed rewrite; zeros without its metadata. Without the plan the files
    before are not known: one for each group is counted."""
    stats = metadata.stats if metadata else ()
    groups = len(metadata.replaced_groups) if metadata else 0
    before = groups if plan is None else sum((s.base is not None) + len(s.logs) for s in plan.slices)
    return {
        "fileGroups": float(groups),
        "filesBefore": float(before),
        "filesAfter": float(len(stats)),
        "rowsWritten": float(sum(stat.num_writes for stat in stats)),
        "bytesWritten": float(sum(stat.total_write_bytes for stat in stats)),
    }


def commit_of(ctx: TableContext, timeline: Timeline, instant: str) -> CommitMetadata | None:
    """The metadata of a completed write; None if it is not on the timeline (any more)."""
    found = next((i for i in timeline.commits if i.time == instant), None)
    return commit_metadata(ctx, found) if found else None


def replaced_by(plan: ClusteringPlan) -> dict[str, tuple[str, ...]]:
    """Partition → file ids that the plan's commit hides."""
    found: dict[str, tuple[str, ...]] = {}
    for item in plan.slices:
        found[item.partition] = (*found.get(item.partition, ()), item.file_id)
    return found


class SliceSources:
    """The tasks' slices and files. `columns` are those that rows are to be sorted by, `memory` the
    bytes of a task's writer."""

    def __init__(
        self,
        ctx: TableContext,
        txn: Transaction,
        options: WriteOptions,
        columns: Sequence[str] = (),
        memory: int = WRITER_BYTES,
    ) -> None:
        past = txn.timeline.until(txn.time)
        schema = table_schema(ctx, past)
        if schema is None:
            raise UnsupportedTableError(f"table {ctx.config.name!r} has no schema yet", base_path=ctx.base_path)
        stored = pa.schema([*META_FIELDS, *schema])
        wrong = check_columns(columns, stored)
        if wrong is not None:
            raise UnsupportedTableError(
                f"the clustering planned at {txn.time} cannot be executed: {wrong}", base_path=ctx.base_path
            )
        text = avro_text_for(schema, table_name=ctx.config.name, previous=table_avro_schema(ctx, past))
        self._time = txn.time
        history = load_column_history(ctx, txn.timeline, past)
        self._settings = WriteSettings.of_rewrite(
            options,
            schema,
            text,
            filters=ctx.config.needs_filters,
            virtual_keys=None if ctx.config.populate_meta_fields else ctx.config,
            memory_bytes=memory,
            log_marker=ctx.layout.log_marker,
            history=history,
        )
        self._visible = VisibleInstants.of(txn.timeline, txn.time)
        self._merge = SliceMerge.of(ctx.config, stored, history)

    def output(self, partition: str, file_id: str, index: int, seed: uuid.UUID) -> FileGroupTask:
        """A new file group."""
        return FileGroupTask(
            partition=partition,
            file_id=file_id,
            instant=self._time,
            index=index,
            mode=Mode.CREATE,
            settings=self._settings,
            seed=seed,
        )

    def source(self, item: PlannedSlice) -> CompactionTask:
        """A slice that is read, its logs merged in."""
        file = FileGroupTask(
            partition=item.partition,
            file_id=item.file_id,
            instant=self._time,
            index=0,
            mode=Mode.MERGE,
            settings=self._settings,
            seed=_NO_SEED,
            base_path=item.base_path,
        )
        return CompactionTask(file, item, self._visible, self._merge)

    def merged(self, index: int, item: PlannedSlice, found: PlannedFiles, log: LogPlace | None) -> CompactionTask:
        """A slice whose logs become part of its base file, or one log in the place `log`. `found`:
        the files of the plan; what is gone never counted."""
        file = FileGroupTask(
            partition=item.partition,
            file_id=item.file_id,
            instant=self._time,
            index=index,
            mode=Mode.LOG if log else Mode.CREATE if item.base is None else Mode.MERGE,
            settings=self._settings,
            seed=uuid.UUID(int=0),
            base_path=item.base_path,
            prev_commit=item.base_instant,
            log=log,
        )
        gone = frozenset(path for path in item.paths if path in found.gone)
        sizes = {path: found.sizes[path] for path in item.paths if path in found.sizes}
        return CompactionTask(file, item, self._visible, self._merge, gone, sizes)
