"""What `helm test` asks of a cluster: the operator runs and leads, all kinds are served, and a
wrong manifest is refused.

Runs in a pod of the operator's image with an account of its own. Nothing is kept: creations are
server-side dry runs.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path(os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
WAIT_SECONDS, POLL_SECONDS = 90.0, 1.0
HUDI = "hudi.lakeops.dev"
TABLE = {"location": "s3://lake/helm-test", "recordKey": ["id"], "index": {"type": "Bucket", "buckets": 4}}
SERVICE = {"tableRef": {"name": "helm-test"}, "type": "Cleaning"}
FEED = {"type": "Kafka", "format": "json", "kafka": {"brokers": "kafka:9092", "topics": ["{topic}"]}}
SET = {
    "selector": {"topicPattern": "helm-test-.*"},
    "template": {
        "spec": {"location": "s3://lake/{topic}", "recordKey": ["id"], "ingest": [{"name": "feed", "source": FEED}]}
    },
}
OK, CREATED, UNPROCESSABLE = 200, 201, 422


def called(method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
    """One request with the pod's own account."""
    server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(server + path, data, headers, method=method)  # noqa: S310 - https, or what the cluster says
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(asked, timeout=10, context=trust) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def eventually(what: str, path: str, wanted: Any) -> None:
    """Ask until the answer is what is wanted, or end the test."""
    limit = time.monotonic() + WAIT_SECONDS
    while True:
        status, found = called("GET", path)
        if status == OK and wanted(found):
            print(f"good: {what}")
            return
        if time.monotonic() > limit:
            sys.exit(f"bad: {what}: {status} {json.dumps(found.get('status', found.get('message')))}")
        time.sleep(POLL_SECONDS)


def created(what: str, kind: str, spec: dict[str, Any], wanted: int) -> None:
    """Whether a creation that is judged and not kept gets the answer that is wanted."""
    path = f"/apis/{HUDI}/v1alpha1/namespaces/{os.environ['TABLES']}/{kind.lower()}s?dryRun=All"
    document = {"apiVersion": f"{HUDI}/v1alpha1", "kind": kind, "metadata": {"name": "helm-test"}, "spec": spec}
    status, found = called("POST", path, document)
    if status != wanted:
        sys.exit(f"bad: {what}: {status} {found.get('message')}")
    print(f"good: {what}")


def main() -> None:
    """Every question, the quick ones first."""
    here = os.environ["NAMESPACE"]
    deployment = f"/apis/apps/v1/namespaces/{here}/deployments/{os.environ['DEPLOYMENT']}"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{here}/leases/{os.environ['DEPLOYMENT']}"
    created("a HudiTable is taken", "HudiTable", TABLE, CREATED)
    created("a HudiTable without a record key is refused", "HudiTable", {"location": "s3://lake/t"}, UNPROCESSABLE)
    created("a TableService is taken", "TableService", SERVICE, CREATED)
    created("a HudiTableSet is taken", "HudiTableSet", SET, CREATED)
    eventually(
        "a pod of the operator is ready", deployment, lambda found: found["status"].get("availableReplicas", 0) > 0
    )
    eventually("an operator leads", lease, lambda found: found["spec"].get("holderIdentity"))
    _, before = called("GET", lease)
    eventually(
        "it renews its lead", lease, lambda found: found["spec"].get("renewTime") != before["spec"].get("renewTime")
    )


if __name__ == "__main__":
    main()
