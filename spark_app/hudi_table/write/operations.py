"""The write operations: check, take rows in, claim, plan, write, commit.

The same steps serve every engine: `start` begins an attempt and plans it, tasks run
`write_file_group` wherever they are, `finish` commits. `write` is all of it on a local engine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from hudi_table.errors import (
    CommitStateUnknownError,
    HudiError,
    InvalidOptionError,
    InvalidRequestError,
    ObjectNotFoundError,
    WriteConflictError,
)
from hudi_table.index.base import Lookup
from hudi_table.model.options.known import admit
from hudi_table.model.options.validators import VALIDATORS, has_validators
from hudi_table.model.options.write_options import Operation, SortMode, operation_option
from hudi_table.model.table.properties import with_timebased
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.model.timeline.conflict_keys import KEY_LIMIT
from hudi_table.model.timeline.instants import Instant
from hudi_table.table.commit.beside.turns import in_line
from hudi_table.table.commit.pending_plans import refuse_while_resizing
from hudi_table.table.commit.snapshot import caught_up
from hudi_table.table.commit.undo import finish_undos
from hudi_table.table.engine.local_engine import at_a_store
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.keys.record_keys import keys_of_stored
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.rows.spill import GroupedRows
from hudi_table.table.store.at_once import at_once
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import fetch_bodies, load_timeline, timeline_with
from hudi_table.table.timeline.bucket_count import sync_bucket_properties
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.kept_properties import refuse_lost
from hudi_table.table.timeline.properties import read_properties
from hudi_table.table.timeline.relisting import Listings, relists
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write import incoming
from hudi_table.write.attempt import Attempt, begin_attempt, find_batch, placing_as_of
from hudi_table.write.checks.follows import Follows, check_follows
from hudi_table.write.checks.request import Prepared, parse_operation, prepare, refuse_extra, refuse_unsupported
from hudi_table.write.checks.table_state import check_history, check_partitions, check_timeline, refuse_new_columns
from hudi_table.write.handles.base_file import write_file_group
from hudi_table.write.incoming import Taken
from hudi_table.write.index_learn import tell_written
from hudi_table.write.insert_duplicates import unstored_keys, without_stored
from hudi_table.write.keygen.key_encoding import resolve_key_encoding
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.metadata_enable import keep_metadata_for
from hudi_table.write.result import CommitResult, replayed_by, result_of
from hudi_table.write.workload import PlannedTask

DECODED = 8
"""Bytes of rows in memory over those of their base file, or more."""
LEAST_HELD = 1 << 20
_LOG = logging.getLogger("hudi_table.write")
BATCH_KEY = "hoodie.lakeops.batch"


class Validators(Protocol):
    """What a write has to pass before it is decided."""

    def check(self, ctx: TableContext, schema: pa.Schema) -> None:
        """Raises InvalidRequestError for what cannot be asked of such rows."""

    def run(self, attempt: Attempt, stats: Sequence[WriteStat]) -> None:
        """Raises InvalidDataError."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """What `write` is asked. `partitions` are for `delete_partition` alone, `still` says of the
    write's own snapshot which of them are to go yet; `batch` names these rows: once it is
    committed, the same name again changes nothing. `follows`: the write stands only behind that
    commit, so that of all who go on from one checkpoint one commits."""

    operation: str
    options: Mapping[str, str] = field(default_factory=dict)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""
    partitions: Sequence[str] = ()
    still: Callable[[FileSystemView], Container[str]] | None = None
    max_memory: int = DEFAULT_MEMORY
    attempt: str | None = None
    follows: Follows | None = None
    validators: Validators | None = None

    def __post_init__(self) -> None:
        """Raises InvalidRequestError."""
        admit(self.options)
        refuse_extra(self.extra_metadata, BATCH_KEY)


def write_rows(ctx: TableContext, data: Any, request: WriteRequest, engine: Engine) -> CommitResult:
    """Write rows and commit. Raises InvalidRequestError, UnsupportedTableError, WriteConflictError
    and what storage raises.

    Nothing is left visible unless it returns, but for CommitStateUnknownError. A conflict is tried
    again as often as `hoodie.write.num.retries.on.conflict.failures` says, on the new snapshot.
    """
    # A stream can be taken once, however often the table is looked at.
    reader, prepared, done = begin(ctx, None if data is None else incoming.open_stream(data), request)
    if done is not None:
        return replayed_by(done, request.operation)
    if reader is None:
        return _attempts(ctx, Taken(GroupedRows(request.max_memory)), prepared, request, engine)
    taken = incoming.take_in(
        reader, prepared, TableKeys.of(with_timebased(ctx.config, request.options)), engine, request.max_memory
    )
    with taken.rows:
        if taken.rows.rows_total == 0 and not prepared.operation.replaces and not prepared.options.allow_empty_commit:
            return CommitResult("", request.operation)
        return _attempts(ctx, taken, prepared, request, engine)


write = logged("write")(write_rows)
"""`write_rows`, told by the logger hudi_table.write."""


@relists
def begin(
    ctx: TableContext, data: Any, request: WriteRequest
) -> tuple[pa.RecordBatchReader | None, Prepared, Instant | None]:
    """`check` on the newest timeline, and the commit that holds the request's batch
    already, if one does."""
    timeline, stored = _first_look(ctx)
    reader, prepared = check(ctx, data, request, timeline, stored)
    if request.validators is not None:
        request.validators.check(ctx, prepared.schema)
    elif has_validators(request.options):
        raise InvalidRequestError(f"{VALIDATORS} is for writes of rows; leave it out here", base_path=ctx.base_path)
    return reader, prepared, find_batch(ctx, timeline, request.batch, BATCH_KEY)


def _first_look(ctx: TableContext) -> tuple[Timeline, Mapping[str, str] | None]:
    """The timeline; and the properties, where they may tell another number of buckets. At the same
    time what is asked for next is read: the newest commit, which tells the schema, and the end of
    the chain, which is known before the claim."""
    index = ctx.config.index

    def read(timeline: Timeline) -> Mapping[str, str] | None:
        return at_once(
            ctx.storage,
            lambda: fetch_bodies(ctx, timeline.commits[-1:]),
            lambda: (
                read_properties(ctx.storage, ctx.clock) if index is not None and index.type.has_fixed_buckets else None
            ),
        )[1]

    def tail() -> None:
        # What fails is asked again by the claim.
        with suppress(HudiError):
            chain.known_tail(ctx)

    return at_once(ctx.storage, lambda: timeline_with(ctx, read), tail)[0]


def check(
    ctx: TableContext, data: Any, request: WriteRequest, timeline: Timeline, stored: Mapping[str, str] | None = None
) -> tuple[pa.RecordBatchReader | None, Prepared]:
    """Everything that can be refused before rows are read. Returns the stream of rows, None for
    `delete_partition`. `stored`: the properties, if they were read with the timeline."""
    operation = parse_operation(operation_option(request.operation, request.options))
    if request.max_memory < 1:
        raise InvalidOptionError(f"max_memory is {request.max_memory}; give bytes, at least 1")
    refuse_lost(ctx)
    refuse_unsupported(ctx.config)
    check_timeline(ctx, timeline)
    # A resize may be taken back, by a plan that is perhaps decided and not published: rows are routed by the buckets that stay.
    if timeline.planner_claims:
        timeline, stored = caught_up(ctx)[0], None
    elif finish_undos(ctx, timeline):
        timeline, stored = load_timeline(ctx), None
    refuse_while_resizing(ctx, timeline)
    sync_bucket_properties(ctx, timeline, stored)
    has_history = check_history(ctx, timeline)
    resolve_key_encoding(ctx, timeline, request.options)
    schema = table_schema(ctx, timeline)
    if operation is Operation.DELETE_PARTITION:
        if data is not None:
            raise InvalidRequestError("delete_partition takes partitions, not rows; give data=None")
        check_partitions(ctx, request.partitions)
        return None, _prepared(ctx, request, timeline, schema, None)
    if request.partitions:
        raise InvalidRequestError(f"partitions are for delete_partition, not for {request.operation}; leave them out")
    if data is None:
        raise InvalidRequestError(f"{request.operation} needs rows; give data that exports an Arrow stream")
    reader = incoming.open_stream(data)
    prepared = _prepared(ctx, request, timeline, schema, reader.schema)
    if has_history:
        refuse_new_columns(ctx, prepared)
    return reader, prepared


def _prepared(
    ctx: TableContext,
    request: WriteRequest,
    timeline: Timeline,
    stored: pa.Schema | None,
    data_schema: pa.Schema | None,
) -> Prepared:
    checked = prepare(ctx.config, request.operation, request.options, stored, data_schema)
    prepared = placing_as_of(ctx, checked, timeline)
    prepared.index.check_fits(ctx, timeline, from_options=prepared.index_from_options)
    return prepared


def _attempts(
    ctx: TableContext, taken: Taken, prepared: Prepared, request: WriteRequest, engine: Engine
) -> CommitResult:
    return with_retries(ctx, prepared, lambda: _attempt(ctx, taken, prepared, request, engine))


def with_retries(ctx: TableContext, prepared: Prepared, attempt: Callable[[], CommitResult]) -> CommitResult:
    """What one attempt returns: the first, or a later one on a newer snapshot. Conflicts are tried
    again as often as the options say, and others that began later let it go first; a snapshot
    whose files others took away, as `Listings` says."""
    listings, left = Listings(ctx), prepared.options.conflict_retries
    with in_line(ctx) as line:
        while True:
            line.tries = left > 0
            try:
                return attempt()
            except ObjectNotFoundError as missing:
                listings.again(missing)
            except WriteConflictError:
                if left == 0:
                    raise
                left -= 1


def _attempt(
    ctx: TableContext, taken: Taken, prepared: Prepared, request: WriteRequest, engine: Engine
) -> CommitResult:
    keep_metadata_for(ctx, prepared)
    attempt = begin_attempt(ctx, prepared, request.attempt, request.batch, _partitions(taken, prepared, request))
    attempt.task_memory = max(1, request.max_memory // (2 * engine.parallelism))
    done = find_batch(ctx, attempt.timeline, request.batch, BATCH_KEY)
    if done is not None:
        attempt.give_up(None)
        return replayed_by(done, request.operation)
    try:
        check_follows(ctx, attempt.timeline, attempt.instant, request.follows)
        with attempt.txn.signs_of_life(), ExitStack() as kept:
            tagged = taken
            if not taken.tagged:
                slices = attempt.view.latest_slices(None if prepared.index.is_global else sorted(taken.paths))
                index = prepared.index.as_of(ctx, attempt.timeline) if prepared.finds_keys else prepared.index
                live, made = partial(LiveKeys, ctx, attempt.timeline), keys_of_stored(ctx.config)
                lookup = Lookup(ctx.storage, slices, engine, prepared.rule.ordering, made, attempt.visible, live)
                unstored = unstored_keys(attempt, index, lookup)
                tagged = incoming.tag(taken, replace(prepared, index=index), lookup, request.max_memory, unstored)
                kept.enter_context(tagged.rows)
            else:
                if attempt.prepared.index.moved_since(prepared.index):
                    tagged = incoming.rerouted(taken, attempt.prepared.index, request.max_memory)
                    kept.enter_context(tagged.rows)
                remaining = without_stored(attempt, tagged, request.max_memory)
                # The rows that were taken in stay for the next try: only what this one has made is closed with it.
                if remaining is not tagged:
                    kept.enter_context(remaining.rows)
                tagged = remaining
            placed = _sorted_across_files(attempt, tagged, request.max_memory)
            if placed is not tagged:
                kept.enter_context(placed.rows)
            dropped = request.partitions
            if request.still is not None:
                due = request.still(attempt.view)
                dropped = [partition for partition in dropped if partition in due]
            planned = attempt.plan(placed.slots, placed.slot_rows(), placed.rows.bytes_total, dropped, in_process=True)
            _LOG.debug("%s: %d rows taken in, in %d tasks", attempt.instant, placed.rows.rows_total, len(planned))
            stats = _run(attempt, placed, planned, engine)
            _LOG.debug("%s: %d files written", attempt.instant, len(stats))
            result = _finish(attempt, placed, stats, request)
            if result.instant and prepared.index.reads_snapshot:
                tasks = [(item.task, partial(rows_of, placed, item)) for item in planned]
                tell_written(ctx, prepared.index, attempt.seen, stats, tasks)
            return result
    except CommitStateUnknownError:
        raise
    except (HudiError, pa.ArrowException, OSError, MemoryError, KeyboardInterrupt) as error:
        attempt.give_up(error)
        raise


def _partitions(taken: Taken, prepared: Prepared, request: WriteRequest) -> list[str] | None:
    """The partitions whose files the write looks at, None for all."""
    if prepared.index.is_global or prepared.operation is Operation.INSERT_OVERWRITE_TABLE:
        return None
    return sorted({*taken.paths, *(slot.partition for slot in taken.slots), *request.partitions})


def _sorted_across_files(attempt: Attempt, taken: Taken, max_memory: int) -> Taken:
    """With global sorting, partitions of several files are cut by key range, so that their files do
    not overlap."""
    prepared = attempt.prepared
    if prepared.operation is not Operation.BULK_INSERT or prepared.sort_mode is not SortMode.GLOBAL:
        return taken
    total = taken.rows.rows_total
    groups = [
        1 if slot.bucket is not None else attempt.groups_for(rows, taken.rows.bytes_total, total)
        for slot, rows in zip(taken.slots, taken.slot_rows(), strict=True)
    ]
    return taken if max(groups, default=1) == 1 else incoming.split_by_key(taken, groups, max_memory)


def _run(attempt: Attempt, taken: Taken, planned: Sequence[PlannedTask], engine: Engine) -> list[WriteStat]:
    def run(item: PlannedTask) -> tuple[WriteStat, ...]:
        return write_file_group(item.task, rows_of(taken, item), attempt.right)

    # The largest first: the last task to end decides how long the write takes.
    order = sorted(planned, key=lambda item: (-item.rows, item.task.index))
    row_bytes = taken.rows.bytes_total / max(1, taken.rows.rows_total)
    held = max((_held(item, row_bytes) for item in planned), default=0)
    threads = at_a_store(engine, attempt.ctx.storage, held, attempt.task_memory * engine.parallelism)
    return [stat for stats in threads.map(run, order) for stat in stats]


def _held(item: PlannedTask, row_bytes: float) -> int:
    """Bytes that a task may hold at once: its rows and their encoding, and what it reads of a base
    file."""
    read = item.task.base_bytes if item.task.log is None else 0
    return int(2 * item.rows * row_bytes) + DECODED * read + LEAST_HELD


def rows_of(taken: Taken, item: PlannedTask) -> Iterator[pa.RecordBatch]:
    """The incoming rows of one task."""
    for source in item.sources:
        yield from taken.rows.read(source.slot, source.start, source.stop)


def _finish(attempt: Attempt, taken: Taken, stats: Sequence[WriteStat], request: WriteRequest) -> CommitResult:
    prepared = attempt.prepared
    if not stats and attempt.replaced is None and not prepared.options.allow_empty_commit:
        attempt.give_up(None)
        return CommitResult("", request.operation)
    extra = dict(request.extra_metadata)
    if request.batch:
        extra[BATCH_KEY] = request.batch
    inserted: list[tuple[str, pa.Array]] = []
    filled: list[str] = []
    for code in taken.unmatched() if prepared.finds_keys and prepared.operation is not Operation.DELETE else ():
        partition = taken.slots[code].partition
        if taken.rows.rows.get(code, 0) > KEY_LIMIT:
            filled.append(partition)
        else:
            inserted += [(partition, keys) for keys in taken.keys_of(code)]
    if request.validators is not None:
        request.validators.run(attempt, stats)
    metadata = attempt.commit(stats, extra, inserted, filled)
    return result_of(attempt.completed, request.operation, metadata, schema_changed=prepared.changed)
