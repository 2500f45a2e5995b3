"""The CRDs on a real API server: it takes and refuses just what the models do, says the same words,
and prints the columns.

The same documents are judged without a server in tests/hudi_operator/api/test_crds.py; here is the
proof that the judge is right.
"""

from __future__ import annotations

import copy
import json
from http import HTTPStatus
from typing import Any

import pytest

from hudi_operator.api import crd
from hudi_operator.api.names import API_VERSION, PLURALS
from tests.hudi_operator.api.test_crds import BAD, GOOD, defaulted, judged, root
from tests.support.api_server import ApiServer
from tests.support.manifests import ingest, manifest, spec
from tests.support.set_manifests import set_spec

CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"location": "s3://lake/other"}, "location cannot change"),
    ({"type": "MergeOnRead"}, "type cannot change"),
    ({"recordKey": ["id", "day"]}, "recordKey cannot change"),
    ({"index": {"type": "Simple"}}, "only buckets can change"),
    ({"index": None}, "only buckets can change"),
    ({"mergeMode": "CommitTime"}, "mergeMode cannot change"),
    ({"spark": {"launcher": "Local"}}, "in a cluster use Auto or Job"),
]


def created(server: ApiServer, namespace: str, kind: str, document: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether a creation that is judged and not kept is taken; what would be stored, or what the
    server says."""
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURALS[kind]}?dryRun=All"
    status, said = server.call("POST", path, manifest("one", kind, **document))
    return status == HTTPStatus.CREATED, said


@pytest.fixture(scope="module")
def namespace() -> str:
    """Nothing is kept, so one is enough."""
    return "default"


def test_the_definitions_are_structural_and_their_names_are_taken(server: ApiServer) -> None:
    for item in server.get("crd")["items"]:
        conditions = {each["type"]: each["status"] for each in item["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}, item["metadata"]["name"]


@pytest.mark.parametrize(("kind", "document"), GOOD)
def test_what_the_judge_takes_the_server_takes_and_fills_in_alike(
    server: ApiServer, namespace: str, kind: str, document: dict[str, Any]
) -> None:
    taken, said = created(server, namespace, kind, document)
    assert taken, said["message"]
    node = root(kind)["properties"]["spec"]
    assert said["spec"] == defaulted(node, copy.deepcopy(document))


@pytest.mark.parametrize(("case", "words"), BAD)
def test_what_the_judge_refuses_the_server_refuses_in_the_same_words(
    server: ApiServer, namespace: str, case: tuple[str, dict[str, Any]], words: str
) -> None:
    kind, document = case
    taken, said = created(server, namespace, kind, document)
    assert not taken, f"the server takes what lacks {words}"
    # Of a schema's errors each implementation has words of its own.
    ours = [message.partition(": ")[2] for message in judged(kind, document) if message.startswith("spec")]
    for message in ours:
        assert message in said["message"]


@pytest.mark.parametrize(("changes", "words"), CHANGES)
def test_what_a_table_is_cannot_be_changed(
    server: ApiServer, namespace: str, changes: dict[str, Any], words: str
) -> None:
    server.apply({**manifest("kept", **spec()), "metadata": {"name": "kept", "namespace": namespace}})
    after = server.kubectl("replace", "-n", namespace, "-f", "-", given=json.dumps(manifest("kept", **spec(**changes))))
    assert after.returncode != 0
    assert words in after.stderr


SHOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "HudiTable": ("ht", spec()),
    "HudiTableSet": ("hts", set_spec()),
    "TableService": ("tsvc", {"tableRef": {"name": "t"}, "type": "Cleaning"}),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_kubectl_get_prints_the_columns(server: ApiServer, namespace: str, kind: str) -> None:
    short, document = SHOWN[kind]
    server.apply({**manifest("shown", kind, **document), "metadata": {"name": "shown", "namespace": namespace}})
    header = server.kubectl("get", "-n", namespace, short).stdout.splitlines()[0]
    wanted = ["NAME", *(column["name"].upper() for column in crd.COLUMNS[kind] if not column.get("priority"))]
    assert header.split() == " ".join(wanted).split()
    assert server.kubectl("get", "-n", namespace, "hudi").stdout, "all kinds belong to the category"
    assert API_VERSION.partition("/")[0] in server.kubectl("api-resources").stdout


def test_kubectl_get_wide_prints_the_worst_lag_and_whether_messages_are_at_risk(
    server: ApiServer, namespace: str
) -> None:
    ingests = [ingest(), ingest(name="other")]
    server.apply({**manifest("late", **spec(ingest=ingests)), "metadata": {"name": "late", "namespace": namespace}})
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/huditables/late/status"
    risk = {"type": "AtRisk", "status": "True", "reason": "DeletedUnread", "message": "soon", "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    status = {
        "ingest": [{"name": "feed", "lag": "9s"}, {"name": "other", "lag": "2h5m"}],
        "lag": "2h5m",
        "conditions": [{**risk, "observedGeneration": 1}],
    }
    server.done("PATCH", path, {"status": status}, "application/merge-patch+json")
    head, row = server.kubectl("get", "-n", namespace, "ht", "late", "-o", "wide").stdout.splitlines()
    assert row[head.index("LAG") :].split()[0] == "2h5m"
    assert row[head.index("AT RISK") :].split()[0] == "True"


def test_the_name_of_a_set_fits_into_a_label(server: ApiServer, namespace: str) -> None:
    for length, taken in ((63, True), (64, False)):
        document = manifest("s" * length, "HudiTableSet", **set_spec())
        done = server.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", given=json.dumps(document))
        assert (done.returncode == 0) == taken, done.stderr
        assert taken or "at most 63 characters" in done.stderr
