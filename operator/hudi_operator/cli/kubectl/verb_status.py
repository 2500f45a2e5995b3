"""the tables: health, freshness, their debt, what is at work

One row a HudiTable. With `-w` it goes on, a row for each change, as `kubectl get -w` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import Access, access
from hudi_operator.plan.status import overview
from hudi_table.cli import exits
from hudi_table.cli.output import Column, emit, note, styled
from hudi_table.cli.output import Document as Shown
from hudi_table.errors import InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.read.output.human import age, number, size
from hudi_table.table.store.clock import SystemClock

WATCH_SECONDS = 2.0
_WELL = frozenset({"Ready", "Empty", "Suspended", "Starting"})


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["status", *arguments], "hudictl")


def _running(runs: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f"{run['work']} {age(run['seconds'])}" for run in runs) or "-"


def columns(*, everywhere: bool) -> tuple[Column, ...]:
    """What is shown of a table."""
    return (
        *((Column("namespace", "Namespace"),) if everywhere else ()),
        Column("name", "Table"),
        Column("health", "Health"),
        Column("lastCommitSeconds", "Last commit", age, right=True),
        Column("waitingFiles", "Waiting", lambda count: counted(count, "file")),
        Column("records", "Records", number, right=True),
        Column("bytes", "Size", size, right=True),
        Column("debts", "Debt"),
        Column("running", "At work", _running),
        Column("plansWaiting", "To approve"),
        Column("advice", "Advised", wide=True),
        Column("type", "Type", wide=True),
        Column("files", "Files", number, wide=True, right=True),
        Column("logBytes", "Logs", size, wide=True, right=True),
        Column("lag", "Lag", wide=True, right=True),
        Column("lastInstant", "Last instant", wide=True),
        Column("reason", "Reason", wide=True),
        Column("location", "Location", wide=True),
    )


_RAW = (*columns(everywhere=True), Column("message", "Message"))


def run(args: argparse.Namespace) -> int:
    """Print the rows; exit code 3 if `--fail-on` finds something."""
    if args.watch and args.output not in ("table", "wide"):
        raise InvalidOptionError(f"-w prints lines for eyes; -o {args.output} prints one whole document: leave one out")
    if args.name and args.all_namespaces:
        raise InvalidOptionError("a NAME is of one namespace: leave out -A, or the name")
    cluster = access(args)
    tables, services = _listed(cluster, args)
    shown = _shown(tables, services, args)
    if shown.rows or args.output in ("json", "yaml"):
        emit(shown, args.output)
    else:
        where = "in any namespace" if args.all_namespaces else f"in namespace {cluster.namespace}; -A looks in all"
        note(f"there is no HudiTable {where}")
    if args.watch:
        _watch(cluster, args, tables, services)
    bad = [each for each in shown.rows if each["health"] not in _WELL]
    owing = [each for each in shown.rows if each["debts"]]
    found = {"never": False, "blocked": bool(bad), "debts": bool(bad or owing)}[args.fail_on]
    return exits.FINDINGS if found else exits.GOOD


def _listed(cluster: Access, args: argparse.Namespace) -> tuple[list[Document], list[Document]]:
    everywhere = args.all_namespaces
    tables = [cluster.table(args.name)] if args.name else cluster.tables(everywhere=everywhere)
    return tables, cluster.services(everywhere=everywhere)


def _shown(tables: list[Document], services: list[Document], args: argparse.Namespace) -> Shown:
    now = SystemClock().now()
    rows = []
    for table in sorted(tables, key=lambda each: (documents.namespace_of(each), documents.name_of(each))):
        beside = [each for each in services if documents.namespace_of(each) == documents.namespace_of(table)]
        rows.append(overview.row(table, beside, now))
    shown = _RAW if args.output in ("json", "yaml") else columns(everywhere=args.all_namespaces)
    return Shown("TableStatusList", shown, rows)


def _watch(cluster: Access, args: argparse.Namespace, tables: list[Document], services: list[Document]) -> None:
    """A line for each table that has changed, until the user stops it."""
    clock = SystemClock()
    known = _versions(tables, services)
    while True:
        sys.stdout.flush()
        clock.sleep(WATCH_SECONDS)
        tables, services = _listed(cluster, args)
        versions = _versions(tables, services)
        shown = _shown(tables, services, args)
        _, *lines = shown.render(args.output, bold=styled(sys.stdout)).splitlines() or [""]
        for each, line in zip(shown.rows, lines, strict=True):
            key = (each["namespace"], each["name"])
            if versions[key] != known.get(key):
                sys.stdout.write(f"{line}\n")
        known = versions


def _versions(tables: list[Document], services: list[Document]) -> dict[tuple[str, str], tuple[str, ...]]:
    """What a row is made of, by its table."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for each in tables:
        found[documents.namespace_of(each), documents.name_of(each)] = (str(each["metadata"]["resourceVersion"]),)
    for each in services:
        key = (documents.namespace_of(each), documents.table_of(each))
        if key in found:
            found[key] += (str(each["metadata"]["resourceVersion"]),)
    return found
