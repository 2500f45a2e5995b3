"""Which tests are asked of a mutant, in which order, and in which copy of the tree: for `make
mutants`.

A file of tests is run once without a change. Which of our functions each of its tests called, and
what it took, is kept in `.cache/mutants` until the code, what tests share or the file itself is
another one. Only tests that call the changed function are asked, the cheapest of a file first. One
that starts other processes of ours is asked too, since their calls are not seen.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".cache" / "mutants"
HOMES = ("spark_app", "operator")
SHARED = ("tests/support", "tests/conftest.py", "pyproject.toml")
"""Beside the code, what all tests depend on."""
BASELINE_SECONDS_MAX = 3600.0
IMPORTED = re.compile(r"^from (tests[\w.]*) import (\w+)", re.MULTILINE)
NO_TESTS = 5
"""How pytest ends where all tests of a file are left out."""
CPU_BEYOND = 8.0
SECONDS_BEYOND = 180.0
"""Past three times what is usual, a run is taken for one that hangs: of processor time if it spins,
else of time, for which a busy machine waits longer."""
ENGINES = tuple(f"tests/{name}/" for name in ("interop", "cluster", "hudi_spark", "streams", "charts", "e2e", "soak"))
"""Whose tests start an engine each time."""
_PLAIN = frozenset({"spark", "app", "operator", "hudi", "table", "tests", "test", "py"})
"""Words of paths that tell nothing."""
WAITS = 20.0
"""How many seconds a second of a processor may take on a busy machine."""
ALL = -1
"""In the place of a test's number: all of the file."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of pytest: the first test that failed ('' where none did, '(hangs)'), seconds, and
    those of a processor."""

    failed: str
    seconds: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Usual:
    """What a file of tests does without a change, as `tests/support/reached.py` writes it down.
    Tests are named by their numbers."""

    tests: list[list[Any]]
    failed: list[int]
    outside: list[int]
    functions: dict[str, dict[str, list[int]]]

    def asked(self, path: str, begin: int, end: int) -> list[str]:
        """The tests that call a function that begins within these lines, the cheapest first; then
        those that start processes of ours."""
        lines = self.functions.get(path, {}).items()
        callers = {who for first, whom in lines if begin <= int(first) <= end for who in whom}
        every = set(range(len(self.tests)))
        outside = every if ALL in self.outside else set(self.outside)
        inside = every if ALL in callers else callers
        ranked = [*sorted(inside, key=self.cpu_of), *sorted(outside - inside, key=self.cpu_of)]
        return [self.tests[who][0] for who in ranked if who not in self.failed]

    def within(self, tests: list[str], budget: float) -> list[str]:
        """The first of these tests, for so many seconds of a processor altogether."""
        total, found = 0.0, []
        for name in tests:
            total += self.sum_of([name])
            if total > budget:
                break
            found.append(name)
        return found

    def sum_of(self, tests: list[str]) -> float:
        """Seconds of a processor that these tests take."""
        names = set(tests)
        return sum(self.cpu_of(who) for who, (name, _) in enumerate(self.tests) if name in names)

    def cpu_of(self, who: int) -> float:
        """Seconds of a processor that a test takes."""
        return float(self.tests[who][1])


class Tree:
    """A copy of what git tracks here, into which mutants are written, and the server that runs
    tests in it. The work tree is never touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        tracked = {name for name in listed.split("\0") if (ROOT / name).is_file()}
        if folder.is_dir():
            for there in [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]:
                name = there.relative_to(folder).as_posix()
                if name not in tracked and "__pycache__" not in there.parts:
                    there.unlink()
        for name in tracked:
            self._copy(name)
        (folder / ".cache").mkdir(exist_ok=True)
        for own in (".venv", ".venv-hudi", *(f".cache/{engine}" for engine in ("ivy", "k8s", "kafka", "mariadb"))):
            if not (folder / own).is_symlink():
                (folder / own).symlink_to(ROOT / own)
        self._server: subprocess.Popen[str] | None = None

    def _copy(self, name: str) -> None:
        """Times are copied too: what is compiled already stays so."""
        source, target = ROOT / name, self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)

    def put(self, name: str, text: str) -> None:
        """Write a mutant."""
        target = self.folder / name
        target.write_text(text)
        # Another second than what is compiled: size and second are all that Python compares.
        os.utime(target, (0, 1_000_000_000))

    def take_back(self, name: str) -> None:
        """Put the real module back."""
        shutil.copy2(ROOT / name, self.folder / name)

    def run(
        self, tests: list[str], scale: float = 1, cpu: float | None = None, reached: Path | None = None, each: bool = False
    ) -> Ran:  # fmt: skip
        """Run tests until one fails, or `each`. `cpu`: what they take of a processor; `reached`:
        where to write what they call."""
        limit = BASELINE_SECONDS_MAX if cpu is None else 3 * scale * cpu + CPU_BEYOND
        seconds = BASELINE_SECONDS_MAX if cpu is None else WAITS * scale * cpu + SECONDS_BEYOND
        # A mutant is run once: what it compiles is not kept.
        environment = {"HUDI_TEST_SCALE": str(scale)}
        arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "-rfE", "--tb=no"]
        # What is loaded before pytest is not rewritten for it, which it would warn of.
        arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        arguments += [] if each else ["-x"]
        if reached is not None:
            environment["HUDI_REACHED"] = str(reached)
            arguments += ["-p", "tests.support.reached"]
        out = self.folder.with_suffix(".out")
        said = self._ask(
            arguments=[*arguments, *tests], environment=environment, compiles=reached is not None,
            cpu=limit, seconds=seconds, out=str(out),
        )  # fmt: skip
        lines = out.read_text(errors="replace").splitlines()
        failed = [line.split(maxsplit=1)[1].split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
        if said["hung"] or said["code"] in (-9, -24):
            failed = ["(hangs)"]
        elif said["code"] in (0, NO_TESTS):
            failed = [""]
        return Ran(failed[0] if failed else f"(pytest ends with {said['code']})", said["seconds"], said["cpu"])

    def close(self) -> None:
        """The server ends when nobody can ask it any more."""
        if self._server is not None:
            self._server.communicate()
            self._server = None

    def _ask(self, **asked: Any) -> dict[str, Any]:
        if self._server is None:
            paths = [str(self.folder / name) for name in ("spark_app", "operator", ".")]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": ""}
            self._server = subprocess.Popen(
                [ROOT / ".venv/bin/python", self.folder / "scripts/mutant_server.py"],
                cwd=self.folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            sys.exit(f"The server of {self.folder} has ended.")
        found: dict[str, Any] = json.loads(answer)
        return found


def body_around(path: Path, line: int) -> tuple[int, int]:
    """The first and the last line of the innermost function in whose body a line is; of the whole
    file where it is in none."""
    found = (0, sys.maxsize)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line <= (node.end_lineno or 0):
            begin = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if begin > found[0]:
                found = (begin, node.end_lineno or 0)
    return found


@cache
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
    """Of its distribution's tests those that mention the module and those of the folder that
    mirrors its own, or of the nearest above; those that have its name first, then those with that
    of its folder; at most so many files."""
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
        key=lambda test: (
            not test.stem.startswith(f"test_{path.stem}"),
            not test.stem.startswith(f"test_{path.parent.name}"),
            test not in mentions,
            test,
        ),
    )
    return [test.relative_to(ROOT).as_posix() for test in first[:most]]


@cache
def _modules() -> dict[str, str]:
    """The text of each of our modules by its dotted name."""
    every = [(path, path.relative_to(ROOT / home)) for home in HOMES for path in (ROOT / home).rglob("*.py")]
    return {
        ".".join(inside.with_suffix("").parts).removesuffix(".__init__"): path.read_text() for path, inside in every
    }


@cache
def _every_test() -> dict[str, str]:
    """The text of each file of tests, the smallest first."""
    found = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    return dict(sorted(found.items(), key=lambda item: (len(item[1]), item[0])))


def further_of(path: Path, most: int) -> list[str]:
    """Files of tests that reach the module by way of others: those that take its public names from
    its package, then those that mention a module that imports it, then one that imports that; at
    last those with a word of its path. Of each kind those with most words of its path come first;
    at most so many in all."""
    words = set(re.split(r"[/_]", path.relative_to(ROOT).with_suffix("").as_posix())) - _PLAIN
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts[1:])
    package = dotted.rpartition(".")[0]
    tree = ast.parse(path.read_text())
    public = "|".join(
        re.escape(node.name)
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    )
    by_package = re.compile(rf"\bfrom {re.escape(package)} import [^)\n]*\b({public or 'import'})\b")
    every = sorted(_every_test().items(), key=lambda item: (item[0].startswith(ENGINES), -_shared(words, item[0])))
    found = [test for test, text in every if by_package.search(text)]
    level, seen = {dotted}, {dotted}
    while level and len(found) < most:
        named = re.compile(rf"\b({'|'.join(map(re.escape, sorted(level)))})\b")
        found += [test for test, text in every if test not in found and named.search(text)]
        level = {name for name, text in _modules().items() if name not in seen and named.search(text)}
        seen |= level
    found += [test for test, _ in every if test not in found and _shared(words, test)]
    return found[:most]


def _shared(words: set[str], test: str) -> int:
    return len(words.intersection(re.split(r"[/_.]", test)))


@cache
def grows(test: str) -> bool:
    """Whether the counts of a file of tests, or of what it imports from the tests, grow with
    HUDI_TEST_SCALE."""
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


class Baselines:
    """What files of tests do without a change, each found out when it is first asked for, once for
    all copies of the tree."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self._code = digest(*HOMES, *SHARED)
        self._known: dict[str, Usual] = {}
        self._locks: dict[str, threading.Lock] = {}

    def of(self, test: str, tree: Tree) -> Usual:
        """Runs the file, if this is not known. To be called while nothing is changed in the
        tree."""
        with self._locks.setdefault(test, threading.Lock()):
            if test not in self._known:
                self._known[test] = self._found(test, tree)
            return self._known[test]

    def _found(self, test: str, tree: Tree) -> Usual:
        mark = hashlib.sha256(f"{self._code} {digest(test)}".encode()).hexdigest()[:24]
        kept = STATE / f"{test.replace('/', '.')}.{mark}.json"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            calls = kept.with_suffix(".calls")
            ran = tree.run([test], reached=calls, each=True)
            self.cpu += ran.cpu
            if not calls.exists():
                raise RuntimeError(f"{test} does not run without a change: {ran.failed}")
            for old in STATE.glob(f"{test.replace('/', '.')}.*.json"):
                old.unlink()
            calls.replace(kept)
        return Usual(**json.loads(kept.read_text()))
