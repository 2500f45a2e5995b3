"""What is told of other engines: that they write the table, and what they dropped from its
properties."""

from __future__ import annotations

from dataclasses import replace

from hudi_operator.api.status import CONDITION_LENGTH_MAX, Condition
from hudi_operator.plan.effects import SetStatus
from hudi_operator.plan.observed import Observed, Problem, TableObservation
from hudi_operator.plan.table import plan_table
from hudi_table.model.timeline.instants import Action, Instant, State
from tests.support.plans import FILES, NOW, desired, of, seen, status_of, table

COMMIT = Instant("20260101000000000", Action.COMMIT, State.COMPLETED)


def told(found: TableObservation) -> dict[str, Condition]:
    conditions = status_of(plan_table(desired(), seen(found), NOW)).conditions
    return {c.type: c for c in conditions if c.type in ("ForeignWriters", "PropertiesLost")}


def test_nothing_is_told_of_a_table_that_is_written_by_us_alone() -> None:
    assert told(table(*FILES)) == {}


def test_the_last_commit_of_another_engine_and_the_page_are_named() -> None:
    found = told(replace(table(*FILES), foreign=(COMMIT,)))["ForeignWriters"]
    assert (found.status, found.reason) == ("True", "Seen")
    assert found.message.startswith("1 recent commit of other engines, the last at 20260101000000000; ")
    assert found.message.endswith("docs/explanation/foreign-writers.md")


def test_the_properties_that_were_dropped_and_what_brings_them_back_are_named() -> None:
    found = told(replace(table(*FILES), lost=("hoodie.index.type",)))["PropertiesLost"]
    assert found.message == (
        "another engine dropped or changed hoodie.index.type; nothing is written until they are back: hudictl doctor --mend"
    )
    many = told(replace(table(*FILES), lost=tuple(f"hoodie.lakeops.{n}" for n in range(1000))))["PropertiesLost"]
    assert len(many.message) <= CONDITION_LENGTH_MAX


def test_what_was_told_stays_while_the_table_cannot_be_seen() -> None:
    first = plan_table(desired(), seen(replace(table(*FILES), foreign=(COMMIT,))), NOW)
    unseen = Observed(problem=Problem("Unavailable", "no answer", retryable=True), failures=1)
    after = plan_table(desired(of(SetStatus, first)[0].status), unseen, NOW)
    assert "ForeignWriters" in {c.type for c in status_of(after).conditions}
