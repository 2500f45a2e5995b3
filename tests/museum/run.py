"""Mutants of the museum applied to copies of the tracked tree, each with the test that is named for
it.

A copy has the files as they lie in the work tree. What ran is kept in `.cache/museum`, for as long
as the mutant, our code and the file of the test stay as they are: a run that was cut short goes on
where it ended.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import pytest

from scripts.mutant_tests import digest
from tests.museum.mutant import ROOT, Mutant

STATE = ROOT / ".cache" / "museum"
CODE = ("spark_app/hudi_table", "tests/support", "tests/conftest.py")
SECONDS_EACH_MAX = 200.0
"""What no test takes that is named here, on a busy machine either: past that it hangs, which is
noticed too."""
HANGS, PASSES = "(hangs)", "(passes)"
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["pytest", "hypothesis", "pyarrow.parquet", "pyarrow.compute", "fastavro"])
_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Fate:
    """Of one mutant: whether its test fails with it, what failed, and how many seconds that
    took."""

    caught: bool
    failed: str
    seconds: float


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of the tracked files, and of what Python has compiled of them, in a folder that
    goes."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="museum-") as folder:
        tree = Path(folder)
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        for compiled in (ROOT / "spark_app").rglob("__pycache__"):
            shutil.copytree(compiled, tree / compiled.relative_to(ROOT), dirs_exist_ok=True)
        yield tree


def first_to_fail(mutants: Iterable[Mutant], tree: Path) -> str:
    """The first of their tests that fails in the copy as it is, without any mutant; '' if all
    pass."""
    failed = _tested(list(dict.fromkeys(mutant.test_id for mutant in mutants)), tree)
    return "" if failed == PASSES else failed


def fate_of(mutant: Mutant, tree: Path) -> Fate:
    """Run its test in the copy with the mutant. The copy is left as it was."""
    path, begun = tree / mutant.path, time.monotonic()
    code, kept = path.read_text(), path.stat()
    path.write_text(mutant.changed(code))
    # Of a time that none of the code has which Python has compiled.
    os.utime(path, (kept.st_atime, kept.st_mtime - _YEAR))
    try:
        failed = _tested([mutant.test_id], tree)
    finally:
        path.write_text(code)
        os.utime(path, (kept.st_atime, kept.st_mtime))
    # A test that cannot even be collected has noticed nothing.
    return Fate("::" in failed or failed == HANGS, failed, time.monotonic() - begun)


def _tested(tests: list[str], tree: Path) -> str:
    """The first of the tests that fails in a copy, or `PASSES`. They run in a process that has the
    libraries already, and nothing of ours."""
    with tempfile.NamedTemporaryFile("r") as told:
        process = _SERVER.Process(target=_test, args=(tests, str(tree), told.name))
        process.start()
        process.join(SECONDS_EACH_MAX * (1 + len(tests)))
        if process.exitcode is None:
            process.kill()
            process.join()
            return HANGS
        return told.read() or f"(pytest ends with {process.exitcode})"


class _Told:
    """A plugin of pytest that writes down the first test that fails, or that none does."""

    def __init__(self, path: str) -> None:
        self._path, self._failed = Path(path), ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self._failed:
            self._failed = report.nodeid

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._path.write_text(self._failed or PASSES)


def _test(tests: list[str], tree: str, told: str) -> None:
    """In a process of its own: pytest in the copy, of which all of ours is imported, and nothing of
    here."""
    os.chdir(tree)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "scripts")]:
        del sys.modules[name]
    sys.path[:] = [tree, *(path for path in sys.path if path and Path(path).resolve() != ROOT)]
    os.environ["PYTHONPATH"] = tree
    os.environ.pop("PYTEST_XDIST_WORKER", None)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        # Nobody reads the messages: rewriting assertions would take most of the time.
        quiet = ("-q", "-x", "--assert=plain", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist")
        sys.exit(pytest.main([*quiet, *tests], [_Told(told)]))


@cache
def _code() -> str:
    return digest(*CODE)


def _kept_at(mutant: Mutant) -> Path:
    marks = [*asdict(mutant).values(), _code(), digest(mutant.test_file)]
    return STATE / f"{hashlib.sha256(json.dumps(marks).encode()).hexdigest()[:24]}.json"


def known_fate(mutant: Mutant) -> Fate | None:
    """What became of it in an earlier run on these sources."""
    kept = _kept_at(mutant)
    return Fate(**json.loads(kept.read_text())) if kept.exists() else None


def keep_fate(mutant: Mutant, fate: Fate) -> None:
    """Remember it."""
    STATE.mkdir(parents=True, exist_ok=True)
    _kept_at(mutant).write_text(json.dumps(asdict(fate)))
