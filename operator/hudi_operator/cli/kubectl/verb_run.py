"""runs a service, once and now

It makes a TableService that runs once, and with `--wait` follows it. Services that take rows away
ask for `--yes`; all others keep every row readable. `plan` shows before what one would do.
"""

from __future__ import annotations

import argparse

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import access
from hudi_operator.cli.kubectl.services import followed, is_over, service_manifest, verdict, workable
from hudi_table.cli import exits
from hudi_table.cli.output import Column, emit, note
from hudi_table.cli.output import Document as Shown
from hudi_table.errors import InvalidOptionError

_TAKES_AWAY = ("Restore", "Rollback", "PartitionTTL")
_BY_PLAN = ("Resize", "Upgrade")
_COLUMNS = (
    Column("service", "Service"),
    Column("type", "Type"),
    Column("phase", "Phase"),
    Column("run", "Attempt"),
    Column("instants", "Instants"),
    Column("message", "Message"),
    Column(
        "figures",
        "Figures",
        lambda figures: ", ".join(f"{name} {value:g}" for name, value in (figures or {}).items()) or "-",
        wide=True,
    ),
)


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["run", *arguments], "hudictl")


def run(args: argparse.Namespace) -> int:
    """Make the TableService, and follow it."""
    where = f"-n {args.namespace}" if args.namespace else ""
    plan = f"kubectl hudi plan {args.name} {args.type} {where}".strip()
    if args.type in _BY_PLAN:
        more = f"{plan} --to {args.to or 'VERSION'}" if args.type == "Upgrade" else plan
        raise InvalidOptionError(f"type {args.type} runs by a plan that was approved: {more}")
    if args.type in _TAKES_AWAY and not args.yes:
        raise InvalidOptionError(f"{args.type} takes rows away: give --yes, or read its plan first: {plan}")
    cluster = access(args)
    service = cluster.create_service(service_manifest(args, workable(cluster.table(args.name)), "ScheduleAndExecute"))
    name = documents.name_of(service)
    note(f"TableService {name} is made")
    if not args.wait:
        emit(Shown("ServiceRun", _COLUMNS, [_row(service)], single=True), args.output)
        note(f"kubectl hudi why {args.name} -n {cluster.namespace} says how far it is")
        return exits.GOOD
    ended = followed(cluster, name, args.timeout, is_over)
    if ended is not None:
        emit(Shown("ServiceRun", _COLUMNS, [_row(ended)], single=True), args.output)
    return verdict(ended)


def _row(service: Document) -> dict[str, object]:
    newest = next(iter(documents.runs_of(service)), {})
    return {
        "service": documents.name_of(service),
        "type": service["spec"]["type"],
        "phase": documents.status_of(service).get("phase"),
        "run": newest.get("name"),
        "instants": newest.get("instants"),
        "message": newest.get("message"),
        "figures": newest.get("figures"),
    }
