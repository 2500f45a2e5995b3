"""An ingest from a database, in this process, without a JVM, or in tasks of Spark (`jdbc_tasks`):
what waits becomes one commit that also says how far it is; in mode `Continuous` the database is
asked again each `commitInterval`."""

from __future__ import annotations

import contextlib
import os

from hudi_spark.jobs.batch import commit_rows, refuse_taken
from hudi_spark.jobs.ingests.polled import Polling, Taken, check_grows, check_range, run_polled
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import refuse_apart
from hudi_spark.jobs.sifting.rows import Sifting, window
from hudi_spark.jobs.stopping import Told
from hudi_table.api import CommitResult, HudiTable
from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.job.marks import Mark
from hudi_table.services.ingesting import behind_held
from hudi_table.services.select_check import check_select
from hudi_table.services.transforming.steps import Chain, Transforms
from hudi_table.sources.checkpoints import Held, held_mark
from hudi_table.sources.jdbc.settings import JdbcSettings
from hudi_table.sources.jdbc.source import JdbcRows, waiting_parts, waiting_rows
from hudi_table.sources.refusing import Place


def run_jdbc(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    work = spec.work
    settings = JdbcSettings.of(work["source"])
    if settings.column and work["operation"] != "Upsert":
        raise InvalidRequestError(
            "jdbc.incremental reads some rows again, which only operation Upsert takes for the same"
        )
    check_grows(spec, "Jdbc", settings.column)
    check_range(spec, settings.within)
    name = str(work["name"])

    def ask(table: HudiTable | None, told: Told) -> Taken | str:
        held = held_mark(table.context, name) if table is not None else None
        if spec.engine == "Local":
            taken = _take_here(spec, table, settings, held, progress, told)
        else:
            taken = _take_in_tasks(spec, table, settings, held, progress)
        if taken is None:
            return "what the database holds is in the table"
        refuse_taken(name, taken.commit)
        return taken

    def result(driver: Polling, seconds: float) -> JobResult:
        return driver.result(f"{counted(int(driver.read['rowsRead']), 'row')} read", seconds)

    return run_polled(spec, progress, ask, result)


def _taken(checkpoint: Mark, read: int, commit: CommitResult, sifting: Sifting) -> Taken:
    return Taken(commit, checkpoint.batch, {"rowsRead": float(read), **sifting.figures()})


def _take_here(
    spec: JobSpec,
    table: HudiTable | None,
    settings: JdbcSettings,
    held: Held[Mark] | None,
    progress: Progress,
    told: Told,
) -> Taken | None:
    before = held.checkpoint if held is not None else None
    with (
        contextlib.closing(Sifting(spec)) as sifting,
        waiting_rows(settings, os.environ, sifting.chain.columns, before, spec.attempt) as waiting,
    ):
        if waiting is None:
            return None
        _say(progress, waiting.count, settings)
        commit = _commit(spec, table, waiting, held, sifting, told)
        return _taken(waiting.checkpoint, waiting.read, commit, sifting)


def _take_in_tasks(
    spec: JobSpec, table: HudiTable | None, settings: JdbcSettings, held: Held[Mark] | None, progress: Progress
) -> Taken | None:
    # Spark is started only by jobs that need it.
    from hudi_spark.jobs.ingest_spark import Recorded
    from hudi_spark.jobs.ingests.jdbc_tasks import write_parts
    from hudi_spark.jobs.sifting.tasks import judging

    refuse_apart(spec.work.get("transform", ()))
    for each in spec.work.get("transform", ()):
        if each.get("sql") is not None:
            check_select(each["sql"])
    before, name = held.checkpoint if held is not None else None, str(spec.work["name"])
    chain = Chain(Transforms.of(()), spec.work["source"].get("columns"))
    with (
        contextlib.closing(chain),
        waiting_parts(settings, os.environ, chain.columns, before, spec.attempt) as waiting,
    ):
        if waiting is None:
            return None
        _say(progress, waiting.count, settings)
        recorded = Recorded({key_of(name): waiting.checkpoint.to_text()}, behind_held(name, held))
        place = _place(waiting.checkpoint, before)
        with (
            contextlib.closing(Sifting(spec, place)) as sifting,
            judging(sifting, waiting.checkpoint.batch) as judge,
        ):
            commit = write_parts(spec, table, settings, waiting, recorded, progress, judge=judge)
            return _taken(waiting.checkpoint, waiting.count, commit, sifting)


def _say(progress: Progress, count: int, settings: JdbcSettings) -> None:
    progress.say(f"reading {counted(count, 'row')} of the database at {settings.place}")


def _commit(
    spec: JobSpec, table: HudiTable | None, waiting: JdbcRows, held: Held[Mark] | None, sifting: Sifting, told: Told
) -> CommitResult:
    known = table.schema() if table is not None else None
    sifting.place = _place(waiting.checkpoint, held.checkpoint if held is not None else None)
    rows = sifting.through(waiting.batches, known, waiting.checkpoint.batch)
    name = str(spec.work["name"])
    place = behind_held(name, held)
    return commit_rows(spec, table, rows, {key_of(name): waiting.checkpoint.to_text()}, place, told=told)


def _place(mark: Mark, before: Mark | None) -> Place:
    return Place(window(mark.column, before.value if before is not None else "", mark.value))
