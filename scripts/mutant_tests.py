"""Which tests are asked of a mutant, in which order, and what they usually take: for `make mutants`.

A file of tests is run once without a change. What it took and which functions it called is kept in `.cache/mutants` until the code, what tests share
or the file itself is another one. A file that never calls the changed function cannot notice the change: it is not asked. One that starts other processes
of ours always is, since their calls are not seen.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".cache" / "mutants"
HOMES = ("spark_app", "operator")
SHARED = ("tests/support", "tests/conftest.py", "pyproject.toml")
"""Beside the code, what all tests depend on."""
BASELINE_SECONDS_MAX = 3600.0
IMPORTED = re.compile(r"^from (tests[\w.]*) import (\w+)", re.MULTILINE)
NO_TESTS = 5
"""How pytest ends where all tests of a file are left out."""
CPU_BEYOND = 20.0
SECONDS_BEYOND = 60.0
"""Past three times what is usual, a run is taken for one that hangs: of processor time if it spins, else of time, for which a busy machine waits longer."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of pytest: the first test that failed ('' where none did, '(hangs)'), seconds, and those of a processor."""

    failed: str
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Usual:
    """What a file of tests does without a change. `functions`: of each file of ours the first lines of those that it called."""

    seconds: float
    cpu: float
    outside: bool
    functions: dict[str, list[int]] = field(default_factory=dict)

    def reaches(self, path: Path, line: int) -> bool:
        """Whether it ran what stands in a line."""
        called = self.functions.get(path.relative_to(ROOT).as_posix(), [])
        begin, end = body_around(path, line)
        return self.outside or any(begin <= first <= end for first in called)


def body_around(path: Path, line: int) -> tuple[int, int]:
    """The first and the last line of the innermost function in whose body a line is; of the whole file where it is in none."""
    found = (0, sys.maxsize)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= (node.end_lineno or 0):
            begin = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if begin > found[0]:
                found = (begin, node.end_lineno or 0)
    return found


def digest(*names: str) -> str:
    """Of the tracked files below these names, as they lie in the work tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *names], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    total = hashlib.sha256()
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            total.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    return total.hexdigest()


def tests_of(path: Path, most: int) -> list[str]:
    """Of its distribution's tests those that mention the module and those of the folder that mirrors its own, or of the nearest above; those
    that have its name first; at most so many files."""
    inside = path.relative_to(ROOT).parts[1:]
    dotted = ".".join(inside).removesuffix(".py")
    own = sorted((ROOT / "tests" / inside[0]).rglob("test_*.py"))
    mentions = [test for test in own if dotted in test.read_text()]
    folder = ROOT.joinpath("tests", *inside[:-1])
    while not list(folder.glob("test_*.py")):
        folder = folder.parent
    # The folder of a whole distribution is no mirror of a module below it.
    beside = [] if len(folder.relative_to(ROOT).parts) < min(3, len(inside)) else sorted(folder.rglob("test_*.py"))
    first = sorted(
        {*mentions, *beside},
        key=lambda test: (not test.stem.startswith(f"test_{path.stem}"), test not in mentions, test),
    )
    return [test.relative_to(ROOT).as_posix() for test in first[:most]]


@cache
def grows(test: str) -> bool:
    """Whether the counts of a file of tests, or of what it imports from the tests, grow with HUDI_TEST_SCALE."""
    seen, left = set[str](), [test]
    while left:
        name = left.pop()
        if name in seen or not (ROOT / name).is_file():
            continue
        seen.add(name)
        text = (ROOT / name).read_text()
        if re.search(r"\bscaled?\(|at_scale", text) and name != "tests/support/scale.py":
            return True
        for module in re.findall(r"^\s*(?:from|import) (tests\.[\w.]+)", text, re.MULTILINE):
            left += [f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__init__.py"]
        left += [f"{module.replace('.', '/')}/{name}.py" for module, name in IMPORTED.findall(text)]
    return False


def run(tests: list[str], scale: float, usual: Ran | None, reached: Path | None = None) -> Ran:
    """Run files of tests until one fails. `usual`: what they take; `reached`: where to write what they call."""
    seconds = BASELINE_SECONDS_MAX if usual is None else 5 * scale * usual.seconds + SECONDS_BEYOND
    cpu = BASELINE_SECONDS_MAX if usual is None else 3 * scale * usual.cpu + CPU_BEYOND
    env = {**os.environ, "HUDI_TEST_SCALE": str(scale), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    quiet = ("-q", "-x", "-p", "no:cacheprovider", "--no-header", "-rfE", "--tb=no")
    command = [f"{ROOT}/.venv/bin/pytest", *quiet, *tests]
    if reached is not None:
        env["HUDI_REACHED"] = str(reached)
        command[1:1] = ["-p", "tests.support.reached"]
    started, spent = time.monotonic(), _of_children()
    limit = (int(cpu) + 1, int(cpu) + 5)
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),  # noqa: PLW1509 - nothing else runs here
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            said = "(hangs)"
            os.killpg(process.pid, signal.SIGKILL)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    failed = [line.split()[1] for line in said.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if said == "(hangs)" or process.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        failed = ["(hangs)"]
    elif process.returncode in (0, NO_TESTS):
        failed = [""]
    name = failed[0] if failed else f"(pytest ends with {process.returncode})"
    return Ran(name, time.monotonic() - started, _of_children() - spent)


def _of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


class Baselines:
    """What files of tests do without a change, each found out when it is first asked for."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self._code = digest(*HOMES, *SHARED)
        self._known: dict[str, Usual] = {}

    def of(self, test: str) -> Usual:
        """Runs the file, if this is not known. To be called while nothing is changed."""
        if test in self._known:
            return self._known[test]
        mark = hashlib.sha256(f"{self._code} {digest(test)}".encode()).hexdigest()[:24]
        kept = STATE / f"{test.replace('/', '.')}.{mark}.json"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            calls = kept.with_suffix(".calls")
            ran = run([test], 1, None, calls)
            self.cpu += ran.cpu
            seen = json.loads(calls.read_text()) if not ran.failed else {"outside": True}
            if ran.failed:
                # A test of bounds may not bear to be watched: then its calls are not known.
                ran = run([test], 1, None)
                self.cpu += ran.cpu
            if ran.failed:
                sys.exit(f"{ran.failed} fails without a change")
            usual = Usual(ran.seconds, ran.cpu, **seen)
            calls.unlink(missing_ok=True)
            for old in STATE.glob(f"{test.replace('/', '.')}.*.json"):
                old.unlink()
            kept.write_text(json.dumps(asdict(usual)))
        self._known[test] = Usual(**json.loads(kept.read_text()))
        return self._known[test]

    def together(self, tests: list[str]) -> Ran:
        """What they take, one after the other."""
        found = [self.of(test) for test in tests]
        return Ran("", sum(each.seconds for each in found), sum(each.cpu for each in found))
