"""From the rows of another table to a new Hudi table, in one commit: all of them or none.

The commit is named by what was imported, so that whoever asks again for the same changes nothing.
It stands only in a table that holds no commit yet: an import that was killed is run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.hashes.javahash import java_string_hash
from hudi_table.errors import (
    InvalidDataError,
    InvalidOptionError,
    InvalidRequestError,
    TableNotFoundError,
    WriteConflictError,
)
from hudi_table.metadata.port import open_context
from hudi_table.model.counts import counted
from hudi_table.model.table.config import TableConfig
from hudi_table.model.timeline.instants import Instant
from hudi_table.services.validating.asked import with_validators
from hudi_table.sources.imports.base import Snapshot
from hudi_table.table.commit import transaction
from hudi_table.table.engine.memory import DEFAULT_MEMORY
from hudi_table.table.rows.spill import GroupedRows
from hudi_table.table.store.ports import Engine, Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import all_writes
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.write.checks.create_table import TableSpec, config_of, create
from hudi_table.write.checks.follows import Follows
from hudi_table.write.checks.table_arguments import names_of
from hudi_table.write.keygen.table_keys import TableKeys
from hudi_table.write.operations import BATCH_KEY, WriteRequest, write
from hudi_table.write.result import CommitResult, replayed_by

SOURCE_KEY: Final = "lakeops.import.source"
VERSION_KEY: Final = "lakeops.import.version"
DUPLICATES: Final = {"refuse": "insert_overwrite_table", "newest": "upsert"}
"""What becomes of rows with one key, and the operation that does so. The first conflicts with
whatever else is written meanwhile, the second looks keys up: neither leaves a key twice beside
another writer."""
_GROUPS = 256
_KEY, _PATH = "key", "path"


class Rows(Protocol):
    """What is asked for keys that come twice: the part of a `Snapshot` that this takes."""

    @property
    def place(self) -> str:
        """See `Snapshot`."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Snapshot`."""
        ...


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """What `import_snapshot` is asked. `spec`: the table that is made, whose schema, and whose
    record key and partitions where it has none, are the snapshot's; its options go to the write
    too. `opened`: what is done with the table once it is there, such as to give it its lock."""

    spec: TableSpec
    duplicates: str = "refuse"
    max_memory: int = DEFAULT_MEMORY
    opened: Callable[[TableContext], TableContext] = field(default=lambda ctx: ctx)


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What an import did. `rows_read` are those of `version` of the source, `rows` those of the
    table: fewer where only the newest of a key was kept. `replayed`: they were there already."""

    table: str
    instant: str
    source: str
    form: str
    version: str
    rows_read: int
    rows: int
    files: int
    partitions: int
    replayed: bool


def described(snapshot: Snapshot, spec: TableSpec) -> TableSpec:
    """The spec with what the snapshot tells where the spec leaves it out. Raises
    InvalidOptionError where neither names a record key."""
    partition_by = list(snapshot.partition_by) if spec.partition_by is None else spec.partition_by
    record_key = names_of(spec.record_key or ()) or snapshot.record_key
    if not record_key:
        raise InvalidOptionError(
            f"record_key is missing, and {snapshot.place} does not say which columns identify a row: name them"
        )
    return replace(spec, schema=snapshot.schema, record_key=list(record_key), partition_by=partition_by)


def import_snapshot(storage: Storage, snapshot: Snapshot, request: ImportRequest, engine: Engine) -> ImportResult:
    """Create the table at `storage` and write the snapshot's rows.

    Where a key that comes twice is refused, keys are looked through before anything is written.
    Raises InvalidDataError, InvalidOptionError, InvalidRequestError if the table holds other rows,
    and what a write raises; then the table holds no row.
    """
    spec = described(snapshot, request.spec)
    config = config_of(spec, storage.base_path)
    if request.duplicates not in DUPLICATES:
        raise InvalidOptionError(f"duplicates is {request.duplicates!r}: give {' or '.join(DUPLICATES)}")
    if request.duplicates == "newest" and not config.ordering_fields:
        raise InvalidOptionError("duplicates is 'newest', and no ordering_fields say which row that is: name them")
    done = _done_before(storage, snapshot)
    if request.duplicates == "refuse" and done is None:
        refuse_repeated(snapshot, config, request.max_memory)
    ctx = request.opened(create(storage, spec, if_exists="open"))
    rows = _Counted(snapshot)
    result = _written(ctx, rows, snapshot, request, engine)
    return ImportResult(
        table=storage.base_path,
        instant=result.instant,
        source=snapshot.place,
        form=snapshot.form,
        version=snapshot.version,
        rows_read=rows.count,
        rows=result.rows_inserted,
        files=result.files_written,
        partitions=len(result.partitions),
        replayed=result.replayed,
    )


def _batch_of(snapshot: Snapshot) -> str:
    source = f"{snapshot.form}\n{snapshot.place}\n{snapshot.version}"
    return f"import@{hashlib.sha256(source.encode()).hexdigest()[:20]}"


def _done_before(storage: Storage, snapshot: Snapshot) -> Instant | None:
    """The commit that holds the snapshot, on the timeline or archived."""
    try:
        ctx = open_context(storage)
    except TableNotFoundError:
        return None
    return write_of(ctx, load_timeline(ctx), _batch_of(snapshot))


def write_of(ctx: TableContext, timeline: Timeline, batch: str) -> Instant | None:
    """The commit that carries the batch's name, on the timeline or archived."""
    found = (instant for instant, said in all_writes(ctx, timeline) if said.extra_metadata.get(BATCH_KEY) == batch)
    return next(found, None)


def _written(
    ctx: TableContext, rows: _Counted, snapshot: Snapshot, request: ImportRequest, engine: Engine
) -> CommitResult:
    asked = WriteRequest(
        DUPLICATES[request.duplicates],
        request.spec.options,
        {SOURCE_KEY: snapshot.place, VERSION_KEY: f"{snapshot.form} {snapshot.version}"},
        _batch_of(snapshot),
        max_memory=request.max_memory,
    )
    # What follows stands behind the commit by which a table is founded, which holds no rows; and behind an import that was
    # decided and killed, which counts.
    transaction.begin(ctx, transaction.write_action(ctx.config)).withdraw()
    timeline = load_timeline(ctx)
    done = write_of(ctx, timeline, asked.batch)
    if done is not None:
        return replayed_by(done, asked.operation)
    if any(metadata.paths for _, metadata in all_writes(ctx, timeline)):
        raise _not_empty(ctx)
    follows = Follows(_any_commit, timeline.commits[-1].time)
    try:
        return write(ctx, rows.reader(), with_validators(replace(asked, follows=follows)), engine)
    except WriteConflictError as error:
        raise _not_empty(ctx) from error


def _any_commit(metadata: Mapping[str, str]) -> str:
    return metadata.get(BATCH_KEY) or "a commit"


def _not_empty(ctx: TableContext) -> InvalidRequestError:
    return InvalidRequestError(
        f"the table at {ctx.base_path} holds rows of other writes already: import into a place of its own",
        base_path=ctx.base_path,
    )


class _Counted:
    """The rows of a snapshot, counted on their way."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.count = 0

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._snapshot.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._snapshot.batches(self._snapshot.schema.names):
            self.count += len(batch)
            yield batch


def refuse_repeated(snapshot: Rows, config: TableConfig, max_memory: int) -> None:
    """Raise InvalidDataError if two rows have one record key, within a partition unless the index
    is one of the whole table. Keys past `max_memory` bytes wait on disk."""
    keys = TableKeys.of(config)
    everywhere = config.index is not None and config.index.type.is_global
    wanted = dict.fromkeys([*keys.columns, *(() if everywhere else _partition_columns(config))])
    with GroupedRows(max_memory) as groups:
        for batch in snapshot.batches(list(wanted)):
            found = keys.record_keys(batch)
            paths = pa.nulls(len(batch), pa.string()) if everywhere else keys.partition_paths(batch).dictionary_decode()
            codes = java_string_hash(found).view(np.uint32) % _GROUPS
            groups.add(pa.record_batch([found, paths], [_KEY, _PATH]), codes.astype(np.int32))
        for code in range(_GROUPS):
            _refuse(groups.read(code), snapshot)


def _partition_columns(config: TableConfig) -> Sequence[str]:
    return [name.partition(".")[0] for name in config.partition_fields]


def _refuse(batches: Iterator[pa.RecordBatch], snapshot: Rows) -> None:
    held = list(batches)
    if not held:
        return
    counts = pa.Table.from_batches(held).group_by([_KEY, _PATH]).aggregate([([], "count_all")])
    if counts.num_rows == sum(len(batch) for batch in held):
        return
    repeated = counts.filter(pc.greater(counts["count_all"], 1))
    first = repeated.slice(0, 1).to_pylist()[0]
    where = f" in the partition {first[_PATH]!r}" if first[_PATH] else ""
    raise InvalidDataError(
        f"{counted(first['count_all'], 'row')} of {snapshot.place} have the record key {first[_KEY]!r}{where}: name the columns "
        "that identify a row, or keep the newest of such rows with duplicates=newest"
    )
