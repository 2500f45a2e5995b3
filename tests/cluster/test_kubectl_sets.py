"""`kubectl hudi sets` as the real kubectl finds it, of sets that a real API server holds."""

from __future__ import annotations

from typing import Any

from hudi_operator.api.names import API_VERSION, PLURALS
from tests.support.kubelet import MERGE
from tests.support.manifests import manifest
from tests.support.set_manifests import set_spec
from tests.support.shell import Shell

SINCE = "2026-01-01T00:55:00Z"
FAILING = [{"topic": "orders-eu", "table": "orders-eu", "reason": "NameCollision", "message": "somebody has the name"}]
VANISHED = [{"topic": "orders-old", "table": "orders-old", "since": SINCE}]


def condition(kind: str, status: str, reason: str) -> dict[str, Any]:
    return {
        "type": kind, "status": status, "reason": reason, "message": "so it is", "lastTransitionTime": SINCE, "observedGeneration": 1,
    }  # fmt: skip


def has_set(shell: Shell, name: str, *conditions: dict[str, Any], **status: Any) -> None:
    body = {**manifest(name, "HudiTableSet", **set_spec()), "metadata": {"name": name, "namespace": shell.namespace}}
    shell.server.apply(body)
    place = f"/apis/{API_VERSION}/namespaces/{shell.namespace}/{PLURALS['HudiTableSet']}/{name}/status"
    told = {"observedGeneration": 1, "conditions": list(conditions), **status} if conditions else {}
    shell.server.done("PATCH", place, {"status": told}, MERGE)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_every_set_in_a_row_and_of_one_the_topics_that_fail(shell: Shell) -> None:
    assert "there is no HudiTableSet in namespace" in shell.hudi("sets").stderr
    well = condition("Ready", "True", "TablesReady")
    bad = (condition("Ready", "False", "NameCollision"), condition("Stalled", "True", "NameCollision"))
    has_set(shell, "fine", well, topics=1200, tables=1200, readyTables=1200, failingTables=0, vanishedTopics=0)
    has_set(
        shell, "mixed", *bad, topics=3, tables=3, readyTables=2, failingTables=1, vanishedTopics=1,
        failing=FAILING, vanished=VANISHED,
    )  # fmt: skip
    has_set(shell, "new")
    assert lines(shell.good("sets")) == [
        ["SET", "HEALTH", "TOPICS", "TABLES", "READY", "FAILING", "VANISHED", "REASON"],
        ["fine", "Ready", "1,200", "1,200", "1,200", "0", "0", "TablesReady"],
        ["mixed", "Stalled", "3", "3", "2", "1", "1", "NameCollision"],
        ["new", "NotSeen", "-", "0", "0", "0", "0", "-"],
    ]
    assert "orders-.*" in shell.good("sets", "-o", "wide")
    rows = shell.document("sets", "-A")["items"]
    assert {(each["namespace"], each["name"]) for each in rows} >= {(shell.namespace, "mixed")}
    shell.good("sets", "--fail-on", "blocked", code=3)
    shell.good("sets", "fine", "--fail-on", "blocked")
    assert "fine: no topic fails; 1,200 tables" in shell.hudi("sets", "fine").stderr
    topics = shell.document("sets", "mixed")["items"]
    assert topics[0] == FAILING[0]
    assert (topics[1]["topic"], topics[1]["reason"]) == ("orders-old", "TopicsVanished")
    assert "new: NotSeen: no operator has looked at it" in shell.hudi("sets", "new").stderr


def test_a_set_that_is_not_there_is_told_with_those_that_are(shell: Shell) -> None:
    has_set(shell, "shop")
    done = shell.hudi("sets", "shops")
    assert done.returncode != 0
    assert "there is no HudiTableSet 'shops'" in done.stderr
    assert "there are shop; kubectl hudi sets -A shows all sets" in done.stderr
    assert "leave out -A" in shell.hudi("sets", "shop", "-A").stderr
