"""The program `hudictl`: its verbs and arguments, other packages' verbs, and the rim where errors
become messages.

Every verb lives in a module of its own that is imported when the verb runs, so that `--help` stays
quick. Another package adds a verb through the entry-point group `hudictl.verbs`: name = verb, value
= a function that takes the arguments after the verb and returns an exit code; the first line of its
module's docstring is the verb's help.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any

from hudi_table.cli import exits
from hudi_table.cli.added_verbs import ENGINES, VERBS_ELSEWHERE, AddedVerb, added_verbs, entry_points
from hudi_table.cli.import_arguments import (
    bootstrap_arguments,
    checkpoint_action,
    checkpoint_arguments,
    import_arguments,
)
from hudi_table.cli.output import FORMATS, note
from hudi_table.cli.service_verbs import SERVICE_VERBS
from hudi_table.errors import HudiError, InvalidOptionError, InvalidRequestError
from hudi_table.model.digits import whole
from hudi_table.model.queries import QUERIES
from hudi_table.model.table.cdc import Images
from hudi_table.version import __version__

VERBS = {
    "info": "what a table is: key, partitions, index, size, newest commit",
    "timeline": "its instants: what was done, when, and what is pending",
    "files": "its file groups: slices, sizes, newest instant",
    "read": "its rows, now or as of an instant",
    "query": "the answer of one SELECT over tables",
    "export": "its rows as files of Parquet, CSV or JSON lines, or as another table, all or what changed",
    "import": "a new table with the rows of Parquet files, a Delta table or an Iceberg table",
    "bootstrap": "a new table of Parquet files, which stay where they are",
    **{name: verb.help for name, verb in SERVICE_VERBS.items()},
    "events": "the commits after an instant, in the order in which callbacks send them",
    "wait": "the first commits after an instant, once there are any",
    "checkpoint": "how far its ingests are; sets where one goes on; what one has passed over",
    "explain": "what an error means and what to do",
    "completion": "a script by which the shell completes verbs and options",
}
NOUNS = {alias: name for name, verb in SERVICE_VERBS.items() for alias in verb.aliases(name)}
"""Services whose noun is another word than their verb."""
_MADE = ("import", "bootstrap")
"""Verbs that make a table."""
_SAYS = {"export": "writes", **dict.fromkeys(_MADE, "makes")}
"""What a verb does to what its help names, where it does not show it."""
_OF_TABLES = ("info", "timeline", "files", "read", "query", "export", *_MADE, "events", "wait", "checkpoint")
_LISTS = ("info", "timeline", "files", "export", *_MADE, "events", "wait", "checkpoint", "explain")
OTHER_WORDS = {
    **dict.fromkeys(("history", "log", "commits"), "timeline"),
    **dict.fromkeys(("show", "describe", "schema", "stat"), "info"),
    **dict.fromkeys(("head", "cat", "scan"), "read"),
    **dict.fromkeys(("select", "sql"), "query"),
    **dict.fromkeys(("unload", "copy", "dump"), "export"),
    **dict.fromkeys(("vacuum", "expire"), "clean"),
    **dict.fromkeys(("load", "convert"), "import"),
    "ls": "files",
    "optimize": "cluster",
    "undo": "rollback",
}
"""What other tools call the same."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; nothing a user does wrong ends in a
    traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _run(arguments))


def guarded(run: Callable[[], int]) -> int:
    """The rim of a program: the exit code of `run`, or of the error in which it ends, told in one
    line."""
    try:
        code = run()
        sys.stdout.flush()
    except HudiError as error:
        # Other libraries' texts, which an error may quote, can have several lines.
        message = " ".join(str(error).split())
        note(f"error: {error.name()}: {message}\nhudictl explain {error.name()} says more")
        return exits.code_of(error)
    except BrokenPipeError:
        # The reader of our output has gone (`hudictl read … | head`): keep the interpreter from flushing into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.GOOD
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        note(f"error: {error.strerror or error}: {error.filename or ''}".rstrip(": "))
        return exits.FAILED
    except Exception as error:
        # The rim: a bug ends in one line, and in a traceback for who asks.
        if os.environ.get("HUDICTL_TRACEBACK"):
            raise
        note(f"error: Invariant: {type(error).__name__}: {error}\nthis is a bug; HUDICTL_TRACEBACK=1 shows where")
        return exits.FAILED
    return code


def _run(arguments: list[str]) -> int:
    known = arguments and (arguments[0] in VERBS or arguments[0] in NOUNS)
    added = {} if known else {name: verb for name, verb in added_verbs().items() if name not in VERBS}
    if arguments and arguments[0] in added:
        needed = added[arguments[0]]
        if missing := needed.missing():
            raise InvalidRequestError(
                f"hudictl {arguments[0]} needs {', '.join(missing)}, not installed here: {needed.install} brings it"
            )
        verb: Callable[[list[str]], int] = added[arguments[0]].load()
        return verb(arguments[1:])
    if arguments and arguments[0] in VERBS_ELSEWHERE and arguments[0] not in added:
        brings = VERBS_ELSEWHERE[arguments[0]]
        raise InvalidRequestError(f"hudictl {arguments[0]} is not installed here: pip install '{brings}' brings it")
    parser = _parser(added)
    if arguments and not known and not arguments[0].startswith("-") and arguments[0] not in added:
        raise InvalidOptionError(
            f"hudictl has no verb {arguments[0]!r}, hudictl --help lists them: {_meant(arguments[0], added)}"
        )
    try:
        parsed = parser.parse_args(arguments)
        if parsed.verb is None:
            parser.print_help()
            return exits.USAGE if arguments else exits.GOOD
    except SystemExit as stop:  # argparse has printed help, version or a usage error
        return stop.code if isinstance(stop.code, int) else exits.USAGE
    parsed.parser = parser
    verb_name = NOUNS.get(parsed.verb, parsed.verb)
    folder = SERVICE_VERBS[verb_name].folder if verb_name in SERVICE_VERBS else "queries"
    # `import` is a word of Python, which no module can be named.
    name = f"hudi_table.cli.{folder}.{'import_table' if verb_name == 'import' else verb_name}"
    run: Callable[[argparse.Namespace], int] = import_module(name).run
    return run(parsed)


def _meant(word: str, added: dict[str, AddedVerb]) -> str:
    """The verb that is likely meant by a word that is none."""
    known = [*VERBS, *NOUNS, *added]
    near = OTHER_WORDS.get(word) or next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.6)), "")
    return f"did you mean {near}?" if near else f"there are {', '.join(VERBS)}"


class _Help(argparse.HelpFormatter):
    """Help with room for one line to each argument."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)


def _parser(added: dict[str, AddedVerb]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hudictl",
        description="Apache Hudi tables: what they are, what happened to them, and their rows.",
        epilog=exits.EPILOG,
        allow_abbrev=False,
        formatter_class=_Help,
    )
    parser.add_argument(
        "--version", action="version", version=f"hudictl {__version__}", help="show the version and exit"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    # A verb that has no help is not listed: asked for all the same, it names what it lacks.
    listed: dict[str, dict[str, Any]] = {name: {"help": text} for name, text in VERBS.items()}
    if not _has_engine():
        listed["query"] = {}
    parsers = {
        name: verbs.add_parser(
            name,
            description=_described(name, text),
            allow_abbrev=False,
            formatter_class=_Help,
            aliases=SERVICE_VERBS[name].aliases(name) if name in SERVICE_VERBS else (),
            **listed[name],
        )
        for name, text in VERBS.items()
    }
    for name, entry in added.items():
        if not entry.missing():
            verbs.add_parser(name, help=_first_line(entry))
    checkpoint_action(parsers["checkpoint"])
    for name in (*_OF_TABLES, *SERVICE_VERBS):
        _table_arguments(parsers[name], optional=name == "query")
    for name in ("import", "checkpoint", *SERVICE_VERBS):
        parsers[name].add_argument(
            "--lock", metavar="KEY=VALUE", action="append", default=[],
            help="option of the lock that the table's writers share: hoodie.write.lock.provider=…",
        )  # fmt: skip
    checkpoint_arguments(parsers["checkpoint"])
    for name in (*_LISTS, *SERVICE_VERBS):
        parsers[name].add_argument("-o", "--output", choices=FORMATS, default="table", help="format (table)")
    parsers["info"].add_argument(
        "--fail-on", choices=("never", "pending"), default="never",
        help="pending: exit code 3 if a write that is not done lies on the timeline",
    )  # fmt: skip
    parsers["timeline"].add_argument("--limit", type=_count, metavar="N", help="only the newest N instants")
    parsers["timeline"].add_argument("--archived", action="store_true", help="with the archived timeline")
    parsers["files"].add_argument("--partition", metavar="PATH", help="only this partition path")
    _read_arguments(parsers["read"])
    _query_arguments(parsers["query"])
    _export_arguments(parsers["export"])
    import_arguments(parsers["import"])
    bootstrap_arguments(parsers["bootstrap"])
    _event_arguments(parsers["events"], parsers["wait"])
    for name, verb in SERVICE_VERBS.items():
        verb.arguments(parsers[name])
    parsers["explain"].add_argument(
        "name", metavar="NAME", nargs="?", help="such as WriteConflict; without it, all names"
    )
    parsers["completion"].add_argument("shell", choices=("bash", "zsh", "fish"), help="whose script")
    return parser


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each verb of this package, for the page that shows them all."""
    (verbs,) = (action for action in _parser({})._actions if isinstance(action, argparse._SubParsersAction))
    return {name: verbs.choices[name] for name in VERBS}


def _has_engine() -> bool:
    """Whether anything is installed that answers SQL."""
    return util.find_spec("duckdb") is not None or any(not each.missing() for each in entry_points(ENGINES).values())


def _described(name: str, text: str) -> str:
    """A sentence about a table that can stand alone: in the list of verbs all know which one."""
    said = text if name in SERVICE_VERBS else f"{_SAYS.get(name, 'shows')} {text}"
    sentence = re.sub(r"\bits?\b", lambda word: "a table's" if word[0] == "its" else "a table", said, count=1)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _table_arguments(parser: argparse.ArgumentParser, *, optional: bool) -> None:
    parser.add_argument(
        "base", metavar="BASE", nargs="?" if optional else None,
        help="path or URI of the table: lake/flights, s3://bucket/flights",
    )  # fmt: skip
    parser.add_argument(
        "--storage", metavar="KEY=VALUE", action="append", default=[],
        help="option of the store, such as region=… or endpoint=…; secrets better stand in the environment",
    )  # fmt: skip


def _event_arguments(events: argparse.ArgumentParser, wait: argparse.ArgumentParser) -> None:
    since = "commits after it: an instant, a time, 'earliest', or what was printed to go on with"
    events.add_argument("--since", metavar="INSTANT", help=f"{since} (earliest)")
    events.add_argument("--limit", type=_count, metavar="N", help="at most N commits")
    wait.add_argument("--since", metavar="INSTANT", required=True, help=since)
    wait.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="exit code 6 if none comes so soon (for ever)"
    )
    wait.add_argument(
        "--poll", type=_seconds, metavar="SECONDS", default=5.0, help="how often the timeline is listed (5)"
    )
    for parser in (events, wait):
        parser.add_argument(
            "--rewrites", action="store_true", help="with compactions and clusterings, which change no rows"
        )
        parser.add_argument(
            "--cloudevents", action="store_true", help="a CloudEvent each, a line of JSON, as callbacks send it"
        )


def _read_arguments(parser: argparse.ArgumentParser) -> None:
    _selection_arguments(parser)
    _rows_arguments(parser)


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TARGET", help="path or URI of a folder that is empty or not there")
    parser.add_argument(
        "--format",
        choices=("parquet", "csv", "jsonl", "hudi"),
        default="parquet",
        help="of the files (parquet); hudi: a table like BASE",
    )
    parser.add_argument(
        "--partition-by", metavar="A,B", help="columns that become folders A=…/B=…, of hudi the partitions"
    )
    parser.add_argument(
        "--target-storage", metavar="KEY=VALUE", action="append", default=[], help="option of the target's store, as --storage of the table's",
    )  # fmt: skip
    _selection_arguments(parser)
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N rows")


def _selection_arguments(parser: argparse.ArgumentParser) -> None:
    """Which rows and columns."""
    _snapshot_arguments(parser, "cdc")
    images = [str(kind) for kind in Images]
    parser.add_argument("--images", choices=images, help="cdc: which images each change has (data_before_after)")
    parser.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    parser.add_argument("--filter", metavar="TEXT", help="""SQL-like, such as "city = 'sf' and ts > 5" """)


def _query_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sql", metavar="SQL", help="one SELECT; BASE is this_table there, and has its own name")
    parser.add_argument(
        "--table", metavar="NAME=BASE", action="append", default=[], help="a table and its name in the statement"
    )
    parser.add_argument("--engine", metavar="NAME", default="duckdb", help="duckdb or spark (duckdb)")
    _snapshot_arguments(parser)
    _rows_arguments(parser)


def _snapshot_arguments(parser: argparse.ArgumentParser, *more: str) -> None:
    """What of a table is read; `more` kinds of query."""
    queries = (*QUERIES, *more)
    of = ", ".join(("incremental", *more))
    parser.add_argument("--query", choices=queries, default="snapshot", help="query type (snapshot)")
    parser.add_argument("--since", metavar="INSTANT", help=f"{of}: what changed after it, or 'earliest'")
    parser.add_argument("--until", metavar="INSTANT", help=f"{of}: the last instant of the range (the newest)")
    parser.add_argument("--full-scan", action="store_true", help=f"{of}: read all files where the timeline is archived")
    parser.add_argument(
        "--as-of", metavar="INSTANT", help="20261121094455123, a shorter prefix, or 2026-11-21T09:44:55Z"
    )
    parser.add_argument("--meta", action="store_true", help="with Hudi's five meta columns")


def _rows_arguments(parser: argparse.ArgumentParser) -> None:
    """How rows are shown."""
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N rows (100 for --format table)")
    parser.add_argument(
        "--format", "-o", "--output", choices=("table", "json", "jsonl", "parquet"), default="table",
        help="of the rows (table); json is one document, jsonl a line for each row",
    )  # fmt: skip
    parser.add_argument("--to", metavar="FILE", help="write there instead of to stdout; appears when it is whole")


def storage_options(pairs: Sequence[str]) -> dict[str, str]:
    """`--storage` arguments as options. Raises InvalidOptionError without repeating what may be a
    secret."""
    return _options("--storage", "region=eu-west-1", pairs)


def lock_options(pairs: Sequence[str]) -> dict[str, str] | None:
    """`--lock` arguments as options, None without any. Raises InvalidOptionError."""
    return _options("--lock", "hoodie.write.lock.provider=StorageBasedLockProvider", pairs) or None


def _options(flag: str, example: str, pairs: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InvalidOptionError(f"{flag} takes KEY=VALUE, such as {example}; one was given without '='")
        options[key] = value
    return options


def _count(text: str) -> int:
    found = whole(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return found


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return found


def _first_line(entry: AddedVerb) -> str:
    """The first line of the verb module's docstring, read without running the module."""
    try:
        spec = util.find_spec(entry.module)
        source = Path(spec.origin).read_text("utf-8") if spec and spec.origin else ""
        return (ast.get_docstring(ast.parse(source)) or entry.value).splitlines()[0].rstrip(".")
    except (ImportError, OSError, SyntaxError):
        return f"cannot be loaded: {entry.value}"
