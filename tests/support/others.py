"""Others change a resource at the very moment its status is written: a webhook that the API server asks before it stores the status."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hudi_operator.api.crd import GROUP, PLURALS, VERSION
from hudi_operator.kube.rest import Rest
from tests.support.api_server import ApiServer
from tests.support.https import HOST, QuietHandler, running_https

WEBHOOK = "others.example.org"


@contextmanager
def others_change(server: ApiServer, kind: str, path: str, folder: Path) -> Iterator[threading.Event]:
    """The next status of the resource at `path` finds it changed meanwhile, once; the event says that it did."""
    done, once = threading.Event(), threading.Lock()
    rest = Rest(server.client())

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  # the base class names it
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            with once:
                if path.endswith(f"/{asked['namespace']}/{PLURALS[kind]}/{asked['name']}") and not done.is_set():
                    rest.merge(path, {"metadata": {"annotations": {"example/meanwhile": asked["uid"]}}})
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
