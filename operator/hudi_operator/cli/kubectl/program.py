"""The program `kubectl-hudi`: its verbs and arguments. Whatever is no verb of the cluster is one of
`hudictl`.

No client of Kubernetes is imported here, so that `--help` stays quick. Errors become messages at
the rim that `hudictl` has.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from hudi_table.cli import exits, guarded
from hudi_table.cli import main as hudictl

CALLED = "kubectl hudi"
FORMATS = ("table", "wide", "json", "yaml")
TIMEOUT_SECONDS = 600
TYPES = (
    "Compaction", "LogCompaction", "Clustering", "Cleaning", "Archiving", "Savepoint", "Restore", "Rollback", "Repair",
    "PartitionTTL", "Resize", "Indexing", "Upgrade",
)  # fmt: skip
VERBS = {
    "status": "the tables: health, freshness, their debt, what is at work",
    "sets": "the sets of tables: topics, tables, and which topics have none",
    "timeline": "what was done to a table",
    "plan": "what a service would do, and what it costs; without TYPE, the plans that wait",
    "approve": "lets a plan be run: exactly the one that was shown",
    "run": "runs a service, once and now",
    "lag": "how far the ingests from streams are behind, partition by partition",
    "why": "what keeps a table from going on, and the next command",
    "logs": "what the pod of an attempt says",
    "report": "everything about a table on one page, without secrets",
}


@dataclass(frozen=True, slots=True)
class _Verb:
    """How a verb is called."""

    arguments: Callable[[argparse.ArgumentParser], None]
    formats: Sequence[str] = FORMATS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing a user does wrong ends in a
    traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and not arguments[0].startswith("-") and (arguments[0] not in VERBS or _is_about_a_path(arguments)):
        return hudictl(arguments)
    return guarded(lambda: run(arguments))


def _is_about_a_path(arguments: list[str]) -> bool:
    """`timeline s3://lake/flights` is hudictl's: no name of a resource holds a slash."""
    return arguments[0] == "timeline" and any("/" in each for each in arguments[1:2] if not each.startswith("-"))


def run(arguments: list[str], called: str = CALLED) -> int:
    """Run one verb of the program that is `called` so. Raises HudiError, which the rim of the
    program tells."""
    parser = _parser(called)
    try:
        parsed = parser.parse_args(arguments)
        if parsed.verb is None:
            parser.print_help()
            return exits.USAGE if arguments else exits.GOOD
    except SystemExit as stop:  # argparse has printed help or a usage error
        return stop.code if isinstance(stop.code, int) else exits.USAGE
    found: Callable[[argparse.Namespace], int] = import_module(f"hudi_operator.cli.kubectl.verb_{parsed.verb}").run
    return found(parsed)


class _Help(argparse.HelpFormatter):
    """Help with room for one line to each argument."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)


def _parser(called: str = CALLED) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=called,
        description="HudiTables, HudiTableSets and TableServices of a cluster. Every other verb is one of hudictl: kubectl hudi explain NAME.",
        epilog=exits.EPILOG,
        allow_abbrev=False,
        formatter_class=_Help,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, text in VERBS.items():
        verb_parser = verbs.add_parser(
            name, help=text, description=f"Shows {text}." if name in _QUESTIONS else f"{text.capitalize()}.",
            epilog=exits.EPILOG, allow_abbrev=False, formatter_class=_Help,
        )  # fmt: skip
        shape = _SHAPES[name]
        shape.arguments(verb_parser)
        if shape.formats:
            verb_parser.add_argument(
                "-o", "--output", choices=shape.formats, default=shape.formats[0], help=f"format ({shape.formats[0]})"
            )
        _cluster_arguments(verb_parser)
    return parser


def _cluster_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("cluster")
    where.add_argument("-n", "--namespace", metavar="NAME", help="namespace (that of the context)")
    where.add_argument("--context", metavar="NAME", help="context of the kubeconfig (the current one)")
    where.add_argument(
        "--kubeconfig", metavar="FILE", default=os.environ.get("KUBECONFIG"), help="kubeconfig (as kubectl finds it)"
    )


def _name(parser: argparse.ArgumentParser, what: str = "of the HudiTable") -> None:
    parser.add_argument("name", metavar="NAME", help=what)


def _status(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="of one HudiTable; without it, all")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    parser.add_argument("-w", "--watch", action="store_true", help="go on, a line for each change")
    parser.add_argument(
        "--fail-on", choices=("never", "blocked", "debts"), default="never",
        help="exit code 3 if a table is neither Ready nor Empty nor Suspended, or has debt",
    )  # fmt: skip


def _sets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="of one HudiTableSet: its topics that fail or are gone")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    parser.add_argument(
        "--fail-on", choices=("never", "blocked"), default="never",
        help="exit code 3 if a set is neither Ready nor Suspended nor Starting, or a topic fails",
    )  # fmt: skip


def _timeline(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="only the newest N instants")
    parser.add_argument(
        "--storage",
        action="store_true",
        help="read the whole timeline from the store, with the credentials of this machine",
    )


def _lag(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("ingest", metavar="INGEST", nargs="?", help="of this ingest alone")
    parser.add_argument("--file", metavar="FILE", help="take the resource from a manifest, and ask no cluster")


def _service(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--instant", metavar="INSTANT", help="of a Savepoint, Restore or Rollback")
    parser.add_argument("--to", type=int, metavar="VERSION", help="of Upgrade: the table version, 6, 8 or 9")
    parser.add_argument("--days", type=int, metavar="N", help="of PartitionTTL: how long partitions live")
    parser.add_argument(
        "--index",
        action="append",
        metavar="INDEX",
        default=[],
        help="of Indexing: what is built beside files, column_stats, partition_stats, bloom_filters, record_index, "
        "partitioned_record_index, secondary_index_NAME=COLUMN or expr_index_NAME=FUNCTION(COLUMN); repeat for more",
    )
    parser.add_argument(
        "--drop-index",
        action="append",
        metavar="NAME",
        default=[],
        help="of Indexing: the index of a secondary key or an expression that is dropped; repeat for more",
    )
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="hoodie.* option of the service; repeat for more",
    )
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", default=TIMEOUT_SECONDS, help=f"of the wait ({TIMEOUT_SECONDS})"
    )


def _plan(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("type", metavar="TYPE", nargs="?", choices=TYPES, help=", ".join(TYPES))
    parser.add_argument("--new", action="store_true", help="make another plan, though one waits")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it is made")
    _service(parser)


def _approve(parser: argparse.ArgumentParser) -> None:
    _name(parser, "of the TableService, or of a HudiTable with one plan that waits")
    parser.add_argument("--plan", metavar="DIGEST", help="only if this is the plan that waits")
    parser.add_argument("--yes", action="store_true", help="approve it; without, it is only shown")
    parser.add_argument("--wait", action="store_true", help="follow the run to its end")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", default=TIMEOUT_SECONDS, help=f"of the wait ({TIMEOUT_SECONDS})"
    )


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("type", metavar="TYPE", choices=TYPES, help=", ".join(TYPES))
    parser.add_argument("--wait", action="store_true", help="follow the run to its end")
    parser.add_argument(
        "--yes", action="store_true", help="Restore, Rollback and PartitionTTL take rows away: only with it"
    )
    _service(parser)


def _logs(parser: argparse.ArgumentParser) -> None:
    _name(parser, "of the HudiTable, or of a TableService")
    parser.add_argument("--run", metavar="ATTEMPT", help="of this attempt (the one at work, else the newest)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the pod ends")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N lines")


_QUESTIONS = ("status", "sets", "timeline", "plan", "lag", "why", "logs", "report")
_SHAPES = {
    "status": _Verb(_status),
    "sets": _Verb(_sets),
    "timeline": _Verb(_timeline),
    "plan": _Verb(_plan),
    "approve": _Verb(_approve),
    "run": _Verb(_run_arguments),
    "lag": _Verb(_lag),
    "why": _Verb(_name, ("text", "json", "yaml")),
    "logs": _Verb(_logs, ()),
    "report": _Verb(_name, ("text", "json", "yaml")),
}
