"""An HTTPS server of this process on a free loopback port, with a certificate of its own."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


class QuietHandler(BaseHTTPRequestHandler):
    """Answers without telling the terminal."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
        pass


@dataclass(frozen=True)
class Https:
    """A running server. `certificate` is PEM: whoever trusts it trusts the server."""

    port: int
    certificate: bytes


@contextmanager
def running_https(handler: type[BaseHTTPRequestHandler], folder: Path) -> Iterator[Https]:
    """A server that answers by `handler`, gone at the end; `folder` keeps its key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    certificate = certificate_of(key)
    kept = folder / "https.pem"
    kept.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        + certificate
    )
    server = ThreadingHTTPServer((HOST, 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(kept)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Https(server.server_address[1], certificate)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def certificate_of(key: rsa.RSAPrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    return made.public_bytes(serialization.Encoding.PEM)
