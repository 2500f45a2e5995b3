"""What all drivers of mode `Continuous` do alike: one turn after the other until they are asked
to end, or have taken the memory that they may have; and patience with what another try may mend.

Whatever fails, the next turn begins at the checkpoint of the newest commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hudi_spark.jobs.memory import Fill, fill_of, limit_of
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.stopping import Stopping
from hudi_table.errors import (
    DataLossError,
    ExpiredError,
    HudiError,
    ObjectNotFoundError,
    UnsettledDataError,
    WriteConflictError,
)
from hudi_table.table.store.clock import SystemClock

COMMIT_INTERVAL_SECONDS = 10.0
FAILURES_MAX, CONFLICTS_MAX = 5, 100
UNSETTLED_MAX = 15
"""Some five minutes: a connector of a database that is started again repeats what it had not noted,
and what a repeated row lacks comes behind it, if that connector stays."""
PAUSE_SECONDS_MAX = 30.0


class Turns(Protocol):
    """What follows one type of source."""

    @property
    def commits(self) -> int:
        """How many it has made."""
        ...

    def renew(self) -> None:
        """Stand at the checkpoint of the newest commit."""
        ...

    def take(self, deadline: float) -> None:
        """Commit what comes until a moment of the boot clock, or until there is enough for a
        commit, or the driver is told to end."""
        ...

    def judge_loss(self, error: DataLossError) -> None:
        """Raise where what is lost is to end the ingest."""
        ...


class Runs(Turns, Protocol):
    """What takes its source once, or follows it."""

    def once(self) -> None:
        """Commit what is there now."""
        ...


def run(driver: Runs, work: Mapping[str, Any], stopping: Stopping, progress: Progress) -> Fill | None:
    """Do what the work of a JobSpec asks for: all that is there, or what comes. What `follow`
    returns; raises HudiError."""
    if is_continuous(work):
        return follow(driver, work, stopping, progress)
    driver.once()
    return None


def follow(driver: Turns, work: Mapping[str, Any], stopping: Stopping, progress: Progress) -> Fill | None:
    """Take what comes, until told to end; or until a commit after which little is left of the
    memory that it may have, which is returned. Raises HudiError for what another try would not
    mend, or did not."""
    interval, limit = interval_of(work), limit_of(work)
    clock, failures, stale, commits = SystemClock(), 0, True, driver.commits
    due = clock.boot_seconds()
    while not stopping.told():
        try:
            if stale:
                driver.renew()
                stale = False
            # What a commit takes is part of an interval, as long as it fits in.
            due += interval
            if due <= clock.boot_seconds():
                due = clock.boot_seconds() + interval
            driver.take(due)
            failures = 0
        except HudiError as error:
            failures, stale = failures + 1, True
            _bear(driver, error, failures)
            seconds = min(2.0 ** (failures - 1), PAUSE_SECONDS_MAX)
            progress.say(f"{error.name()}: {error}; goes on from the newest checkpoint in {seconds:.0f} s")
            stopping.wait(seconds)
        # Only behind a commit: a life that brings nothing forward would be followed by another one like it.
        if driver.commits > commits:
            commits, fill = driver.commits, fill_of(limit)
            if fill is not None and fill.is_full:
                progress.say(f"it ends, for a successor to go on from the newest checkpoint: {fill}")
                return fill
    return None


def _bear(driver: Turns, error: HudiError, failures: int) -> None:
    """Raise unless another try may do."""
    if isinstance(error, DataLossError):
        driver.judge_loss(error)
    elif not (error.retryable or isinstance(error, ObjectNotFoundError | ExpiredError)):
        raise error
    if failures > _most_of(error):
        raise error


def _most_of(error: HudiError) -> int:
    """How many tries in a row may fail so."""
    if isinstance(error, WriteConflictError):
        return CONFLICTS_MAX
    return UNSETTLED_MAX if isinstance(error, UnsettledDataError) else FAILURES_MAX


def interval_of(work: Mapping[str, Any]) -> float:
    """Seconds between two commits, of the work of a JobSpec."""
    return float(work.get("commitIntervalSeconds", COMMIT_INTERVAL_SECONDS))


def is_continuous(work: Mapping[str, Any]) -> bool:
    """Whether the work of a JobSpec follows its source."""
    return str(work.get("mode", "Once")) == "Continuous"
