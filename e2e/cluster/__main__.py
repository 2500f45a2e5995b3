"""A cluster for the end-to-end suite, on this machine.

    python -m e2e.cluster up              make it, or go on where that was interrupted; prints its kubeconfig
    python -m e2e.cluster down            end and remove exactly what was made
    python -m e2e.cluster load IMAGE…     give it images that docker, podman or buildah has built
    python -m e2e.cluster restart-api     kill its API server and wait for the next
    python -m e2e.cluster status          what runs
    python -m e2e.cluster cached          exit 0 if a node could be made here at once, without building a program

kind where Docker is and E2E_CLUSTER does not say `node`; else the real parts of a node, in a
network namespace, as root.
"""

from __future__ import annotations

import argparse
import sys

from e2e.cluster import by_hand, kind
from e2e.cluster.places import KUBECONFIG


def main() -> int:
    """Run one verb."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["up", "down", "load", "restart-api", "status", "cached"])
    parser.add_argument("images", nargs="*", metavar="IMAGE")
    parsed = parser.parse_args()
    cluster = kind if kind.is_chosen() else by_hand
    match parsed.verb:
        case "up":
            cluster.up()
            print(KUBECONFIG)
        case "down":
            cluster.down()
        case "load":
            cluster.load(parsed.images)
        case "restart-api":
            cluster.restart_api()
        case "status":
            for name in cluster.running():
                print(name)
        case "cached":
            return 0 if by_hand.is_cached() else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
