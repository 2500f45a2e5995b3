"""The part of a kubelet that hands out logs: a node of the API server whose port is ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.api_server import ApiServer
from tests.support.https import QuietHandler, running_https

NODE = "node-of-logs"


@contextmanager
def node_with_logs(server: ApiServer, folder: Path, text: str) -> Iterator[list[str]]:
    """A node whose containers have all said `text`; the paths that were asked for. Bind pods to
    `NODE`."""
    asked: list[str] = []

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802  # the base class names it
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

    with running_https(Handler, folder) as kubelet:
        try:
            _node(server, kubelet.port)
            yield asked
        finally:
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
