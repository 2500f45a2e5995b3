"""An ingest from another Hudi table: what changed there becomes commits here, each with how far it
is: once until nothing waits, or on and on.

`Continuous` looks at the other table's timeline by two requests a second. It commits what waits
once `commitInterval` has gone by since its commit before, sooner once `maxInstants` wait.

`Local` reads and writes in this process, `Spark` in tasks. There rows have no order, so a row that
was deleted and written again is found by its key: its delete is left out.

Into a table with ordering fields deletes go first, as a commit of their own without a checkpoint:
they are of the other table's order, by which a row may come back with a smaller value.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace

from hudi_spark.jobs.batch import commit_rows, delete_rows, operation_of, refuse_taken
from hudi_spark.jobs.decoding import needed_of
from hudi_spark.jobs.ingests.following import follow, interval_of, is_continuous
from hudi_spark.jobs.ingests.polled import check_range
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.shaping import refuse_apart
from hudi_spark.jobs.sifting.rows import Sifting
from hudi_spark.jobs.stopping import Stopping
from hudi_spark.jobs.tally import Tally
from hudi_spark.jobs.target import arrival_decides, find_table, storage_options
from hudi_table.api import CommitResult, HudiTable, open_table
from hudi_table.errors import DataLossError, InvalidRequestError, TableNotFoundError
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.job.upstream import Upstream
from hudi_table.read.incremental import stable_commits
from hudi_table.services.ingesting import Behind, behind_held
from hudi_table.services.transforming.chain_check import check_chain
from hudi_table.sources.checkpoints import Held, held_upstream
from hudi_table.sources.hudi.settings import HudiSettings
from hudi_table.sources.hudi.source import HudiBatch, HudiSource, behind_of
from hudi_table.sources.refusing import Place
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.context import TableContext

POLL_SECONDS = 1.0
"""How often a continuous driver looks at the other table."""


@dataclass(slots=True)
class _Follower:
    """An attempt at one ingest. `settled`: the timeline of the other table, in which nothing
    waits."""

    spec: JobSpec
    settings: HudiSettings
    progress: Progress
    stopping: Stopping
    interval: float
    sifting: Sifting
    clock: SystemClock = field(default_factory=SystemClock)
    tally: Tally = field(default_factory=Tally)
    taken: int = 0
    checkpoint: str = ""
    held: Held[Upstream] | None = None
    settled: tuple[str, int] | None = None
    committed: float = float("-inf")
    follows: bool = False

    @property
    def name(self) -> str:
        """Of the ingest."""
        return str(self.spec.work["name"])

    @property
    def commits(self) -> int:
        """See `Turns`."""
        return self.tally.count

    def source(self) -> HudiSource | None:
        """The other table as it is now, None while there is none. Its properties are read each
        time: another version has its timeline elsewhere."""
        location = self.settings.location
        try:
            upstream = open_table(location, storage_options=storage_options(self.spec, location))
        except TableNotFoundError:
            return None
        return HudiSource(upstream.context, self.settings, self.spec.attempt)

    def renew(self) -> None:
        """See `Turns`."""
        table = find_table(self.spec)
        self.held = held_upstream(table.context, self.name) if table is not None else None
        self.settled = None

    def once(self, source: HudiSource) -> None:
        """Everything that waits."""
        while True:
            self.renew()
            batch = source.plan(source.discover(), self.held.checkpoint if self.held is not None else None)
            if batch is None:
                return
            self.commit(source, batch)

    def take(self, deadline: float) -> None:
        """See `Turns`."""
        while not self.stopping.told():
            source = self.source()
            batch = self._next(source) if source is not None else None
            if not self.follows:
                self.progress.say("it follows the other table from here")
                self.follows = True
            if source is not None and batch is not None:
                self.commit(source, batch)
                return
            if self.clock.boot_seconds() >= deadline:
                return
            self.stopping.wait(min(POLL_SECONDS, self.interval))

    def judge_loss(self, error: DataLossError) -> None:
        """See `Turns`. What may be gone on without is planned as all rows."""
        raise error

    def _next(self, source: HudiSource) -> HudiBatch | None:
        """What is to be taken now."""
        found = source.discover()
        stable = stable_commits(found)
        seen = (stable[-1].time if stable else "", len(stable))
        if seen == self.settled:
            return None
        before = self.held.checkpoint if self.held is not None else None
        enough = 0 < self.settings.max_instants <= len(behind_of(stable, before))
        if not enough and self.clock.boot_seconds() - self.committed < self.interval:
            return None
        batch = source.plan(found, before)
        self.settled = seen if batch is None else None
        return batch

    def commit(self, source: HudiSource, batch: HudiBatch) -> None:
        """Take a batch. Raises WriteConflictError where another attempt took it."""
        table = find_table(self.spec)
        self.progress.say(f"taking {_words(batch)} of the table at {self.settings.location}")
        commit = _write(self, table, source.context, batch, behind_held(self.name, self.held))
        refuse_taken(self.name, commit)
        self.tally.add(commit)
        self.taken += batch.commits
        self.checkpoint = batch.name
        self.held = Held(batch.checkpoint, commit.instant or "")
        self.committed = self.clock.boot_seconds()


def run_hudi(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; what was committed before stays."""
    clock, work = SystemClock(), spec.work
    start, settings = clock.boot_seconds(), HudiSettings.of(work["source"])
    check_request(spec, settings)
    fill = None
    with (
        contextlib.closing(Sifting(spec)) as sifting,
        Stopping() if is_continuous(work) else contextlib.nullcontext(Stopping()) as stopping,
    ):
        run = _Follower(spec, settings, progress, stopping, interval_of(work), sifting, clock)
        if is_continuous(work):
            fill = follow(run, work, stopping, progress)
        elif (source := run.source()) is not None:
            run.once(source)
        else:
            return JobResult(spec.attempt, "NothingToDo", message=f"there is no table at {settings.location} yet")
    if not run.tally.count:
        return JobResult(spec.attempt, "NothingToDo", message="what the other table holds is in this one")
    count, seconds = run.tally.count, clock.boot_seconds() - start
    words = f"{counted(run.taken, 'commit')} of the other table in {counted(count, 'commit')}"
    figures = {"commits": float(count), "instantsTaken": float(run.taken), **sifting.figures()}
    result = run.tally.result(spec, words, run.checkpoint, seconds, figures)
    return fill.told(result) if fill is not None else result


def check_request(spec: JobSpec, settings: HudiSettings) -> None:
    """Raises InvalidRequestError for what would lose deletes, or take rows twice."""
    operation_of(spec)
    check_range(spec, settings.within)
    if spec.work["operation"] != "Upsert" and (settings.deletes or settings.continues):
        raise InvalidRequestError("hudi.deletes Delete and hudi.onDataLoss Continue go with operation Upsert alone")
    check_chain(
        spec.work.get("transform", ()),
        arrival_decides=settings.deletes and arrival_decides(spec),
        deletes=needed_of(spec) if settings.deletes else (),
        setting="hudi.deletes",
    )


def _write(
    run: _Follower, table: HudiTable | None, above: TableContext, batch: HudiBatch, place: Behind
) -> CommitResult:
    spec, sifting = run.spec, run.sifting
    if batch.changes is not None and table is not None and table.context.config.ordering_fields:
        _delete(run, table, above, batch, place)
        batch = replace(batch, changes=None)
    rows, known = batch.read(), table.schema() if table is not None else None
    metadata = {key_of(str(spec.work["name"])): rows.checkpoint.to_text()}
    sifting.place = Place(f"commit {rows.checkpoint.instant} of {rows.checkpoint.table}")
    if spec.engine != "Local" and not batch.is_start:
        refuse_apart(spec.work.get("transform", ()))
        # Spark is started only by jobs that need it.
        from hudi_spark.jobs.ingest_spark import Recorded, write_upstream
        from hudi_spark.jobs.sifting.tasks import judging

        with judging(sifting, batch.name) as judge:
            return write_upstream(spec, table, above, batch, Recorded(metadata, place), run.progress, judge=judge)
    return commit_rows(spec, table, sifting.through(rows.batches, known, batch.name), metadata, place)


def _delete(run: _Follower, table: HudiTable, above: TableContext, batch: HudiBatch, place: Behind) -> None:
    """Delete what was deleted there, before the rows: within one commit the ordering values would
    decide between the two. An attempt that ends here deletes again, and knows more deletes then, so
    they have a name of their own."""
    spec, changes = run.spec, batch.changes
    assert changes is not None
    own = replace(place, batch=f"{place.batch}-deletes-{batch.span.until}")
    if spec.engine == "Local":
        gone = run.sifting.through(batch.deletes(), table.schema(), f"{batch.name}-deletes")
        done = delete_rows(spec, table, gone, own)
    else:
        refuse_apart(spec.work.get("transform", ()))
        from hudi_spark.jobs.ingest_spark import delete_upstream

        done = delete_upstream(spec, table, above, changes, own, run.progress)
    if done.instant and not done.replayed:
        run.tally.add(done)


def _words(batch: HudiBatch) -> str:
    if batch.is_start:
        return "the place to begin at"
    return "all rows" if batch.is_whole else counted(batch.commits, "commit")
