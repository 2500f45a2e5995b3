"""A server of a test that is a process: started until it serves, and killed with all its
children."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
START_SECONDS_MAX = 120


@dataclass
class ServerProcess:
    """What runs, if it does. `log`: where its output goes, one start behind the other."""

    name: str
    log: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self, command: Sequence[str], ready: Callable[[bytes], bool], **options: Any) -> None:
        """Start it, and wait until it is ready: told by what it has logged since, or asked.
        `options` are those of `subprocess.Popen`."""
        begins = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, **options
            )
        until = time.monotonic() + START_SECONDS_MAX
        while not ready(self.log.read_bytes()[begins:]):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{self.name} did not start: {self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it and its children at once, as a machine that goes away does."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop_when(self, can_stop: Callable[[], bool]) -> None:
        """Let it and its children sleep at a moment at which `can_stop`."""
        while self._process is not None and self._process.poll() is None:
            if not can_stop():
                time.sleep(0.01)
                continue
            self._signal(signal.SIGSTOP)
            # All of its threads sleep only then.
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if can_stop():
                return
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at."""
    with contextlib.ExitStack() as probes:
        found = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in found:
            probe.bind((HOST, 0))
        return [int(probe.getsockname()[1]) for probe in found]
