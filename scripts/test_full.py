"""Runs the shards of tests/shards.toml, one pytest each, and writes docs/results/test-full.md and
.json.

A shard that passed with what it depends on as it is now, here or where the report was written, is
not run again: so an interrupted run goes on where it stopped. A failed one is tried anew. Names on
the command line choose shards; the report tells the last result of each, and the commit that it is
of.

    python -m scripts.test_full [--again] [NAME ...]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from scripts.shard_sources import digest_of, files_of, ran_of

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".cache" / "test-full"
REPORT = ROOT / "docs" / "results" / "test-full"
NAMES = REPORT.with_name("test-full-ran.json")
"""The names that results of the report tell by their place, functions by their modules."""
NOTING = ROOT / "scripts" / "noting"
SHARD_SECONDS_MAX = 600
ENDING_SECONDS_MAX = 30
CODE = ("spark_app", "operator", "crds", "charts")
PACKAGES_NAMED = 4
_FIGURE = re.compile(r"([\d,]+) (.+) \((\d+) tests\)")
_NO_SUM = re.compile(r"at the most|per cent|seconds|hours|bytes|attempts of")
"""Figures of which two shards together have no sum."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One table of tests/shards.toml."""

    name: str
    args: list[str]
    scale: float = 1
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of a shard gave."""

    shard: str
    commit: str
    sources: str
    passed: bool
    seconds: int
    tests: int
    failures: int
    skipped: int
    scale: float
    summary: str
    figures: list[str]
    ran: list[str] = field(default_factory=list)
    """Modules that its processes loaded, functions that ran in them, packages of others."""
    before: dict[str, int] = field(default_factory=dict)
    """What its earlier runs that passed have counted."""

    @property
    def counted(self) -> Counter[str]:
        """Its own figures that can be added up, by what they count."""
        found = filter(None, map(_FIGURE.fullmatch, self.figures))
        return Counter({each[2]: int(each[1].replace(",", "")) for each in found if not _NO_SUM.search(each[2])})

    @property
    def ever(self) -> Counter[str]:
        """The same of all runs that passed."""
        return Counter(self.before) + (self.counted if self.passed else Counter())


def declared_shards() -> list[Shard]:
    tables = tomllib.loads((ROOT / "tests" / "shards.toml").read_text())["shard"]
    shards = [Shard(**table) for table in tables]
    names = [shard.name for shard in shards]
    if len(set(names)) < len(names):
        sys.exit("tests/shards.toml declares a name twice.")
    return shards


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def sources(shard: Shard, ran: Sequence[str] = ()) -> str:
    """A digest of what a shard depends on, as it lies in the work tree, and of how it is run."""
    run = repr((shard.args, shard.scale, sorted(shard.env.items())))
    return hashlib.sha256(f"{run}{digest_of(shard.args, ran)}".encode()).hexdigest()


def load_result(shard: Shard) -> Result | None:
    """Its last result: of this clone, or else the one that the report tells."""
    path = STATE / f"{shard.name}.json"
    if path.exists():
        return Result(**json.loads(path.read_text()))
    return next((each for each in told_results() if each.shard == shard.name), None)


@functools.cache
def told_results() -> tuple[Result, ...]:
    """The results that the report tells."""
    report = REPORT.with_suffix(".json")
    if not (report.exists() and NAMES.exists()):
        return ()
    names = _flat(json.loads(NAMES.read_text()))
    found = json.loads(report.read_text())
    return tuple(Result(**each | {"ran": _chosen(names, each["ran"])}) for each in found)


def _flat(names: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        name for module, functions in names.items() for name in [module, *(f"{module}:{each}" for each in functions)]
    ]


def _chosen(names: Sequence[str], bits: str) -> list[str]:
    """The names at the places of a number in hexadecimal, the first at the lowest."""
    number = int(bits or "0", 16)
    return [name for place, name in enumerate(names) if number >> place & 1]


def run_shard(shard: Shard) -> Result:
    """Runs one shard; a run past the limit is ended and counts as failed."""
    STATE.mkdir(parents=True, exist_ok=True)
    junit, log, notes = (STATE / f"{shard.name}.{kind}" for kind in ("xml", "log", "notes"))
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", f"--junit-xml={junit}", "-o", "junit_family=xunit1", *shard.args]
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    paths = os.pathsep.join([str(NOTING), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | shard.env | {"HUDI_TEST_SCALE": str(shard.scale), "HUDI_NOTES": str(notes), "PYTHONPATH": paths}
    # Code that tells what runs takes seconds to compile: each process that a test starts would.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    commit, tested, old = git("rev-parse", "HEAD"), sources(shard), load_result(shard)
    began = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        try:
            code = process.wait(SHARD_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            _end(process)
    seconds = round(time.monotonic() - began)
    said = log.read_text()
    closing = re.findall(r"^=* ?(\d+ \w+.* in [\d.]+s.*?) ?=*$", said, re.MULTILINE)
    summary = closing[-1] if closing else f"no result after {seconds} s, see {os.path.relpath(log, ROOT)}"
    counts = suite_counts(junit)
    ran = ran_of(shard.args, os.listdir(notes))
    shutil.rmtree(notes, ignore_errors=True)
    result = Result(
        shard=shard.name,
        commit=commit,
        # Of a tree that was changed meanwhile nothing was tested.
        sources=sources(shard, ran) if tested == sources(shard) else "",
        passed=code == 0 and counts["tests"] > 0,
        seconds=seconds,
        tests=counts["tests"],
        failures=counts["failures"] + counts["errors"],
        skipped=counts["skipped"],
        scale=shard.scale,
        summary=summary,
        figures=figures(said),
        ran=ran,
        before=dict(old.ever) if old else {},
    )
    (STATE / f"{shard.name}.json").write_text(json.dumps(asdict(result), indent=2))
    return result


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a run that goes on, so that its fixtures end the servers and drivers that they
    began; then end what is left of it."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ENDING_SECONDS_MAX)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def suite_counts(junit: Path) -> dict[str, int]:
    names = ("tests", "failures", "errors", "skipped")
    if not junit.exists():
        return dict.fromkeys(names, 0)
    suites = ET.parse(junit).getroot().iter("testsuite")  # noqa: S314 - pytest wrote it
    counts = [{name: int(suite.get(name, "0")) for name in names} for suite in suites]
    return {name: sum(count[name] for count in counts) for name in names}


def figures(said: str) -> list[str]:
    """The lines of the section that the fixture `figure` fills."""
    section = re.search(r"^=+ figures =+$\n(.*?)(?=^=)", said, re.MULTILINE | re.DOTALL)
    return section.group(1).splitlines() if section else []


@functools.cache
def changed_since(commit: str) -> frozenset[str] | None:
    """The files of the code that differ from those of a commit; None if it is not known."""
    try:
        return frozenset(git("diff", "--name-only", commit, "--", *CODE, ":!*.md").splitlines())
    except subprocess.CalledProcessError:
        return None


def moved_since(shard: Shard, result: Result) -> str:
    """The packages in which code that a shard depends on differs from that of its result: what that
    does not vouch for."""
    if result.sources == sources(shard, result.ran):
        return ""
    changed = changed_since(result.commit)
    if changed is None:
        return "unknown"
    names = changed.intersection(files_of(shard.args, result.ran))
    packages = sorted(
        {"/".join(name.split("/")[1:3] if name.startswith("spark_app/") else name.split("/")[:1]) for name in names}
    )
    more = len(packages) - PACKAGES_NAMED
    return ", ".join(packages[:PACKAGES_NAMED]) + (f" and {more} more" if more > 0 else "")


def write_report(shards: list[Shard], results: list[Result], missing: list[str]) -> None:
    declared = {shard.name: shard for shard in shards}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    functions: dict[str, list[str]] = {}
    for name in sorted({name for result in results for name in result.ran}):
        module, _, function = name.partition(":")
        functions.setdefault(module, []).extend(filter(None, [function]))
    places = {name: place for place, name in enumerate(_flat(functions))}
    told = [asdict(each) | {"ran": f"{sum(1 << places[name] for name in each.ran):x}"} for each in results]
    NAMES.write_text(json.dumps(functions, indent=0) + "\n")
    REPORT.with_suffix(".json").write_text(json.dumps(told, indent=2) + "\n")
    rows = [
        f"| {result.shard} | {'passed' if result.passed else '**failed**'} | {result.tests} | {result.scale:g} "
        f"| {result.seconds} s | `{result.commit[:12]}` | {moved_since(declared[result.shard], result)} |"
        for result in results
    ] + [f"| {name} | not run | | | | | |" for name in missing]
    noted = [f"- {result.shard}: {line}" for result in results for line in result.figures]
    lines = [
        "# Results of the long tests",
        "",
        "Written by `make test-full`. Scale multiplies the counts of examples, steps and crash points of `make test`.",
        "",
        "| shard | result | tests | scale | time | commit | code that moved since |",
        "|---|---|---|---|---|---|---|",
        *rows,
        *totals(results),
        *(["", "## Figures", "", *noted] if noted else []),
    ]
    REPORT.with_suffix(".md").write_text("\n".join(lines) + "\n")


def totals(results: Iterable[Result]) -> list[str]:
    """What all shards have counted together, as Markdown: in the runs of the table, and in all that
    passed."""
    now, ever = Counter[str](), Counter[str]()
    shards = Counter[str]()
    for result in results:
        if result.passed:
            now += result.counted
            shards.update(result.counted.keys())
        ever += result.ever
    rows = [f"| {unit} | {shards[unit]} | {now[unit]:,} | {count:,} |" for unit, count in ever.most_common()]
    head = [
        "",
        "## Totals",
        "",
        "| what was counted | shards | in these runs | in all runs that passed |",
        "|---|---|---|---|",
    ]
    return [*head, *rows] if rows else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--again", action="store_true", help="run also what passed with these sources")
    options = parser.parse_args()
    shards = declared_shards()
    unknown = set(options.names) - {shard.name for shard in shards}
    if unknown:
        sys.exit(
            f"No shard is called {', '.join(sorted(unknown))}. Known: {', '.join(shard.name for shard in shards)}."
        )
    for shard in shards:
        if options.names and shard.name not in options.names:
            continue
        old = load_result(shard)
        if old and old.passed and old.sources == sources(shard, old.ran) and not options.again:
            print(f"{shard.name:20} passed already", flush=True)
            continue
        print(f"{shard.name:20} ", end="", flush=True)
        result = run_shard(shard)
        print("passed" if result.passed else "FAILED", result.summary, flush=True)
    results = [load_result(shard) for shard in shards]
    known = [result for result in results if result is not None]
    write_report(shards, known, [shard.name for shard, result in zip(shards, results, strict=True) if result is None])
    print(f"Report: {REPORT.relative_to(ROOT)}.md")
    missing = len(shards) - len(known)
    failed = sum(not result.passed for result in known)
    print(f"{len(known) - failed} passed, {failed} failed" + (f", {missing} skipped" if missing else ""))
    sys.exit(1 if failed or (missing and not options.names) else 0)


if __name__ == "__main__":
    main()
