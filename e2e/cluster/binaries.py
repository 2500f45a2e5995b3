"""The programs of a cluster, built from locked Go modules: those of `make setup-k8s`, and what a
node needs beside them.

    python -m e2e.cluster.binaries    builds what is missing, one program at a time, each whole or not at all

A node's programs lie in .cache/k8s/MODULE-DIGEST, so that nothing that belongs to the tests of the
control plane is built anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from scripts import setup_k8s

MODULES = Path(__file__).resolve().parent.parent / "binaries"
NODE = {
    "kube-scheduler": ("node", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kube-proxy": ("node", "k8s.io/kubernetes/cmd/kube-proxy"),
    "kubelet": ("node", "k8s.io/kubernetes/cmd/kubelet"),
    "pause": ("pause", "."),
    "coredns": ("coredns", "github.com/coredns/coredns"),
}
SERVERS = {
    "versitygw": ("versitygw", "github.com/versity/versitygw/cmd/versitygw"),
}
CONTROL_PLANE = tuple(setup_k8s.PACKAGES)


def path_of(name: str) -> Path:
    """Where a program lies, or will lie once it is built."""
    if name in CONTROL_PLANE:
        return setup_k8s.folder() / name
    module, _ = (NODE | SERVERS)[name]
    return _folder(module) / name


def build(*names: str) -> None:
    """Build what is missing of these. Ends the process where Go is missing or refuses."""
    missing = [name for name in names if not path_of(name).exists()]
    if not missing:
        return
    go = setup_k8s.find_go()
    for name in missing:
        module, package = _source(name)
        target = path_of(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        setup_k8s.build(go, name, package, target.parent, module)


def _source(name: str) -> tuple[Path, str]:
    if name in CONTROL_PLANE:
        return setup_k8s.MODULE, setup_k8s.PACKAGES[name]
    module, package = (NODE | SERVERS)[name]
    return MODULES / module, package


def _folder(module: str) -> Path:
    """Named by all that its programs are made from."""
    total = hashlib.sha256(repr((setup_k8s.KUBERNETES, setup_k8s.STAMPS)).encode())
    for path in sorted((MODULES / module).iterdir()):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return setup_k8s.CACHE / f"{module}-{total.hexdigest()[:16]}"


def main() -> None:
    """Build everything."""
    build(*CONTROL_PLANE, *NODE, *SERVERS)


if __name__ == "__main__":
    main()
