"""A schema registry on this machine (Apicurio, by its API of Confluent's), in memory, on loopback;
fetched by `make setup-registry`."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.https import HOST
from tests.support.server_process import free_ports

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "registry"
_START_SECONDS_MAX = 240


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A running registry."""

    url: str

    def register(self, subject: str, schema: dict[str, Any], **more: Any) -> int:
        """The id of a schema."""
        body = json.dumps({"schema": json.dumps(schema), **more}).encode()
        asked = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return int(json.load(answer)["id"])


@contextlib.contextmanager
def running_registry() -> Iterator[SchemaRegistry]:
    """A registry, gone at the end."""
    if not FOLDER.is_dir():
        pytest.fail("the schema registry is not there: make setup-registry")
    (port,) = free_ports(1)
    settings = {
        "quarkus.http.port": port, "quarkus.http.host": HOST,
        "apicurio.storage.kind": "sql", "apicurio.storage.sql.kind": "h2",
    }  # fmt: skip
    (runner,) = FOLDER.glob("*-runner.jar")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", *(f"-D{name}={value}" for name, value in settings.items())]
    found = SchemaRegistry(f"http://{HOST}:{port}/apis/ccompat/v7")
    with tempfile.TemporaryDirectory(prefix="registry-") as folder, (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen([java, *options, "-jar", str(runner)], cwd=folder, stdout=log, stderr=log)
        try:
            until = time.monotonic() + _START_SECONDS_MAX
            while not _answers(found.url):
                said = (Path(folder) / "log").read_text()[-2000:]
                assert process.poll() is None, said
                assert time.monotonic() < until, said
                time.sleep(0.2)
            yield found
        finally:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


@contextlib.contextmanager
def guarded_registry(schemas: Mapping[int, Mapping[str, Any]], user: str, password: str) -> Iterator[str]:
    """The URL of one that answers schemas by their ids to who has the password, and nothing else;
    for tests that need no more."""
    wanted = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(self.path.rpartition("/")[2])
            known = self.headers["Authorization"] == wanted
            body = json.dumps(schemas.get(number, {"error_code": 40403})).encode()
            self.send_response((200 if number in schemas else 404) if known else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing to the terminal."""

    with http.server.ThreadingHTTPServer((HOST, 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://{HOST}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
