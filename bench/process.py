"""Driving a contender's process, and what it costs: wall time, processor time and peak memory of
its process tree."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall and processor time; bytes of resident memory at the peak of the tree (shared
    pages count for each process) and of its largest Python worker."""

    wall: float
    cpu: float
    peak: int
    worker_peak: int


class Contender:
    """A contender's process. `python` is the one that has its libraries, `version` that of its
    tables."""

    def __init__(self, name: str, *, bloom: bool, python: Path | None = None, version: int = 6) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        unwanted = ("SPARK_", "PYSPARK_", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        env = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        env |= {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark_app"))), "TZ": "UTC"}
        env.setdefault("HUDI_INTEROP_IVY", str(ROOT / ".cache" / "ivy"))
        command = [str(python or sys.executable), "-m", "bench.worker", name, *(["--bloom"] if bloom else [])]
        command += ["--table-version", str(version)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=env, text=True
        )
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_until_ready(self) -> None:
        """Wait for the session to stand."""
        if not self._started:
            self._answer()
            self._started = True

    def run(self, step: str, rows: Path, base: Path, version: int | None = None) -> Cost:
        """One step, measured; `version`: of the table, if it is not that of the contender. The
        first call waits for the session to stand, outside of what is measured."""
        self.wait_until_ready()
        watched = _Watch(self._process.pid)
        with watched:
            assert self._process.stdin is not None
            asked = {"step": step, "rows": str(rows), "base": str(base), "version": version}
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            wall = self._answer()["seconds"]
        return Cost(wall, watched.cpu, watched.peak, watched.worker_peak)

    def close(self) -> None:
        """End the process; its JVM ends with it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            tail = self._log.read().decode("utf-8", "replace")[-4000:]
            raise RuntimeError(f"a contender failed; its log ends:\n{tail}")
        return json.loads(line)


class Contenders(contextlib.ExitStack):
    """The processes of a race. Ours takes tables of all versions in one: what another version costs
    is then the version's, and not that of another JVM. What has libraries of its own may have a
    session of its version."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[tuple[str, bool, int], Contender] = {}

    def of(self, worker: str, *, bloom: bool, python: Path | None, version: int) -> Contender:
        """The process of this one, which is begun if it does not run."""
        process = worker, bloom, version if python else 0
        if process not in self._running:
            self._running[process] = self.enter_context(Contender(worker, bloom=bloom, python=python, version=version))
        return self._running[process]


class _Watch:
    """Samples a process tree while it is entered."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._spent: dict[psutil.Process, float] = {}
        """Of each process that was there, as it was seen last: one that nobody waits for, such as a
        JVM, leaves its time to no other."""
        self.cpu = 0.0
        self.peak = self.worker_peak = 0

    def __enter__(self) -> Self:
        self._take_sample()
        self._before = sum(self._spent.values())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._take_sample()  # a step may be shorter than a pause between two samples
        self.cpu = sum(self._spent.values()) - self._before

    def _tree(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self._root, *self._root.children(recursive=True)]
        return []

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self._take_sample()

    def _take_sample(self) -> None:
        total = largest = 0
        for process in self._tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                times, size = process.cpu_times(), process.memory_info().rss
                self._spent[process] = times.user + times.system
                total += size
                if process != self._root and "python" in process.name():
                    largest = max(largest, size)
        self.peak = max(self.peak, total)
        self.worker_peak = max(self.worker_peak, largest)


def compiled() -> dict[str, str]:
    """The environment in which a process keeps what it compiles, as an installation and an image
    have it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
