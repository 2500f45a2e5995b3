"""An ingest from a source that is asked for what waits: once until nothing does, or, in mode
`Continuous`, each `commitInterval`; at once again where a commit could not hold all of it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hudi_spark.jobs.ingests.following import is_continuous, run
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.stopping import Stopping
from hudi_spark.jobs.tally import Tally
from hudi_spark.jobs.target import arrival_decides, find_table
from hudi_table.api import CommitResult, HudiTable
from hudi_table.errors import DataLossError, InvalidRequestError
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.job.ranges import Range
from hudi_table.table.store.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Taken:
    """What one commit took: name of its batch, how much was read of what, and whether more may
    wait."""

    commit: CommitResult
    checkpoint: str
    read: Mapping[str, float] = field(default_factory=dict)
    more: bool = False


Ask = Callable[[HudiTable | None], Taken | str]
"""Commits what waits behind the table's newest checkpoint, or says why nothing does."""


def _nothing() -> None:
    """Nothing is held between two questions."""


@dataclass(slots=True)
class Polling:
    """An attempt at one ingest. `let_go` ends what `ask` holds from one question to the next."""

    spec: JobSpec
    ask: Ask
    progress: Progress
    stopping: Stopping
    let_go: Callable[[], None] = _nothing
    clock: SystemClock = field(default_factory=SystemClock)
    tally: Tally = field(default_factory=Tally)
    read: Counter[str] = field(default_factory=Counter)
    table: HudiTable | None = None
    checkpoint: str = ""
    said: str = "it was told to end before it had asked its source"
    follows: bool = False

    @property
    def commits(self) -> int:
        """See `Turns`."""
        return self.tally.count

    def once(self) -> None:
        """Everything that waits."""
        while self._asked():
            pass

    def renew(self) -> None:
        """See `Turns`. Each question goes by the checkpoint as it is then."""
        self.table = None
        self.let_go()

    def take(self, deadline: float) -> None:
        """See `Turns`."""
        more = self._asked()
        if not self.follows:
            self.progress.say("it follows its source from here")
            self.follows = True
        if not more:
            self.stopping.wait(max(0.0, deadline - self.clock.boot_seconds()))

    def judge_loss(self, error: DataLossError) -> None:
        """See `Turns`."""
        raise error

    def _asked(self) -> bool:
        """Whether more may wait."""
        self.table = self.table or find_table(self.spec)
        taken = self.ask(self.table)
        if isinstance(taken, str):
            self.said = taken
            return False
        self.tally.add(taken.commit)
        self.read.update(taken.read)
        self.checkpoint = taken.checkpoint
        return taken.more

    def result(self, words: str, seconds: float) -> JobResult:
        """Of a run that has committed. `words`: what it took."""
        count = self.tally.count
        if is_continuous(self.spec.work):
            words = f"{words} in {counted(count, 'commit')}"
        figures = {**self.read, "commits": float(count)}
        return self.tally.result(self.spec, words, self.checkpoint, seconds, figures)


def run_polled(
    spec: JobSpec,
    progress: Progress,
    ask: Ask,
    told: Callable[[Polling, float], JobResult],
    let_go: Callable[[], None] = _nothing,
) -> JobResult:
    """Do one attempt. `told`: the result of a run that has committed, which took so many seconds.
    Raises HudiError; what was committed before stays."""
    clock = SystemClock()
    start = clock.boot_seconds()
    with Stopping() if is_continuous(spec.work) else contextlib.nullcontext(Stopping()) as stopping:
        driver = Polling(spec, ask, progress, stopping, let_go, clock)
        try:
            fill = run(driver, spec.work, stopping, progress)
        finally:
            let_go()
    if not driver.tally.count:
        return JobResult(spec.attempt, "NothingToDo", message=driver.said)
    result = told(driver, clock.boot_seconds() - start)
    return fill.told(result) if fill is not None else result


def check_range(spec: JobSpec, within: Range | None) -> None:
    """Raises InvalidRequestError for a range whose rows could overwrite newer ones, or come twice,
    and for one of another mode."""
    if (str(spec.work.get("mode", "Once")) == "Backfill") != (within is not None):
        raise InvalidRequestError("mode Backfill needs a range, and no other mode has one")
    if within is not None and (spec.work["operation"] != "Upsert" or arrival_decides(spec)):
        raise InvalidRequestError(
            "mode Backfill needs operation Upsert, orderingFields and mergeMode EventTime: its rows are older than those beside it"
        )


def refuse_range(spec: JobSpec, why: str) -> None:
    """Raises InvalidRequestError for mode Backfill, or a range, of a source that has none."""
    if str(spec.work.get("mode", "Once")) == "Backfill" or spec.work["source"].get("range") is not None:
        raise InvalidRequestError(
            f"a source of type {spec.work['source']['type']} has no range that mode Backfill could take: {why}"
        )


def refuse_spark(spec: JobSpec, why: str) -> None:
    """Raises InvalidRequestError for engine Spark of a source that one process reads."""
    if spec.engine != "Local":
        kind = spec.work["source"]["type"]
        raise InvalidRequestError(
            f"a source of type {kind} is not read in tasks of Spark: {why}; let the engine be Local"
        )


def check_grows(spec: JobSpec, kind: str, column: str) -> None:
    """Raises InvalidRequestError for an ingest that would read all rows again at each look."""
    if is_continuous(spec.work) and not column:
        raise InvalidRequestError(
            f"mode Continuous of a source of type {kind} needs {kind.lower()}.incremental: "
            "without it all rows would be read each time; give it, or mode Once"
        )
