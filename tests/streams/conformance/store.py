"""A store, queues and streams (moto's) at one port, which are away at times, and refuse keys."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any

from tests.support.kinesis import as_of_aws
from tests.support.s3 import S3Server, moto_app, serving, with_bucket

HOST = "127.0.0.1"
FIRST_KEY, SECOND_KEY = "job-access-1", "job-access-2"
SECRET_KEY = "job-secret-41c9"
"""Of the ingests. The tests have keys of their own, which are never refused."""


class Store:
    """One server of this process."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self._app = moto_app()
        self._patched = contextlib.ExitStack()
        self._running = contextlib.ExitStack()
        self.port = 0
        self._patched.enter_context(as_of_aws())
        self.start()
        self.server: S3Server = with_bucket(self.port)

    def start(self) -> None:
        """Serve, at the port of before."""
        from werkzeug.serving import make_server

        made = make_server(HOST, self.port, self._answer, threaded=True)
        self.port = made.server_port
        self._running.enter_context(serving(made))

    def stop(self) -> None:
        """Be away. What it holds stays."""
        self._running.close()

    def end(self) -> None:
        """Be gone."""
        self.stop()
        self._patched.close()

    def mend(self) -> None:
        """Serve whom it has refused, too."""
        self.refused.clear()
        self.stop()
        self.start()

    def _answer(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        said = environ.get("HTTP_AUTHORIZATION", "")
        if any(f"Credential={key}/" in said for key in self.refused):
            if "/s3/" in said:
                start_response("403 Forbidden", [("Content-Type", "application/xml")])
                return [b"<?xml version='1.0'?><Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>"]
            start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.0")])
            return [json.dumps({"__type": "UnrecognizedClientException", "message": "no"}).encode()]
        found: Iterable[bytes] = self._app(environ, start_response)
        return found
