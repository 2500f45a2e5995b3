"""A Cloud Storage of Google for tests: in this process, on a free loopback port.

It keeps objects of any bucket with their generations, and answers PUT, GET and HEAD of the XML
interface as Google's service does, seen by obstore's own client. It takes one write a second of an
object, and answers 429 to others. `lost` replies are not sent although the write was done.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate

from tests.support.s3 import serving

SLOW = b"<Error><Code>SlowDown</Code><Message>The object exceeded the rate limit for updates.</Message></Error>"
WRITE_SECONDS = 1.0


@dataclass
class GoogleService:
    """A running service: (bytes, generation, moment) of each object, and the answers to writes."""

    endpoint: str = ""
    objects: dict[str, tuple[bytes, int, float]] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    lost: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def options(self) -> dict[str, str]:
        """Storage options of `open_storage`."""
        key = {"gcs_base_url": self.endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
        return {"service_account_key": json.dumps({**key, "private_key_id": ""}), "allow_http": "true", "timeout": "5"}

    def write(self, name: str, data: bytes, generation: str | None) -> int:
        """The status of a write."""
        self.writes.append(time.monotonic())
        kept = self.objects.get(name)
        if generation is not None and int(generation) != (kept[1] if kept else 0):
            return 412
        if kept is not None and time.monotonic() - kept[2] < WRITE_SECONDS:
            return 429
        self.objects[name] = data, (kept[1] if kept else 0) + 1, time.monotonic()
        return 200


class _Handler(http.server.BaseHTTPRequestHandler):
    service: GoogleService
    protocol_version = "HTTP/1.1"

    def _put(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.service.lock:
            status = self.service.write(self.path, data, self.headers.get("x-goog-if-generation-match"))
            self.service.statuses.append(status)
            if status == 200 and self.service.lost:
                self.service.lost -= 1
                self.close_connection = True
                self.connection.close()
                return
            self._reply(status, SLOW if status == 429 else b"")

    def _get(self) -> None:
        with self.service.lock:
            kept = self.service.objects.get(self.path)
            self._reply(404 if kept is None else 200, b"" if kept is None else kept[0])

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        if self.path in self.service.objects:
            generation = self.service.objects[self.path][1]
            self.send_header("ETag", f'"{generation}"')
            self.send_header("x-goog-generation", str(generation))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = _get  # noqa: N815
    do_PUT = _put  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def running_google() -> Iterator[GoogleService]:
    """A service, gone at the end."""
    service = GoogleService()
    handler = type("Handler", (_Handler,), {"service": service})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    service.endpoint = f"http://127.0.0.1:{server.server_port}"
    with serving(server):
        yield service
