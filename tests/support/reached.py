"""A plugin of pytest that writes down which test ran which code of ours: `-p
tests.support.reached`, into the file that HUDI_REACHED names.

`tests`: what each test that passed took of a processor. `functions`: of each file of ours the first
lines of the functions that were called, with the numbers of the tests that called them; -1 stands
for all tests: imports, parameters, and fixtures that tests share. `outside`: the tests that started
another process of ours, whose calls are not seen. By its calls alone, which costs a fifth of a
run's time; lines would cost the triple.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOMES = tuple(f"{ROOT / home}/" for home in ("spark_app", "operator"))
OURS = (str(ROOT), sys.prefix)
"""In the command of a process that may run our code."""
FORKS = ("os.fork", "os.forkpty", "os.posix_spawn")
WORKERS = ("multiprocessing.popen_fork", "multiprocessing.popen_forkserver", "multiprocessing.popen_spawn_posix")
ALL = -1
_codes: dict[int, CodeType] = {}
_callers: dict[int, set[int]] = {ALL: set()}
_now: set[int] = _callers[ALL]
_who = ALL
_names: list[str] = []
_cpu: list[float] = []
_failed: set[int] = set()
_outside: set[int] = set()


def _note(frame: FrameType, event: str, argument: object) -> None:
    # By its id: the hash of code reads all of it. What is kept keeps its id.
    _codes.setdefault(id(frame.f_code), frame.f_code)
    _now.add(id(frame.f_code))


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in FORKS or (event == "subprocess.Popen" and any(ours in repr(arguments[:2]) for ours in OURS)):
        _outside.add(_who)


def _turn_to(who: int) -> None:
    global _now, _who
    _who, _now = who, _callers.setdefault(who, set())


def pytest_configure() -> None:
    """From before the first test module is imported."""
    sys.addaudithook(_watch)
    threading.settrace(_note)
    sys.settrace(_note)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _names.append(item.nodeid)
    _turn_to(len(_names) - 1)
    begun = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        _cpu.append(round(sum(os.times()[:4]) - begun, 3))
        if any(name in sys.modules for name in WORKERS):
            _outside.add(_who)
        _turn_to(ALL)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """What tests share is made in the first of them, and tried by the others."""
    who = _who
    if fixturedef.scope != "function":
        _turn_to(ALL)
    try:
        return (yield)
    finally:
        _turn_to(who)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.outcome != "passed":
        _failed.add(len(_names) - 1)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    sys.settrace(None)
    found: dict[str, dict[int, list[int]]] = {}
    for who, called in _callers.items():
        for code in [_codes[each] for each in called]:
            if who not in _failed and code.co_filename.startswith(HOMES):
                lines = found.setdefault(str(Path(code.co_filename).relative_to(ROOT)), {})
                lines.setdefault(code.co_firstlineno, []).append(who)
    tests = [[name, cpu] for name, cpu in zip(_names, _cpu, strict=True)]
    document = {"tests": tests, "failed": sorted(_failed), "outside": sorted(_outside - _failed), "functions": found}
    Path(os.environ["HUDI_REACHED"]).write_text(json.dumps(document))
