"""what a service would do, and what it costs; without TYPE, the plans that wait

With TYPE a TableService in mode Plan is made, unless one of the type waits already. Exit code 5
says that there is something to do.
"""

from __future__ import annotations

import argparse
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import plans, program
from hudi_operator.cli.kubectl.access import Access, access
from hudi_operator.cli.kubectl.services import followed, indexing_section, is_over, service_manifest, verdict, workable
from hudi_operator.plan.status import overview
from hudi_table.cli import exits
from hudi_table.cli.output import Document as Shown
from hudi_table.cli.output import emit, note


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["plan", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Print the plans of a table, or make one and print it."""
    cluster = access(args)
    table = cluster.table(args.name)
    planned = [each for each in cluster.services_of(table) if each["spec"].get("mode") == "Plan"]
    if args.type is None:
        show(planned, args.output)
        return exits.PLAN_NOT_EMPTY if any(overview.waits(each) for each in planned) else exits.GOOD
    same = [each for each in planned if asks(each, args) and not _is_done(each)]
    if same and not args.new:
        service = same[-1]
    else:
        service = cluster.create_service(service_manifest(args, workable(table), "Plan"))
        note(f"TableService {documents.name_of(service)} is made")
    return _shown(cluster, service, args)


def _shown(cluster: Access, service: Document, args: argparse.Namespace) -> int:
    name = documents.name_of(service)
    if args.no_wait:
        note(f"kubectl hudi plan {args.name} -n {cluster.namespace} shows the plan once it is made")
        return exits.GOOD
    ended = followed(cluster, name, args.timeout, is_over)
    if ended is None or documents.is_true(ended, "Stalled"):
        return verdict(ended)
    show([ended], args.output)
    if not overview.waits(ended):
        note("there is nothing to do")
        return exits.GOOD
    digest = documents.plan_of(ended)["digest"]
    note(f"kubectl hudi approve {name} --plan {digest} --yes -n {cluster.namespace} runs exactly this plan")
    return exits.PLAN_NOT_EMPTY


def show(services: list[Document], form: str) -> None:
    """Print plans; of a single one its file groups, too."""
    columns = (*plans.COLUMNS, plans.DETAILS) if form in ("json", "yaml") else plans.COLUMNS
    emit(Shown("PlanList", columns, [plans.row(each) for each in services]), form)
    if form in ("table", "wide") and len(services) == 1:
        for line in plans.row(services[0])["details"] or ():
            note(f"  {line}")


def asks(service: Document, args: argparse.Namespace) -> bool:
    """Whether it asks for what is asked for here: an upgrade for another version is another one,
    and an indexing of other indexes."""
    spec = service["spec"]
    if spec["type"] != args.type or (spec.get("upgrade") or {}).get("to") != args.to:
        return False
    return bool(_without_defaults(spec.get("indexing") or {}) == indexing_section(args))


def _without_defaults(stored: dict[str, Any]) -> dict[str, Any]:
    """A section without the empty lists and maps that the API server has filled in."""
    found = {name: [_without_defaults(v) if isinstance(v, dict) else v for v in value] if isinstance(value, list) else value
             for name, value in stored.items()}  # fmt: skip
    return {name: value for name, value in found.items() if value}


def _is_done(service: Document) -> bool:
    """Whether its one plan was run, failed, or found nothing."""
    return plans.state(service) in ("done", "failed", "nothing to do")
