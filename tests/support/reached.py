"""A plugin of pytest that writes down which code of ours ran: `-p tests.support.reached`, into the file that HUDI_REACHED names.

`functions`: of each file the first lines of the functions that were called. `outside`: whether another process of ours was started, whose calls are not
seen. By its calls alone, which costs a fifth of a run's time; lines would cost the triple.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOMES = tuple(f"{ROOT / home}/" for home in ("spark_app", "operator"))
OURS = (str(ROOT), sys.prefix)
"""In the command of a process that may run our code."""
FORKS = ("os.fork", "os.forkpty", "os.posix_spawn")
WORKERS = ("multiprocessing.popen_fork", "multiprocessing.popen_forkserver", "multiprocessing.popen_spawn_posix")
_called: dict[int, CodeType] = {}
_outside = False


def _note(frame: FrameType, event: str, argument: object) -> None:
    # By its id: the hash of code reads all of it. What is kept keeps its id.
    _called.setdefault(id(frame.f_code), frame.f_code)


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    global _outside
    if event in FORKS or (event == "subprocess.Popen" and any(ours in repr(arguments[:2]) for ours in OURS)):
        _outside = True


def pytest_configure() -> None:
    """From before the first test module is imported."""
    sys.addaudithook(_watch)
    threading.settrace(_note)
    sys.settrace(_note)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    sys.settrace(None)
    found: dict[str, set[int]] = {}
    for code in list(_called.values()):
        if code.co_filename.startswith(HOMES):
            found.setdefault(str(Path(code.co_filename).relative_to(ROOT)), set()).add(code.co_firstlineno)
    outside = _outside or any(name in sys.modules for name in WORKERS)
    document = {"outside": outside, "functions": {name: sorted(lines) for name, lines in sorted(found.items())}}
    Path(os.environ["HUDI_REACHED"]).write_text(json.dumps(document))
