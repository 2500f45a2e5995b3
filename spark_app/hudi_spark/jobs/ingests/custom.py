"""An ingest from a source of another package, in this process, or in tasks of Spark
(`custom_tasks`) where it can split what waits: it becomes commits that also say how far it is.

`Once` commits each answer, until nothing waits. `Continuous` asks each `commitInterval`, and what
the source then gives becomes one commit: answer after answer until nothing waits, they are
GATHERED_BYTES, the interval is over, or one has other columns, which the next commit begins with.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_spark.jobs.batch import commit_rows, refuse_taken
from hudi_spark.jobs.ingests.following import interval_of, is_continuous
from hudi_spark.jobs.ingests.polled import Polling, Taken, refuse_range, run_polled
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import refuse_apart
from hudi_spark.jobs.sifting.rows import Sifting
from hudi_spark.jobs.stopping import Told, until_told
from hudi_spark.jobs.target import arrival_decides
from hudi_table.api import HudiTable
from hudi_table.errors import InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.services.ingesting import behind_held
from hudi_table.services.select_check import check_select
from hudi_table.sources.checkpoints import held_custom
from hudi_table.sources.custom import CustomRows, CustomSource, custom_source, waiting_parts, waiting_rows
from hudi_table.sources.refusing import Place
from hudi_table.table.store.clock import SystemClock
from hudi_table.write.incoming import open_stream

GATHERED_BYTES = 64 << 20
POSITION_SHOWN = 200
"""Characters of a position that tell where a refused row stands."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """An attempt at one ingest."""

    spec: JobSpec
    name: str
    source: CustomSource
    sifting: Sifting
    progress: Progress

    def ask(self, table: HudiTable | None, told: Told) -> Taken | str:
        """See `Ask`."""
        ingest = str(self.spec.work["name"])
        held = held_custom(table.context, ingest) if table is not None else None
        rows = self._next(held.checkpoint if held is not None else None)
        if rows is None:
            return "what the source holds is in the table"
        where = held.checkpoint.position if held is not None else "its begin"
        self.progress.say(f"taking what waits of {self.name} behind {where}")
        stream, checkpoint, more = open_stream(rows.data), rows.checkpoint, True
        if is_continuous(self.spec.work):
            gathered, checkpoint, more = self._gathered(until_told(stream, told).read_all(), checkpoint, told)
            stream = gathered.to_reader()
        self.sifting.place = Place(f"position {checkpoint.position[:POSITION_SHOWN]}")
        found = self.sifting.through(stream, table.schema() if table is not None else None, checkpoint.batch)
        place = behind_held(ingest, held)
        commit = commit_rows(self.spec, table, found, {key_of(ingest): checkpoint.to_text()}, place, told=told)
        refuse_taken(ingest, commit)
        return Taken(commit, checkpoint.batch, more=more)

    def ask_parts(self, table: HudiTable | None, _: Told) -> Taken | str:
        """The same in tasks of Spark."""
        # Spark is started only by jobs that need it.
        from hudi_spark.jobs.ingest_spark import Recorded
        from hudi_spark.jobs.ingests.custom_tasks import write_parts
        from hudi_spark.jobs.sifting.tasks import judging

        ingest = str(self.spec.work["name"])
        held = held_custom(table.context, ingest) if table is not None else None
        before = held.checkpoint if held is not None else None
        waiting = waiting_parts(self.name, self.source, before, self.spec.attempt)
        if waiting is None:
            return "what the source holds is in the table"
        self.progress.say(f"taking {counted(len(waiting.parts), 'part')} of {self.name}")
        recorded = Recorded({key_of(ingest): waiting.checkpoint.to_text()}, behind_held(ingest, held))
        self.sifting.place = Place(f"position {waiting.checkpoint.position[:POSITION_SHOWN]}")
        with judging(self.sifting, waiting.checkpoint.batch) as judge:
            commit = write_parts(self.spec, table, waiting, recorded, self.progress, judge)
        refuse_taken(ingest, commit)
        return Taken(commit, waiting.checkpoint.batch, more=True)

    def _next(self, before: CustomMark | None) -> CustomRows | None:
        return waiting_rows(self.name, self.source, before, self.spec.attempt)

    def _gathered(self, rows: pa.Table, checkpoint: CustomMark, told: Told) -> tuple[pa.Table, CustomMark, bool]:
        """These rows with those behind them, where they end, and whether more may wait."""
        clock, position = SystemClock(), checkpoint
        until = clock.boot_seconds() + interval_of(self.spec.work)
        parts, size, more = [rows], rows.nbytes, True
        while size < GATHERED_BYTES and clock.boot_seconds() < until and not told():
            answer = self._next(position)
            if answer is None:
                more = False
                break
            part = open_stream(answer.data).read_all()
            if part.schema != rows.schema:
                break
            parts.append(part)
            size, position = size + part.nbytes, answer.checkpoint
        # The name is that of where it began.
        return pa.concat_tables(parts), replace(checkpoint, position=position.position), more


def run_custom(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    refuse_range(spec, "positions are the package's own; let custom.options tell it what to give")
    custom = spec.work["source"].get("custom", {})
    name = str(custom.get("name", ""))

    def result(driver: Polling, seconds: float) -> JobResult:
        commits = driver.tally.count
        figures = {"commits": float(commits), **sifting.figures()}
        return driver.tally.result(spec, counted(commits, "commit"), driver.checkpoint, seconds, figures)

    if spec.engine != "Local":
        refuse_apart(spec.work.get("transform", ()))
        _check_parts(spec)
    with contextlib.closing(Sifting(spec) if spec.engine != "Local" else Sifting.checked(spec)) as sifting:
        source = custom_source(name, dict(custom.get("options", {})))
        asking = _Asking(spec, name, source, sifting, progress)
        return run_polled(spec, progress, asking.ask if spec.engine == "Local" else asking.ask_parts, result)


def _check_parts(spec: JobSpec) -> None:
    """Raises InvalidRequestError for what parts that are read at once would not give."""
    if spec.work["operation"] == "Upsert" and arrival_decides(spec):
        raise InvalidRequestError(
            "engine Spark reads parts of a source at once, so none of two rows of one key comes last: give orderingFields and mergeMode EventTime, "
            "operation Insert, or let the engine be Local"
        )
    for each in spec.work.get("transform", ()):
        if each.get("sql") is not None:
            check_select(each["sql"])
