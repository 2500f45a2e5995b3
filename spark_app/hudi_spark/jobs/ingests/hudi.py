"""An ingest from another Hudi table: what changed there becomes commits here, each with how far it
is, until nothing waits.

`Local` reads and writes in this process, `Spark` in tasks. There rows have no order, so a row that
was deleted and written again is found by its key: its delete is left out.
"""

from __future__ import annotations

import contextlib

from hudi_spark.jobs.batch import commit_rows, operation_of, refuse_taken
from hudi_spark.jobs.decoding import needed_of
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.tally import Tally
from hudi_spark.jobs.target import arrival_decides, find_table, storage_options
from hudi_table.api import CommitResult, HudiTable, open_table
from hudi_table.errors import InvalidRequestError, TableNotFoundError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.services.ingesting import Behind, behind_held
from hudi_table.services.transforming.chain_check import check_chain
from hudi_table.services.transforming.steps import Chain, Transforms
from hudi_table.sources.checkpoints import held_upstream
from hudi_table.sources.hudi.settings import HudiSettings
from hudi_table.sources.hudi.source import HudiBatch, HudiSource
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.context import TableContext


def run_hudi(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    clock = SystemClock()
    start, tally, taken = clock.boot_seconds(), Tally(), 0
    settings = HudiSettings.of(spec.work["source"])
    check_request(spec, settings)
    try:
        upstream = open_table(settings.location, storage_options=storage_options(spec, settings.location))
    except TableNotFoundError:
        return JobResult(spec.attempt, "NothingToDo", message=f"there is no table at {settings.location} yet")
    source = HudiSource(upstream.context, settings, spec.attempt)
    checkpoint = ""
    while True:
        table, name = find_table(spec), str(spec.work["name"])
        held = held_upstream(table.context, name) if table is not None else None
        batch = source.plan(source.discover(), held.checkpoint if held is not None else None)
        if batch is None:
            break
        progress.say(f"taking {_words(batch)} of the table at {settings.location}")
        place = behind_held(name, held)
        commit = _write(spec, table, source.context, batch, place, progress)
        refuse_taken(name, commit)
        tally.commits.append(commit)
        taken += batch.commits
        checkpoint = batch.name
    if not tally.commits:
        return JobResult(spec.attempt, "NothingToDo", message="what the other table holds is in this one")
    count, seconds = len(tally.commits), clock.boot_seconds() - start
    words = f"{counted(taken, 'commit')} of the other table in {counted(count, 'commit')}"
    figures = {"commits": float(count), "instantsTaken": float(taken)}
    return tally.result(spec, words, checkpoint, seconds, figures)


def check_request(spec: JobSpec, settings: HudiSettings) -> None:
    """Raises InvalidRequestError for what would lose deletes, or take rows twice."""
    operation_of(spec)
    if spec.work["operation"] != "Upsert" and (settings.deletes or settings.continues):
        raise InvalidRequestError("hudi.deletes Delete and hudi.onDataLoss Continue go with operation Upsert alone")
    check_chain(
        spec.work.get("transform", ()),
        arrival_decides=settings.deletes and arrival_decides(spec),
        deletes=needed_of(spec) if settings.deletes else (),
        setting="hudi.deletes",
    )


def _write(
    spec: JobSpec, table: HudiTable | None, above: TableContext, batch: HudiBatch, place: Behind, progress: Progress
) -> CommitResult:
    rows, known = batch.read(), table.schema() if table is not None else None
    metadata = {key_of(str(spec.work["name"])): rows.checkpoint.to_text()}
    if spec.engine != "Local" and not batch.is_start:
        # Spark is started only by jobs that need it.
        from hudi_spark.jobs.ingest_spark import Recorded, write_upstream

        return write_upstream(spec, table, above, batch, Recorded(metadata, place), progress)
    chain = Chain(Transforms.of(spec.work.get("transform", ())))
    with contextlib.closing(chain):
        return commit_rows(spec, table, chain.apply(rows.batches, known), metadata, place)


def _words(batch: HudiBatch) -> str:
    if batch.is_start:
        return "the place to begin at"
    return "all rows" if batch.is_whole else counted(batch.commits, "commit")
