"""An ingest: what waits in a source becomes commits that also record that it is in the table.

Of files the engine `Local` makes them in this process, `Spark` in tasks (`ingest_spark`): one of
all that wait, or of `maxBytes` each; mode `Continuous` looks again each `commitInterval`. Of other
sources see the folder `ingests`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

from hudi_spark.jobs.batch import Batch, commit_rows, next_batch, told_by_queue
from hudi_spark.jobs.ingests.polled import Polling, Taken, check_range, run_polled
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import refuse_apart
from hudi_spark.jobs.sifting.rows import Sifting
from hudi_spark.jobs.stopping import Told
from hudi_spark.jobs.target import policy_of
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.arrow_types import normalise
from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import SourceFile, batch_id
from hudi_table.model.job.jobspec import JobResult, JobSpec, SchemaPolicy
from hudi_table.model.job.ranges import Range
from hudi_table.model.table.layouts import has_logical_types
from hudi_table.services.transforming.steps import Chain, Transforms
from hudi_table.sources.files.notified import Notified
from hudi_table.sources.files.reading import file_schema
from hudi_table.sources.refusing import Place
from hudi_table.write.checks.reserved_columns import own_columns
from hudi_table.write.checks.schema_evolution import evolve
from hudi_table.write.checks.schema_policy import check_rows

Ingesting = Callable[[JobSpec, Progress], JobResult]
_ELSEWHERE = {
    "Kafka": ("hudi_spark.jobs.ingests.kafka.attempt", "run_kafka"),
    "Debezium": ("hudi_spark.jobs.ingests.kafka.attempt", "run_kafka"),
    "Kinesis": ("hudi_spark.jobs.ingests.kinesis", "run_kinesis"),
    "Jdbc": ("hudi_spark.jobs.ingests.jdbc", "run_jdbc"),
    "Hudi": ("hudi_spark.jobs.ingests.hudi", "run_hudi"),
    "Sql": ("hudi_spark.jobs.ingests.sql", "run_sql"),
    "Custom": ("hudi_spark.jobs.ingests.custom", "run_custom"),
}
"""What is loaded by the jobs alone that need it."""


def run_ingest(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    kind = str(spec.work["source"].get("type"))
    if kind in _ELSEWHERE:
        module, name = _ELSEWHERE[kind]
        return cast("Ingesting", getattr(import_module(module), name))(spec, progress)
    if kind != "Files":
        raise InvalidRequestError(
            f"source type {kind!r} is not read by this release; it reads {', '.join(('Files', *_ELSEWHERE))}"
        )
    within = Range.of(spec.work["source"])
    check_range(spec, within)
    if within is not None and spec.work["source"].get("notifications") is not None:
        raise InvalidRequestError("a range of files is listed: leave notifications out")
    looking = _Looking(spec, progress)
    return run_polled(spec, progress, looking.ask, looking.result, looking.let_go)


@dataclass(slots=True)
class _Looking:
    """An attempt at an ingest from files. What a queue has told is held until all of it is in the
    table: messages that were given back in between would come again, and count as received."""

    spec: JobSpec
    progress: Progress
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _told: Notified | None = None
    _aside: str = ""

    def ask(self, table: HudiTable | None, told: Told) -> Taken | str:
        """See `Ask`."""
        if self._told is None:
            self._told = self._held.enter_context(told_by_queue(self.spec))
        done = _taken(self.spec, self._told, table, self.progress, told)
        more = done is not None and done[0].more
        if not more:
            self._aside = self._told.taken() if self._told is not None else ""
            self.let_go()
        if done is None:
            return f"every file of the source is in the table{self._aside}"
        batch, commit, sifted = done
        read = {"filesConsumed": float(len(batch.files)), "bytesRead": float(batch.size), **sifted}
        return Taken(commit, batch_id(str(self.spec.work["name"]), batch.files), read, more)

    def result(self, driver: Polling, seconds: float) -> JobResult:
        """Of a run that has committed."""
        tally, read = driver.tally, driver.read
        message = (
            f"{counted(tally.inserted, 'row')} inserted, {tally.updated:,} updated, {tally.deleted:,} deleted "
            f"from {counted(int(read['filesConsumed']), 'file')} in {seconds:.1f} s{self._aside}"
        )
        return tally.told(self.spec, message, driver.checkpoint, seconds, {**read, "commits": float(tally.count)})

    def let_go(self) -> None:
        """Give back what a queue has told and is not in the table."""
        self._told = None
        self._held.close()


def _taken(
    spec: JobSpec, queue: Notified | None, table: HudiTable | None, progress: Progress, told: Told
) -> tuple[Batch, CommitResult, dict[str, float]] | None:
    """What was committed of the files that wait, None where none does. Of those that a queue tells
    of without one that cannot be read: it must not keep back the others."""
    whole = False
    while True:
        batch = next_batch(spec, table, queue)
        if batch is None:
            return None
        if whole:
            batch = batch.looked_through()
        try:
            with contextlib.closing(Sifting(spec)) as sifting:
                return batch, _commit(spec, table, batch, sifting, progress, told), sifting.figures()
        except (InvalidDataError, InvalidSchemaError) as caught:
            error = _misfit(spec, table, batch) or caught
            path = error.path or _named(batch, error.message)
            if batch.format == "json" and isinstance(error, InvalidDataError) and path is not None and not whole:
                # A later row may have what the first ones do not: their types are those of all rows then.
                progress.say(f"looking at all rows of the files for their types: {error.message}")
                whole = True
                continue
            stops = policy_of(spec) is not None and isinstance(error, InvalidSchemaError)
            if queue is None or path is None or stops or not queue.set_aside(path, error.message):
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
    with contextlib.closing(Chain(Transforms.of(()), spec.work["source"].get("columns"))) as chain:
        types = chain.read_as(known)
    for file in batch.files:
        try:
            own = own_columns(file_schema(source.storage, file.path, source.form(types)))
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


def _commit(
    spec: JobSpec, table: HudiTable | None, batch: Batch, sifting: Sifting, progress: Progress, told: Told
) -> CommitResult:
    if policy_of(spec) is not None and (error := _misfit(spec, table, batch)) is not None:
        # Of several files one that lacks a column is not to hide behind those that have it.
        raise error
    progress.say(f"reading {counted(len(batch.files), 'file')}, {batch.size / 2**20:.1f} MiB, {_names(batch.files)}")
    if spec.engine == "Local":
        commit = _write_local(spec, table, batch, sifting, progress, told)
    else:
        refuse_apart(spec.work.get("transform", ()))
        # Spark is started only by jobs that need it.
        from hudi_spark.jobs.ingest_spark import write_spark
        from hudi_spark.jobs.sifting.tasks import judging

        with judging(sifting, batch.taken.name, batch.files) as judge:
            commit = write_spark(spec, table, batch, progress, judge)
    if commit.replayed:
        # It went on from the same checkpoint, perhaps with other files: the next attempt takes what is left.
        raise WriteConflictError(f"another attempt has committed files of {spec.work['name']} as {commit.instant}")
    return commit


def _write_local(
    spec: JobSpec, table: HudiTable | None, batch: Batch, sifting: Sifting, progress: Progress, told: Told
) -> CommitResult:
    known = table.schema() if table is not None else None

    def begun(file: SourceFile, rows: int) -> None:
        sifting.place = Place(file.path, file.version, rows + 1)

    read = batch.taken.read(sifting.chain.read_as(known), begun)
    found = sifting.through(read.batches, known, batch.taken.name)
    progress.say(f"{batch.operation} into {spec.table['location']} in this process")
    return commit_rows(spec, table, found, batch.extra_metadata, batch.behind, told=told)


def _names(files: tuple[SourceFile, ...]) -> str:
    return files[0].path if len(files) == 1 else f"{files[0].path} … {files[-1].path}"
