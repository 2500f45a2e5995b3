"""A Blob service of Azure for tests: in this process, on a free loopback port.

It keeps blobs of one container and answers GET, HEAD, PUT, a batch of deletions and a listing as
Azure's service does, seen by obstore's own client; a listing begins at its beginning, whatever is
asked, as that of Azurite. It checks no signature. `refuse` is what it answers instead.
"""

from __future__ import annotations

import contextlib
import http.server
import re
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from xml.sax.saxutils import escape

from tests.support.s3 import serving

ACCOUNT, CONTAINER, PAGE = "lakeaccount", "lake", 100


@dataclass
class BlobService:
    """A running service: its blobs, the requests as they came (method, blob, range), and the
    tags of conditions."""

    endpoint: str = ""
    blobs: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    refuse: tuple[int, str] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def options(self) -> dict[str, str]:
        """Storage options of `open_storage`."""
        return {"account_name": ACCOUNT, "account_key": "a2V5", "endpoint": self.endpoint, "retries": "0"}

    def uri(self, path: str) -> str:
        """A base in the container."""
        return f"az://{CONTAINER}/{path}"

    def page(self, query: dict[str, str]) -> bytes:
        """One page of a listing."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        found: dict[str, str] = {}
        for name in sorted(name for name in self.blobs if name.startswith(prefix)):
            folder, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            shown = prefix + folder + cut if cut else name
            data, tag = self.blobs[name]
            found[shown] = (
                f"<BlobPrefix><Name>{escape(shown)}</Name></BlobPrefix>"
                if cut
                else f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{formatdate(usegmt=True)}</Last-Modified>"
                f"<Etag>{tag}</Etag><Content-Length>{len(data)}</Content-Length><Content-Type>text/plain</Content-Type></Properties></Blob>"
            )
        names = [name for name in sorted(found) if name >= query.get("marker", "")]
        more = names[PAGE] if len(names) > PAGE else ""
        blobs = "".join(found[name] for name in names[:PAGE])
        text = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker>{escape(more)}</NextMarker></EnumerationResults>"
        return text.encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    service: BlobService
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urllib.parse.urlsplit(self.path)
        container, _, name = urllib.parse.unquote(url.path).removeprefix(f"/{ACCOUNT}/").partition("/")
        asked = self.headers.get("Range") or self.headers.get("x-ms-range") or ""
        with self.service.lock:
            self.service.requests.append((self.command, name, asked))
            if self.service.refuse:
                self._refuse(*self.service.refuse)
            elif container != CONTAINER:
                self._refuse(404, "ContainerNotFound")
            elif name:
                self._blob(name, body, asked)
            elif self.command == "POST":
                self._delete(body)
            else:
                self._reply(200, self.service.page(dict(urllib.parse.parse_qsl(url.query))))

    def _blob(self, name: str, body: bytes, asked: str) -> None:
        kept = self.service.blobs.get(name)
        if self.command == "PUT":
            self._put(name, body, kept)
        elif kept is None:
            self._refuse(404, "BlobNotFound")
        elif asked:
            self._range(asked, *kept)
        else:
            self._reply(200, kept[0], ETag=f'"{kept[1]}"')

    def _delete(self, batch: bytes) -> None:
        """A batch of deletions, which is how the client sends a single one, too."""
        parts = []
        for number, target in enumerate(re.findall(rb"^DELETE (\S+) HTTP", batch, re.MULTILINE)):
            name = urllib.parse.unquote(target.decode()).removeprefix(f"/{ACCOUNT}").removeprefix(f"/{CONTAINER}/")
            status = "202 Accepted" if self.service.blobs.pop(name, None) else "404 Not Found"
            head = f"--answers\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            code = "" if status.startswith("202") else "x-ms-error-code: BlobNotFound\r\n"
            parts.append(f"{head}HTTP/1.1 {status}\r\n{code}Content-Length: 0\r\n\r\n")
        text = "".join(parts) + "--answers--"
        self._reply(202, text.encode(), **{"Content-Type": "multipart/mixed; boundary=answers"})

    def _range(self, asked: str, data: bytes, tag: str) -> None:
        bounds = re.fullmatch(r"bytes=(\d+)-(\d*)", asked)
        if bounds is None:
            self._refuse(400, "InvalidHeaderValue")
        elif int(bounds[1]) >= len(data):
            self._refuse(416, "InvalidRange")
        else:
            start = int(bounds[1])
            end = min(int(bounds[2] or len(data)) + 1, len(data))
            span = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
            self._reply(206, data[start:end], ETag=f'"{tag}"', **span)

    def _put(self, name: str, body: bytes, kept: tuple[bytes, str] | None) -> None:
        wanted = self.headers.get("If-Match")
        self.service.conditions += [wanted] if wanted else []
        if self.headers.get("If-None-Match") == "*" and kept:
            self._refuse(409, "BlobAlreadyExists")
        elif wanted is not None and (kept is None or wanted.strip('"') != kept[1]):
            self._refuse(412, "ConditionNotMet")
        else:
            tag = f"0x{len(self.service.requests):016X}"
            self.service.blobs[name] = body, tag
            self._reply(201, b"", ETag=f'"{tag}"')

    def _refuse(self, status: int, code: str) -> None:
        self._reply(status, f"<Error><Code>{code}</Code><Message>as asked</Message></Error>".encode())

    def _reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        said = {"Last-Modified": formatdate(usegmt=True), "Content-Length": str(len(body)), **headers}
        for name, value in said.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_POST = _answer  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def running_azure() -> Iterator[BlobService]:
    """A service with one container, gone at the end."""
    service = BlobService()
    handler = type("Handler", (_Handler,), {"service": service})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    with serving(server):
        service.endpoint = f"http://127.0.0.1:{server.server_port}/{ACCOUNT}"
        yield service
