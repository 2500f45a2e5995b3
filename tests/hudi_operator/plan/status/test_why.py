"""What keeps a table from going on: each cause in plain words, with the next command. Documents in,
causes out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_operator.cli.kubectl.verb_why import text
from hudi_operator.plan.status.why import Facts, Level, causes
from tests.support.manifests import manifest, spec, stored

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
SINCE = "2026-01-01T00:55:00Z"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


READY = condition("Ready", "True", "TableReadable", "20 records in 10 files")


def table(*conditions: dict[str, Any], seen: int = 1, **changes: Any) -> dict[str, Any]:
    more = changes.pop("status", {})
    status = {"observedGeneration": seen, "conditions": [*conditions], **more}
    return stored(manifest(**spec(**changes)), status=status)


def service(name: str, kind: str, *conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    body = manifest(name, "TableService", tableRef={"name": "flights"}, type=kind, mode="Plan")
    return stored(body, status={"observedGeneration": 1, "conditions": [*conditions], **status})


def told(found: dict[str, Any], **facts: Any) -> list[tuple[str, str, str]]:
    return [
        (each.level.value, each.what, each.next) for each in causes(found, Facts(**{"holder": "pod-1", **facts}), NOW)
    ]


@pytest.mark.parametrize(
    ("batch", "waits"),
    [
        ("9f86d081884c7d659a2f", "other attempts on this table wait for it, but for drivers of mode Continuous"),
        ("continuous:begin/x", "a driver of mode Continuous: other attempts work beside it"),
    ],
)
def test_of_an_attempt_at_work_it_is_told_what_waits_for_it(batch: str, waits: str) -> None:
    run = {"work": "Ingest/feed", "phase": "Running", "attempt": 2, "name": "flights-feed-1-2", "batch": batch}
    (cause,) = causes(table(READY, status={"runs": [run]}), Facts(holder="pod-1"), NOW)
    assert (cause.level, cause.why) == (Level.RUNS, f"attempt 2 as flights-feed-1-2; {waits}")


def test_of_a_table_that_is_well_there_is_nothing_to_tell() -> None:
    assert told(table(READY)) == []


@pytest.mark.parametrize(
    ("reason", "message", "next_"),
    [
        (
            "InvalidSpec",
            "spec.storage.credentialsSecretRef.name: there is no Secret 's3'",
            "kubectl create secret generic s3 -n default --from-literal=AWS_ACCESS_KEY_ID=… --from-literal=AWS_SECRET_ACCESS_KEY=…",
        ),
        ("InvalidSpec", "spec.recordKey: is ['id'], but …", "kubectl edit ht flights -n default"),
        ("AccessDenied", "the store refuses", "kubectl get secret s3 -n default"),
        ("AccessDenied", "the API server refuses: jobs is forbidden", "kubectl describe role,rolebinding -n default"),
        ("AccessDenied", "the API server refuses: exceeded quota: none", "kubectl describe quota -n default"),
        ("LauncherNotServed", "this cluster serves no sparkapplications", "kubectl edit ht flights -n default"),
        ("JobLost", "the job ended without a result", "kubectl hudi logs flights -n default"),
        ("CorruptTable", "bytes contradict", "hudictl explain CorruptTable"),
    ],
)
def test_a_standstill_says_what_mends_it(reason: str, message: str, next_: str) -> None:
    stalled = condition("Stalled", "True", reason, message)
    found = table(
        condition("Ready", "False", reason, message), stalled, storage={"credentialsSecretRef": {"name": "s3"}}
    )
    assert told(found) == [("blocks", f"stalled: {reason}", next_)]


def test_a_store_that_does_not_answer_is_told_with_the_repeat() -> None:
    found = table(
        condition("Ready", "Unknown", "Unavailable", "no answer"),
        condition("Reconciling", "True", "Retrying", "no answer; next try in 20 s"),
    )
    assert told(found) == [
        ("blocks", "it cannot be seen: Unavailable", "hudictl explain Unavailable"),
        ("waits", "it is tried again", "kubectl hudi logs flights -n default"),
    ]


def test_a_table_that_was_suspended_is_told_how_to_go_on() -> None:
    patch = """kubectl patch ht flights -n default --type merge -p '{"spec":{"suspend":false}}'"""
    assert told(table(READY, suspend=True)) == [("blocks", "it is suspended", patch)]


@pytest.mark.parametrize(
    ("holder", "what"),
    [
        ("", "no operator leads"),
        ("pod-1", "the operator has not reconciled it"),
        (None, "the operator has not reconciled it"),
    ],
)
def test_a_manifest_that_nobody_looks_at(holder: str | None, what: str) -> None:
    leases = "kubectl get lease -A --field-selector metadata.name=hudi-operator"
    assert told(table(seen=0), holder=holder) == [("blocks", what, leases)]


def test_a_manifest_that_was_just_changed_is_given_time() -> None:
    found = table(READY, seen=0)
    found["metadata"]["managedFields"] = [{"manager": "kubectl", "time": "2026-01-01T00:59:58Z"}]
    assert told(found) == []


def test_a_pod_that_cannot_start_says_why() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}
    waiting = {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "secret s3 not found"}}}
    ordinary = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    pods = [
        {"metadata": {"name": "p1", "namespace": "default"}, "status": {"phase": "Pending", "conditions": [unscheduled]}},
        {"metadata": {"name": "p2", "namespace": "default"}, "status": {"phase": "Pending", "containerStatuses": [waiting]}},
        {"metadata": {"name": "p3", "namespace": "default"}, "status": {"phase": "Pending", "containerStatuses": [ordinary]}},
    ]  # fmt: skip
    assert told(table(READY), pods=pods) == [
        ("blocks", "pod p1 does not start: Unschedulable", "kubectl describe pod p1 -n default"),
        ("blocks", "pod p2 does not start: CreateContainerConfigError", "kubectl describe pod p2 -n default"),
    ]


def test_plans_failures_and_work_are_told_in_the_order_of_their_weight() -> None:
    run = {"name": "r2", "work": "Cleaning", "phase": "Running", "attempt": 1, "started": SINCE}
    services = [
        service("shrink", "Clustering", READY, plan={"digest": "3f2a91bc00112233", "why": "asked for", "made": SINCE}),
        service("undo", "Rollback", condition("Stalled", "True", "InvalidRequest", "no such write")),
        service("nightly", "Cleaning", READY, condition("Reconciling", "True", "Running"), runs=[run]),
        service("late", "Savepoint", condition("Ready", "True", "Waiting"), condition("Reconciling", "True", "Waiting", "Cleaning runs")),
    ]  # fmt: skip
    assert [(level, what) for level, what, _ in told(table(READY), services=services)] == [
        ("failed", "TableService undo (Rollback) is stalled: InvalidRequest"),
        ("waits", "TableService shrink (Clustering) waits for approval"),
        ("waits", "TableService late (Savepoint) waits"),
        ("runs", "Cleaning is at work"),
    ]


def test_services_of_other_tables_are_none_of_its_business() -> None:
    other = service("undo", "Rollback", condition("Stalled", "True", "InvalidRequest"))
    other["spec"]["tableRef"]["name"] = "planes"
    assert told(table(READY), services=[other]) == []


@pytest.mark.parametrize(
    ("kind", "next_"),
    [
        ("Compacted", "kubectl hudi run flights Compaction -n default"),
        ("WellSized", "kubectl hudi plan flights Clustering -n default"),
        ("Clean", "kubectl hudi run flights Cleaning -n default"),
        ("Archived", "kubectl hudi run flights Archiving -n default"),
        ("MetadataTable", "kubectl hudi run flights Indexing -n default"),
    ],
)
def test_a_debt_says_what_pays_it(kind: str, next_: str) -> None:
    found = table(READY, condition(kind, "False", "Due"), index={"type": "Simple"})
    assert [(level, said) for level, _, said in told(found)] == [("debt", next_)]


def test_what_a_bucket_table_owes_is_paid_by_a_resize_alone() -> None:
    small = condition("WellSized", "False", "SmallFiles", "fewer index.buckets make larger files")
    assert told(table(READY, small)) == [("debt", "Clustering is due: SmallFiles", "")]
    wanted = condition("ResizeNeedsApproval", "True", "BucketsChanged", "index.buckets is 8, the table has 4")
    assert told(table(READY, wanted)) == [
        ("waits", "a resize waits for a plan", "kubectl hudi plan flights Resize -n default")
    ]


def test_another_table_version_waits_for_a_plan_and_a_lost_reader_is_named() -> None:
    wanted = condition("UpgradeNeedsApproval", "True", "VersionChanged", "tableVersion is 9, the table has 6")
    served = condition("ReadersServed", "False", "CannotRead", "Hudi 0.15 cannot read table version 9: why")
    found = table(READY, wanted, served)
    found["spec"]["tableVersion"] = 9
    assert told(found) == [
        ("waits", "another table version waits for a plan", "kubectl hudi plan flights Upgrade --to 9 -n default"),
        ("debt", "a reader cannot read it", "kubectl get ht flights -n default -o yaml"),
    ]


@pytest.mark.parametrize(
    ("kind", "better", "what", "next_"),
    [
        ("Bloom", None, "its index Bloom could do better", "kubectl edit ht flights -n default"),
        (
            "GlobalSimple",
            "RecordIndex",
            "index RecordIndex would read less than GlobalSimple",
            """kubectl patch ht flights -n default --type merge -p '{"spec":{"index":{"type":"RecordIndex"}}}'""",
        ),
        ("Simple", "Bucket", "index Bucket would read less than Simple", ""),
        ("Hash", "Tree", "index Tree would read less than Hash", ""),
    ],
)
def test_advice_stands_last_with_the_change_that_follows_it(
    kind: str, better: str | None, what: str, next_: str
) -> None:
    index = {"type": kind, "advice": ["one reason", "another"], "better": better, "instant": "20260101000000000"}
    found = table(READY, status={"index": index})
    assert told(found) == [("advice", what, next_)]
    assert [cause.why for cause in causes(found, Facts(holder="pod-1"), NOW)] == ["one reason; another"]
    assert text(found, causes(found, Facts(holder="pod-1"), NOW), NOW).startswith(
        "flights: nothing blocks it; 20 records"
    )
    assert told(table(READY, status={"index": {**index, "advice": [], "better": None}})) == []


def test_a_person_reads_it_as_text() -> None:
    found = table(
        READY,
        condition("Compacted", "False", "LogFiles", "2.0 GiB of log files wait to be compacted"),
        type="MergeOnRead",
    )
    waiting = service(
        "shrink", "Clustering", READY, plan={"digest": "3f2a91bc00112233", "why": "asked for", "made": SINCE}
    )
    assert text(found, causes(found, Facts(services=[waiting], holder="pod-1"), NOW), NOW) == (
        "flights: something waits\n"
        "\n"
        "waits   TableService shrink (Clustering) waits for approval, for 5m\n"
        "        plan 3f2a91bc00112233: asked for\n"
        "        → kubectl hudi approve shrink -n default\n"
        "\n"
        "debt    Compaction is due: LogFiles, for 5m\n"
        "        2.0 GiB of log files wait to be compacted\n"
        "        → kubectl hudi run flights Compaction -n default\n"
    )
    assert text(table(READY), [], NOW) == "flights: nothing blocks it; 20 records in 10 files\n"


def test_levels_are_in_the_order_of_their_weight() -> None:
    assert [level.value for level in Level] == ["blocks", "failed", "waits", "runs", "debt", "advice"]


def event(pod: str, reason: str, message: str, kind: str = "Pod") -> dict[str, Any]:
    return {
        "metadata": {"name": "e"}, "involvedObject": {"kind": kind, "name": pod}, "type": "Warning", "reason": reason,
        "message": message, "lastTimestamp": SINCE,
    }  # fmt: skip


def pod(name: str, phase: str) -> dict[str, Any]:
    waiting = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    return {
        "metadata": {"name": name, "namespace": "default"}, "status": {"phase": phase, "containerStatuses": [waiting]},
    }  # fmt: skip


@pytest.mark.parametrize("reason", ["FailedCreatePodSandBox", "FailedMount", "Failed", "NetworkNotReady"])
def test_a_pod_without_sandbox_volume_or_image_is_told_from_its_events(reason: str) -> None:
    events = [event("flights-1-x", "FailedScheduling", "0/1 nodes"), event("flights-1-x", reason, "no room for it")]
    found = causes(table(READY), Facts(pods=[pod("flights-1-x", "Pending")], events=events, holder="pod-1"), NOW)
    assert [(each.level, each.what, each.why) for each in found] == [
        (Level.BLOCKS, f"pod flights-1-x does not start: {reason}", "no room for it")
    ]
    assert found[0].next == "kubectl describe pod flights-1-x -n default"


def test_events_of_a_pod_that_started_after_all_are_no_cause() -> None:
    events = [event("flights-1-x", "FailedCreatePodSandBox", "no network")]
    assert told(table(READY), pods=[pod("flights-1-x", "Running")], events=events) == []


def test_a_pod_that_is_gone_and_never_started_is_told() -> None:
    events = [event("flights-1-x", "FailedCreatePodSandBox", "no network"), event("flights-1-x", "Killing", "bye")]
    assert told(table(READY), events=events) == [
        (
            "failed", "pod flights-1-x did not start: FailedCreatePodSandBox",
            "kubectl get events -n default --field-selector involvedObject.name=flights-1-x",
        )
    ]  # fmt: skip
