"""An ingest from files: the waiting files become one commit that also records that they are in the table.

The files are decided here and now, from a fresh listing and the newest checkpoint, whatever the operator saw when it
started the job: an attempt that runs twice, or late, finds nothing left to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hudi_spark.jobs.local_files import read_files
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import find_table, storage_options, target_of
from hudi_table.api import CommitResult, HudiTable, write_hudi
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import (
    Checkpoint,
    SourceFile,
    advance,
    batch_id,
    key_of,
    waiting,
)
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.services.file_ingest import current_checkpoint, list_source, settled
from hudi_table.services.select_check import check_select
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.opening import open_storage

OPERATIONS = {"Upsert": "upsert", "Insert": "insert", "BulkInsert": "bulk_insert"}


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of one commit: `path` and `format` of their source, and what the commit records of them."""

    path: str
    format: str
    csv: dict[str, object]
    files: tuple[SourceFile, ...]
    operation: str
    sql: str | None
    checkpoint: Checkpoint
    extra_metadata: dict[str, str]

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(f.size for f in self.files)


def run_ingest(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; nothing is visible then."""
    clock = SystemClock()
    start = clock.boot_seconds()
    table = find_table(spec)
    batch = next_batch(spec, table)
    if batch is None:
        return JobResult(spec.attempt, "NothingToDo", message="every file of the source is in the table")
    progress.say(f"reading {len(batch.files)} files, {batch.size / 2**20:.1f} MiB, {_names(batch.files)}")
    if spec.engine == "Local":
        if batch.sql is not None:
            raise InvalidRequestError("a transform is SQL and needs engine Spark")
        commit = _write_local(spec, table, batch, progress)
    else:
        # Spark is started only by jobs that need it.
        from hudi_spark.jobs.ingest_spark import write_spark

        commit = write_spark(spec, table, batch, progress)
    return _result(spec, batch, commit, clock.boot_seconds() - start)


def next_batch(spec: JobSpec, table: HudiTable | None) -> Batch | None:
    """The files that wait, as one batch; None if there are none. Raises InvalidRequestError for a spec it cannot do."""
    work = spec.work
    name, source = str(work["name"]), work["source"]
    if source.get("type") != "Files":
        raise InvalidRequestError(f"source type {source.get('type')!r} is not read by this release; it reads Files")
    if work["operation"] not in OPERATIONS:
        raise InvalidRequestError(f"operation {work['operation']!r} is none of {', '.join(OPERATIONS)}")
    transforms: Sequence[dict[str, str]] = work.get("transform", ())
    if len(transforms) > 1:
        raise InvalidRequestError(f"{len(transforms)} transforms are given, at most one SELECT is taken")
    for transform in transforms:
        check_select(transform["sql"])
    path = str(source["path"])
    listing = list_source(open_storage(path, storage_options(spec, path)))
    before = current_checkpoint(table.context, name) if table is not None else None
    files = waiting(listing, before)
    if not files:
        return None
    checkpoint = advance(before, name, spec.attempt, files, listing)
    if table is not None:
        # The first commit of a table holds all of it: before it nothing may lie there.
        checkpoint = settled(table.context, name, before, checkpoint)
    return Batch(
        path=path,
        format=str(source["format"]),
        csv=dict(source.get("csv", {})),
        files=files,
        operation=OPERATIONS[work["operation"]],
        sql=transforms[0]["sql"] if transforms else None,
        checkpoint=checkpoint,
        extra_metadata={key_of(name): checkpoint.to_text()},
    )


def write_options(spec: JobSpec) -> dict[str, str]:
    """The table's options. A batch without rows commits too: its commit says that the files are taken."""
    return {**spec.table.get("options", {}), "hoodie.allow.empty.commit": "true"}


def _write_local(spec: JobSpec, table: HudiTable | None, batch: Batch, progress: Progress) -> CommitResult:
    storage = open_storage(batch.path, storage_options(spec, batch.path))
    schema, rows = read_files(
        storage, batch.files, batch.format, batch.csv, table.schema() if table is not None else None
    )
    progress.say(f"{batch.operation} into {spec.table['location']} in this process")
    with target_of(spec, table, schema) as target:
        return write_hudi(
            target,
            rows,
            operation=batch.operation,
            options=write_options(spec),
            extra_metadata=batch.extra_metadata,
            batch=batch.checkpoint.batch,
        )


def _result(spec: JobSpec, batch: Batch, commit: CommitResult, seconds: float) -> JobResult:
    figures = {
        "recordsInserted": float(commit.rows_inserted),
        "recordsUpdated": float(commit.rows_updated),
        "recordsDeleted": float(commit.rows_deleted),
        "filesConsumed": float(len(batch.files)),
        "bytesRead": float(batch.size),
        "bytesWritten": float(commit.bytes_written),
        "seconds": round(seconds, 3),
    }
    message = (
        f"{commit.rows_inserted:,} rows inserted, {commit.rows_updated:,} updated, {commit.rows_deleted:,} deleted "
        f"from {len(batch.files)} files in {seconds:.1f} s"
    )
    return JobResult(
        spec.attempt,
        "Succeeded",
        message=message,
        instants=(commit.instant,) if commit.instant else (),
        figures=figures,
        checkpoint=batch_id(str(spec.work["name"]), batch.files),
    )


def _names(files: tuple[SourceFile, ...]) -> str:
    return files[0].path if len(files) == 1 else f"{files[0].path} … {files[-1].path}"
