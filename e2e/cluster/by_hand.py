"""The cluster where there is no Docker: each part of a node started by itself, in a network
namespace of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster import binaries, control_plane, images, network, node, pki, processes
from e2e.cluster.places import DATA, KUBECONFIG, RUN
from e2e.cluster.telling import say
from scripts import build_images

PROGRAMS = {"containerd": "containerd", "runc": "runc", "ip": "iproute2", "iptables": "iptables", "conntrack": "conntrack",
            "nsenter": "util-linux", "ctr": "containerd"}  # fmt: skip
"""What has to be installed, and Debian's package of it."""


def up() -> None:
    """Make the cluster, or what is missing of it."""
    _check_machine()
    say("programs: built once")
    binaries.build(*binaries.CONTROL_PLANE, *binaries.NODE, *binaries.SERVERS)
    DATA.mkdir(parents=True, exist_ok=True)
    pki.make()
    network.up()
    say("etcd, API server, controllers, scheduler")
    control_plane.up()
    say("containerd, kube-proxy, DNS, kubelet")
    node.up()
    shutil.copy(pki.kubeconfig("admin"), KUBECONFIG)
    _load_s3()
    say("the node takes pods")


def down() -> None:
    """End what was started, remove what it left."""
    say("ending the pods")
    # Nothing may start them again meanwhile.
    for name in ("kubelet", "kube-scheduler", "kube-controller-manager"):
        processes.stop(name)
    node.stop_pods()
    for name in processes.recorded():
        processes.stop(name)
        say(f"{name} has ended")
    node.down()
    network.down()
    shutil.rmtree(RUN, ignore_errors=True)
    shutil.rmtree(DATA, ignore_errors=True)
    say("nothing is left")


def load(names: Sequence[str]) -> None:
    """Give the node images that a builder of this machine holds, unless it has them."""
    tool = build_images.find_tool()
    for name in names:
        identity = images.identity(tool, name)
        loaded = DATA / "loaded" / hashlib.sha256(name.encode()).hexdigest()[:16]
        if loaded.exists() and loaded.read_text() == identity:
            continue
        say(f"loading {name}")
        if tool == "buildah":
            images.hand_over(name, DATA / "oci")
        else:
            with tempfile.TemporaryDirectory(dir=DATA) as folder:
                images.load(images.export(tool, name, Path(folder, "image.tar")))
        loaded.parent.mkdir(exist_ok=True)
        loaded.write_text(identity)


def restart_api() -> None:
    """Kill the API server; return when its successor is ready."""
    control_plane.restart_api()


def running() -> Sequence[str]:
    """Names of the processes that run."""
    return [name for name in processes.recorded() if processes.is_running(name)]


def _load_s3() -> None:
    if images.S3 not in images.ctr("images", "list", "--quiet").split():
        with tempfile.TemporaryDirectory(dir=DATA) as folder:
            images.load(images.program_image(images.S3, binaries.path_of("versitygw"), Path(folder, "s3.tar")))


def is_cached() -> bool:
    """Whether `up` would find a machine that fits, and every program built."""
    names = (*binaries.CONTROL_PLANE, *binaries.NODE, *binaries.SERVERS)
    built = all(binaries.path_of(name).exists() for name in names)
    return built and os.geteuid() == 0 and not _missing() and _may_make_networks()


def _may_make_networks() -> bool:
    return subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0


def _check_machine() -> None:
    if os.geteuid() != 0:
        sys.exit("A node by hand needs root. Where Docker and kind are installed, neither is needed.")
    if missing := _missing():
        sys.exit(f"Missing programs; on Debian: apt-get install {' '.join(missing)}")


def _missing() -> list[str]:
    """Debian's packages of what is not installed."""
    missing = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    if not Path(node.CNI_PROGRAMS, "bridge").exists():
        missing.append("containernetworking-plugins")
    return missing
