"""What may be read of a round is told from what may not: every anomaly that is planted is found."""

from __future__ import annotations

import pytest

from tests.mirror.history import History, Read
from tests.mirror.workload import Write
from tests.mirror.writers import Answer, Came

FIRST, SECOND, OPEN = Write(1), Write(2), Write(3)
TOLD = [
    (FIRST, Answer(Came.DONE, "", 0.0, 1.0)),
    (SECOND, Answer(Came.DONE, "", 2.0, 3.0)),
    (OPEN, Answer(Came.DIED, "", 4.0, 5.0)),
]


def rows_of(*writes: Write, newest: Write) -> list[tuple[str, int]]:
    new = [(key, write.number) for write in writes for key in write.new]
    return new + [(key, newest.number) for key in newest.shared]


def wrong(found: list[tuple[str, int]], began: float = 6.0, ended: float = 7.0) -> list[str]:
    return History(list(TOLD)).wrong(Read(began, ended, found))


def test_a_write_that_died_may_be_there_whole_or_not_at_all() -> None:
    assert wrong(rows_of(FIRST, SECOND, newest=SECOND)) == []
    assert wrong(rows_of(FIRST, SECOND, OPEN, newest=OPEN)) == []


def test_a_read_that_began_before_a_write_was_acknowledged_need_not_show_it() -> None:
    assert wrong(rows_of(FIRST, newest=FIRST), 2.5, 2.6) == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (rows_of(FIRST, newest=SECOND), "write 2 was acknowledged, 3 rows are not there"),
        (rows_of(FIRST, SECOND, newest=SECOND)[1:], "write 1 was acknowledged, 1 rows are not there"),
        ([*rows_of(FIRST, SECOND, newest=SECOND), ("n0001-0", 1)], "n0001-0 is there 2 times"),
        ([*rows_of(FIRST, SECOND, newest=SECOND), ("n0003-1", 3)], "write 3 is there by half"),
        (rows_of(FIRST, SECOND, newest=FIRST), "shared-0 is of write 1, not of 2"),
        (rows_of(FIRST, SECOND, newest=OPEN), "shared-0 is of write 3, not of 2"),
        (rows_of(FIRST, SECOND, newest=SECOND)[:-1], "shared-5 is of write None, not of 2"),
    ],
)
def test_lost_doubled_halved_and_older_rows_are_found(found: list[tuple[str, int]], said: str) -> None:
    assert said in wrong(found)


def test_rows_of_a_write_that_nobody_had_asked_for_are_found() -> None:
    assert wrong(rows_of(FIRST, SECOND, OPEN, newest=OPEN), 3.1, 3.2) == ["write 3 is there before it was asked for"]
