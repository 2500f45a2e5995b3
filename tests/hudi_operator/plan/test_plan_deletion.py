"""`plan_deletion`: what becomes of a HudiTable that is being deleted and held back. Nothing is
run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.status import RunStatus
from hudi_operator.plan.deletion import DELETION_SECONDS_MAX, ObservedDeletion, plan_deletion
from hudi_operator.plan.effects import Effect, Emit, Hold, Launch, RequeueAfter, SetStatus, Stop
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import RetryPolicy, rfc3339
from hudi_operator.plan.table import plan_table
from tests.support.plans import NOW, conditions, desired, of, run_after, seen

POLICY = RetryPolicy()
INGEST = RunStatus("flights-feed-1", "Ingest/feed", "Running", 1, 1, started="2026-01-02T00:00:00Z")


def deleting(**changes: Any) -> DesiredTable:
    found = desired(**{"deletionPolicy": "Purge"} | changes)
    return replace(found, identity=replace(found.identity, deleted=rfc3339(NOW), held=True))


def planned(table: DesiredTable, observed: ObservedDeletion, after: float = 0.0) -> list[Effect]:
    return plan_deletion(table, observed, NOW + timedelta(seconds=after), policy=POLICY)


def warnings(effects: list[Effect]) -> list[str]:
    return [emit.message for emit in of(Emit, effects) if emit.reason == "NotPurged"]


class TestATableThatIsNotDeleted:
    def test_is_held_back_from_the_start_if_its_files_are_to_go_with_it(self) -> None:
        assert plan_table(desired(deletionPolicy="Purge"), seen(), NOW)[0] == Hold(True)

    def test_is_not_held_back_where_nobody_may_be_left_to_let_go_of_it_and_that_is_told(self) -> None:
        wanted = desired(deletionPolicy="Purge")
        effects = plan_table(wanted, seen(holdable=False), NOW)
        assert not of(Hold, effects)
        assert of(Launch, effects), "its rows are taken all the same"
        assert conditions(effects)["Stalled"] == ("True", "AccessDenied")
        held = replace(wanted, identity=replace(wanted.identity, held=True))
        assert of(Hold, plan_table(held, seen(holdable=False), NOW)) == [Hold(False)]

    def test_is_let_go_of_when_its_policy_has_changed(self) -> None:
        found = desired()
        held = replace(found, identity=replace(found.identity, held=True))
        assert of(Hold, plan_table(held, seen(), NOW)) == [Hold(False)]

    @pytest.mark.parametrize("policy", ["Retain", "Unregister"])
    def test_is_not_held_back_if_its_files_stay(self, policy: str) -> None:
        effects = plan_table(desired(deletionPolicy=policy), seen(), NOW)
        assert not of(Hold, effects)
        assert of(Launch, effects)


def lets_go(effects: list[Effect]) -> bool:
    """Whether the table is let go of, before anything is written that a namespace which is going
    may refuse."""
    kinds = [type(effect) for effect in effects if not isinstance(effect, Emit) or effect.reason != "NotPurged"]
    return of(Hold, effects) == [Hold(False)] and kinds.index(Hold) < kinds.index(SetStatus)


class TestATableThatIsDeleted:
    def test_is_purged_by_a_job(self) -> None:
        effects = planned(deleting(), ObservedDeletion())
        (launch,) = of(Launch, effects)
        assert launch.spec.work == {"type": "Purge"}
        assert launch.spec.engine == "Local"
        assert not of(Hold, effects)
        assert conditions(effects) == {"Ready": ("False", "Deleting"), "Reconciling": ("True", "Deleting")}

    def test_is_let_go_of_when_the_job_has_succeeded_or_found_nothing(self) -> None:
        first = planned(deleting(), ObservedDeletion())
        for phase in ("Succeeded", "NothingToDo"):
            effects = planned(deleting(), ObservedDeletion((run_after(first, phase),)))
            assert lets_go(effects)
            assert not of(Launch, effects)
            assert not warnings(effects)

    def test_stops_what_is_at_work_and_waits_for_its_end(self) -> None:
        effects = planned(deleting(), ObservedDeletion((INGEST,)))
        assert of(Stop, effects) == [Stop(INGEST.name)]
        assert not of(Launch, effects)
        assert not of(Hold, effects)

    def test_waits_for_its_services(self) -> None:
        effects = planned(deleting(), ObservedDeletion(others=(INGEST,)))
        assert not of(Launch, effects)
        assert of(RequeueAfter, effects)

    def test_does_not_stop_its_own_purge(self) -> None:
        first = planned(deleting(), ObservedDeletion())
        effects = planned(deleting(), ObservedDeletion((run_after(first, "Running"),)))
        assert not of(Stop, effects)
        assert not of(Launch, effects)

    def test_tries_again_after_a_job_that_was_lost(self) -> None:
        lost = run_after(planned(deleting(), ObservedDeletion()), "Lost")
        assert of(RequeueAfter, planned(deleting(), ObservedDeletion((lost,)), after=5))
        (launch,) = of(Launch, planned(deleting(), ObservedDeletion((lost,)), after=60))
        assert launch.run.attempt == 2

    @pytest.mark.parametrize(
        ("observed", "after", "why"),
        [
            (ObservedDeletion(sharer="HudiTable lake/other"), 0, "HudiTable lake/other has a table there"),
            (ObservedDeletion(unlaunchable={"Purge": Problem("AccessDenied", "the namespace is going")}), 0, "the namespace is going"),
            (ObservedDeletion(others=(INGEST,)), DELETION_SECONDS_MAX + 1, "not gone after 6 h"),
            (
                ObservedDeletion((replace(INGEST, work="Purge", batch="purge", phase="Failed", reason="AccessDenied", message="no"),)),
                0,
                "not deleted: no",
            ),
        ],
    )  # fmt: skip
    def test_is_let_go_of_with_a_warning_if_its_files_cannot_be_deleted(
        self, observed: ObservedDeletion, after: float, why: str
    ) -> None:
        effects = planned(deleting(), observed, after)
        assert why in warnings(effects)[0]
        assert lets_go(effects)
        assert not of(Launch, effects)

    def test_whose_attempts_cannot_be_seen_is_let_go_of_after_a_minute(self) -> None:
        refused = Problem("AccessDenied", "the rights are gone")
        observed = ObservedDeletion((INGEST,), unseen=refused)
        assert not of(Hold, planned(deleting(), observed))
        effects = planned(deleting(), observed, 61.0)
        assert lets_go(effects)
        assert "the rights are gone" in warnings(effects)[0]

    def test_is_let_go_of_at_once_when_its_policy_is_changed_meanwhile(self) -> None:
        effects = planned(deleting(deletionPolicy="Retain"), ObservedDeletion((INGEST,)))
        assert lets_go(effects)
        assert not of(Stop, effects)
