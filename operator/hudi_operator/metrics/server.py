"""The HTTP server of probes and metrics: few connections at once, each bounded in time, one request
each, nothing but GET."""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from hudi_operator.metrics.health import Check, Health

CONNECTIONS_MAX = 16
CONNECTION_SECONDS_MAX = 10.0
SCRAPE_WAIT_SECONDS = 5.0
_log = logging.getLogger(__name__)
_PLAIN = "text/plain; charset=utf-8"


class ProbeServer(ThreadingHTTPServer):
    """Answers `/healthz`, `/readyz` and `/metrics`. Port 0 is any that is free; without a host, all
    addresses."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, health: Health, registry: CollectorRegistry) -> None:
        self.health = health
        self.registry = registry
        self.scrape = threading.Lock()
        self._places = threading.BoundedSemaphore(CONNECTIONS_MAX)
        if ":" in host or (not host and socket.has_dualstack_ipv6()):
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind to both families where no address was chosen."""
        if self.address_family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Not the HTTP server's own, which asks the resolver for a name that nobody needs.
        TCPServer.server_bind(self)

    def start(self) -> None:
        """Answer in threads of its own, until the process ends."""
        threading.Thread(target=self.serve_forever, name="probes", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection if there is room, else close it."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection. Whoever reads or writes too slowly is cut off."""
        end = threading.Timer(CONNECTION_SECONDS_MAX, _cut, (request,))
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # the base class passes them
        """A connection that breaks is the other side's affair; whatever else went wrong is ours."""
        if not isinstance(sys.exception(), OSError):
            _log.warning("a probe was not answered", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: ProbeServer
    server_version = "hudi-operator"
    sys_version = ""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        match url.path:
            case "/healthz":
                alive = self.server.health.alive()
                for fault in (check for check in alive if not check.good):
                    # The kubelet ends the process for it and says only that the probe failed.
                    _log.error("not alive: %s: %s", fault.name, fault.said)
                self._checks(alive)
            case "/readyz":
                self._checks(self.server.health.ready())
            case "/metrics":
                self._metrics(parse_qs(url.query).get("name[]", []))
            case _:
                self._answer(HTTPStatus.NOT_FOUND, _PLAIN, b"/healthz, /readyz and /metrics are here\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
        """Nothing: probes come every few seconds."""

    def _metrics(self, names: Sequence[str]) -> None:
        """One scrape at a time: that of 2,000 tables takes 30 MB. With names, of these samples
        alone, and of no resource if none is its: that costs a hundredth."""
        if not self.server.scrape.acquire(timeout=SCRAPE_WAIT_SECONDS):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, _PLAIN, b"another scrape is at work\n")
            return
        try:
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            registry = self.server.registry
            body = encode(registry.restricted_registry(names) if names else registry)
        finally:
            self.server.scrape.release()
        self._answer(HTTPStatus.OK, kind, body)

    def _checks(self, checks: Sequence[Check]) -> None:
        good = all(check.good for check in checks)
        lines = [f"[{'+' if check.good else '-'}] {check.name}: {check.said}\n" for check in checks]
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        self._answer(status, _PLAIN, "".join([*lines, "ok\n" if good else "not ok\n"]).encode())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _cut(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
