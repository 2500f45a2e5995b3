"""lets a plan be run: exactly the one that was shown

Without `--yes` it is only shown. A plan that has changed meanwhile is not approved: exit code 4.
"""

from __future__ import annotations

import argparse

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import Access, access
from hudi_operator.cli.kubectl.services import followed, is_over, verdict
from hudi_operator.cli.kubectl.verb_plan import show
from hudi_operator.plan.status import overview
from hudi_table.cli import exits
from hudi_table.cli.output import note
from hudi_table.errors import InvalidRequestError, ObjectExistsError, WriteConflictError


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["approve", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Show the plan that waits, or approve it."""
    cluster = access(args)
    service = _waiting(cluster, args.name)
    name, digest = documents.name_of(service), documents.plan_of(service)["digest"]
    if args.plan is not None and args.plan != digest:
        raise WriteConflictError(
            f"{args.plan} is not the plan that waits in {name}: that is {digest}; kubectl hudi plan {documents.table_of(service)}"
            f" -n {cluster.namespace} shows it"
        )
    if not args.yes:
        show([service], args.output)
        note(f"kubectl hudi approve {name} --plan {digest} --yes -n {cluster.namespace} runs it")
        return exits.PLAN_NOT_EMPTY
    # Between look and approval the plan may have become another one: the version tells.
    version = service["metadata"]["resourceVersion"]
    try:
        approved = cluster.patch_service(name, {"metadata": {"resourceVersion": version}, "spec": {"approve": digest}})
    except ObjectExistsError:
        raise WriteConflictError(f"TableService {name} has changed meanwhile; read its new plan first") from None
    note(f"plan {digest} of {name} is approved")
    if not args.wait:
        note(f"kubectl hudi status {documents.table_of(service)} -n {cluster.namespace} -w follows the table")
        return exits.GOOD
    generation = approved["metadata"]["generation"]
    return verdict(followed(cluster, name, args.timeout, lambda document: _is_run(document, generation, digest)))


def _waiting(cluster: Access, name: str) -> Document:
    """The TableService of the name, or the one of the table of the name whose plan waits."""
    services = cluster.services()
    named = [each for each in services if documents.name_of(each) == name]
    of_table = [each for each in services if documents.table_of(each) == name and overview.waits(each)]
    if named and overview.waits(named[0]):
        return named[0]
    if len(of_table) == 1:
        return of_table[0]
    if of_table:
        names = ", ".join(documents.name_of(each) for each in of_table)
        raise InvalidRequestError(f"several plans of {name} wait; name one of the TableServices {names}")
    if named:
        raise InvalidRequestError(f"no plan of TableService {name} waits for an approval; {_instead(named[0])}")
    table = cluster.table(name)
    what = f"kubectl hudi plan {documents.name_of(table)} TYPE -n {cluster.namespace} makes one"
    raise InvalidRequestError(f"no plan of {name} waits for an approval; {what}")


def _instead(service: Document) -> str:
    phase = documents.status_of(service).get("phase", "not looked at yet")
    return (
        f"it is {phase}; kubectl hudi why {documents.table_of(service)} -n {documents.namespace_of(service)} says more"
    )


def _is_run(service: Document, generation: int, digest: str) -> bool:
    """Whether the approved plan was run, or cannot be."""
    if int(documents.status_of(service).get("observedGeneration") or 0) < generation or documents.running_of(service):
        return False
    last = documents.status_of(service).get("lastPlan") or {}
    return (
        last.get("digest") == digest
        or documents.is_true(service, "PlanStale")
        or (documents.is_true(service, "Stalled") and is_over(service))
    )
