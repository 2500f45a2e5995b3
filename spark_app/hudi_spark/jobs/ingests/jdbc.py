"""An ingest from a database, in this process, without a JVM: what waits becomes one commit that
also says how far it is."""

from __future__ import annotations

import contextlib
import os

from hudi_spark.jobs.batch import commit_rows, refuse_taken
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.tally import told_of
from hudi_spark.jobs.target import find_table
from hudi_table.api import CommitResult, HudiTable
from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.job.marks import Mark
from hudi_table.services.ingesting import behind_held
from hudi_table.services.transforming.steps import Chain, Transforms
from hudi_table.sources.checkpoints import Held, held_mark
from hudi_table.sources.jdbc.settings import JdbcSettings
from hudi_table.sources.jdbc.source import JdbcRows, waiting_rows
from hudi_table.table.store.clock import SystemClock


def run_jdbc(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; nothing of it is visible then."""
    clock = SystemClock()
    start, work = clock.boot_seconds(), spec.work
    settings = JdbcSettings.of(work["source"])
    if settings.column and work["operation"] != "Upsert":
        raise InvalidRequestError(
            "jdbc.incremental reads some rows again, which only operation Upsert takes for the same"
        )
    table, name = find_table(spec), str(work["name"])
    held = held_mark(table.context, name) if table is not None else None
    before = held.checkpoint if held is not None else None
    chain = Chain(Transforms.of(work.get("transform", ())), work["source"].get("columns"))
    with (
        contextlib.closing(chain),
        waiting_rows(settings, os.environ, chain.columns, before, spec.attempt) as waiting,
    ):
        if waiting is None:
            return JobResult(spec.attempt, "NothingToDo", message="what the database holds is in the table")
        progress.say(f"reading {counted(waiting.count, 'row')} of the database at {settings.place}")
        commit = _commit(spec, table, waiting, held, chain)
    refuse_taken(name, commit)
    return _result(spec, waiting, commit, clock.boot_seconds() - start)


def _commit(
    spec: JobSpec, table: HudiTable | None, waiting: JdbcRows, held: Held[Mark] | None, chain: Chain
) -> CommitResult:
    known = table.schema() if table is not None else None
    rows = chain.apply(waiting.batches, known)
    name = str(spec.work["name"])
    place = behind_held(name, held)
    return commit_rows(spec, table, rows, {key_of(name): waiting.checkpoint.to_text()}, place)


def _result(spec: JobSpec, waiting: JdbcRows, commit: CommitResult, seconds: float) -> JobResult:
    words, figures = f"{counted(waiting.read, 'row')} read", {"rowsRead": float(waiting.read)}
    return told_of(commit).result(spec, words, waiting.checkpoint.batch, seconds, figures)
