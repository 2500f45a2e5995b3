"""Processes that outlive the command that starts them: recorded by id and start time, so that only
they are ever ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.places import DATA, LOGS, NETNS
from e2e.cluster.telling import wait_for

RECORDS = DATA / "processes"
STOP_SECONDS = 20.0
_START_TIME = 19
"""Of the fields of /proc/PID/stat after the name: when the process began. A process id alone may be
another's by now."""


def start(name: str, *command: str | Path, inside: bool = True) -> None:
    """Start a program, unless it runs, inside the cluster's network; what it says goes to its
    log."""
    if is_running(name):
        return
    RECORDS.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    # Not `ip netns exec`: that mounts another /sys, without the cgroups.
    prefix = ("nsenter", f"--net={NETNS}") if inside else ()
    with (LOGS / f"{name}.log").open("ab") as output:
        process = subprocess.Popen(
            [*prefix, *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(),
            start_new_session=True,
        )
    # Another run of this program may end it, found by its record: that nobody waited for it is no mistake to warn of.
    process.returncode = 0
    _record(name).write_text(json.dumps({"pid": process.pid, "began": _began(process.pid)}))


def is_running(name: str) -> bool:
    """Whether the recorded process is alive."""
    return _pid(name) is not None


def stop(name: str, *, kill: bool = False) -> bool:
    """End the recorded process, gently unless `kill`; False if it was not there."""
    pid = _pid(name)
    if pid is not None:
        os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
        try:
            wait_for(lambda: _pid(name) is None, name, STOP_SECONDS)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: _pid(name) is None, name, STOP_SECONDS)
    _record(name).unlink(missing_ok=True)
    return pid is not None


def recorded() -> Sequence[str]:
    """Names of all that was started and not stopped, the newest first."""
    records = sorted(RECORDS.glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [path.stem for path in records]


def check(name: str, seconds: float = 1.0) -> None:
    """Raises RuntimeError with the end of its log if the process has ended already."""
    time.sleep(seconds)
    if not is_running(name):
        lines = (LOGS / f"{name}.log").read_text(errors="replace").splitlines()[-15:]
        raise RuntimeError(f"{name} has ended:\n" + "\n".join(lines))


def _record(name: str) -> Path:
    return RECORDS / f"{name}.json"


def _pid(name: str) -> int | None:
    try:
        record = json.loads(_record(name).read_text())
    except FileNotFoundError:
        return None
    pid = int(record["pid"])
    began = _began(pid)
    return pid if began is not None and began == record["began"] else None


def _began(pid: int) -> str | None:
    """When a living process began; None of one that is gone or waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] == "Z":
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return None
    return fields[_START_TIME]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
