"""An S3 server for tests: moto, in this process, on a free loopback port.

moto, one request at a time, keeps exclusive creates exclusive (PUT and the end of an upload in
parts), pages its listings, and checks no credentials; `s3_replies` answers as a store does that
refuses, stalls or fails.
"""

from __future__ import annotations

import contextlib
import http.server
import logging
import socketserver
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hudi_table.table.store.opening import Reopen
from hudi_table.table.store.options import client_settings
from hudi_table.table.store.ports import Storage
from hudi_table.table.store.remote import ObjectStorage
from hudi_table.table.store.retry import Pace

ACCESS = {"access_key_id": "test-access", "secret_access_key": "test-secret-7f3a"}


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server: its endpoint and a bucket that exists."""

    endpoint: str
    bucket: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options of `open_storage`."""
        return {"endpoint": self.endpoint, "region": "us-east-1", **ACCESS}

    def new_uri(self) -> str:
        """A base that nobody else uses."""
        return f"s3://{self.bucket}/{uuid.uuid4().hex}/table"

    def client(self) -> Any:
        """A boto3 client, to look at the bucket without our own code."""
        import boto3  # type: ignore[import-untyped]

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS["access_key_id"],
            aws_secret_access_key=ACCESS["secret_access_key"],
        )

    def keys(self, prefix: str = "") -> list[str]:
        """All keys of the bucket, as boto3 lists them."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]


def with_bucket(port: int) -> S3Server:
    """The server that listens at a port, with a bucket of its own."""
    found = S3Server(f"http://127.0.0.1:{port}", f"lake-{uuid.uuid4().hex[:8]}")
    found.client().create_bucket(Bucket=found.bucket)
    return found


@contextlib.contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    """A server of this process answers from a thread, until the end."""
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def moto_app() -> Any:
    """moto as a WSGI application that answers one request at a time."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = DomainDispatcherApplication(create_backend_app)
    # Between its look and its write moto lets another request in: of two exclusive creates both could win.
    turn = threading.Lock()

    def one_at_a_time(environ: Any, start_response: Any) -> Any:
        with turn:
            return moto(environ, start_response)

    return one_at_a_time


@contextlib.contextmanager
def running_s3(around: Callable[[Any], Any] = lambda app: app) -> Iterator[S3Server]:
    """A server with one bucket, gone at the end. `around`: makes of its application another one,
    which may refuse what it passes on."""
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, around(moto_app()), threaded=True)
    with serving(server):
        # moto keeps one state for all servers of a process: buckets keep them apart.
        yield with_bucket(server.server_port)


@dataclass
class Replies:
    """What a scripted store answers: (status, error code), `"reset"` or a number of seconds to
    stall.

    `script` holds the next answers, `answer` all others; both may be changed between requests.
    `requests` are (method, path) as they came.
    """

    endpoint: str = ""
    answer: tuple[int, str] | str | float = (503, "SlowDown")
    requests: list[tuple[str, str]] = field(default_factory=list)
    script: list[tuple[int, str] | str | float] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        """Storage options with short limits."""
        return {"endpoint": self.endpoint, "region": "us-east-1", "timeout": "1", "retries": "2", **ACCESS}


@contextlib.contextmanager
def s3_replies(answer: tuple[int, str] | str | float = (503, "SlowDown")) -> Iterator[Replies]:
    """A store on a free loopback port that gives every request the same answer."""
    replies = Replies(answer=answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def _reply(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            replies.requests.append((self.command, self.path))
            wanted = replies.script.pop(0) if replies.script else replies.answer
            if isinstance(wanted, str):
                self.close_connection = True
                self.connection.close()
            elif isinstance(wanted, tuple):
                status, code = wanted
                body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>as asked</Message></Error>".encode()
                body = body if code else b""
                self.send_response(status)
                self.send_header("ETag", '"0"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
            else:
                time.sleep(wanted)
                self.close_connection = True

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _reply  # noqa: N815

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with serving(server):
        replies.endpoint = f"http://127.0.0.1:{server.server_port}"
        yield replies


def paced(options: dict[str, str], bucket: str, pace: Pace) -> Storage:
    """The storage `t` of a bucket, with a pace of its own that a test may look at."""
    from obstore.store import S3Store

    settings, config = client_settings(options)
    more: Any = {"client_options": settings.client_options(config["endpoint"]), "config": config}
    again: Any = settings.retry_config()
    never: Any = settings.without_retries().retry_config()
    uri = f"s3://{bucket}/t"
    clients = S3Store(bucket, retry_config=again, **more), S3Store(bucket, retry_config=never, **more)
    return ObjectStorage(*clients, pace, uri=uri, prefix="t", where=uri, reopen=Reopen(uri))
