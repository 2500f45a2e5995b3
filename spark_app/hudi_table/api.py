"""The public surface: `open_table`, `create_table`, `write_hudi`, and what they return.

What creates a table and what writes are imported by the calls that do so: a program that only asks
a table loads neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hudi_table.arguments import (
    ArrowStream,
    IfExists,
    MergeModeName,
    OperationName,
    PartialUpdatesName,
    SchemaLike,
    SortModeName,
    TableTypeName,
    WriteOptions,
    schema_of,
)
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.metadata.port import open_context
from hudi_table.model.given import checked_call, checked_calls
from hudi_table.model.options.write_options import (
    CUSTOM_KEYS,
    CUSTOM_MERGER,
    SORT_MODE,
    operation_option,
    partitions_option,
    sort_mode_option,
)
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.services import ServicePlan, ServiceResult
from hudi_table.model.table.config import IndexSpec, PartitionFields
from hudi_table.model.table.readers import readers_of
from hudi_table.read.moments import Moment
from hudi_table.services.short_calls import ShortCalls
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.engine.progress import reporting
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.properties import read_properties
from hudi_table.table.view.savepoints import Savepoint
from hudi_table.write.result import CommitResult

if TYPE_CHECKING:
    from hudi_table.services.upgrading.plan import VersionPlan
    from hudi_table.services.upgrading.run import VersionResult

__all__ = [
    "CommitResult",
    "HudiTable",
    "Savepoint",
    "ServicePlan",
    "ServiceResult",
    "create_table",
    "downgrade_table",
    "open_table",
    "upgrade_table",
    "write_hudi",
]


@checked_calls
class HudiTable(ShortCalls):
    """An opened table. It holds no connection and no lock; every call sees the newest completed
    state."""

    @property
    def record_key(self) -> tuple[str, ...]:
        """The fields of the record key; none in a table of inserts alone."""
        return self.context.config.record_key

    @property
    def properties(self) -> dict[str, str]:
        """The table's `hoodie.properties` as they are now: one request. Changing what is returned
        changes nothing."""
        return read_properties(self.context.storage, self.context.clock)

    def write(
        self,
        data: ArrowStream | None,
        *,
        operation: OperationName | None = None,
        max_memory: int = DEFAULT_MEMORY,
        options: Mapping[str, str] | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        batch: str | None = None,
        sort_mode: SortModeName | None = None,
        partitions: Sequence[str] = (),
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> CommitResult:
        """Write rows and commit; see `write_hudi`."""
        from hudi_table.services.inline import check_inline, run_inline
        from hudi_table.services.validating.asked import with_validators
        from hudi_table.table.commit.beside.locking import locked
        from hudi_table.write.operations import WriteRequest, write

        self._check_writable()
        chosen = dict(options or {})
        if sort_mode is not None:
            chosen[SORT_MODE] = sort_mode_option(sort_mode, chosen, operation)
        request = WriteRequest(
            operation=operation_option(operation, chosen),
            options=chosen,
            extra_metadata=dict(extra_metadata or {}),
            batch=batch or "",
            partitions=partitions_option(partitions, chosen),
            max_memory=max_memory,
        )
        ctx = locked(self.context, chosen)
        check_inline(ctx, chosen)
        engine = reporting(engine or LocalEngine(), request.operation, progress)
        result = write(ctx, data, with_validators(request), engine)
        run_inline(ctx, result.instant, chosen, engine, max_memory=max_memory)
        return result

    def upsert(self, data: ArrowStream, **more: Unpack[WriteOptions]) -> CommitResult:
        """Insert new keys, update known ones."""
        return self.write(data, operation="upsert", **more)

    def insert(self, data: ArrowStream, **more: Unpack[WriteOptions]) -> CommitResult:
        """Insert rows without looking for their keys."""
        return self.write(data, operation="insert", **more)

    def delete(self, data: ArrowStream, **more: Unpack[WriteOptions]) -> CommitResult:
        """Delete the rows of the given keys; `data` needs the record key and partition columns
        only."""
        return self.write(data, operation="delete", **more)


@checked_call
def open_table(
    uri: str | Path,
    *,
    as_of: Moment | None = None,
    storage_options: Mapping[str, str] | None = None,
    lock: Mapping[str, str] | None = None,
) -> HudiTable:
    """Open the Hudi table at `uri` (a path, or a URI of local disk, memory or an object store).

    `as_of` (17 digits or a shorter prefix, an ISO date or time, a datetime) fixes the moment that
    reads see.

    `storage_options` are texts by name. S3 takes `endpoint`, `region`, `access_key_id`,
    `secret_access_key` and `session_token`; what is absent comes from the environment's `AWS_*`,
    then from the usual AWS chain. All remote stores take `timeout` and `connect_timeout` (seconds),
    `retries` and `allow_http`, local disk takes `fsync`. The guide "Stores and credentials" shows
    how.

    `lock`: Hudi's options of the lock that all writers of the table share
    (`hoodie.write.lock.provider`, …); every commit, plan and recovery of this table then holds it.

    Raises TableNotFoundError, UnsupportedTableError, CorruptTableError, InvalidOptionError,
    UnavailableError and AccessDeniedError.
    """
    ctx = open_context(open_storage(str(uri), storage_options))
    if lock is not None:
        from hudi_table.table.commit.beside.locking import with_lock

        ctx = with_lock(ctx, lock)
    return HudiTable(ctx, as_of)


@checked_call
def create_table(
    uri: str | Path,
    schema: SchemaLike,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: PartitionFields | None = None,
    ordering_fields: str | Sequence[str] | None = None,
    type: TableTypeName | None = None,  # noqa: A002 - the name of the resource's field
    merge_mode: MergeModeName | None = None,
    partial_updates: PartialUpdatesName | None = None,
    merger: str | None = None,
    key_generator: str | None = None,
    index: str | Mapping[str, Any] | IndexSpec | None = None,
    name: str | None = None,
    database: str | None = None,
    hive_style: bool | None = None,
    url_encode: bool | None = None,
    version: int | None = None,
    if_exists: IfExists = "error",
    options: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    lock: Mapping[str, str] | None = None,
) -> HudiTable:
    """Create an empty Hudi table at `uri` and open it. Names and values are those of the resource.

    `schema`: of pyarrow or Polars, or of rows that are given, or a dict of column names and pyarrow
    types. `partition_by`: one or several field names, or
    `{"field", "type": "Timestamp", "format": "yyyy/MM", …}`. `index`: `"Simple"`, `"GlobalSimple"`,
    `"Bloom"`, `"GlobalBloom"`, `"RecordIndex"`, `"PartitionedRecordIndex"`, `"KeyState"`,
    `{"type": "Bucket", "buckets": 8, "hashFields": […]}`, or the same with `"ConsistentBucket"` or
    `"Custom"`, as `docs/how-to/writing.md` shows them.

    `merge_mode`: `"EventTime"` (the larger ordering value wins) or `"CommitTime"` (the later write
    wins), the default without ordering fields. `partial_updates`: `"IgnoreDefaults"` (nulls leave
    stored values) or `"FillUnavailable"` (so does Debezium's marker). `merger`, `key_generator`:
    names of functions that `register_merger` and `register_key_generator` made known.

    `name`: the last part of `uri` unless given. `version`: the table version 6, 8 or 9; 9 unless
    given. `if_exists="open"` opens a table of the same identity. `storage_options`, `lock`: as for
    `open_table`.

    `options` takes the same settings as Hudi's writers name them
    (`hoodie.datasource.write.recordkey.field`, `hoodie.index.type`, …); one that contradicts an
    argument is refused. Without either the table is `"CopyOnWrite"` with a `"Simple"` index. An
    option of writes and services is not stored: an IgnoredOptionWarning names it.

    Raises InvalidRequestError if the location holds something else, InvalidSchemaError naming a
    column that a Hudi table cannot hold.
    """
    from hudi_table.table.commit.beside.locking import locked, with_lock
    from hudi_table.write.checks.create_table import TableSpec, create
    from hudi_table.write.checks.table_options import warn_of_others, with_names

    own = {CUSTOM_MERGER: merger, CUSTOM_KEYS: key_generator}
    spec = TableSpec(
        schema=schema_of(schema),
        record_key=record_key,
        partition_by=partition_by,
        ordering_fields=ordering_fields,
        type=type,
        merge_mode=merge_mode,
        partial_updates=partial_updates,
        index=index,
        name=name,
        database=database,
        hive_style=hive_style,
        url_encode=url_encode,
        version=version,
        options=with_names(options or {}, own),
    )
    ctx = create(open_storage(str(uri), storage_options), spec, if_exists=if_exists)
    warn_of_others(spec.options)
    return HudiTable(locked(ctx if lock is None else with_lock(ctx, lock), spec.options))


@checked_call
def write_hudi(
    table_or_uri: HudiTable | str | Path,
    data: ArrowStream | None,
    *,
    operation: OperationName | None = None,
    max_memory: int = DEFAULT_MEMORY,
    options: Mapping[str, str] | None = None,
    extra_metadata: Mapping[str, str] | None = None,
    batch: str | None = None,
    sort_mode: SortModeName | None = None,
    partitions: Sequence[str] = (),
    storage_options: Mapping[str, str] | None = None,
    lock: Mapping[str, str] | None = None,
    engine: Engine | None = None,
    progress: ProgressFunction | None = None,
    transform: Sequence[Mapping[str, Any]] = (),
) -> CommitResult:
    """Write rows to a table as one commit: upsert, insert, delete, bulk_insert, insert_overwrite,
    insert_overwrite_table or delete_partition.

    `data`: whatever exports an Arrow stream (pyarrow, polars, pandas, DuckDB); it is read once, in
    batches, and rows past `max_memory` bytes wait on disk. `options`: known `hoodie.*` keys.
    `extra_metadata` goes into the commit. `batch` names these rows: a name that the active timeline
    holds already changes nothing (`replayed`). `progress` hears how far it is, from threads
    (`hudi_table.model.progress`). `transform`: steps that the rows go through first, such as
    `[{"sql": "SELECT * FROM source WHERE fare >= 0"}]`, as an ingest's
    (`hudi_table.services.transforming.steps`). `sort_mode` (none, global, partition) is for
    bulk_insert, `partitions` (paths) for delete_partition, which takes no data. Raises
    InvalidRequestError and its kinds before anything is written, WriteConflictError if another
    writer changed the same file groups, CommitStateUnknownError if it may or may not have
    committed.
    """
    table = (
        table_or_uri
        if isinstance(table_or_uri, HudiTable)
        else open_table(str(table_or_uri), storage_options=storage_options, lock=lock)
    )
    write = partial(
        table.write,
        operation=operation,
        max_memory=max_memory,
        options=options,
        extra_metadata=extra_metadata,
        batch=batch,
        sort_mode=sort_mode,
        partitions=partitions,
        engine=engine,
        progress=progress,
    )
    if not transform or data is None:
        return write(data)
    from hudi_table.read.output.exports import extra

    extra("sqlglot", "query")
    from hudi_table.services.transforming.steps import transformed

    with transformed(data, transform, table.schema()) as rows:
        return write(rows)


@checked_call
def upgrade_table(
    uri: str | Path,
    *,
    to: int,
    dry_run: bool = False,
    resume: bool = False,
    readers: Iterable[str] = (),
    savepoint: bool = False,
    storage_options: Mapping[str, str] | None = None,
    lock: Mapping[str, str] | None = None,
) -> VersionResult | VersionPlan:
    """Bring a table to a later table version (`to`: 8 or 9). `dry_run`: only say what would be
    rewritten. `resume`: go on where another process has begun and ended. `readers`: who reads the
    table, as `engine:version`, such as `Trino:476`. `savepoint`: keep the newest write first. All
    writers must have ended; see `docs/how-to/table-versions.md`.

    Raises InvalidOptionError for a version that is not written, InvalidRequestError that names what
    is pending, or a reader that could no longer read the table, UnsupportedTableError for a table
    that the other version would not take.
    """
    ctx = _to_bring(uri, to, 1, storage_options, lock)
    return _brought(ctx, to, dry_run=dry_run, resume=resume, readers=readers, savepoint=savepoint)


@checked_call
def downgrade_table(
    uri: str | Path,
    *,
    to: int,
    dry_run: bool = False,
    resume: bool = False,
    readers: Iterable[str] = (),
    savepoint: bool = False,
    storage_options: Mapping[str, str] | None = None,
    lock: Mapping[str, str] | None = None,
) -> VersionResult | VersionPlan:
    """Bring a table to an earlier table version (`to`: 8 or 6); as `upgrade_table`. Of a
    merge-on-read table that goes to version 6 only the newest version of each file stays."""
    ctx = _to_bring(uri, to, -1, storage_options, lock)
    return _brought(ctx, to, dry_run=dry_run, resume=resume, readers=readers, savepoint=savepoint)


def _to_bring(
    uri: str | Path, to: int, way: int, storage_options: Mapping[str, str] | None, lock: Mapping[str, str] | None
) -> TableContext:
    """The table, which lies on the way to that version: 1 is up, -1 down. Raises
    InvalidRequestError, InvalidOptionError."""
    ctx = open_table(uri, storage_options=storage_options, lock=lock).context
    if (to - ctx.config.version) * way < 0:
        what = "a downgrade" if way > 0 else "an upgrade"
        raise InvalidRequestError(
            f"the table has version {ctx.config.version}; to bring it to {to} is {what}", base_path=ctx.base_path
        )
    unreached = 6 if way > 0 else 9
    if to == unreached:
        raise InvalidOptionError(
            f"to is {to}, and no {'upgrade' if way > 0 else 'downgrade'} ends there: give {'8 or 9' if way > 0 else '8 or 6'}"
        )
    return ctx


def _brought(
    ctx: TableContext, to: int, *, dry_run: bool, resume: bool, readers: Iterable[str], savepoint: bool
) -> VersionResult | VersionPlan:
    from hudi_table.services.upgrading.run import bring_to, plan_version

    named = readers_of(readers)
    if dry_run:
        return plan_version(ctx, to, named)
    return bring_to(ctx, to, resume=resume, readers=named, savepoint=savepoint)
