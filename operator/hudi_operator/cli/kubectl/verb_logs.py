"""what the pod of an attempt says

Of the attempt that is at work, else of the newest. When its pod is gone, it prints what the status
keeps.
"""

from __future__ import annotations

import argparse
import sys

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import Access, access
from hudi_operator.cli.kubectl.gathered import pods_of
from hudi_operator.manifests.pod_parts import ATTEMPT
from hudi_operator.manifests.pods import CONTAINER, DRIVER_CONTAINER, EXECUTOR_CONTAINER
from hudi_operator.plan.status.pods import troubles
from hudi_table.cli import exits
from hudi_table.cli.output import note
from hudi_table.errors import InvalidRequestError, ObjectNotFoundError


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["logs", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Print the log; exit code 1 if there is none any more."""
    cluster = access(args)
    resources = _resources(cluster, args.name)
    attempts = [run for each in resources for run in documents.runs_of(each)]
    chosen = _chosen(attempts, args)
    pods = [pod for each in resources for pod in pods_of(cluster, each) if _works_for(pod, str(chosen["name"]))]
    note(f"{chosen.get('work')}, attempt {chosen.get('attempt')} as {chosen['name']}: {chosen.get('phase')}")
    if not pods:
        return _gone(chosen)
    pod = pods[0]
    for reason, message in troubles(pod):
        note(f"the pod does not start: {reason}: {message}")
    if (pod.get("status") or {}).get("phase") == "Pending" and not args.follow:
        note(f"the pod has said nothing yet: kubectl describe pod {documents.name_of(pod)} -n {cluster.namespace}")
        return exits.FAILED
    return _printed(cluster, pod, args)


def _resources(cluster: Access, name: str) -> list[Document]:
    """A HudiTable and its TableServices, or one TableService."""
    tables = [each for each in cluster.tables() if documents.name_of(each) == name]
    if tables:
        return [tables[0], *cluster.services_of(tables[0])]
    services = [each for each in cluster.services() if documents.name_of(each) == name]
    return services[:1] or [cluster.table(name)]


def _chosen(attempts: list[Document], args: argparse.Namespace) -> Document:
    if not attempts:
        raise InvalidRequestError(
            f"nothing has run for {args.name} yet; kubectl hudi why {args.name} says what it waits for"
        )
    if args.run is not None:
        found = [each for each in attempts if each["name"] == args.run]
        if not found:
            known = ", ".join(str(each["name"]) for each in attempts[:10])
            raise InvalidRequestError(f"there is no attempt {args.run!r} of {args.name}; there are {known}")
        return found[0]
    return max(attempts, key=lambda each: (each.get("phase") == "Running", str(each.get("started"))))


def _works_for(pod: Document, attempt: str) -> bool:
    """Whether a pod is the driver of an attempt."""
    labels = pod["metadata"].get("labels") or {}
    executes = any(each["name"] == EXECUTOR_CONTAINER for each in pod["spec"]["containers"])
    return not executes and attempt in (labels.get(ATTEMPT), labels.get("batch.kubernetes.io/job-name"))


def _gone(attempt: Document) -> int:
    message = f"{attempt.get('reason') or attempt.get('phase')}: {attempt.get('message') or 'no message'}"
    note(f"its pod is gone, and its log with it; the status keeps: {message}")
    return exits.FAILED


def _printed(cluster: Access, pod: Document, args: argparse.Namespace) -> int:
    names = [each["name"] for each in pod["spec"]["containers"]]
    query = {"container": next((each for each in (CONTAINER, DRIVER_CONTAINER) if each in names), names[0])}
    if args.follow:
        query["follow"] = "true"
    if args.tail is not None:
        query["tailLines"] = str(args.tail)
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{documents.name_of(pod)}/log"
    said = False
    try:
        for line in cluster.rest.lines(path, **query):
            said = True
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except ObjectNotFoundError:
        raise InvalidRequestError(f"pod {documents.name_of(pod)} is gone meanwhile, and its log with it") from None
    if not said:
        note("its log is empty")
    return exits.GOOD
