"""The cluster where Docker is: kind's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster import binaries, images
from e2e.cluster.places import DATA, KUBECONFIG, NAME
from e2e.cluster.telling import say
from scripts import build_images

READY = "180s"


def is_chosen() -> bool:
    """Whether kind can make the cluster, and nobody asked for a node by hand."""
    chosen = os.environ.get("E2E_CLUSTER")
    if chosen:
        return chosen == "kind"
    return shutil.which("kind") is not None and _succeeds("docker", "info")


def up() -> None:
    """Make the cluster, unless it is there, and give it the S3 server."""
    DATA.mkdir(parents=True, exist_ok=True)
    if not running():
        _run("kind", "create", "cluster", "--name", NAME, "--kubeconfig", str(KUBECONFIG), "--wait", READY)
    else:
        _run("kind", "export", "kubeconfig", "--name", NAME, "--kubeconfig", str(KUBECONFIG))
    binaries.build("kubectl", *binaries.SERVERS)
    with tempfile.TemporaryDirectory() as folder:
        archive = images.program_image(images.S3, binaries.path_of("versitygw"), Path(folder, "s3.tar"))
        _run("kind", "load", "image-archive", "--name", NAME, str(archive))
    say("the node takes pods")


def down() -> None:
    """Remove the cluster."""
    _run("kind", "delete", "cluster", "--name", NAME, "--kubeconfig", str(KUBECONFIG))
    shutil.rmtree(DATA, ignore_errors=True)


def load(names: Sequence[str]) -> None:
    """Give the node images that a builder of this machine holds."""
    tool = build_images.find_tool()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            archive = images.export(tool, name, Path(folder, "image.tar"))
            _run("kind", "load", "image-archive", "--name", NAME, str(archive))


def restart_api() -> None:
    """Kill the API server; kubelet starts it again."""
    _run("docker", "exec", f"{NAME}-control-plane", "pkill", "-KILL", "kube-apiserver")


def running() -> Sequence[str]:
    """The cluster's name, if it is there."""
    done = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split() if name == NAME]


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
