"""What production code does not do: print, read a clock, leave notes to itself, catch everything,
go unused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.distributions import entry_points
from tests.tidy.sources import ROOT, Source, production_sources, project_files

# Where the one clock of a table lives, and the few other places that may look at a clock, each with its reason.
CLOCK = "spark_app/hudi_table/table/store/clock.py"
MAY_READ_CLOCK: dict[str, str] = {}

CLOCK_CALLS = {
    *(f"time.{name}" for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")),
    *(f"time.{name}" for name in ("localtime", "gmtime", "strftime", "ctime")),
    *(f"datetime.{name}" for name in ("now", "utcnow", "today")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    "date.today",
    "datetime.date.today",
}

# Programs that a person runs print; libraries return.
MAY_PRINT = ("spark_app/hudi_table/cli/", "operator/hudi_operator/cli", "operator/hudi_operator/demo")

# Everything is caught only where a process reports whatever ends it, or a thread hands it on. Each with its reason.
MAY_CATCH_ALL: dict[str, str] = {
    "spark_app/hudi_spark/jobs/__main__.py": "the rim of a job: whatever ends it becomes its JobResult and exit code",
    "spark_app/hudi_table/cli/program.py": "the rim of hudictl: a bug is reported in one line",
    "operator/hudi_operator/runtime/operator.py": "the rim of a worker: a bug in one look must not stand still all tables",
    "operator/hudi_operator/runtime/callbacks/pool.py": "the rim of a courier's turn: a bug in one must not end the thread of all others",
    "operator/hudi_operator/handlers.py": "the rim of a namespace's watch: whatever ends it, it is begun anew",
    "operator/hudi_operator/runtime/watch_check.py": "the rim of a thread without which nobody would notice a deaf watch",
    "spark_app/hudi_table/read/prefetch.py": "a thread hands the error to its consumer, which raises it",
    "spark_app/hudi_table/index/custom.py": "code of other packages: whatever it raises is told as its own",
    "spark_app/hudi_table/sources/custom.py": "a source of a package: whatever it raises is told as its own",
    "spark_app/hudi_table/sources/imports/base.py": "libraries of other formats: whatever they raise is told as theirs",
    "spark_app/hudi_table/sources/jdbc/__main__.py": "the rim of a process: a panic of the driver is no Exception, and the run hears of it",
    "spark_app/hudi_table/services/transforming/steps.py": "a function of the user: whatever it raises is told as its own",
    "spark_app/hudi_table/table/engine/progress.py": "a function of the caller that only looks on: it must not break the work",
}

# Modules that are started by name and imported by nobody.
STARTED_BY_NAME = re.compile(r"(^|\.)__main__$")
FOR_PROGRAMS = frozenset({"hudi_table.table.locks.opening"})
"""Modules that programs of others import: `docs/explanation/locks.md` shows how."""


def calls(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every call and of every function passed on by name."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute | ast.Name):
            yield node.lineno, ast.unparse(node)


def clock_reads(source: Source) -> list[str]:
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime")
        for alias in node.names
    }
    found = []
    for line, name in calls(source):
        head, _, rest = name.partition(".")
        full = f"{imported[head]}.{rest}".rstrip(".") if head in imported else name
        if name in CLOCK_CALLS or full in CLOCK_CALLS:
            found.append(f"{source.path}:{line} {name}")
    return found


def test_only_the_clock_reads_time() -> None:
    found = [
        read
        for source in production_sources()
        if source.path != CLOCK and source.path not in MAY_READ_CLOCK
        for read in clock_reads(source)
    ]
    assert not found, f"take a Clock instead; {CLOCK} is the one reader of time:\n" + "\n".join(found)


@pytest.mark.parametrize("allowed", [CLOCK, *MAY_READ_CLOCK])
def test_every_exception_for_the_clock_is_still_needed(allowed: str) -> None:
    assert [read for source in production_sources() if source.path == allowed for read in clock_reads(source)]


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.monotonic()",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now(tz)",
        "from time import time\ntime()",
        "from time import monotonic as tick\ncall(tick)",
        "import datetime as dt\nfrom datetime import date as day\nday.today()",
    ],
)
def test_a_clock_read_is_seen_in_every_spelling(text: str) -> None:
    assert clock_reads(Source("x.py", text))


def test_nothing_prints_but_programs() -> None:
    found = [
        f"{source.path}:{line}"
        for source in production_sources()
        if not source.path.startswith(MAY_PRINT)
        for line, name in calls(source)
        if name == "print"
    ]
    assert not found, "print belongs to the command line; return the value or log it:\n" + "\n".join(found)


def test_everything_is_caught_only_at_the_rim_of_a_process() -> None:
    found = [
        f"{source.path}:{node.lineno}"
        for source in production_sources()
        if source.path not in MAY_CATCH_ALL
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    ]
    assert not found, "name the errors that are meant:\n" + "\n".join(found)


def catches_everything(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {ast.unparse(node) for node in caught}
    # What is caught to undo something and raised again is not swallowed.
    raised_again = any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))
    return bool(names & {"Exception", "BaseException"}) and not raised_again


def test_no_note_is_left_for_later() -> None:
    words = ("FIX" + "ME", "TO" + "DO", 3 * "X", "HA" + "CK")
    note = re.compile(rf"\b({'|'.join(words)})\b")
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in project_files()
        if name.endswith((".py", ".md", ".toml", ".yaml", ".sh")) or name == "Makefile"
        for number, line in enumerate((ROOT / name).read_text().splitlines(), start=1)
        if note.search(line)
    ]
    assert not found, "do it now or open an issue:\n" + "\n".join(found)


PLURAL = re.compile(
    r" (?:[\w-]+ ){0,2}(?:row|file|group|key|instant|commit|partition|write|plan|attempt|slice|bucket|log|column|record|table)s\b"
)


def bare_plurals(tree: ast.AST) -> list[int]:
    """Lines of f-strings in which a plural follows a count: `1 rows`."""
    found = []
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for value, after in pairwise(text.values):
            if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                continue
            length = isinstance(value.value, ast.Call) and ast.unparse(value.value.func) == "len"
            marked = value.format_spec is not None and ast.unparse(value.format_spec) == "f','"
            if (length or marked) and PLURAL.match(str(after.value)):
                found.append(value.lineno)
    return found


def test_counts_in_sentences_are_singular_where_one_thing_is_counted() -> None:
    """What is counted goes through `counted`. What codecs say of damaged bytes is left as it is."""
    sources = [source for source in production_sources() if "/codec/" not in source.path]
    found = {source.path: bare_plurals(source.tree) for source in sources}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert bare_plurals(
        ast.parse("f'{len(x)} file groups'; f'{n:,} rows'; f'{n} rows'; f'{counted(n, noun)} rows'")
    ) == [1, 1]


def imported_modules(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Lazy surfaces and entry points name a module in a string.
            yield node.value.partition(":")[0]


def started_by_prefix(source: Source) -> Iterator[str]:
    """`import_module(f"hudi_table.cli.queries.{verb}")` uses every module whose name starts so."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            prefix = str(node.values[0].value)
            if re.fullmatch(r"hudi_\w+(\.\w+)+\.?\w*", prefix):
                yield prefix


def test_no_module_is_dead() -> None:
    sources = production_sources()
    used = {module for source in sources for module in imported_modules(source)}
    prefixes = tuple(prefix for source in sources for prefix in started_by_prefix(source))
    started = {value.partition(":")[0] for group in entry_points().values() for value in group.values()}
    dead = [
        source.path
        for source in sources
        if not source.path.endswith("__init__.py")
        and source.module not in used
        and source.module not in started
        and source.module not in FOR_PROGRAMS
        and not source.module.startswith(prefixes)
        and not STARTED_BY_NAME.search(source.module)
    ]
    assert not dead, "imported by no production code: delete it, or move it to tests/support:\n" + "\n".join(dead)


def test_the_operator_folder_is_not_a_package() -> None:
    """As a package it would shadow the standard library's `operator`, and `import collections`
    would fail."""
    assert "operator/__init__.py" not in project_files()


def test_every_package_says_what_belongs_in_it() -> None:
    silent = [
        source.path
        for source in production_sources()
        if source.path.endswith("__init__.py") and not ast.get_docstring(source.tree)
    ]
    assert not silent, f"packages without a docstring: {silent}"


def test_every_folder_of_modules_is_a_package() -> None:
    names = set(project_files())
    folders = {source.path.rpartition("/")[0] for source in production_sources()} - {"spark_app", "operator"}
    missing = sorted(folder for folder in folders if f"{folder}/__init__.py" not in names)
    assert not missing, f"folders without __init__.py: {missing}"
