"""`df.write.format("hudi")` and `INSERT`: rows through Spark's data source interface, as one
commit.

A data source gets its rows as Spark happens to hold them and cannot ask for those of one file group
together. So tasks stage their rows beside the table, and when all have, the driver's side reads
them as one stream and writes them as `write_hudi` does, in bounded memory. Where there is no table
it makes the one that Hudi's options describe, at that moment and not before. A job that dies shows
nothing; what it staged goes with the next write or clean. `hudi_spark.write` shuffles rows to their
file groups instead and writes in all tasks at once: for many rows it is faster, in its result the
same.

Facts (Hudi 0.15.0): the operation is upsert unless `hoodie.datasource.write.operation` says
otherwise; mode overwrite replaces all rows, but for `insert_overwrite`; delete goes with mode
append alone; columns named like Hudi's five are dropped. Here they are where they are as a read
returns them, and refused else.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql.types import StructType

from hudi_spark.arrow_schemas import written_schema
from hudi_spark.datasource.format_options import FormatOptions
from hudi_spark.worker import set_up_worker
from hudi_table.api import HudiTable
from hudi_table.errors import InvalidOptionError, InvalidRequestError, InvariantError, TableNotFoundError
from hudi_table.metadata.port import HudiMetadata, open_context
from hudi_table.model.options.known import admit, explicit_option
from hudi_table.model.options.lock_settings import names_lock
from hudi_table.model.options.write_options import OPERATION, PARTITIONS_TO_DELETE, Operation, operation_option
from hudi_table.model.table.index_properties import names_in
from hudi_table.services.inline import check_inline
from hudi_table.services.validating.asked import with_validators
from hudi_table.table.commit.beside.locking import locked
from hudi_table.table.rows.staged import discard_staged, stage_rows, staged_rows, sweep_staged
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.create_table import TableSpec, config_of, create, refuse_other_content
from hudi_table.write.checks.request import parse_operation, prepare
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.table_options import PARTITIONS
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.operations import WriteRequest, begin

_MODES = {"append": "append", "overwrite": "overwrite", "ignore": "ignore", "errorifexists": "error", "error": "error"}
_NARROWING = ("columns", "filter", "asof", "as.of.instant", "timestampasof", "query", "since", "until", "fullscan")
_COMBINE = "hoodie.combine.before.insert"
_PARTITION_PATH = "hoodie.datasource.write.partitionpath.field"


@dataclass
class Staged(ds.WriterCommitMessage):
    """What one task has staged: a file with so many rows, or None for no rows; `query` is the id of
    the stream that it belongs to."""

    path: str | None
    query: str = ""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class SparkWrite:
    """A write as options and mode describe it. `mode`: append, overwrite, ignore or error;
    `partitions`: to be dropped, perhaps with `*`."""

    operation: Operation
    mode: str
    options: Mapping[str, str]
    partitions: tuple[str, ...] = ()
    batch: str = ""

    @classmethod
    def of(cls, spark_options: FormatOptions, overwrite: bool) -> SparkWrite:
        """Raises InvalidRequestError for a source that shows a part of the table and for a mode
        that does not go with the operation."""
        admit(spark_options.hudi)
        narrowed = [name for name in _NARROWING if name in spark_options.own]
        if narrowed:
            raise InvalidRequestError(f"the option {narrowed[0]} makes this a view of a part: write without it")
        name = spark_options.one_of(
            "the operation", own=spark_options.own.get("operation"), hudi=spark_options.hudi.get(OPERATION)
        )
        operation = parse_operation((name or operation_option(None, spark_options.hudi)).strip().lower())
        if spark_options.hudi.get(PARTITIONS_TO_DELETE, "").strip() and operation is not Operation.DELETE_PARTITION:
            raise InvalidRequestError(
                f"{PARTITIONS_TO_DELETE} is of operation delete_partition, and this is {operation}: leave it out"
            )
        mode = _mode(spark_options.own.get("savemode"), overwrite)
        partitions = _partition_option(spark_options)
        options = partitions | {
            key: value for key, value in spark_options.hudi.items() if key not in (OPERATION, PARTITIONS_TO_DELETE)
        }
        if mode == "overwrite":
            if operation in (Operation.DELETE, Operation.DELETE_PARTITION):
                raise InvalidRequestError(f"operation {operation} goes with mode append alone, not with overwrite")
            if operation is Operation.UPSERT:
                options.setdefault(_COMBINE, "true")
            operation = operation if operation.replaces else Operation.INSERT_OVERWRITE_TABLE
        return cls(
            operation,
            mode,
            options,
            names_in(spark_options.hudi.get(PARTITIONS_TO_DELETE, "")),
            spark_options.own.get("batch", ""),
        )


def _partition_option(spark_options: FormatOptions) -> dict[str, str]:
    """What `partitionBy` says, as the option of Hudi's that says it; nothing if that is given.
    Raises InvalidOptionError where they differ: Hudi goes by the option, in silence."""
    names = spark_options.own.get("partitionby")
    named = explicit_option(spark_options.hudi, PARTITIONS)
    if names and named and [name.partition(":")[0] for name in names_in(named)] != list(names_in(names)):
        raise InvalidOptionError(
            f"partitionBy names {names}, and {_PARTITION_PATH} is {named}: leave one of the two out"
        )
    return {_PARTITION_PATH: names} if names and named is None else {}


def _mode(name: str | None, overwrite: bool) -> str:
    """The save mode. Spark tells overwrite or not, the option `saveMode` the ones that it refuses
    itself."""
    mode_of_spark = "overwrite" if overwrite else "append"
    if name is None:
        return mode_of_spark
    mode = _MODES.get(name.strip().lower())
    if mode is None:
        raise InvalidOptionError(f"option 'saveMode': {name!r} is none of append, overwrite, ignore, errorifexists")
    if overwrite and mode != "overwrite":
        raise InvalidOptionError(f"option 'saveMode' is {name!r} and the mode is overwrite; leave one out")
    return mode


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go and how: all that tasks and the one who commits need; picklable.

    `schema` has the columns of the rows without Hudi's own. `skips`: there is a table, and mode
    ignore leaves it alone.
    """

    write: SparkWrite
    open_storage: Callable[[], Storage] = field(repr=False)
    schema: pa.Schema
    token: str
    skips: bool

    @classmethod
    def of(cls, spark_options: FormatOptions, schema: StructType, overwrite: bool) -> Target:
        """Checked as far as it can be without rows. Raises what `write_hudi` and `create_table`
        raise."""
        write = SparkWrite.of(spark_options, overwrite)
        arrow = written_schema(schema)
        columns = own_columns(arrow)
        storage = open_storage(spark_options.path, spark_options.storage)
        try:
            ctx: TableContext | None = open_context(storage)
        except TableNotFoundError:
            ctx = None
            _check_new(storage, columns, write)
        if ctx is not None:
            _check_there(ctx, columns, write)
        sweep_staged(storage)
        return cls(write, storage.reopen(), columns, uuid.uuid4().hex, ctx is not None and write.mode == "ignore")

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """The rows of one task, in a file of the attempt's own."""
        set_up_worker()
        task = TaskContext.get()
        query = "" if task is None else task.getLocalProperty("sql.streaming.queryId") or ""
        if self.skips:
            return Staged(None, query)
        # Retries and speculative attempts of a task have a file each, of which the message of the one that counts names its own.
        name = f"{self.token}-{uuid.uuid4().hex}.arrow"
        counted = 0

        def counting() -> Iterator[pa.RecordBatch]:
            nonlocal counted
            for each in batches:
                counted += each.num_rows
                yield each

        path = stage_rows(self.open_storage(), name, counting(), self.schema)
        return Staged(path, query, counted)

    def commit(self, messages: Sequence[Staged], batch: str, extra: Mapping[str, str] | None = None) -> None:
        """Write what was staged, and make the table if there is none; `extra` goes into the commit.
        Raises what `write_hudi` and `create_table` raise."""
        if self.skips:
            return
        storage = self.open_storage()
        table = self._table(storage)
        if table is None:
            return
        rows = staged_rows(storage, [message.path for message in messages if message.path], self.schema)
        operation, options = self.write.operation, self.write.options
        if operation is not Operation.DELETE_PARTITION:
            table.write(rows, operation=operation, options=options, batch=batch, extra_metadata=extra)
            return
        partitions = _matching(table.context, self.write.partitions) or _partitions_of(table.context, rows)
        if partitions:
            table.write(
                None, operation=operation, options=options, batch=batch, partitions=partitions, extra_metadata=extra
            )
        elif batch:
            # The batch after it asks whether this one has been.
            held = {key: value for key, value in options.items() if names_lock(key)}
            table.write(
                self.schema.empty_table(), operation=Operation.UPSERT, options=held, batch=batch, extra_metadata=extra
            )

    def _table(self, storage: Storage) -> HudiTable | None:
        """The table, made where there is none; None where mode ignore finds one."""
        try:
            found = open_context(storage)
        except TableNotFoundError:
            spec = TableSpec(self.schema, options=self.write.options)
            alone = self.write.mode in ("error", "ignore")
            return HudiTable(create(storage, spec, if_exists="error" if alone else "open"))
        if self.write.mode == "error":
            raise _exists(found)
        return None if self.write.mode == "ignore" else HudiTable(found)


def _check_new(storage: Storage, schema: pa.Schema, write: SparkWrite) -> None:
    if write.operation in (Operation.DELETE, Operation.DELETE_PARTITION):
        raise TableNotFoundError(f"there is no Hudi table at {storage.base_path} to delete from; check the path")
    refuse_other_content(storage)
    config = config_of(TableSpec(schema, options=write.options), storage.base_path)
    prepare(config, write.operation, write.options, None, schema)
    check_inline(TableContext(storage, config, SystemClock(), HudiMetadata()), write.options)


def _check_there(ctx: TableContext, schema: pa.Schema, write: SparkWrite) -> None:
    if write.mode == "error":
        raise _exists(ctx)
    if write.mode == "ignore":
        return
    ctx = locked(ctx, write.options)
    check_inline(ctx, write.options)
    if write.operation is not Operation.DELETE_PARTITION:
        begin(ctx, schema.empty_table(), with_validators(WriteRequest(write.operation, write.options)))
    elif write.partitions:
        partitions = _matching(ctx, write.partitions)
        begin(ctx, None, with_validators(WriteRequest(write.operation, write.options, partitions=partitions)))


def _exists(ctx: TableContext) -> InvalidRequestError:
    return InvalidRequestError(
        f"there is a table {ctx.config.name!r} at {ctx.base_path} already, and the mode is errorifexists: use append or overwrite",
        base_path=ctx.base_path,
    )


def _matching(ctx: TableContext, names: Sequence[str]) -> list[str]:
    """The partitions that are named; `*` stands for any text."""
    if not any("*" in name for name in names):
        return list(names)
    slices = with_relists(ctx, lambda: FileSystemView(ctx, load_timeline(ctx)).latest_slices())
    known = sorted({item.partition for item in slices})
    patterns = [re.compile(".*".join(map(re.escape, name.split("*")))) for name in names]
    found = [name for name in known if any(pattern.fullmatch(name) for pattern in patterns)]
    if not found:
        raise InvalidRequestError(
            f"{PARTITIONS_TO_DELETE}={','.join(names)} matches no partition; there are {', '.join(known[:5]) or 'none'}"
        )
    return found


def _partitions_of(ctx: TableContext, rows: pa.RecordBatchReader) -> list[str]:
    """The partitions that the rows lie in."""
    keys = TableKeys.of(ctx.config)
    found: set[str] = set()
    for batch in rows:
        found.update(pc.unique(keys.partition_paths(batch)).to_pylist())
    return sorted(found)


class RowsWriter(ds.DataSourceArrowWriter):
    """Commits the rows of all tasks at once.

    Options: `operation` (upsert), `batch`, `saveMode`, `storage.…`, and keys `hoodie.…`, whose
    `hoodie.datasource.write.operation` says the same.
    """

    def __init__(self, spark_options: FormatOptions, schema: StructType, overwrite: bool) -> None:
        if "firstbatch" in spark_options.own:
            raise InvalidOptionError("firstBatch goes with writeStream: leave it out")
        self._target = Target.of(spark_options, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of one task."""
        return self._target.stage(iterator)

    def commit(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Write and commit. Raises what `hudi_table.write_hudi` raises."""
        try:
            self._target.commit(staged(messages), self._target.write.batch)
        finally:
            self._discard()

    def abort(self, messages: list[ds.WriterCommitMessage | None]) -> None:
        """Delete what was staged."""
        del messages
        self._discard()

    def _discard(self) -> None:
        discard_staged(self._target.open_storage(), self._target.token)


def staged(messages: Sequence[ds.WriterCommitMessage | None]) -> list[Staged]:
    """The messages of tasks that all succeeded. Raises InvariantError if one did not."""
    found = [message for message in messages if isinstance(message, Staged)]
    if len(found) < len(messages):
        raise InvariantError(
            f"{len(messages) - len(found)} of {len(messages)} tasks have staged nothing, and the write is to commit"
        )
    return found
