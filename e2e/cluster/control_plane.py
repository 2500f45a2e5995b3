"""etcd, the API server, its controllers and the scheduler."""

from __future__ import annotations

import socket
import subprocess
import urllib.error
import urllib.request

import yaml

from e2e.cluster import pki, processes
from e2e.cluster.binaries import path_of
from e2e.cluster.places import API_PORT, API_URL, AUDIT, DATA, NODE_ADDRESS, POD_NETWORK, SERVICE_NETWORK
from e2e.cluster.telling import wait_for

_ETCD = f"http://{NODE_ADDRESS}:2379"
_AUDIT_POLICY = DATA / "audit-policy.yaml"


def up() -> None:
    """Start what does not run; return once the API server is ready."""
    processes.start(
        "etcd",
        path_of("etcd"),
        f"--data-dir={DATA / 'etcd'}",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls=http://{NODE_ADDRESS}:2380",
        f"--initial-advertise-peer-urls=http://{NODE_ADDRESS}:2380",
        f"--initial-cluster=default=http://{NODE_ADDRESS}:2380",
        "--unsafe-no-fsync",
    )
    start_api()
    for name, arguments in (
        (
            "kube-controller-manager",
            (
                f"--service-account-private-key-file={pki.ACCOUNTS}",
                f"--root-ca-file={pki.AUTHORITY}",
                "--use-service-account-credentials=true",
                f"--cluster-cidr={POD_NETWORK}",
            ),
        ),
        ("kube-scheduler", ()),
    ):
        own = pki.kubeconfig(name)
        processes.start(
            name,
            path_of(name),
            f"--kubeconfig={own}",
            f"--authentication-kubeconfig={own}",
            f"--authorization-kubeconfig={own}",
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            *arguments,
        )


def start_api() -> None:
    """Start the API server, unless it runs; return once it is ready."""
    _write_audit_policy()
    processes.start(
        "kube-apiserver",
        path_of("kube-apiserver"),
        f"--etcd-servers={_ETCD}",
        f"--advertise-address={NODE_ADDRESS}",
        f"--bind-address={NODE_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={pki.SERVER}",
        f"--tls-private-key-file={pki.SERVER_KEY}",
        f"--client-ca-file={pki.AUTHORITY}",
        f"--kubelet-client-certificate={pki.KEYS / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki.KEYS / 'kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki.ACCOUNTS}",
        f"--service-account-key-file={pki.ACCOUNTS}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--audit-policy-file={_AUDIT_POLICY}",
        f"--audit-log-path={AUDIT}",
    )
    processes.check("kube-apiserver", 0.5)
    wait_for(_is_ready, "the API server")


def restart_api() -> None:
    """Kill the API server and start it again, as a node does whose static pod has died."""
    processes.stop("kube-apiserver", kill=True)
    # A process that has ended may hold its port a moment longer, until the last of its threads is gone.
    wait_for(_port_is_free, "the port of the API server")
    start_api()


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Run kubectl as the administrator. Raises RuntimeError with what it said."""
    command = [str(path_of("kubectl")), f"--kubeconfig={pki.kubeconfig('admin')}", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _port_is_free() -> bool:
    try:
        with socket.create_connection((NODE_ADDRESS, API_PORT), 1):
            return False
    except OSError:
        return True


def _is_ready() -> bool:
    import ssl

    trust = ssl.create_default_context(cafile=str(pki.AUTHORITY))
    trust.load_cert_chain(pki.KEYS / "admin.crt", pki.KEYS / "admin.key")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    try:
        with opener.open(f"{API_URL}/readyz", timeout=5) as answer:
            return bool(answer.read() == b"ok")
    except (urllib.error.URLError, OSError):
        return False


def _write_audit_policy() -> None:
    """Who asked for what, of accounts in namespaces: what each right is used for. No bodies: they
    may hold secrets."""
    quiet = {"level": "None", "userGroups": ["system:nodes", "system:masters"]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [quiet, {"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}],
    }
    _AUDIT_POLICY.write_text(yaml.safe_dump(policy))
