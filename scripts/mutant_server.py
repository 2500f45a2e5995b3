"""Runs tests in a copy of the tree, each time in a process of its own that has the libraries loaded
already: for `make mutants`.

A line of JSON on its input is a run: the arguments of pytest, its environment, its limits, the file
for what it prints. A line on its output is how it ended. None of our code is loaded before the
process is forked: so it sees the change that lies in the copy.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from typing import Any

import pytest

LIBRARIES = (
    "hypothesis", "numpy", "pandas", "pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet", "polars", "obstore", "pydantic", "kopf", "yaml", "asyncio",
    "concurrent.futures",
)  # fmt: skip
"""What most tests load, and what takes a second of a processor."""


def child(asked: dict[str, Any]) -> None:
    """Runs pytest and ends the process."""
    code = 1
    try:
        os.setsid()
        limit = int(asked["cpu"]) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 4))
        os.environ.update(asked["environment"])
        sys.dont_write_bytecode = not asked["compiles"]
        out = os.open(asked["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.dup2(out, 1)
        os.dup2(out, 2)
        code = int(pytest.main(asked["arguments"]))
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def wait(pid: int, seconds: float) -> tuple[int, float, bool]:
    """How a process ends, what it took of a processor, and whether it had to be ended."""
    until, hung = time.monotonic() + seconds, False
    pause = 0.01
    while True:
        found, status, spent = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), spent.ru_utime + spent.ru_stime, hung
        if not hung and time.monotonic() > until:
            hung = True
            os.killpg(pid, signal.SIGKILL)
        time.sleep(pause)
        pause = min(0.2, pause * 1.5)


def main() -> None:
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:  # Whoever needs it says so.
            continue
    for line in sys.stdin:
        asked = json.loads(line)
        begun = time.monotonic()
        pid = os.fork()
        if not pid:
            child(asked)
        code, cpu, hung = wait(pid, asked["seconds"])
        said = {"code": code, "cpu": cpu, "hung": hung, "seconds": time.monotonic() - begun}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
