"""A real API server with etcd and the controllers, on loopback, in a folder: no nodes. A test plays
the kubelet.

The binaries are those that `make setup-k8s` builds. Ports are free ones; each process must be alive
when its port answers, so that nobody else's server is taken for it. Processes end with the context.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config

from hudi_operator.api.names import API_VERSION, PLURALS

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 180.0
POLL_SECONDS = 0.1
STOP_SECONDS = 15.0
BUSY_SECONDS = 30.0
ADMIN = "system:masters"
ASKED = {
    "ht": (f"apis/{API_VERSION}", PLURALS["HudiTable"]),
    "hts": (f"apis/{API_VERSION}", PLURALS["HudiTableSet"]),
    "tsvc": (f"apis/{API_VERSION}", PLURALS["TableService"]),
    "pods": ("api/v1", "pods"),
    "jobs": ("apis/batch/v1", "jobs"),
    "job": ("apis/batch/v1", "jobs"),
    "lease": ("apis/coordination.k8s.io/v1", "leases"),
    "events.events.k8s.io": ("apis/events.k8s.io/v1", "events"),
}
"""What kubectl calls a kind → where it is served, and its plural there."""


def binaries() -> Path:
    """The folder of the binaries. Raises AssertionError that says what to type."""
    command = [sys.executable, str(ROOT / "scripts" / "setup_k8s.py"), "--folder"]
    found = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    assert (found / "kubectl").exists(), "the API server is not built yet: type make setup-k8s"
    return found


def definitions() -> list[dict[str, Any]]:
    """The CRDs as they are checked in."""
    return [yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))]


@dataclass
class ApiServer:
    """A running control plane. `kubeconfig` is that of an administrator."""

    folder: Path
    programs: Path
    etcd_url: str
    port: int
    token: str
    process: subprocess.Popen[bytes] | None = None
    arguments: tuple[str, ...] = ()
    """More arguments of the API server."""
    controllers_port: int = 0
    controllers: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def start(self) -> None:
        """Start the API server and wait until it is ready."""
        keys = self.folder / "service-accounts.pem"
        self.process = _started(
            self.folder / "kube-apiserver.log",
            self.programs / "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={keys}",
            f"--service-account-key-file={keys}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            *self.arguments,
        )
        _wait_for(self._is_ready, self.process, "kube-apiserver")
        self.write_kubeconfig(self.kubeconfig, self.token)

    def stop(self, *, kill: bool = False) -> None:
        """End the API server, at once if it is to be killed; etcd keeps what it holds."""
        if self.process is not None:
            if kill:
                self.process.kill()
            _ended(self.process)

    def start_controllers(self) -> None:
        """Start the controller manager, or start it anew."""
        self.stop_controllers()
        self.controllers = _started(
            self.folder / "kube-controller-manager.log",
            self.programs / "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self.folder / 'service-accounts.pem'}",
            f"--root-ca-file={self.folder / 'certificates' / 'apiserver.crt'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.controllers_port}",
            "--leader-elect=false",
        )

    def stop_controllers(self) -> None:
        """End the controller manager, if it runs."""
        if self.controllers is not None:
            _ended(self.controllers)

    def client(self) -> ApiClient:
        """The Python client of the administrator."""
        return new_client_from_config(str(self.kubeconfig))

    def kubectl(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; its exit code is the caller's to judge."""
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    def apply(self, *documents: dict[str, Any]) -> None:
        """Server-side apply. Raises AssertionError with what the server said."""
        done = self.kubectl("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(documents))
        assert done.returncode == 0, done.stderr

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get … -o json`; nothing where --ignore-not-found finds nothing. One request, if
        it asks for a kind of `ASKED` in a namespace: a twentieth of what a kubectl costs, and tests
        that wait ask often."""
        path = _path(arguments)
        if path is not None:
            return self.done("GET", path)
        done = self.kubectl("get", *arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout or "{}")
        return found

    def has(self, *arguments: str) -> bool:
        """Whether an object is there, named as for `get`, of a kind of `ASKED`."""
        path = _path(arguments)
        assert path is not None, arguments
        status, found = self.call("GET", path)
        assert status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND), found
        return status == HTTPStatus.OK

    def call(self, method: str, path: str, body: Any = None, content: str = "application/json") -> tuple[int, Any]:
        """One request as the administrator: the status of the answer, and its document. As kubectl
        does, it asks again where the server tells it to, as right after a kind is served."""
        limit = time.monotonic() + BUSY_SECONDS
        while True:
            status, found = self._asked(method, path, body, content)
            if status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > limit:
                return status, found
            time.sleep(POLL_SECONDS)

    def _asked(self, method: str, path: str, body: Any, content: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=10, context=self._trust()) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else {"message": text}

    def done(self, method: str, path: str, body: Any = None, content: str = "application/json") -> dict[str, Any]:
        """The document of a request that must succeed: a tenth of what a call of kubectl costs."""
        status, found = self.call(method, path, body, content)
        assert status < HTTPStatus.BAD_REQUEST, found
        return dict(found)

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.trust))

    def _is_ready(self) -> bool:
        if not self.trust.exists():
            return False
        asked = urllib.request.Request(f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(asked, timeout=5, context=self._trust()) as answer:
            return bool(answer.read() == b"ok")

    @property
    def trust(self) -> Path:
        """The certificate that the server shows."""
        return self.folder / "certificates" / "apiserver.crt"

    def account_token(self, namespace: str, name: str) -> str:
        """A token of a service account, as a pod gets it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        status, said = self.call("POST", path, request)
        assert status == HTTPStatus.CREATED, said
        return str(said["status"]["token"])

    def write_kubeconfig(self, path: Path, token: str) -> None:
        """A kubeconfig for whoever has this token."""
        here = {"cluster": "test", "user": "holder"}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.trust)}}
                    ],
                    "users": [{"name": "holder", "user": {"token": token}}],
                    "contexts": [{"name": "test", "context": here}],
                    "current-context": "test",
                }
            )
        )


@contextmanager
def api_server(folder: Path, *arguments: str) -> Iterator[ApiServer]:
    """etcd, the API server (with more arguments) and the controllers in a new folder, ready; ended
    with the context."""
    programs = binaries()
    folder.mkdir(parents=True, exist_ok=True)
    client, peer, port, controllers = _free_ports(4)
    server = ApiServer(
        folder,
        programs,
        f"http://127.0.0.1:{client}",
        port,
        secrets.token_hex(16),
        arguments=arguments,
        controllers_port=controllers,
    )
    _write_keys(folder / "service-accounts.pem")
    (folder / "tokens.csv").write_text(f'{server.token},admin,admin,"{ADMIN}"\n')
    with ExitStack() as stack:
        etcd = _started(
            folder / "etcd.log",
            programs / "etcd",
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={server.etcd_url}",
            f"--advertise-client-urls={server.etcd_url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        stack.callback(_ended, etcd)
        _wait_for(lambda: '"true"' in _answer(f"{server.etcd_url}/health"), etcd, "etcd")
        stack.callback(server.stop)
        server.start()
        stack.callback(server.stop_controllers)
        server.start_controllers()
        assert server.controllers is not None
        _wait_for(
            lambda: server.kubectl("get", "serviceaccount", "default").returncode == 0,
            server.controllers,
            "kube-controller-manager",
        )
        yield server


def _path(arguments: tuple[str, ...]) -> str | None:
    """Where the API serves what `kubectl get` is asked for; None if that is not said by kind, name
    and namespace alone."""
    match arguments:
        case (kind, *names, "-n", namespace) if kind in ASKED:
            served, plural = ASKED[kind]
            return "/".join(("", served, "namespaces", namespace, plural, *names))
    return None


def _started(log: Path, program: Path, *arguments: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen([str(program), *arguments], stdout=output, stderr=subprocess.STDOUT, env=_environment())


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(ready: Any, process: subprocess.Popen[bytes], name: str) -> None:
    limit = time.monotonic() + READY_SECONDS
    while True:
        assert process.poll() is None, f"{name} ended with exit code {process.returncode}"
        try:
            if ready():
                return
        except (urllib.error.URLError, OSError):
            pass
        assert time.monotonic() < limit, f"{name} was not ready after {READY_SECONDS:.0f} s"
        time.sleep(POLL_SECONDS)


def _answer(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _write_keys(path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    path.write_bytes(text)
    path.chmod(0o600)
