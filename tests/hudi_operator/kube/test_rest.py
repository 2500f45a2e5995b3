"""Calls of an API server where something else answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from kubernetes.client import ApiClient, Configuration

from hudi_operator.kube.rest import Rest
from hudi_table.errors import UnavailableError


class Page(BaseHTTPRequestHandler):
    """Well, whatever is asked."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def rest() -> Iterator[Rest]:
    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    configuration = Configuration()
    configuration.host = f"http://127.0.0.1:{server.server_address[1]}"
    with ApiClient(configuration) as client:
        yield Rest(client)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("body", [b"", b"<html>sign in</html>", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_page_that_is_no_document_is_a_server_that_is_away(
    rest: Rest, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lead, the watch and every look go on from that; they would end by an error that they do
    not know."""
    monkeypatch.setattr(Page, "body", body)
    with pytest.raises(UnavailableError, match="no API server"):
        rest.get("/api/v1/namespaces")
