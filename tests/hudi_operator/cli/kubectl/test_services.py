"""TableServices that a person makes: what stands in them, and when one is over."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from hudi_operator.api.resources import desired_service
from hudi_operator.cli.kubectl.services import is_over, service_manifest, status_line, workable
from hudi_operator.cli.kubectl.verb_plan import asks
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from tests.support.manifests import manifest, spec, stored

TABLE = stored(manifest("f" * 50, **spec()))


def asked(kind: str, **changes: Any) -> argparse.Namespace:
    return argparse.Namespace(
        **{
            "type": kind,
            "instant": None,
            "days": None,
            "to": None,
            "index": [],
            "drop_index": [],
            "option": [],
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (asked("Clustering", option=["hoodie.clustering.plan.strategy.max.num.groups=3"]),
         {"options": {"hoodie.clustering.plan.strategy.max.num.groups": "3"}}),
        (asked("Rollback", instant="20260101000000000"), {"rollback": {"instant": "20260101000000000"}}),
        (asked("Restore", instant="20260101000000000"), {"restore": {"instant": "20260101000000000"}}),
        (asked("Savepoint", instant="20260101000000000"), {"savepoint": {"instant": "20260101000000000"}}),
        (asked("PartitionTTL", days=30), {"partitionTTL": {"days": 30}}),
        (asked("Indexing"), {}),
        (asked("Indexing", index=["record_index", "column_stats", "record_index"]),
         {"indexing": {"partitions": ["record_index", "column_stats"]}}),
        (asked("Indexing", index=["secondary_index_by_n=n", "expr_index_up=upper(name)", "record_index",
                                  "expr_index_at=date_format(at) using bloom_filters format='yyyy, MM'"]),
         {"indexing": {"partitions": ["record_index"], "indexes": [
             {"name": "by_n", "column": "n"},
             {"name": "up", "column": "name", "function": "upper", "using": "column_stats"},
             {"name": "at", "column": "at", "function": "date_format", "using": "bloom_filters",
              "options": {"format": "yyyy, MM"}},
         ]}}),
        (asked("Indexing", drop_index=["by_n", "by_n", "up"]), {"indexing": {"drop": ["by_n", "up"]}}),
        (asked("Compaction"), {}),
    ],
)  # fmt: skip
def test_what_is_made_is_right_and_goes_with_its_table(arguments: argparse.Namespace, part: dict[str, Any]) -> None:
    found = service_manifest(arguments, TABLE, "ScheduleAndExecute")
    assert found["spec"] == {
        "tableRef": {"name": "f" * 50}, "type": arguments.type, "mode": "ScheduleAndExecute", **part,
    }  # fmt: skip
    assert desired_service(stored(found | {"metadata": {"name": "x", "namespace": "lake"}})).errors == ()
    assert found["metadata"]["ownerReferences"][0]["uid"] == TABLE["metadata"]["uid"]
    assert len(found["metadata"]["generateName"]) <= 58


def test_an_upgrade_is_planned_for_its_version() -> None:
    found = service_manifest(asked("Upgrade", to=9), TABLE, "Plan")
    assert found["spec"]["upgrade"] == {"to": 9}
    assert asks(found, asked("Upgrade", to=9))
    assert not asks(found, asked("Upgrade", to=8)), "a plan for another version is another one"
    assert desired_service(stored(found | {"metadata": {"name": "x", "namespace": "lake"}})).errors == ()


def test_a_plan_of_other_indexes_is_another_one() -> None:
    arguments = asked("Indexing", index=["column_stats", "expr_index_up=upper(name)"], drop_index=["by_n"])
    found = service_manifest(arguments, TABLE, "Plan")
    found["spec"]["indexing"]["indexes"][0]["options"] = {}
    assert asks(found, arguments), "as the API server has stored it"
    assert not asks(found, asked("Indexing", index=["column_stats", "expr_index_up=upper(name)"]))
    assert not asks(found, asked("Indexing"))


@pytest.mark.parametrize(
    "arguments",
    [asked("Rollback"), asked("Cleaning", instant="20260101000000000"), asked("PartitionTTL"), asked("Cleaning", days=3),
     asked("Cleaning", option=["hoodie.clean.policy"]), asked("Cleaning", index=["column_stats"]), asked("Upgrade"),
     asked("Cleaning", to=9), asked("Cleaning", drop_index=["by_n"]), asked("Indexing", index=["secrets"]),
     asked("Indexing", index=["secondary_index_by_n"]), asked("Indexing", index=["expr_index_up=name"])],
)  # fmt: skip
def test_what_does_not_fit_together_is_refused(arguments: argparse.Namespace) -> None:
    with pytest.raises(InvalidOptionError):
        service_manifest(arguments, TABLE, "Plan")


def service(generation: int = 1, **status: Any) -> dict[str, Any]:
    body = manifest("nightly", "TableService", tableRef={"name": "flights"}, type="Cleaning")
    return stored(body, generation=generation, status={"observedGeneration": 1, **status})


STALLED = {"type": "Stalled", "status": "True", "reason": "InvalidRequest", "message": "m"}


@pytest.mark.parametrize(
    ("document", "over"),
    [
        (service(phase="Succeeded", done="once-1"), True),
        # Of a table that is suspended nothing runs, and nothing fails either.
        (service(phase="Succeeded"), False),
        (service(2, phase="Succeeded", done="once-1"), False),
        (service(phase="Running"), False),
        (service(phase="Due"), False),
        (service(phase="Failed", conditions=[STALLED]), True),
        (service(phase="Planned", plan={"digest": "a"}), True),
        (service(phase="Planned", runs=[{"phase": "Running"}]), False),
        (service(phase="Suspended"), True),
    ],
)
def test_when_nothing_more_comes_of_a_service(document: dict[str, Any], over: bool) -> None:
    assert is_over(document) is over


def test_where_a_service_is_fits_on_a_line() -> None:
    assert status_line(stored(manifest("x", "TableService", tableRef={"name": "f"}))) == "x: waits for the operator"
    busy = {"type": "Reconciling", "status": "True", "message": "Cleaning runs as x"}
    assert status_line(service(phase="Running", conditions=[busy])) == "nightly: Running: Cleaning runs as x"


def test_a_table_that_is_suspended_is_told_with_the_next_step() -> None:
    assert workable(TABLE) is TABLE
    with pytest.raises(InvalidRequestError, match="kubectl patch ht flights -n default --type merge"):
        workable(stored(manifest(**spec(suspend=True))))
