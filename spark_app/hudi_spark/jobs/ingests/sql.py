"""An ingest from a statement over other Hudi tables, in this process, without a JVM: its answer
becomes one commit that also says of which state it is; in mode `Continuous` the tables are looked
at again each `commitInterval`."""

from __future__ import annotations

import contextlib
from functools import partial

from hudi_spark.jobs.batch import commit_rows, refuse_taken
from hudi_spark.jobs.ingests.polled import Polling, Taken, check_grows, refuse_range, refuse_spark, run_polled
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.sifting.rows import Sifting, window
from hudi_spark.jobs.stopping import Told
from hudi_spark.jobs.target import storage_options
from hudi_table.api import HudiTable
from hudi_table.errors import InvalidRequestError, TableNotFoundError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.services.ingesting import behind_held
from hudi_table.services.query_rows import QuerySettings, waiting_rows
from hudi_table.sources.checkpoints import held_query
from hudi_table.sources.refusing import Place


def run_sql(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    refuse_spark(spec, "its statement is in DuckDB's SQL, which Spark would answer otherwise")
    settings = QuerySettings.of(spec.work["source"])
    if spec.work["operation"] != "Upsert":
        raise InvalidRequestError(
            "a statement is answered again and again: a source of type Sql goes with operation Upsert"
        )
    check_grows(spec, "Sql", settings.column)
    refuse_range(spec, "let its WHERE say which rows are meant")
    many = f"the answer over {counted(len(settings.tables), 'table')}"

    def ask(table: HudiTable | None, told: Told) -> Taken | str:
        return _answer(spec, table, settings, progress, told)

    def result(driver: Polling, seconds: float) -> JobResult:
        return driver.result(many, seconds)

    return run_polled(spec, progress, ask, result)


def _answer(
    spec: JobSpec, table: HudiTable | None, settings: QuerySettings, progress: Progress, told: Told
) -> Taken | str:
    name = str(spec.work["name"])
    held = held_query(table.context, name) if table is not None else None
    before = held.checkpoint if held is not None else None
    sifting, options = Sifting.checked(spec), partial(storage_options, spec)
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(sifting))
        try:
            waiting = stack.enter_context(waiting_rows(settings, options, before, spec.attempt))
        except TableNotFoundError as error:
            return error.message
        if waiting is None:
            return "none of the tables has a commit that is not in this one"
        progress.say(f"reading the answer over {counted(len(settings.tables), 'table')}")
        mark = waiting.checkpoint
        sifting.place = Place(window(mark.column, before.value if before is not None else "", mark.value))
        rows = sifting.through(waiting.batches, table.schema() if table is not None else None, mark.batch)
        place = behind_held(name, held)
        commit = commit_rows(spec, table, rows, {key_of(name): waiting.checkpoint.to_text()}, place, told=told)
    refuse_taken(name, commit)
    return Taken(commit, waiting.checkpoint.batch, sifting.figures())
