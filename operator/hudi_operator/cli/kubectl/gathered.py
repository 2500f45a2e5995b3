"""What is found beside a table: its TableServices, pods, events, and who leads. What may not be
seen is left out."""

from __future__ import annotations

from datetime import datetime

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl.access import Access
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.pods import OWNER
from hudi_operator.plan.status.why import Facts


def facts_of(cluster: Access, table: Document, now: datetime) -> Facts:
    """Everything that `why` looks at."""
    services = cluster.services_of(table)
    names = [documents.name_of(each) for each in (table, *services)]
    attempts = [str(run.get("name")) for each in (table, *services) for run in documents.unended_of(each)]
    chosen = f"{ATTEMPT} in ({','.join(attempts)})"
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    pods = cluster.objects(path, labelSelector=chosen) if attempts else []
    events = [event for name in (*names, *attempts) for event in events_of(cluster, name)]
    events += _warnings_of_pods(cluster, attempts) if attempts else []
    return Facts(services=services, pods=pods, events=events, holder=cluster.holder(now))


def _warnings_of_pods(cluster: Access, attempts: list[str]) -> list[Document]:
    """What scheduler and kubelet say against the pods of attempts, those that are gone too, oldest
    first."""
    path = f"/api/v1/namespaces/{cluster.namespace}/events"
    found = cluster.objects(path, fieldSelector="involvedObject.kind=Pod,type=Warning")
    heads = tuple(f"{attempt}-" for attempt in attempts)
    ours = (event for event in found if str(event["involvedObject"].get("name", "")).startswith(heads))
    return sorted(ours, key=documents.moment_of)


def pods_of(cluster: Access, resource: Document) -> list[Document]:
    """The pods that work for a resource, newest first."""
    chosen = f"{OWNER}={resource['metadata']['uid']}"
    found = cluster.objects(f"/api/v1/namespaces/{cluster.namespace}/pods", labelSelector=chosen)
    return sorted(found, key=lambda pod: str(pod["metadata"].get("creationTimestamp")), reverse=True)


def events_of(cluster: Access, name: str) -> list[Document]:
    """The events about an object, oldest first."""
    path = f"/api/v1/namespaces/{cluster.namespace}/events"
    found = cluster.objects(path, fieldSelector=f"involvedObject.name={name}")
    return sorted(found, key=documents.moment_of)
