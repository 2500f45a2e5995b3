"""The version of the next log of a slice: behind the committed logs, and before those of later
instants that may never be."""

from __future__ import annotations

import pytest

from hudi_table.model.names import LogFileName, log_write_token
from hudi_table.table.view.file_groups import LogFile, next_log_version


def time(number: int) -> str:
    return f"{20260101000000000 + number}"


def log(version: int, instant: int | None) -> LogFile:
    token = "1-0-1" if instant is None else log_write_token(time(instant), 0)
    return LogFile(f"p/{version}-{instant}", 1, LogFileName("f", time(0), version, token))


@pytest.mark.parametrize(
    ("logs", "committed", "version"),
    [
        ([], set(), 1),
        ([log(1, 1), log(2, 2)], {1, 2}, 3),
        ([log(1, 1), log(2, 3)], {1}, 2),
        ([log(1, 1), log(2, 7)], {1}, 2),
        ([log(1, 1), log(1, 7)], {1}, 1),
        ([log(1, 1), log(1, 7), log(2, 2)], {1, 2}, 3),
        ([log(1, None), log(1, 7)], set(), 2),
        ([log(1, 1), log(2, 7)], {1, 7}, 2),
    ],
    ids=[
        "the first",
        "behind the committed ones",
        "in the order of instants beside an earlier one that is under way or dead",
        "in the order of instants beside a later one that is under way or dead",
        "before a later one that lies beside the last committed one",
        "but never before a committed one",
        "nor before one of another engine",
        "before a later one that has committed",
    ],
)
def test_a_log_comes_behind_the_committed_ones_and_before_later_ones_that_may_never_be(
    logs: list[LogFile], committed: set[int], version: int
) -> None:
    times = {time(number) for number in committed}
    assert next_log_version(logs, time(5), times.__contains__) == version
