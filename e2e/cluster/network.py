"""The network of the cluster: one namespace, one link to this machine, nothing beyond."""

from __future__ import annotations

import subprocess
from pathlib import Path

from e2e.cluster.places import BRIDGE, BRIDGE_ADDRESS, HOST_ADDRESS, LINK_BITS, NAME, NETNS, NODE_ADDRESS, POD_NETWORK

OUTER, INNER = "hudi-e2e0", "eth0"
BRIDGE_LINK_ADDRESS = "0a:58:0a:f4:00:01"


def up() -> None:
    """Make what is missing."""
    if not NETNS.exists():
        _ip("netns", "add", NAME)
    if not Path(f"/sys/class/net/{OUTER}").exists():
        _ip("link", "add", OUTER, "type", "veth", "peer", "name", INNER, "netns", NAME)
        _ip("address", "add", f"{HOST_ADDRESS}/{LINK_BITS}", "dev", OUTER)
        _ip("link", "set", OUTER, "up")
        _inside("address", "add", f"{NODE_ADDRESS}/{LINK_BITS}", "dev", INNER)
        for link in ("lo", INNER):
            _inside("link", "set", link, "up")
        # The bridge of the pods is made beforehand: the cluster's DNS listens on its address.
        # With a link address of its own: else it has the lowest of its ports', and once that pod ends
        # the others send to an address that is gone, for a minute or two.
        _inside("link", "add", BRIDGE, "address", BRIDGE_LINK_ADDRESS, "type", "bridge")
        _inside("address", "add", f"{BRIDGE_ADDRESS}/{POD_NETWORK.partition('/')[2]}", "dev", BRIDGE)
        _inside("link", "set", BRIDGE, "up")
        run_inside("sysctl", "-qw", "net.ipv4.ip_forward=1")


def down() -> None:
    """Remove the namespace, and with it all links."""
    if Path(f"/sys/class/net/{OUTER}").exists():
        _ip("link", "delete", OUTER)
    if NETNS.exists():
        _ip("netns", "delete", NAME)


def run_inside(*command: str) -> None:
    """Run a command in the cluster's network. Raises CalledProcessError."""
    subprocess.run(["nsenter", f"--net={NETNS}", *command], check=True)


def _inside(*arguments: str) -> None:
    _ip("-netns", NAME, *arguments)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
