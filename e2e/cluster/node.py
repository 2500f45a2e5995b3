"""The node: containerd, kubelet, kube-proxy and the cluster's DNS."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import yaml

from e2e.cluster import images, pki, processes
from e2e.cluster.binaries import path_of
from e2e.cluster.control_plane import kubectl
from e2e.cluster.places import BRIDGE, BRIDGE_ADDRESS, CONTAINERD, DATA, DOMAIN, NAME, NODE_ADDRESS, POD_NETWORK, RUN
from e2e.cluster.telling import wait_for
from hudi_table.model.digits import is_digits

CNI, KUBELET = DATA / "cni", DATA / "kubelet"
CNI_PROGRAMS = next((p for p in ("/usr/lib/cni", "/opt/cni/bin") if Path(p, "bridge").exists()), "/usr/lib/cni")
CGROUPS = Path("/sys/fs/cgroup")


def up() -> None:
    """Start what does not run; return once the node takes pods."""
    RUN.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("containerd.toml", _containerd()),
        ("kubelet.yaml", yaml.safe_dump(_kubelet())),
        ("Corefile", _corefile()),
        ("cni/10-bridge.conflist", json.dumps(_cni())),
    ):
        (DATA / name).parent.mkdir(parents=True, exist_ok=True)
        (DATA / name).write_text(text)
    processes.start("containerd", "containerd", "--config", DATA / "containerd.toml")
    wait_for(images.answers, "containerd")
    images.load_pause()
    processes.start(
        "kube-proxy",
        path_of("kube-proxy"),
        f"--kubeconfig={pki.kubeconfig('kube-proxy')}",
        f"--hostname-override={NAME}",
        f"--cluster-cidr={POD_NETWORK}",
        "--proxy-mode=iptables",
        "--conntrack-max-per-core=0",
        "--oom-score-adj=0",
    )
    processes.start("coredns", path_of("coredns"), "-conf", DATA / "Corefile")
    _make_cgroups()
    processes.start(
        "kubelet",
        path_of("kubelet"),
        f"--config={DATA / 'kubelet.yaml'}",
        f"--kubeconfig={pki.kubeconfig('kubelet')}",
        f"--hostname-override={NAME}",
        f"--node-ip={NODE_ADDRESS}",
        f"--root-dir={KUBELET}",
        f"--cert-dir={KUBELET / 'pki'}",
    )
    for name in ("coredns", "kube-proxy", "kubelet"):
        processes.check(name, 0.5)
    wait_for(_is_ready, f"node {NAME}")


def down() -> None:
    """Remove what containers and pods leave behind: shims, mounts, cgroups. The processes must have
    been stopped."""
    _end_containers()
    mounts = [line.split()[1].replace("\\040", " ") for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith((f"{DATA}/", f"{RUN}/"))), reverse=True):
        subprocess.run(["umount", "--lazy", mount], check=False)
    for hierarchy in (*_hierarchies(), CGROUPS / "unified"):
        _remove_cgroup(hierarchy / NAME)


def stop_pods() -> None:
    """End all pods' containers by containerd, before it is stopped itself."""
    if not CONTAINERD.exists():
        return
    tasks = images.ctr("tasks", "list", "--quiet").split()
    for task in tasks:
        images.ctr("tasks", "kill", "--signal", "SIGKILL", task, check=False)
    for task in tasks:
        images.ctr("tasks", "delete", "--force", task, check=False)


def _is_ready() -> bool:
    try:
        found = json.loads(kubectl("get", "node", NAME, "-o", "json"))
    except RuntimeError:
        return False
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", ()))


def _end_containers() -> None:
    """Shims and containers that outlived containerd: those whose cgroup or command names this
    cluster."""
    marks = (f"/{NAME}/", str(CONTAINERD))
    for process in Path("/proc").iterdir():
        if not is_digits(process.name) or int(process.name) == os.getpid():
            continue
        try:
            told = (process / "cgroup").read_text()
            command = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        is_shim = Path(os.fsdecode(command[0])).name.startswith("containerd-shim") and marks[1].encode() in command
        if marks[0] in told or is_shim:
            subprocess.run(["kill", "-KILL", process.name], stderr=subprocess.DEVNULL, check=False)


def _containerd() -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{DATA / "containerd"}"
state = "{RUN / "containerd"}"
[grpc]
address = "{CONTAINERD}"
[{cri}]
sandbox_image = "{images.PAUSE}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[{cri}.cni]
bin_dir = "{CNI_PROGRAMS}"
conf_dir = "{CNI}"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def _kubelet() -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {"x509": {"clientCAFile": str(pki.AUTHORITY)}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{NAME}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "clusterDNS": [BRIDGE_ADDRESS],
        "clusterDomain": DOMAIN,
        "resolvConf": "/dev/null",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD}",
        "containerLogMaxSize": "50Mi",
        # Images are loaded by hand and cannot be pulled again: none is removed for space, and a full disk is not ours alone.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1Gi", "imagefs.available": "1Gi"},
        "shutdownGracePeriod": "0s",
    }


def _corefile() -> str:
    return f""".:53 {{
    bind {BRIDGE_ADDRESS}
    errors
    kubernetes {DOMAIN} in-addr.arpa {{
        kubeconfig {pki.kubeconfig("coredns")} {NAME}
        ttl 5
    }}
}}
"""


def _cni() -> dict[str, object]:
    ranges = [[{"subnet": POD_NETWORK}]]
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "dataDir": str(DATA / "addresses"),
            "ranges": ranges,
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    port_map = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, port_map]}


def _hierarchies() -> list[Path]:
    """The roots of the cgroup trees: one with version 2, one for each controller with version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if path.is_dir() and not path.is_symlink() and path.name != "unified"]


def _make_cgroups() -> None:
    for hierarchy in _hierarchies():
        own = hierarchy / NAME
        own.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            # Version 1: a new set is empty, and takes no process until it is filled.
            if hierarchy.name == "cpuset" and not (own / name).read_text().strip():
                (own / name).write_text((hierarchy / name).read_text())


def _remove_cgroup(path: Path) -> None:
    if not path.exists():
        return
    for folder in sorted((p for p in path.rglob("*") if p.is_dir()), reverse=True):
        _remove_folder(folder)
    _remove_folder(path)


def _remove_folder(path: Path) -> None:
    limit = time.monotonic() + 10
    while True:
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:  # a process in it is still ending
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)
