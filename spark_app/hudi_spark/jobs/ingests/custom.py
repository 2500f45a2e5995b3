"""An ingest from a source of another package, in this process: what waits becomes commits that also
say how far it is, until nothing waits."""

from __future__ import annotations

import contextlib

from hudi_spark.jobs.batch import commit_rows, refuse_taken
from hudi_spark.jobs.ingests.sifting import Sifting
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.tally import Tally
from hudi_spark.jobs.target import find_table
from hudi_table.api import CommitResult, HudiTable
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.services.ingesting import behind_held
from hudi_table.sources.checkpoints import Held, held_custom
from hudi_table.sources.custom import CustomRows, custom_source, waiting_rows
from hudi_table.sources.refusing import Place
from hudi_table.table.store.clock import SystemClock
from hudi_table.write.incoming import open_stream

POSITION_SHOWN = 200
"""Characters of a position that tell where a refused row stands."""


def run_custom(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    clock, tally, checkpoint = SystemClock(), Tally(), ""
    start, custom = clock.boot_seconds(), spec.work["source"].get("custom", {})
    name, ingest = str(custom.get("name", "")), str(spec.work["name"])
    with contextlib.closing(Sifting.checked(spec)) as sifting:
        source = custom_source(name, dict(custom.get("options", {})))
        while True:
            table = find_table(spec)
            held = held_custom(table.context, ingest) if table is not None else None
            rows = waiting_rows(name, source, held.checkpoint if held is not None else None, spec.attempt)
            if rows is None:
                break
            progress.say(
                f"taking what waits of {name} behind {held.checkpoint.position if held is not None else 'its begin'}"
            )
            tally.add(_commit(spec, table, rows, held, sifting))
            checkpoint = rows.checkpoint.batch
    if not tally.count:
        return JobResult(spec.attempt, "NothingToDo", message="what the source holds is in the table")
    count, seconds = tally.count, clock.boot_seconds() - start
    figures = {"commits": float(count), **sifting.figures()}
    return tally.result(spec, counted(count, "commit"), checkpoint, seconds, figures)


def _commit(
    spec: JobSpec, table: HudiTable | None, rows: CustomRows, held: Held[CustomMark] | None, sifting: Sifting
) -> CommitResult:
    ingest, known = str(spec.work["name"]), table.schema() if table is not None else None
    place = behind_held(ingest, held)
    metadata = {key_of(ingest): rows.checkpoint.to_text()}
    sifting.place = Place(f"position {rows.checkpoint.position[:POSITION_SHOWN]}")
    data = sifting.through(open_stream(rows.data), known, rows.checkpoint.batch)
    commit = commit_rows(spec, table, data, metadata, place)
    refuse_taken(ingest, commit)
    return commit
