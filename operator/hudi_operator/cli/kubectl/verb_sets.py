"""the sets of tables: topics, tables, and which topics have none

One row a HudiTableSet; of one that is named, a row for each topic that fails or is gone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from hudi_operator.api import documents
from hudi_operator.api.documents import Document
from hudi_operator.cli.kubectl import program
from hudi_operator.cli.kubectl.access import access
from hudi_operator.plan.status import overview
from hudi_table.cli import exits
from hudi_table.cli.output import Column, emit, note
from hudi_table.cli.output import Document as Shown
from hudi_table.errors import InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.read.output.human import number

_WELL = frozenset({"Ready", "Suspended", "Starting"})
_TOPICS = (
    Column("topic", "Topic"),
    Column("table", "Table"),
    Column("reason", "Reason"),
    Column("message", "Message"),
)


def main(arguments: list[str]) -> int:
    """The verb, as an entry point of `hudictl`."""
    return program.run(["sets", *arguments], "hudictl")


def _columns(*, everywhere: bool) -> tuple[Column, ...]:
    return (
        *((Column("namespace", "Namespace"),) if everywhere else ()),
        Column("name", "Set"),
        Column("health", "Health"),
        Column("topics", "Topics", number, right=True),
        Column("tables", "Tables", number, right=True),
        Column("readyTables", "Ready", number, right=True),
        Column("failingTables", "Failing", number, right=True),
        Column("vanishedTopics", "Vanished", number, right=True),
        Column("reason", "Reason"),
        Column("selects", "Selects", wide=True),
    )


_RAW = (*_columns(everywhere=True), Column("message", "Message"))


def run(args: argparse.Namespace) -> int:
    """Print the rows; exit code 3 if `--fail-on` finds something."""
    if args.name and args.all_namespaces:
        raise InvalidOptionError("a NAME is of one namespace: leave out -A, or the name")
    cluster = access(args)
    found = [cluster.table_set(args.name)] if args.name else cluster.table_sets(everywhere=args.all_namespaces)
    found.sort(key=lambda each: (documents.namespace_of(each), documents.name_of(each)))
    whole = args.output in ("json", "yaml")
    if args.name:
        rows = list(topics(found[0]))
        _emit(Shown("TopicList", _TOPICS, rows), args, f"{args.name}: {_verdict(found[0])}")
    else:
        rows = [row(each) for each in found]
        columns = _RAW if whole else _columns(everywhere=args.all_namespaces)
        where = "in any namespace" if args.all_namespaces else f"in namespace {cluster.namespace}; -A looks in all"
        _emit(Shown("TableSetStatusList", columns, rows), args, f"there is no HudiTableSet {where}")
    bad = [each for each in found if health(each) not in _WELL or _failing(each)]
    return exits.FINDINGS if bad and args.fail_on == "blocked" else exits.GOOD


def _emit(shown: Shown, args: argparse.Namespace, otherwise: str) -> None:
    """A document whatever is in it; a table if there is a row."""
    if shown.rows or args.output in ("json", "yaml"):
        emit(shown, args.output)
    else:
        note(otherwise)


def row(found: Document) -> dict[str, Any]:
    """The row of one set."""
    status, ready = documents.status_of(found), documents.condition_of(found, "Ready")
    selector = found.get("spec", {}).get("selector") or {}
    database = selector.get("database") or {}
    return {
        "namespace": documents.namespace_of(found),
        "name": documents.name_of(found),
        "health": health(found),
        "reason": ready.get("reason"),
        "message": ready.get("message"),
        "topics": status.get("topics"),
        "tables": status.get("tables"),
        "readyTables": status.get("readyTables"),
        "failingTables": status.get("failingTables"),
        "vanishedTopics": status.get("vanishedTopics"),
        "selects": selector.get("topicPattern")
        or f"{database.get('topicPrefix')}.({database.get('tablePattern') or '.*'})",
    }


def health(found: Document) -> str:
    """One word, as of a table; a set whose tables are new is starting."""
    word = overview.health(found)
    if word == "NotReady" and documents.is_true(found, "Reconciling"):
        return "Starting" if documents.condition_of(found, "Ready").get("reason") in _BEGINS else "Unknown"
    return word


_BEGINS = ("WritingTables", "TablesStarting")


def topics(found: Document) -> Iterator[dict[str, Any]]:
    """The first topics that have no table, or one that is not ready, and those that are gone."""
    status = documents.status_of(found)
    yield from (dict(each) for each in status.get("failing") or ())
    for each in status.get("vanished") or ():
        said = f"gone or selected no more since {each.get('since')}"
        yield {"topic": each.get("topic"), "table": each.get("table"), "reason": "TopicsVanished", "message": said}


def _failing(found: Document) -> int:
    return int(documents.status_of(found).get("failingTables") or 0)


def _verdict(found: Document) -> str:
    ready = documents.condition_of(found, "Ready")
    if ready.get("status") != "True":
        return f"{health(found)}: {ready.get('message') or 'no operator has looked at it'}"
    return f"no topic fails; {counted(int(documents.status_of(found).get('tables') or 0), 'table')}"
