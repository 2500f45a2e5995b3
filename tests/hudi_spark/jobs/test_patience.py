"""How often a driver that follows a source tries again before it ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hudi_spark.jobs.ingests.following import follow
from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.stopping import Stopping
from hudi_table.errors import (
    DataLossError,
    HudiError,
    InvalidDataError,
    UnavailableError,
    UnsettledDataError,
    WriteConflictError,
)


class Hurried(Stopping):
    """Waits for nothing, and adds up for how long it would have."""

    waited = 0.0

    def wait(self, seconds: float) -> None:
        self.waited += seconds


@dataclass
class Failing:
    """A source of which `times` turns fail before one is made, which is the last."""

    error: HudiError
    times: int
    stopping: Hurried = field(default_factory=Hurried)
    commits: int = 0

    def renew(self) -> None:
        """Nothing is kept."""

    def take(self, deadline: float) -> None:
        del deadline
        if self.times:
            self.times -= 1
            raise self.error
        self.commits = 1
        self.stopping.tell()

    def judge_loss(self, error: DataLossError) -> None:
        raise error


@pytest.mark.parametrize(("kind", "times"), [
    (InvalidDataError, 0), (UnavailableError, 5), (UnsettledDataError, 15), (WriteConflictError, 100),
])  # fmt: skip
def test_it_bears_so_many_failures_in_a_row(kind: type[HudiError], times: int) -> None:
    endures = Failing(kind("it fails"), times)
    follow(endures, {}, endures.stopping, Progress(""))
    assert endures.commits == 1
    gives_up = Failing(kind("it fails"), times + 1)
    with pytest.raises(kind, match="it fails"):
        follow(gives_up, {}, gives_up.stopping, Progress(""))
    assert gives_up.commits == 0


def test_what_a_row_lacks_may_take_five_minutes_to_come() -> None:
    """A connector that is killed repeats rows, and what they lack comes once it has started."""
    waits = Failing(UnsettledDataError("it leaves a large value alone"), 15)
    follow(waits, {}, waits.stopping, Progress(""))
    assert waits.stopping.waited > 300
