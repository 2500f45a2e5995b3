"""A schema registry that redirects: its credentials go nowhere else."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.variables import REGISTRY_PASSWORD, REGISTRY_USERNAME
from hudi_table.sources.formats.registry import Registry
from tests.support.https import HOST

SECRET = {REGISTRY_USERNAME: "shop", REGISTRY_PASSWORD: "p4ssw0rd"}


class Answers(ThreadingHTTPServer):
    """Answers with a schema, below `/moved` with a redirect to `target`; keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Answer)
        self.target = self.url
        self.sent: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        self.server.sent.append((self.path, self.headers["Authorization"]))
        body = json.dumps({"schema": '"string"'}).encode()
        if moved := self.path.startswith("/moved"):
            body = b""
        self.send_response(302 if moved else 200)
        if moved:
            self.send_header("Location", self.server.target + self.path.removeprefix("/moved"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing to the terminal."""


@contextlib.contextmanager
def answering() -> Iterator[Answers]:
    with Answers() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_credentials_of_a_registry_do_not_follow_a_redirect_to_another_host_or_scheme() -> None:
    with answering() as registry, answering() as other:
        for target in (other.url, other.url.replace(HOST, "localhost"), registry.url.replace("http:", "https:")):
            registry.target = target
            with pytest.raises(InvalidRequestError) as refused:
                Registry(f"{registry.url}/moved", SECRET).avro_schema(7)
            assert f"redirects to {target}" in refused.value.message
            assert SECRET[REGISTRY_PASSWORD] not in refused.value.message
        assert not other.sent


def test_a_redirect_within_a_registry_is_followed_with_its_credentials() -> None:
    with answering() as registry:
        assert Registry(f"{registry.url}/moved", SECRET).avro_schema(7) == '"string"'
        (_, first), (path, second) = registry.sent
        assert (path, first) == ("/schemas/ids/7", second)


def test_a_registry_without_credentials_may_redirect_to_another_host() -> None:
    with answering() as registry, answering() as other:
        registry.target = other.url
        assert Registry(f"{registry.url}/moved", {}).avro_schema(7) == '"string"'
        assert other.sent == [("/schemas/ids/7", None)]
