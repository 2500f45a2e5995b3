"""What is planned for ingests from a database: a run each time that it is to be asked, repeats of
those that fail, and what the status says."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.status import RunStatus
from hudi_operator.plan.effects import Effect, Launch, RequeueAfter
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.marks import Mark
from tests.support.manifests import ingest
from tests.support.plans import COMMIT, NOW, desired, status_of, table

JDBC = {"url": "postgresql://db:5432/shop", "table": "orders", "incremental": {"column": "at", "lag": "10m"}}
MARK = CommittedCheckpoint(Mark("b1", "a", "at", "2026-01-01 00:00:00", 1, "7"), COMMIT.time)


def planned(found: TableObservation | None, *runs: RunStatus, generation: int = 1, **jdbc: Any) -> list[Effect]:
    wanted = desired(generation=generation, ingest=[ingest(source={"type": "Jdbc", "jdbc": JDBC | jdbc})])
    return plan_table(wanted, Observed(table=found, sources=(SourceObservation("feed"),), runs=runs), NOW)


def launches(effects: list[Effect]) -> list[Launch]:
    return [effect for effect in effects if isinstance(effect, Launch)]


def ended(phase: str, ago: timedelta, **changes: Any) -> RunStatus:
    (launch,) = launches(planned(None))
    return replace(launch.run, phase=phase, finished=rfc3339(NOW - ago), **changes)


def conditions(effects: list[Effect]) -> dict[str, tuple[str, str, str]]:
    return {c.type: (c.status, c.reason, c.message) for c in status_of(effects).conditions}


def test_the_database_is_asked_at_once_and_the_job_is_told_how() -> None:
    effects = planned(None)
    (launch,) = launches(effects)
    assert launch.spec.engine == "Local"
    told = launch.spec.work["source"]["jdbc"]
    assert (told["incremental"], "every" in told) == ({"column": "at", "lag": 600}, False)
    assert "asks its database" in conditions(effects)["Reconciling"][2]
    lag = launches(planned(None, incremental={"column": "n", "lag": "7"}))[0]
    assert lag.spec.work["source"]["jdbc"]["incremental"]["lag"] == 7


@pytest.mark.parametrize("phase", ["Succeeded", "NothingToDo"])
def test_it_is_asked_again_once_its_time_has_come(phase: str) -> None:
    found = table(checkpoints={"feed": MARK})
    early = planned(found, ended(phase, timedelta(minutes=4)))
    assert not launches(early)
    (again,) = [e for e in early if isinstance(e, RequeueAfter) and e.why == "Ingest/feed"]
    assert (again.seconds, again.appointment) == (60.0, True)
    assert not {"Stalled", "Reconciling"} & conditions(early).keys()
    last = ended(phase, timedelta(minutes=5))
    (launch,) = launches(planned(found, last))
    assert launch.run.batch == f"behind:{last.name}"
    assert launch.run.name != last.name
    assert not launches(planned(found, ended(phase, timedelta(minutes=5)), every="1h"))


def test_a_manifest_that_has_changed_asks_at_once() -> None:
    assert launches(planned(table(checkpoints={"feed": MARK}), ended("Succeeded", timedelta(0)), generation=2))


def test_a_run_that_failed_is_repeated_and_what_no_repeat_mends_stalls() -> None:
    away = ended("Failed", timedelta(minutes=1), reason="Unavailable", message="the database does not answer")
    (launch,) = launches(planned(None, away))
    assert (launch.run.attempt, launch.run.batch) == (2, away.batch)
    wrong = ended("Failed", timedelta(minutes=1), reason="InvalidRequest", message="the database refuses the SQL")
    effects = planned(None, wrong)
    assert not launches(effects)
    assert conditions(effects)["Stalled"][1:] == ("InvalidRequest", "Ingest/feed: the database refuses the SQL")


def test_the_status_says_how_far_it_is() -> None:
    effects = planned(table(checkpoints={"feed": MARK}), ended("Succeeded", timedelta(minutes=1)))
    (feed,) = status_of(effects).ingest
    assert (feed.checkpoint, feed.last_commit, feed.pending_files) == ("b1", COMMIT.time, 0)
    unknown = (
        "Unknown",
        "SourceNotAsked",
        "the operator does not ask the source of feed: each run finds out what is new",
    )
    assert conditions(effects)["Fresh"] == conditions(planned(table()))["Fresh"] == unknown


def test_a_source_of_a_package_is_asked_as_often_as_it_says() -> None:
    source = {"type": "Custom", "custom": {"name": "shop.api", "options": {"site": "x"}, "every": "1m"}}
    wanted = desired(ingest=[ingest(source=source)])

    def plan(*runs: RunStatus) -> list[Effect]:
        return plan_table(wanted, Observed(sources=(SourceObservation("feed"),), runs=runs), NOW)

    (launch,) = launches(plan())
    assert (launch.spec.engine, launch.spec.work["source"]["custom"]) == (
        "Local", {"name": "shop.api", "options": {"site": "x"}}
    )  # fmt: skip
    assert "asks shop.api" in conditions(plan())["Reconciling"][2]
    done = replace(launch.run, phase="Succeeded", finished=rfc3339(NOW - timedelta(seconds=59)))
    assert not launches(plan(done))
    assert launches(plan(replace(done, finished=rfc3339(NOW - timedelta(seconds=60)))))


def test_a_statement_is_asked_as_often_as_it_says() -> None:
    tables = [{"name": "orders", "location": "s3://lake/orders"}]
    asked = {"query": "SELECT * FROM orders", "tables": tables, "incremental": {"column": "seen", "lag": "10m"}}
    wanted = desired(ingest=[ingest(source={"type": "Sql", "sql": asked | {"every": "1m"}})])

    def plan(*runs: RunStatus) -> list[Effect]:
        return plan_table(wanted, Observed(sources=(SourceObservation("feed"),), runs=runs), NOW)

    (launch,) = launches(plan())
    told = asked | {"incremental": {"column": "seen", "lag": 600}}
    assert (launch.spec.engine, launch.spec.work["source"]["sql"]) == ("Local", told)
    assert "looks at the tables of its statement" in conditions(plan())["Reconciling"][2]
    done = replace(launch.run, phase="Succeeded", finished=rfc3339(NOW - timedelta(seconds=59)))
    assert not launches(plan(done))
    assert launches(plan(replace(done, finished=rfc3339(NOW - timedelta(seconds=60)))))
