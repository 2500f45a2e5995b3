"""An ingest: what waits in a source becomes commits that also record that it is in the table.

Of files the engine `Local` makes one in this process, `Spark` one in tasks (`ingest_spark`); of
other sources see the folder `ingests`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from hudi_spark.jobs.batch import Batch, commit_rows, next_batch, told_by_queue
from hudi_spark.jobs.ingests.sifting import Sifting, refuse_on_spark
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import find_table, policy_of
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.arrow_types import normalise
from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import SourceFile, batch_id
from hudi_table.model.job.jobspec import JobResult, JobSpec, SchemaPolicy
from hudi_table.model.table.layouts import has_logical_types
from hudi_table.services.transforming.steps import Chain, Transforms
from hudi_table.sources.files.notified import Notified
from hudi_table.sources.files.reading import file_schema
from hudi_table.sources.refusing import Place
from hudi_table.table.store.clock import SystemClock
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.schema_evolution import evolve
from hudi_table.write.checks.schema_policy import check_rows

Ingesting = Callable[[JobSpec, Progress], JobResult]
_ELSEWHERE = {
    "Kafka": ("hudi_spark.jobs.ingests.kafka", "run_kafka"),
    "Debezium": ("hudi_spark.jobs.ingests.kafka", "run_kafka"),
    "Kinesis": ("hudi_spark.jobs.ingests.kinesis", "run_kinesis"),
    "Jdbc": ("hudi_spark.jobs.ingests.jdbc", "run_jdbc"),
    "Hudi": ("hudi_spark.jobs.ingests.hudi", "run_hudi"),
    "Sql": ("hudi_spark.jobs.ingests.sql", "run_sql"),
    "Custom": ("hudi_spark.jobs.ingests.custom", "run_custom"),
}
"""What is loaded by the jobs alone that need it."""


def run_ingest(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; nothing of the batch is visible then."""
    kind = str(spec.work["source"].get("type"))
    if kind in _ELSEWHERE:
        module, name = _ELSEWHERE[kind]
        return cast("Ingesting", getattr(import_module(module), name))(spec, progress)
    if kind != "Files":
        raise InvalidRequestError(
            f"source type {kind!r} is not read by this release; it reads {', '.join(('Files', *_ELSEWHERE))}"
        )
    start = SystemClock().boot_seconds()
    with told_by_queue(spec) as told:
        done = _taken(spec, told, progress)
        aside = told.taken() if told is not None else ""
    if done is None:
        return JobResult(spec.attempt, "NothingToDo", message=f"every file of the source is in the table{aside}")
    return _result(spec, done, aside, SystemClock().boot_seconds() - start)


@dataclass(frozen=True, slots=True)
class _Taken:
    """What was committed of which files; `sifted`: figures of rows that were not taken."""

    batch: Batch
    commit: CommitResult
    sifted: Mapping[str, float]


def _taken(spec: JobSpec, told: Notified | None, progress: Progress) -> _Taken | None:
    """What was committed of the files that wait, None where none does. Of those that a queue tells
    of without one that cannot be read: it must not keep back the others."""
    while True:
        table = find_table(spec)
        batch = next_batch(spec, table, told)
        if batch is None:
            return None
        try:
            with closing(Sifting(spec)) as sifting:
                return _Taken(batch, _commit(spec, table, batch, sifting, progress), sifting.figures())
        except (InvalidDataError, InvalidSchemaError) as caught:
            error = _misfit(spec, table, batch) or caught
            path = error.path or _named(batch, error.message)
            stops = policy_of(spec) is not None and isinstance(error, InvalidSchemaError)
            if told is None or path is None or stops or not told.set_aside(path, error.message):
                raise error from caught.__cause__
            progress.say(f"set aside: {error.message}")


def _misfit(spec: JobSpec, table: HudiTable | None, batch: Batch) -> InvalidSchemaError | None:
    """What is wrong with the first file whose own columns do not fit the table's, None if there is
    none. It is to blame, wherever it stands among the others."""
    if table is None or batch.transform:
        return None
    known, policy = table.schema(), policy_of(spec)
    logical_types = has_logical_types(table.context.config.version)
    source = batch.taken.source
    with closing(Chain(Transforms.of(()), spec.work["source"].get("columns"))) as chain:
        types = chain.read_as(known)
    for file in batch.files:
        try:
            own = own_columns(file_schema(source.storage, file.path, source.format, source.csv, types))
            stored = normalise(own, known=known, logical_types=logical_types)
            if policy is not None and known is not None:
                check_rows(policy, table.context.config, known, own)
            evolve(known, stored, null_for_missing=True, relaxes=policy is SchemaPolicy.EVOLVE)
        except InvalidDataError:
            continue  # one that cannot be read is told of when its rows are
        except InvalidSchemaError as error:
            return InvalidSchemaError(
                f"source file {file.path}: {error.message}; correct it, or ingest it apart", path=file.path
            )
    return None


def _named(batch: Batch, message: str) -> str | None:
    """The file that a message names: errors of tasks of Spark come back as their words alone."""
    return next((file.path for file in batch.files if f"source file {file.path} " in message), None)


def _commit(spec: JobSpec, table: HudiTable | None, batch: Batch, sifting: Sifting, progress: Progress) -> CommitResult:
    if policy_of(spec) is not None and (error := _misfit(spec, table, batch)) is not None:
        # Of several files one that lacks a column is not to hide behind those that have it.
        raise error
    progress.say(f"reading {counted(len(batch.files), 'file')}, {batch.size / 2**20:.1f} MiB, {_names(batch.files)}")
    if spec.engine == "Local":
        commit = _write_local(spec, table, batch, sifting, progress)
    else:
        refuse_on_spark(spec)
        # Spark is started only by jobs that need it.
        from hudi_spark.jobs.ingest_spark import write_spark
        from hudi_spark.jobs.ingests.sifting_tasks import judging

        with judging(sifting, batch.taken.name, batch.files) as judge:
            commit = write_spark(spec, table, batch, progress, judge)
    if commit.replayed:
        # It went on from the same checkpoint, perhaps with other files: the next attempt takes what is left.
        raise WriteConflictError(f"another attempt has committed files of {spec.work['name']} as {commit.instant}")
    return commit


def _write_local(
    spec: JobSpec, table: HudiTable | None, batch: Batch, sifting: Sifting, progress: Progress
) -> CommitResult:
    known = table.schema() if table is not None else None

    def told(file: SourceFile, rows: int) -> None:
        sifting.place = Place(file.path, file.version, rows + 1)

    read = batch.taken.read(sifting.chain.read_as(known), told)
    found = sifting.through(read.batches, known, batch.taken.name)
    progress.say(f"{batch.operation} into {spec.table['location']} in this process")
    return commit_rows(spec, table, found, batch.extra_metadata, batch.behind)


def _result(spec: JobSpec, done: _Taken, aside: str, seconds: float) -> JobResult:
    batch, commit = done.batch, done.commit
    figures = {
        "recordsInserted": float(commit.rows_inserted),
        "recordsUpdated": float(commit.rows_updated),
        "recordsDeleted": float(commit.rows_deleted),
        "filesConsumed": float(len(batch.files)),
        "bytesRead": float(batch.size),
        "bytesWritten": float(commit.bytes_written),
        "seconds": round(seconds, 3),
        **done.sifted,
    }
    message = (
        f"{counted(commit.rows_inserted, 'row')} inserted, {commit.rows_updated:,} updated, {commit.rows_deleted:,} deleted "
        f"from {counted(len(batch.files), 'file')} in {seconds:.1f} s{aside}"
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
