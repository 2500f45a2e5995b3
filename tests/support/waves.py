"""An S3 server that answers in waves, so that the longest chain of requests one after the other can
be counted.

A request waits until nobody in this process runs, which means that every request that does not
depend on this one has come; then all that wait are answered at once. So the number of waves is the
longest chain of requests that depend on each other, whatever the machine does meanwhile: no clock
decides it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.s3 import S3Server, moto_app, serving, with_bucket

_POLL_SECONDS = 0.003
_IDLE_POLLS = 3
_RUNNING = frozenset("RD")
Answer = Callable[[dict[str, Any], Any], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: the wave in which it was answered, from 1, its method (LIST for a listing, DELETE
    for one or many deletions), and the key below the table, or the prefix."""

    wave: int
    method: str
    key: str

    def __str__(self) -> str:
        return f"{self.wave:3} {self.method:6} {self.key}"


@dataclass
class Requests:
    """Those of one operation."""

    sent: list[Sent] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many."""
        return len(self.sent)

    @property
    def in_sequence(self) -> int:
        """The longest chain of them, one after the other."""
        return max((request.wave for request in self.sent), default=0)

    def by_method(self) -> Counter[str]:
        """How many of each."""
        return Counter(request.method for request in self.sent)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {method}" for method, count in sorted(self.by_method().items()))
        lines = sorted(self.sent, key=lambda request: request.wave)
        return "\n".join([f"{self.total} requests, {self.in_sequence} in sequence: {counts}", *map(str, lines)])


class Waves:
    """The server's application: `counted` tells the requests of what runs inside."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._state = threading.Condition()
        self._waiting: list[threading.Event] = []
        self._answering = self._arrived = self._wave = 0
        self._requests: Requests | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request, in its wave if requests are counted."""
        turn = threading.Event()
        with self._state:
            requests = self._requests
            if requests is None:
                return self._answer(environ, start_response)
            self._waiting.append(turn)
            self._arrived += 1
        turn.wait()
        with self._state:
            requests.sent.append(_sent(self._wave, environ))
        try:
            return list(self._answer(environ, start_response))
        finally:
            with self._state:
                self._answering -= 1

    @contextlib.contextmanager
    def counted(self) -> Iterator[Requests]:
        """The requests that this process sends while the context is open; those under way at its
        end are waited for."""
        requests, done = Requests(), threading.Event()
        with self._state:
            self._requests, self._wave = requests, 0
        thread = threading.Thread(target=self._release, args=(done,), name="waves", daemon=True)
        thread.start()
        try:
            yield requests
        finally:
            while self._waiting or self._answering:
                time.sleep(_POLL_SECONDS)
            done.set()
            thread.join()
            with self._state:
                self._requests = None

    def _release(self, done: threading.Event) -> None:
        idle, arrived = 0, -1
        while not done.wait(_POLL_SECONDS):
            with self._state:
                busy = self._answering > 0 or not self._waiting or self._arrived != arrived
                arrived = self._arrived
            idle = 0 if busy or _somebody_runs() else idle + 1
            if idle < _IDLE_POLLS:
                continue
            with self._state:
                idle, turns, self._waiting = 0, self._waiting, []
                self._answering += len(turns)
                self._wave += 1
            for turn in turns:
                turn.set()


def _somebody_runs() -> bool:
    """Whether another thread of this process runs, or could, if it had a processor."""
    own = threading.get_native_id()
    for task in Path("/proc/self/task").iterdir():
        if int(task.name) != own:
            with contextlib.suppress(OSError):
                # The name of the program, in brackets, may hold anything.
                if (task / "stat").read_text().rpartition(")")[2].split()[0] in _RUNNING:
                    return True
    return False


def _sent(wave: int, environ: dict[str, Any]) -> Sent:
    method, query = environ["REQUEST_METHOD"], urllib.parse.parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    key = environ["PATH_INFO"]
    if "list-type" in query:
        method, key = "LIST", f"/{key.strip('/')}/{query.get('prefix', [''])[0]}"
    elif "delete" in query:
        method = "DELETE"
    elif "uploads" in query or "uploadId" in query:
        method = f"{method} part" if "partNumber" in query else f"{method} upload"
    # Keys begin with the bucket and the folder of the table's own: see S3Server.new_uri.
    below = key.strip("/").split("/")[3:]
    extra = f" {environ['HTTP_RANGE']}" if "HTTP_RANGE" in environ else ""
    return Sent(wave, method, "/".join(below) + extra)


@contextlib.contextmanager
def running_waves() -> Iterator[tuple[S3Server, Waves]]:
    """A server with one bucket and its waves, gone at the end. Linux alone tells which threads
    run."""
    from werkzeug.serving import make_server

    assert os.path.isdir("/proc/self/task")
    waves = Waves(moto_app())
    server = make_server("127.0.0.1", 0, waves, threaded=True)
    with serving(server):
        yield with_bucket(server.server_port), waves
