"""The part of a kubelet that hands out logs: a node of the API server whose port is ours."""

from __future__ import annotations

import datetime as dt
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from tests.support.api_server import ApiServer

NODE = "node-of-logs"


@contextmanager
def node_with_logs(server: ApiServer, folder: Path, text: str) -> Iterator[list[str]]:
    """A node whose containers have all said `text`; the paths that were asked for. Bind pods to `NODE`."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it
            pass

    kubelet = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder))
    kubelet.socket = context.wrap_socket(kubelet.socket, server_side=True)
    thread = threading.Thread(target=kubelet.serve_forever)
    thread.start()
    try:
        _node(server, kubelet.server_address[1])
        yield asked
    finally:
        kubelet.shutdown()
        kubelet.server_close()
        thread.join()
        server.kubectl("delete", "node", NODE)


def bind(server: ApiServer, pod: dict[str, Any]) -> None:
    """Place a pod on the node."""
    metadata = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": NODE}}
    code, said = server.call(
        "POST", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding", body
    )
    assert code == 201, said


def _node(server: ApiServer, port: int) -> None:
    server.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    done = server.kubectl(
        "patch", "node", NODE, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )
    assert done.returncode == 0, done.stderr


def _certificate(folder: Path) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NODE)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = folder / "kubelet.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path
