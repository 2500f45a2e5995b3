"""`plan_table`: a bootstrap comes before everything else, and is made once. Nothing is run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hudi_operator.api.resources import DesiredTable
from hudi_operator.plan.effects import Effect, Emit, Launch, SetStatus
from hudi_operator.plan.observed import TableObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.job.checkpoint import SourceFile
from tests.support.plans import COMMIT, CONFIG, FILES, NOW, conditions, of, run_after, seen
from tests.support.plans import desired as made
from tests.support.plans import table as there

PATH = "s3://exported/flights/"
SIMPLE = replace(CONFIG, index=None)


def desired(status: dict[str, Any] | None = None, **bootstrap: Any) -> DesiredTable:
    return made(status, index={"type": "Simple"}, bootstrap={"path": PATH, **bootstrap})


def table(*consumed: SourceFile, **changes: Any) -> TableObservation:
    return there(*consumed, **{"config": SIMPLE, **changes})


def bootstrapped(effects: list[Effect]) -> tuple[str, str]:
    return conditions(effects)["Bootstrapped"]


def test_the_bootstrap_comes_before_the_files_that_wait() -> None:
    effects = plan_table(desired(pattern="a=.*"), seen(), NOW)
    (launch,) = of(Launch, effects)
    assert (launch.run.work, launch.spec.engine) == ("Bootstrap", "Local")
    assert launch.spec.work == {"type": "Bootstrap", "path": PATH, "mode": "MetadataOnly", "pattern": "a=.*"}
    assert conditions(effects)["Reconciling"] == ("True", "Bootstrapping")
    assert bootstrapped(effects) == ("False", "NotYet")
    assert of(Emit, effects)[0].message.startswith("Bootstrap: attempt 1 as ")
    assert [emit.reason for emit in of(Emit, effects)] == ["Started"]
    running = run_after(effects, "Running")
    assert not of(Launch, plan_table(desired(of(SetStatus, effects)[0].status), seen(runs=(running,)), NOW))


def test_once_the_table_is_there_the_files_are_taken_in() -> None:
    first = plan_table(desired(), seen(), NOW)
    done = run_after(first, "Succeeded")
    effects = plan_table(desired(of(SetStatus, first)[0].status), seen(table(), runs=(done,)), NOW)
    assert [launch.run.work for launch in of(Launch, effects)] == ["Ingest/feed"]
    assert bootstrapped(effects) == ("True", "TableMade")
    again = plan_table(desired(of(SetStatus, effects)[0].status), seen(table(*FILES)), NOW)
    assert not of(Launch, again), "what the status tells outlasts the run"
    assert bootstrapped(again) == ("True", "TableMade")


def test_an_empty_table_of_an_attempt_that_was_cut_short_is_bootstrapped_all_the_same() -> None:
    first = plan_table(desired(mode="FullRecord"), seen(), NOW)
    lost = run_after(first, "Lost")
    empty = table(commits=(), files=())
    effects = plan_table(desired(of(SetStatus, first)[0].status, mode="FullRecord"), seen(empty, runs=(lost,)), NOW)
    assert conditions(effects)["Reconciling"] == ("True", "Retrying")
    assert not of(Launch, effects)


def test_a_bootstrap_that_cannot_be_made_stalls_and_nothing_else_writes() -> None:
    first = plan_table(desired(), seen(), NOW)
    failed = run_after(first, "Failed", reason="InvalidData", message="a.parquet and b.parquet hold the key 1")
    effects = plan_table(desired(of(SetStatus, first)[0].status), seen(runs=(failed,)), NOW)
    assert conditions(effects)["Stalled"] == ("True", "InvalidData")
    assert not of(Launch, effects)
    assert bootstrapped(effects) == ("False", "NotYet")


def test_it_is_not_made_twice_though_the_table_is_gone() -> None:
    made_of = replace(SIMPLE, extra={"hoodie.bootstrap.base.path": PATH})
    done = plan_table(desired(), seen(table(config=made_of), files=()), NOW)
    assert bootstrapped(done) == ("True", "TableMade")
    effects = plan_table(desired(of(SetStatus, done)[0].status), seen(), NOW)
    assert not of(Launch, effects)
    assert conditions(effects)["Stalled"] == bootstrapped(effects) == ("True", "TableGone")
    left_out = plan_table(made(of(SetStatus, effects)[0].status, index={"type": "Simple"}), seen(), NOW)
    assert [launch.run.work for launch in of(Launch, left_out)] == ["Ingest/feed"]


def test_a_table_that_was_there_is_left_as_it_is_and_told_once() -> None:
    found = table(last_write=COMMIT.time)
    effects = plan_table(desired(), seen(found), NOW)
    assert [launch.run.work for launch in of(Launch, effects)] == ["Ingest/feed"]
    assert bootstrapped(effects) == ("False", "TableWasThere")
    assert [emit.reason for emit in of(Emit, effects)] == ["Started", "TableWasThere"]
    as_served = json.loads(json.dumps(of(SetStatus, effects)[0].status))
    again = plan_table(desired(as_served), seen(found), NOW)
    assert "TableWasThere" not in [emit.reason for emit in of(Emit, again)]
    assert "Bootstrapped" not in conditions(plan_table(made(index={"type": "Simple"}), seen(found), NOW))
