"""Others change a resource at the very moment its status is written: a webhook that the API server
asks before it stores the status."""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hudi_operator.api.names import GROUP, PLURALS, VERSION
from hudi_operator.kube.rest import Rest
from tests.support import kubelet
from tests.support.api_server import ApiServer
from tests.support.https import HOST, QuietHandler, running_https

WEBHOOK = "others.example.org"
SECONDS_MAX = 120.0
WRITES_SECONDS = 2.0
"""In which a status is written, as a rule."""


def change_meanwhile(server: ApiServer, kind: str, path: str, change: Mapping[str, Any], folder: Path) -> None:
    """Merge `change` into the resource at `path` while a status of it is written. `suspend` goes on
    and off, so that there is one to write."""
    rest, numbers = Rest(server.client()), itertools.count()
    with _others(server, kind, path, change, folder) as changed:

        def meanwhile() -> bool:
            # The API server takes a while to know whom it has to ask.
            rest.merge(path, {"spec": {"suspend": next(numbers) % 2 == 0}})
            return changed.wait(WRITES_SECONDS)

        kubelet.eventually(meanwhile, "no status is written", SECONDS_MAX)


@contextmanager
def _others(
    server: ApiServer, kind: str, path: str, change: Mapping[str, Any], folder: Path
) -> Iterator[threading.Event]:
    """The next status of the resource finds it changed meanwhile, once; the event says that it
    did."""
    done, once = threading.Event(), threading.Lock()
    rest = Rest(server.client())

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  # the base class names it
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            with once:
                if path.endswith(f"/{asked['namespace']}/{PLURALS[kind]}/{asked['name']}") and not done.is_set():
                    rest.merge(path, change)
                    done.set()
            answer = {"uid": asked["uid"], "allowed": True}
            review = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(review.encode())

    with running_https(Handler, folder) as https:
        server.apply(_webhook(kind, https.port, https.certificate))
        try:
            yield done
        finally:
            server.kubectl("delete", "validatingwebhookconfiguration", WEBHOOK)


def _webhook(kind: str, port: int, certificate: bytes) -> dict[str, Any]:
    told = {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": ["UPDATE"],
        "resources": [f"{PLURALS[kind]}/status"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": WEBHOOK},
        "webhooks": [
            {
                "name": WEBHOOK,
                "rules": [told],
                "clientConfig": {
                    "url": f"https://{HOST}:{port}/",
                    "caBundle": base64.b64encode(certificate).decode(),
                },
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 5,
            }
        ],
    }
