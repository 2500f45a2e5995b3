"""After everything else has run: where the credentials are not, and which rights were used.

The audit log is that of `make cluster-up`; of a foreign cluster, whose log nobody hands us, the
rights are not judged.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from e2e.cluster.places import AUDIT
from e2e.support.kube import Kube
from e2e.support.lake import Lake
from e2e.support.operator import INSTALLED, NAMESPACE, Resource
from hudi_operator.api.names import GROUP, PLURALS

pytestmark = pytest.mark.usefixtures("installed")
OPERATOR = f"system:serviceaccount:{INSTALLED}:hudi-operator"
KNOWN_AGAIN = timedelta(minutes=1)
_NOT_KINDS = ("secrets", "bindings", "localsubjectaccessreviews.authorization.k8s.io")


def test_credentials_stand_in_no_object_but_their_secrets(kube: Kube, lake: Lake) -> None:
    kinds = kube.need("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
    for kind in sorted(set(kinds) - set(_NOT_KINDS)):
        for namespace in (NAMESPACE, INSTALLED, "storage"):
            found = kube.need("get", kind, "-n", namespace, "-o", "json", "--show-managed-fields")
            assert not leaks(found, lake), f"{kind} in {namespace} hold a credential"


def test_credentials_stand_in_no_log(kube: Kube, lake: Lake) -> None:
    for namespace in (NAMESPACE, INSTALLED):
        for pod in kube.items("pods", "-n", namespace):
            name = pod["metadata"]["name"]
            assert not leaks(kube.run("logs", name, "-n", namespace, "--all-containers").stdout, lake), name


def test_credentials_stand_in_no_file_of_a_timeline(lake: Lake) -> None:
    client = lake.client()
    keys = [key for key in lake.keys("lake") if "/.hoodie/" in key]
    assert keys
    for key in keys:
        assert not leaks(client.get_object(Bucket="lake", Key=key)["Body"].read().decode("latin-1"), lake), key


def test_the_pods_of_jobs_write_nowhere_and_only_drivers_of_executors_hold_a_token(kube: Kube) -> None:
    pods = kube.items("pods", "-n", NAMESPACE, "-l", "hudi.lakeops.dev/owner")
    assert pods
    for pod in pods:
        spec = pod["spec"]
        has_token = any("projected" in volume for volume in spec["volumes"])
        assert spec["serviceAccountName"] == ("hudi-driver" if has_token else "hudi-job")
        assert all(c["securityContext"]["readOnlyRootFilesystem"] for c in spec["containers"])


def test_a_pod_that_is_not_restricted_is_refused(kube: Kube) -> None:
    done = kube.run("run", "root", "--image=localhost/versitygw:1", "-n", NAMESPACE, "--dry-run=server")
    assert done.returncode != 0
    assert "violates PodSecurity" in done.stderr


def test_no_account_was_refused_anything(kube: Kube) -> None:
    left = {each["metadata"]["name"] for each in kube.items("namespaces")}
    events = audited()
    refused = {
        f"{e['user']['username']} {e['verb']} {e['requestURI']} {e['requestReceivedTimestamp']} {e.get('annotations')}"
        for e in events
        if e["responseStatus"]["code"] == 403 and not before_its_roles(e, events) and not after_its_roles(e, left)
    }
    assert not refused
    for role in ("hudi-operator", "hudi-driver"):
        # Only then may a server that has just started not have known it yet.
        assert kube.run("get", "role", role, "-n", NAMESPACE).returncode == 0


def test_every_right_of_the_operator_was_used(kube: Kube) -> None:
    """Its roles name every verb that it may; the audit log every one that it used. Our kinds it
    reads one by one only after a conflict, an event it counts up only where that comes again:
    tests/charts/test_life.py brings both about."""
    used = {
        (e["objectRef"].get("apiGroup", ""), resource_of(e), e["verb"])
        for e in audited()
        if e["user"]["username"] == OPERATOR and "objectRef" in e and e["responseStatus"]["code"] < 300
    }
    roles = [role for namespace in (NAMESPACE, INSTALLED) for role in kube.items("roles", "-n", namespace)]
    granted = {
        (group, resource, verb)
        for role in (*roles, *kube.items("clusterroles"))
        if role["metadata"]["name"].startswith("hudi-operator")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    conflicts = {(GROUP, plural, "get") for plural in PLURALS.values()}
    counted = {("events.k8s.io", "events", verb) for verb in ("get", "patch")}
    assert granted - used <= conflicts | counted


def resource_of(event: dict[str, Any]) -> str:
    """As a role names it."""
    found = event["objectRef"]
    return "/".join(filter(None, (found["resource"], found.get("subresource", ""))))


def audited() -> list[dict[str, Any]]:
    """What accounts of our namespace have asked of the API server."""
    if not AUDIT.exists():
        pytest.skip("the audit log of a foreign cluster")
    events = [json.loads(line) for line in AUDIT.read_text().splitlines()]
    ours = tuple(f"system:serviceaccount:{namespace}:" for namespace in (NAMESPACE, INSTALLED))
    return [e for e in events if e["user"]["username"].startswith(ours)]


def before_its_roles(event: dict[str, Any], events: list[dict[str, Any]]) -> bool:
    """Whether the server refused because it has not read its roles yet: for a moment after a start,
    of which the suite has some, it takes requests and knows a binding to a role and not the role,
    or not even the binding. Then it said yes to the same before, and soon after."""
    if str(event.get("annotations", {}).get("authorization.k8s.io/reason", "")).endswith(" not found"):
        return True
    moment = received(event)
    same = [received(e) for e in events if asked(e) == asked(event) and e["responseStatus"]["code"] < 300]
    return any(each < moment for each in same) and any(timedelta() < each - moment < KNOWN_AGAIN for each in same)


def asked(event: dict[str, Any]) -> tuple[str, ...]:
    """Who wanted to do what, and where."""
    found = event.get("objectRef", {})
    return (
        event["user"]["username"],
        event["verb"],
        *(found.get(name, "") for name in ("apiGroup", "resource", "subresource", "namespace")),
    )


def received(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["requestReceivedTimestamp"])


def after_its_roles(event: dict[str, Any], left: set[str]) -> bool:
    """Whether the server refused because the namespace was going, and its roles with it."""
    return event.get("objectRef", {}).get("namespace", "") not in {*left, ""}


def leaks(text: str, lake: Lake) -> bool:
    """Whether a text holds one of the credentials, as it is or as base64 writes it."""
    secrets = (lake.access_key, lake.secret_key)
    return any(s in text or base64.b64encode(s.encode()).decode()[:-4] in text for s in secrets)


def test_the_canary_would_be_found(kube: Kube, lake: Lake) -> None:
    assert leaks(kube.need("get", "secrets", "-n", NAMESPACE, "-o", "json"), lake)
    assert Resource(kube, "secret", "s3").now() is not None
