"""An ingest from a source that is asked for what waits: once until nothing does, or, in mode
`Continuous`, each `commitInterval`; at once again where a commit could not hold all of it.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from hudi_spark.jobs.ingests.following import is_continuous, run
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.stopping import Stopping, Told, ToldToEndError
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


Ask = Callable[[HudiTable | None, Told], Taken | str]
"""Commits what waits behind the table's newest checkpoint, or says why nothing does. Raises
ToldToEndError where it gives up amid it."""
GIVE_UP_SECONDS = 20.0
"""Who tells a driver to end gives it 30 s."""
_GIVEN_UP = "it was told to end amid a commit; nothing of that is in the table"


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
        try:
            taken = self.ask(self.table, self.stopping.told)
        except ToldToEndError:
            taken = _GIVEN_UP
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
    result: Callable[[Polling, float], JobResult],
    let_go: Callable[[], None] = _nothing,
) -> JobResult:
    """Do one attempt. `result`: of a run that has committed, which took so many seconds. Raises
    HudiError; what was committed before stays."""
    clock = SystemClock()
    start = clock.boot_seconds()
    with Stopping() if is_continuous(spec.work) else contextlib.nullcontext(Stopping()) as stopping:
        driver = Polling(spec, ask, progress, stopping, let_go, clock)

        def told() -> JobResult:
            if not driver.tally.count:
                return JobResult(spec.attempt, "NothingToDo", message=driver.said)
            return result(driver, clock.boot_seconds() - start)

        try:
            with _left_in_time(driver, told):
                fill = run(driver, spec.work, stopping, progress)
        finally:
            let_go()
    return fill.told(told()) if fill is not None else told()


@contextlib.contextmanager
def _left_in_time(driver: Polling, told: Callable[[], JobResult]) -> Iterator[None]:
    """A driver that is told to end, and waits for what gives no rows to stop at, is left as it is:
    a database thinks about a statement, a package does not return, tasks of Spark are at work. What
    it has prepared the next writer takes back, as that of a driver that was killed."""
    ended = threading.Event()

    def leave() -> None:
        driver.stopping.wait(threading.TIMEOUT_MAX)
        if not ended.wait(GIVE_UP_SECONDS):
            driver.said = _GIVEN_UP
            driver.progress.leave(told())

    if is_continuous(driver.spec.work):
        threading.Thread(target=leave, name="leaving", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


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
