"""What one ingest from files takes in: those that wait, as one commit, or the oldest of them.

They are decided here and now, from a fresh listing and the newest checkpoint, whatever the operator
saw when it started the job: an attempt that runs twice, or late, finds nothing left to do.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hudi_spark.jobs.decoding import needed_of
from hudi_spark.jobs.stopping import Told, never, until_told
from hudi_spark.jobs.target import index_options, ingest_options, storage_options, target_of
from hudi_table.api import CommitResult, HudiTable
from hudi_table.arguments import OperationName
from hudi_table.errors import InvalidRequestError, WriteConflictError
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, key_of
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.job.ranges import Range
from hudi_table.model.table.config import MergeMode, TableType
from hudi_table.services.compaction.service import DeletesCompaction
from hudi_table.services.ingesting import Behind, behind_held, commit_behind
from hudi_table.services.select_check import check_select
from hudi_table.sources.checkpoints import held_files
from hudi_table.sources.files.digests import store_digests
from hudi_table.sources.files.notified import Notified, notified
from hudi_table.sources.files.reading import Form
from hudi_table.sources.files.source import FileBatch, FilesSource
from hudi_table.sources.files.sqs import Queue
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Engine
from hudi_table.write.operations import WriteRequest

OPERATIONS: dict[str, OperationName] = {"Upsert": "upsert", "Insert": "insert", "BulkInsert": "bulk_insert"}


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of one commit, read from `path`, and what the commit records of them."""

    taken: FileBatch
    path: str
    operation: OperationName
    transform: tuple[Mapping[str, Any], ...]
    checkpoint: Checkpoint
    extra_metadata: dict[str, str]
    behind: Behind

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Files of the batch."""
        return self.taken.files

    @property
    def format(self) -> str:
        """Their format."""
        return self.taken.source.format

    def form(self, known: pa.Schema | None) -> Form:
        """How they are read, where the types of these columns are said."""
        return self.taken.source.form(known)

    def looked_through(self) -> Batch:
        """The same, with the types that all rows of the files have."""
        return replace(self, taken=replace(self.taken, source=replace(self.taken.source, whole=True)))

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return self.taken.size

    @property
    def more(self) -> bool:
        """Whether other files wait."""
        return self.taken.more


def operation_of(spec: JobSpec) -> OperationName:
    """What is done with the rows. Raises InvalidRequestError."""
    operation = spec.work["operation"]
    if operation not in OPERATIONS:
        raise InvalidRequestError(f"operation {operation!r} is none of {', '.join(OPERATIONS)}")
    return OPERATIONS[operation]


@contextlib.contextmanager
def told_by_queue(spec: JobSpec) -> Iterator[Notified | None]:
    """What the queue of a source tells, for as long as the context lasts; None of a source that is
    listed. Raises UnavailableError, AccessDeniedError, InvalidRequestError."""
    source = spec.work["source"]
    settings: Mapping[str, Any] | None = source.get("notifications")
    if settings is None:
        yield None
        return
    if settings.get("type") != "Sqs":
        raise InvalidRequestError(f"source.notifications.type is {settings.get('type')!r}; give Sqs")
    path = str(source["path"])
    queue = Queue(str(settings["queue"]), spec.storage.get("region"), os.environ)
    with notified(queue, open_storage(path, storage_options(spec, path))) as found:
        yield found


def next_batch(spec: JobSpec, table: HudiTable | None, told: Notified | None = None) -> Batch | None:
    """The files that wait, of those that a queue has `told` of if there is one, as one batch; None
    if there are none. Raises InvalidRequestError for a spec it cannot do."""
    work = spec.work
    name, source = str(work["name"]), work["source"]
    operation = operation_of(spec)
    transform: Sequence[Mapping[str, Any]] = work.get("transform", ())
    for each in transform:
        if each.get("sql") is not None:
            check_select(each["sql"])
    path = str(source["path"])
    storage = told.storage if told is not None else open_storage(path, storage_options(spec, path))
    most = int(source.get("maxBytes", 0))
    within, csv = Range.of(source), dict(source.get("csv", {}))
    files = FilesSource(storage, str(source["format"]), name, spec.attempt, csv, told, most, within)
    held = held_files(table.context, name) if table is not None else None
    before = held.checkpoint if held is not None else None
    taken = files.plan(files.discover(), before)
    if taken is None:
        return None
    checkpoint = taken.checkpoint
    if table is not None:
        # The first commit of a table holds all of it: before it nothing may lie there.
        checkpoint = store_digests(table.context, name, before, checkpoint)
    return Batch(
        taken=taken,
        path=path,
        operation=operation,
        transform=tuple(transform),
        checkpoint=checkpoint,
        extra_metadata={key_of(name): checkpoint.to_text()},
        behind=behind_held(name, held),
    )


def write_options(spec: JobSpec, table: HudiTable) -> dict[str, str]:
    """The table's options. A batch without rows commits too: its commit says that the files are
    taken."""
    named = index_options(spec) if table.context.config.index is None else {}
    return {**named, **ingest_options(spec), "hoodie.allow.empty.commit": "true"}


def delete_options(spec: JobSpec, table: HudiTable) -> dict[str, str]:
    """Of deletes that come before a commit, and are none where nothing is deleted."""
    return {**write_options(spec, table), "hoodie.allow.empty.commit": "false"}


def settle_deletes(table: HudiTable, engine: Engine | None = None) -> None:
    """Let rows that come behind deletes stand, whatever the deleted ones were ordered by: where
    event time decides, a row in a log loses to a newer one of the base file in spite of a delete
    between them."""
    config = table.context.config
    if config.type is TableType.MERGE_ON_READ and config.merge_mode is MergeMode.EVENT_TIME:
        DeletesCompaction(table.context).run(engine=engine)


def refuse_taken(ingest: str, commit: CommitResult) -> None:
    """Raise WriteConflictError for a commit that another attempt has made from the same place."""
    if commit.replayed:
        raise WriteConflictError(f"another attempt has committed what comes next of {ingest} as {commit.instant}")


def commit_rows(
    spec: JobSpec,
    table: HudiTable | None,
    rows: pa.RecordBatchReader,
    extra_metadata: Mapping[str, str],
    place: Behind,
    *,
    told: Told = never,
) -> CommitResult:
    """Write rows in this process as one commit that stands behind `place`, into the table of the
    job, made if there was none. Raises what `commit_behind` does, InvalidRequestError, and
    ToldToEndError."""
    with target_of(spec, table, rows.schema) as target:
        request = WriteRequest(
            operation=operation_of(spec),
            options=write_options(spec, target),
            extra_metadata=extra_metadata,
            batch=place.batch,
            follows=place.follows,
        )
        return commit_behind(target.context, until_told(rows, told), request)


def delete_rows(spec: JobSpec, table: HudiTable, rows: pa.RecordBatchReader, place: Behind) -> CommitResult:
    """Delete rows in this process by their keys, whatever their ordering values, as one commit that
    stands behind `place`. Raises what `commit_behind` does."""
    keys = needed_of(spec)
    schema = pa.schema([rows.schema.field(name) for name in keys])
    selected = pa.RecordBatchReader.from_batches(schema, (each.select(keys) for each in rows))
    request = WriteRequest("delete", delete_options(spec, table), batch=place.batch, follows=place.follows)
    done = commit_behind(table.context, selected, request)
    settle_deletes(table)
    return done
