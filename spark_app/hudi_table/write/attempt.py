"""One attempt at a write: a transaction with its plan, its conflict keys and its commit
metadata."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import pyarrow as pa

from hudi_table.codec.avro.schema import avro_text_for
from hudi_table.errors import HudiError, OutcomeUnknownError, UnavailableError, WriteConflictError
from hudi_table.index.base import Slot
from hudi_table.index.key_hashes import key_hashes
from hudi_table.model.names import PARTITION_METADATA, bucket_of_file_id, join
from hudi_table.model.options.write_options import Operation, SortMode
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline import conflict_keys
from hudi_table.model.timeline.commits import SCHEMA_KEY, CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Action, Instant, parse_instant_time
from hudi_table.table.commit.beside.turns import has_turn
from hudi_table.table.commit.pending_plans import Groups, clustered_groups, refuse_while_resizing
from hudi_table.table.commit.transaction import Transaction, begin, write_action
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.ports import is_remote
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.bucket_count import buckets_now
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_avro_schema, table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import groups_of, pending_plans
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.write.checks.request import Prepared
from hudi_table.write.keygen.nesting import new_partitions
from hudi_table.write.settings import WriteSettings
from hudi_table.write.workload import SIZE_SLACK, PlannedTask, PlanRequest, measured_row_size, plan_tasks, row_size

MEASURED_COMMITS_MAX = 10
DEFAULT_TASK_MEMORY = 1 << 28


@dataclass(slots=True)
class Attempt:
    """A claimed instant and its snapshot. Made by `begin_attempt`, ended by `commit` or `give_up`.

    `task_memory`: bytes of incoming rows that one task may hold. `replaced` is None unless the
    operation replaces: then partition → file ids that it hides; `emptied`: the partitions that it
    fills or drops. `seen`: the file groups of the snapshot in the partitions that it writes to.
    `completed`: what `commit` has put on the timeline.
    """

    ctx: TableContext
    prepared: Prepared
    txn: Transaction
    view: FileSystemView
    avro_schema: str
    batch: str = ""
    task_memory: int = DEFAULT_TASK_MEMORY
    replaced: dict[str, tuple[str, ...]] | None = None
    emptied: set[str] = field(default_factory=set)
    planned: list[PlannedTask] = field(default_factory=list)
    seen: Mapping[Slot, FileSlice] = field(default_factory=dict)
    completed: Instant = field(init=False)

    @property
    def instant(self) -> str:
        """The instant time of this attempt."""
        return self.txn.time

    @property
    def timeline(self) -> Timeline:
        """The timeline of the snapshot."""
        return self.txn.timeline

    @property
    def visible(self) -> VisibleInstants:
        """The instants whose log blocks the snapshot shows."""
        return VisibleInstants.of(self.timeline)

    @property
    def right(self) -> RightToWrite:
        """The right to write of this attempt."""
        return self.txn.right

    def existing(self, partitions: Iterable[str] | None) -> dict[Slot, FileSlice]:
        """The visible file groups of these partitions, or of all, by their slots. Raises
        CorruptTableError if the index does not fit."""
        return self.prepared.index.groups(
            self.view.latest_slices(partitions), replacing=self.prepared.operation.replaces
        )

    def groups_for(self, rows: int, arrow_bytes: int, rows_total: int) -> int:
        """How many new file groups of the target size so many rows fill."""
        size = self._row_size(arrow_bytes, rows_total)
        return max(1, math.ceil(rows * size / self.prepared.options.target_file_size - SIZE_SLACK))

    def plan(
        self,
        slots: Sequence[Slot],
        rows: Sequence[int],
        arrow_bytes: int,
        dropped: Sequence[str] = (),
        *,
        in_process: bool = False,
    ) -> list[PlannedTask]:
        """Plan `rows[i]` rows for `slots[i]`, of `arrow_bytes` in all, and write the metadata of
        new partitions.

        `dropped` are the partitions of `delete_partition`. `in_process`: the tasks run here, so
        their files are known, and marked now.
        """
        operation = self.prepared.operation
        whole = operation is Operation.INSERT_OVERWRITE_TABLE
        groups = self.existing(None if whole else sorted({*(slot.partition for slot in slots), *dropped}))
        self.seen = groups
        if operation is Operation.DELETE:
            rows = [count if slot in groups else 0 for slot, count in zip(slots, rows, strict=True)]
        filled = {slot.partition for slot, count in zip(slots, rows, strict=True) if count}
        if operation.replaces:
            self.emptied = {*filled, *dropped}
            self.replaced = _replaced(operation, groups, self.emptied)
            groups = {}
        change = self.prepared.index.change(self.ctx, self.txn, filled, self.replaced)
        slots = change.moved(slots)
        plans = pending_plans(self.ctx, self.timeline)
        clustered = clustered_groups(self.ctx, self.timeline)
        to_logs = self.ctx.config.type is TableType.MERGE_ON_READ
        planned = plan_tasks(
            PlanRequest(
                slots=slots,
                rows=rows,
                existing=groups,
                settings=self._settings(),
                instant=self.instant,
                seed=self.txn.seed,
                merging=self._merging,
                row_size=self._row_size(arrow_bytes, sum(rows)),
                small_file_limit=self.prepared.options.small_file_limit,
                pack_small_files=operation is not Operation.BULK_INSERT,
                arrow_row_size=arrow_bytes / max(1, sum(rows)),
                to_logs=to_logs,
                compactions=groups_of({i: plan for i, plan in plans.items() if i.action is Action.COMPACTION}),
                held=groups_of(plans) | clustered,
                logs_tell_writers=self.ctx.layout.logs_tell_writers,
                appends=self.prepared.appends,
                hidden=self.view.hidden() if self.prepared.appends else frozenset(),
                committed=self.visible if to_logs else frozenset(),
            )
        )
        if not self.prepared.options.updates_clustered:
            self._refuse_clustered(clustered, planned)
        filled = {item.task.partition for item in planned}
        described = [partial(self._describe, partition) for partition in new_partitions(self.view, filled)]
        # From here on files may appear: who gives up has to reckon with them.
        self.planned = planned
        files = [file for item in planned for file in item.task.first_files] if in_process else []
        self.right.mark(files, self.txn.inflight, *described, batched=True)
        change.store(self.ctx, self.txn)
        return self.planned

    def _describe(self, partition: str) -> None:
        self.right.put_file(join(partition, PARTITION_METADATA), partition_metadata(self.instant, partition))

    def commit(
        self,
        stats: Sequence[WriteStat],
        extra: Mapping[str, str],
        inserted: Iterable[tuple[str, pa.Array]] = (),
        filled: Iterable[str] = (),
    ) -> CommitMetadata:
        """Decide and publish. `inserted` are (partition, record keys) that no group held, where the
        index needs them; `filled` are partitions with such keys where the keys themselves are not
        at hand."""
        metadata = CommitMetadata(
            operation_type=self.prepared.operation.hudi_name,
            stats=tuple(sorted(stats, key=lambda stat: (stat.partition_path, stat.path))),
            extra_metadata={**extra, SCHEMA_KEY: self.avro_schema},
            replaced=self.replaced,
        )
        is_global = self.prepared.index.is_global
        whole = {
            conflict_keys.partition_conflict_key(conflict_keys.GLOBAL_KEYS if is_global else partition)
            for partition in filled
        }
        self.completed = self.txn.commit(metadata, self._conflict_keys(inserted) | whole)
        return metadata

    def give_up(self, error: BaseException | None) -> None:
        """Abort and roll back. A store that failed once may fail again: then a later recovery does
        it."""
        # A request whose fate is unknown may still take effect, so its instant has to wait out the quarantine; and over a
        # network a request that was sent again inside the client may arrive after its successor was answered.
        doubted = isinstance(error, (UnavailableError, OutcomeUnknownError)) or bool(self.right.doubts)
        certain = not self.planned or not (doubted or is_remote(self.ctx.storage))
        try:
            self.txn.abort(confirmed_dead=certain)
        except HudiError as failure:
            if error is not None:
                error.add_note(f"rolling {self.instant} back failed too, a later write does it: {failure}")

    @property
    def _merging(self) -> bool:
        operation = self.prepared.operation
        return operation.merges or (operation is Operation.INSERT and not self.prepared.options.allow_duplicate_inserts)

    def _refuse_clustered(self, clustered: Groups, planned: Sequence[PlannedTask]) -> None:
        """Raise WriteConflictError if a pending clustering would lose rows of this write, or this
        write those of it."""
        written_groups = [(item.task.partition, item.task.file_id) for item in planned]
        replaced = [(partition, file_id) for partition, ids in (self.replaced or {}).items() for file_id in ids]
        for partition, file_id in [*written_groups, *replaced]:
            plan = clustered.get((partition, file_id))
            if plan is not None:
                raise WriteConflictError(
                    f"file group {file_id} of partition {partition!r} is being clustered by the plan of {plan}, so that it "
                    "takes no rows until then; execute the plan, or write later",
                    base_path=self.ctx.base_path,
                    instant=self.instant,
                )

    def _settings(self) -> WriteSettings:
        prepared, options = self.prepared, self.prepared.options
        in_task = (not prepared.index.reads_snapshot or prepared.rule.combines) and prepared.combines
        return WriteSettings.of(
            options,
            prepared.schema,
            self.avro_schema,
            filters=prepared.index.needs_filters,
            rule=prepared.rule,
            combine=in_task or (self._merging and not prepared.operation.merges),
            combine_orderings=prepared.combine_orderings,
            sort=prepared.operation is Operation.BULK_INSERT and prepared.sort_mode is not SortMode.NONE,
            virtual_keys=None if self.ctx.config.populate_meta_fields else self.ctx.config,
            memory_bytes=self.task_memory,
            cdc=self.ctx.config.cdc,
            event_time=options.event_time,
            log_marker=self.ctx.layout.log_marker,
            history=load_column_history(self.ctx, self.timeline),
        )

    def _row_size(self, arrow_bytes: int, rows: int) -> float:
        if not self.prepared.index.reads_snapshot:
            # Buckets take what comes: nobody asks for the size of a row.
            return float(self.prepared.options.record_size)
        newest = islice(reversed(self.timeline.commits), MEASURED_COMMITS_MAX)
        measured = measured_row_size(commit_metadata(self.ctx, instant) for instant in newest)
        return row_size(measured, arrow_bytes, rows, self.prepared.options)

    def _conflict_keys(self, inserted: Iterable[tuple[str, pa.Array]]) -> set[str]:
        # Touching nothing would meet nothing, not even a change of the schema.
        keys = {f"instant:{self.instant}"}
        if self.batch:
            keys.add(f"batch:{self.batch}")
        if self.prepared.changed or self.prepared.operation is Operation.INSERT_OVERWRITE_TABLE:
            keys.add(conflict_keys.TABLE)
        if self.replaced is not None:
            # Also where nothing is to be replaced yet: others may begin the partition meanwhile.
            for partition in {*self.replaced, *self.emptied}:
                keys |= {
                    conflict_keys.partition_conflict_key(partition),
                    conflict_keys.replaced_conflict_key(partition),
                }
            if self.prepared.index.is_global:
                # Keys that others insert there are named without their partition.
                keys.add(conflict_keys.record_conflict_keys(conflict_keys.GLOBAL_KEYS))
        for task in (item.task for item in self.planned):
            exists = task.base_path is not None or task.log is not None
            key = self.prepared.index.conflict_key(task.partition, task.file_id, exists=exists)
            appended = self.prepared.appends and task.log is not None
            bucket = bucket_of_file_id(task.file_id) if appended else None
            if bucket is not None:
                keys.add(conflict_keys.append_conflict_key(task.partition, bucket))
            else:
                keys.add(key or conflict_keys.begun_conflict_key(task.partition))
        return keys | conflict_keys_of_records(inserted, is_global=self.prepared.index.is_global)


def placing_as_of(ctx: TableContext, prepared: Prepared, timeline: Timeline) -> Prepared:
    """The request with the index as of a timeline, if it places rows by itself. One that looks keys
    up learns of it when it does."""
    if prepared.index.reads_snapshot:
        return prepared
    return replace(prepared, index=prepared.index.as_of(ctx, timeline))


def begin_attempt(
    ctx: TableContext,
    prepared: Prepared,
    name: str | None = None,
    batch: str = "",
    partitions: Sequence[str] | None = (),
) -> Attempt:
    """Claim an instant and take the snapshot; the attempt's index has its hash rings, which may be
    others than those by which rows were taken in. The files of `partitions`, None for all, are
    listed while the snapshot is confirmed.

    Raises WriteConflictError if the table's schema or buckets have changed since the request was
    checked against them.
    """
    action = Action.REPLACE_COMMIT if prepared.operation.replaces else write_action(ctx.config)
    found: list[tuple[FileSystemView, str | None]] = []

    def listed(timeline: Timeline) -> None:
        view = FileSystemView(ctx, timeline)
        _, schema = at_once(
            ctx.storage, lambda: view.latest_slices(partitions), lambda: table_avro_schema(ctx, timeline)
        )
        found.append((view, schema))

    txn = begin(ctx, action, attempt=name, batch=batch, failed_writes=prepared.options.failed_writes, reads=listed)
    read = next((each for each in found if each[0].timeline is txn.timeline), None)
    view, previous = read or (FileSystemView(ctx, txn.timeline), table_avro_schema(ctx, txn.timeline))
    text = avro_text_for(prepared.schema, table_name=ctx.config.name, previous=previous)
    attempt = Attempt(ctx, placing_as_of(ctx, prepared, txn.timeline), txn, view, text, batch)
    # Who has a turn is not held up by the markers of those that wait for it.
    if prepared.options.early_conflicts and not has_turn():
        from hudi_table.table.commit.beside.early_conflicts import EarlyConflicts

        txn.right.early = EarlyConflicts.of(ctx)
    try:
        _check_unchanged(ctx, prepared, txn)
    except WriteConflictError as error:
        attempt.give_up(error)
        raise
    return attempt


def _check_unchanged(ctx: TableContext, prepared: Prepared, txn: Transaction) -> None:
    """Refuse rows that were taken in for another schema or other buckets than the table has, or is
    about to have."""
    refuse_while_resizing(ctx, txn.timeline)
    moved = "schema" if table_schema(ctx, txn.timeline) != prepared.stored else ""
    count = buckets_now(ctx, txn.timeline)
    if count is not None and prepared.buckets != count:
        moved = "number of buckets"
    if moved:
        raise WriteConflictError(
            f"the table's {moved} was changed by another writer while the rows were taken in; write again",
            base_path=ctx.base_path,
            instant=txn.time,
        )


def conflict_keys_of_records(inserted: Iterable[tuple[str, pa.Array]], *, is_global: bool) -> set[str]:
    """Conflict keys of inserted record keys: their hashes, or the whole partition above the
    limit."""
    hashes: dict[str, set[int]] = {}
    for partition, keys in inserted:
        place = conflict_keys.GLOBAL_KEYS if is_global else partition
        known = hashes.setdefault(place, set())
        if len(known) <= conflict_keys.KEY_LIMIT:
            known.update(key_hashes(keys.slice(0, conflict_keys.KEY_LIMIT + 1)).tolist())
    found: set[str] = set()
    for place, known in hashes.items():
        if len(known) > conflict_keys.KEY_LIMIT:
            found.add(conflict_keys.partition_conflict_key(place))
        else:
            found.update(conflict_keys.record_conflict_key(place, number) for number in known)
    return found


def find_batch(ctx: TableContext, timeline: Timeline, batch: str, key: str) -> Instant | None:
    """The commit of the active timeline that carries the batch's name, if any."""
    if not batch:
        return None
    for instant in reversed(timeline.commits):
        if commit_metadata(ctx, instant).extra_metadata.get(key) == batch:
            return instant
    return None


def partition_metadata(instant: str, partition: str) -> bytes:
    """Content of `.hoodie_partition_metadata`."""
    depth = len(partition.split("/")) if partition else 0
    date = parse_instant_time(instant).strftime("%a %b %d %H:%M:%S %Y")
    return f"#partition metadata\n#{date}\ncommitTime={instant}\npartitionDepth={depth}\n".encode()


def _replaced(
    operation: Operation, groups: Mapping[Slot, FileSlice], partitions: set[str]
) -> dict[str, tuple[str, ...]]:
    """The file ids that a replacing operation hides, per partition."""
    whole = operation is Operation.INSERT_OVERWRITE_TABLE
    found: dict[str, list[str]] = {}
    for item in groups.values():
        if whole or item.partition in partitions:
            found.setdefault(item.partition, []).append(item.file_id)
    return {partition: tuple(sorted(ids)) for partition, ids in sorted(found.items())}
