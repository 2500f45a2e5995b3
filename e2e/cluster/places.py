"""Names, folders and addresses of the cluster. There is one on a machine."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "hudi-e2e"
DATA = (ROOT / ".cache" / "cluster").resolve()
"""What lives as long as the cluster: keys, etcd, images, logs, process ids. As the kernel lists it
among the mounts."""
LOGS = DATA / "logs"
AUDIT = DATA / "audit.log"
KUBECONFIG = Path(os.environ.get("E2E_KUBECONFIG") or DATA / "kubeconfig")
RUN = Path("/run") / NAME
"""Sockets: their paths have to be short."""
CONTAINERD = RUN / "containerd.sock"

NETNS = Path("/var/run/netns") / NAME
HOST_ADDRESS, NODE_ADDRESS, LINK_BITS = "172.30.255.1", "172.30.255.2", 30
POD_NETWORK, BRIDGE, BRIDGE_ADDRESS = "10.244.0.0/24", "cni0", "10.244.0.1"
SERVICE_NETWORK, API_SERVICE = "10.96.0.0/16", "10.96.0.1"
API_PORT = 6443
API_URL = f"https://{NODE_ADDRESS}:{API_PORT}"
DOMAIN = "cluster.local"
