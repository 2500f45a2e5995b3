"""What every source has to stand, each beside its real part: each row is once in the table, nothing
is lost unless that is said, and what is wrong is named. `docs/reference/sources.md` shows which
test stands for which source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hudi_table.model.job.jobspec import JobResult
from tests.streams.conformance.dying import Dying
from tests.streams.conformance.matrix import applies
from tests.streams.conformance.part import Part, Row
from tests.support.scale import scale

RUNS_MAX = 5
BOUNDARIES_QUICK = 2
"""Of a commit, without the long run."""


def good(part: Part, **how: Any) -> JobResult:
    """A run that commits."""
    done = part.run(**how)
    assert done.outcome == "Succeeded", done.message
    return done


def all_of_it(part: Part, **how: Any) -> None:
    """Runs until nothing waits."""
    for _ in range(RUNS_MAX):
        done = part.run(**how)
        assert done.outcome != "Failed", done.message
        if done.outcome == "NothingToDo":
            return
    raise AssertionError("there is no end of what waits")


def refused(part: Part, error: str, *words: str, times: int = 2, **how: Any) -> None:
    """Runs that end with an error of these words, and leave the table as it was."""
    before = part.rows()
    for _ in range(times):
        done = part.run(**how)
        assert (done.outcome, done.error_class) == ("Failed", error), done.message
        assert not [each for each in words if each not in done.message], done.message
        assert part.rows() == before


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("first", [True, False], ids=["first commit", "later commit"])
@pytest.mark.parametrize("fails", [False, True], ids=["dies", "fails"])
@pytest.mark.parametrize("part", applies("restart"), indirect=True)
def test_each_row_is_once_in_the_table_behind_whichever_call_a_run_ends(
    part: Part, dying: Dying, figure: Callable[[int, str], None], *, fails: bool, first: bool
) -> None:
    dying.fails = fails
    sent: list[Row] = []
    how = {"operation": "Insert" if part.inserts else "Upsert"}

    def more() -> None:
        rows = [(f"k{len(sent) + number:04}", 1) for number in range(3)]
        part.put(*rows)
        sent.extend(rows)

    more()
    if not first:
        all_of_it(part, **how)
        more()
    calls = dying.counted(lambda: part.run(**how))
    assert calls > BOUNDARIES_QUICK
    ended, every = 0, max(1, calls // BOUNDARIES_QUICK) if scale() == 1 or part.quick else 1
    for at in range(1, calls + 1, every):
        if first:
            part.anew(f"table-{at}")
        else:
            more()
        ended += dying.ends(at, lambda: part.run(**how))
        part.after_death()
        all_of_it(part, **how)
        assert part.rows() == sent, f"behind call {at}"
    assert ended > calls // every // 2
    figure(ended, "runs of a source that ended behind one of their calls")


@pytest.mark.parametrize("part", applies("duplicates"), indirect=True)
def test_a_row_that_comes_again_is_once_in_the_table(part: Part) -> None:
    rows = [("a", 1), ("b", 1)]
    part.put(*rows)
    part.again(*rows)
    good(part)
    assert part.rows() == rows
    part.again(*rows)
    all_of_it(part)
    assert part.rows() == rows


@pytest.mark.parametrize("part", applies("reordering"), indirect=True)
def test_an_older_row_that_comes_late_overwrites_no_newer_one(part: Part) -> None:
    part.put(("a", 1), ("b", 1))
    good(part)
    part.put(("a", 3))
    part.late(("a", 2))
    good(part)
    assert part.rows() == [("a", 3), ("b", 1)]
    part.put(("b", 3))
    good(part)
    part.late(("b", 2), ("c", 1))
    good(part)
    assert part.rows() == [("a", 3), ("b", 3), ("c", 1)]


@pytest.mark.parametrize("part", applies("partitions"), indirect=True)
def test_rows_of_a_partition_that_was_not_there_are_taken(part: Part) -> None:
    part.put(("a", 1))
    good(part)
    part.grow()
    part.put(("b", 1), ("c", 1))
    good(part)
    assert part.rows() == [("a", 1), ("b", 1), ("c", 1)]
    assert part.run().outcome == "NothingToDo"


@pytest.mark.parametrize("part", applies("retention"), indirect=True)
def test_what_retention_took_ends_the_ingest_unless_it_is_to_go_on(part: Part) -> None:
    part.put(("a", 1))
    good(part)
    part.put(("b", 1))
    said = part.forget()
    part.put(("c", 1))
    refused(part, "DataLoss", said)
    good(part, **part.onward())
    assert part.rows() == [("a", 1), ("c", 1)]


@pytest.mark.parametrize("part", [pytest.param("Files by SQS", marks=pytest.mark.s3)], indirect=True)
def test_files_whose_events_a_queue_has_forgotten_are_taken_by_a_run_that_lists(part: Part) -> None:
    part.put(("a", 1))
    good(part)
    part.put(("b", 1))
    part.forget()
    part.put(("c", 1))
    good(part)
    assert part.rows() == [("a", 1), ("c", 1)]
    good(part, source={"notifications": None})
    assert part.rows() == [("a", 1), ("b", 1), ("c", 1)]
    assert part.run().outcome == "NothingToDo"


@pytest.mark.parametrize("part", applies("away"), indirect=True)
def test_a_part_that_is_away_is_waited_for(part: Part) -> None:
    part.put(("a", 1))
    good(part)
    part.put(("b", 1))
    part.leave()
    refused(part, "Unavailable", times=1)
    part.come_back()
    good(part)
    part.put(("c", 1))
    good(part)
    assert part.rows() == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("part", applies("credentials"), indirect=True)
def test_rotated_credentials_are_refused_until_the_ingest_has_the_new_ones(part: Part) -> None:
    part.put(("a", 1))
    good(part)
    part.put(("b", 1))
    part.rotate()
    refused(part, "AccessDenied", times=1)
    assert not [each for each in part.secrets() if each in part.feed.result().to_json()]
    part.renew()
    good(part)
    assert part.rows() == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("part", applies("schema"), indirect=True)
def test_a_column_that_comes_is_refused_or_taken_as_the_policy_says(part: Part) -> None:
    part.put(("a", 1))
    good(part, schemaPolicy="Refuse")
    part.widen()
    part.put(("b", 1), more="x")
    refused(part, "InvalidSchema", "added: more (string)", schemaPolicy="Refuse")
    good(part, schemaPolicy="AddColumns")
    assert {row["id"]: row["more"] for row in part.shown("id", "more")} == {"a": None, "b": "x"}
    assert part.run(schemaPolicy="AddColumns").outcome == "NothingToDo"


@pytest.mark.parametrize("part", applies("poison"), indirect=True)
def test_what_cannot_be_taken_is_named_commits_nothing_and_loses_nothing(part: Part) -> None:
    part.put(("a", 1))
    good(part)
    part.put(("b", 1))
    place = part.poison()
    refused(part, part.spoilt, place)
    rows, how = part.cure()
    good(part, **how)
    assert part.rows() == [("a", 1), ("b", 1), *rows]
    assert part.run(**how).outcome == "NothingToDo"
