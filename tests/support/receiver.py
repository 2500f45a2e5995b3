"""A receiver of callbacks: a real HTTP server on the loopback, which keeps what it was sent and
answers as a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Sent:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    """`answer`: the status of the answer to the request of this number, from 0; a negative one
    keeps silent for so many seconds."""

    port: int = 0
    answer: Callable[[int], int] = lambda _: 204
    sent: list[Sent] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/commits"

    @property
    def taken(self) -> list[str]:
        """Instants of what it took, in the order in which it came."""
        return [each.event["data"]["instant"] for each in list(self.sent) if each.status < 300]


@contextmanager
def receiver(answer: Callable[[int], int] | None = None) -> Iterator[Receiver]:
    found = Receiver(answer=answer) if answer is not None else Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with found.lock:
                status = found.answer(len(found.sent))
                found.sent.append(Sent(self.path, dict(self.headers), body, max(status, 0) or 599))
            if status < 0:
                time.sleep(-status)
                return
            self.send_response(status)
            if status in (301, 302, 307, 308):
                self.send_header("Location", found.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
