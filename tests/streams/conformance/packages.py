"""Rows that a class of another package asks a server for, by HTTP with a token."""

from __future__ import annotations

import contextlib
import http.server
import json
from pathlib import Path
from typing import Any

import pytest

from hudi_table.sources import custom
from tests.streams.conformance.part import Part, Row
from tests.support.index_package import written_package
from tests.support.s3 import serving

OLD_TOKEN, NEW_TOKEN = "se-cret-token-1", "se-cret-token-2"
PACKAGE = '''
import json
import os
import urllib.error
import urllib.request

import pyarrow as pa


class Shop:
    """Lines behind a position, which is how many were read."""

    def __init__(self, options):
        self.url = options["url"]

    def read(self, position):
        begin = int(position or 0)
        asked = urllib.request.Request(f"{self.url}/{begin}", headers={"Authorization": os.environ["SHOP_TOKEN"]})
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.HTTPError as error:
            error.close()
            raise PermissionError(f"the shop answers {error.code}") from None
        for number, line in enumerate(lines, begin):
            if not line.startswith("{"):
                raise ValueError(f"line {number} is no object")
        if not lines:
            return None
        return pa.Table.from_pylist([json.loads(line) for line in lines]), str(begin + len(lines))
'''


class Custom(Part):
    """The class of a package."""

    label = "Custom"
    part = "a package that reads from a server of the test"
    spoilt = "InvalidRequest"

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self.lines: list[str] = []
        self.token, self.port = OLD_TOKEN, 0
        self.ends, self.serves = contextlib.ExitStack(), contextlib.ExitStack()
        offered = written_package(folder / "package", "shop_package", PACKAGE, "shop = shop_package:Shop", custom.GROUP)
        self.ends.enter_context(offered)
        self.come_back()
        options = {"url": f"http://127.0.0.1:{self.port}"}
        super().__init__(request, folder, {"type": "Custom", "custom": {"name": "shop", "options": options}})
        self.environment.setenv("SHOP_TOKEN", OLD_TOKEN)

    def calls(self) -> list[tuple[Any, str]]:
        return [(custom, "_asked")]

    def put(self, *rows: Row, **more: str) -> None:
        self.lines += [json.dumps({"id": key, "v": version, **more}) for key, version in rows]

    def leave(self) -> None:
        self.serves.close()

    def come_back(self) -> None:
        part = self

        class Shop(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.headers.get("Authorization") == part.token
                body = "\n".join(part.lines[int(self.path[1:]) :]).encode() if known else b""
                self.send_response(200 if known else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Shop)
        server.daemon_threads = True
        self.port = server.server_port
        self.serves.enter_context(serving(server))

    def rotate(self) -> None:
        self.token = NEW_TOKEN

    def renew(self) -> None:
        self.environment.setenv("SHOP_TOKEN", NEW_TOKEN)

    def secrets(self) -> list[str]:
        return [OLD_TOKEN, NEW_TOKEN]

    def poison(self) -> str:
        self.lines.append("no object")
        return "line 2 is no object"

    def cure(self) -> tuple[list[Row], dict[str, Any]]:
        self.lines[2] = json.dumps({"id": "p", "v": 1})
        return [("p", 1)], {}

    def mend(self) -> None:
        self.serves.close()
        self.ends.close()
