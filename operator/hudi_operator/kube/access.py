"""The way to the API server: a kubeconfig, or the pod's own account."""

from __future__ import annotations

from kubernetes import config
from kubernetes.client import Configuration


def configuration(kubeconfig: str | None) -> Configuration:
    """Address and credentials as they are now: those of a file, else those of the pod's account."""
    found = Configuration()
    if kubeconfig:
        config.load_kube_config(kubeconfig, client_configuration=found)
    else:
        config.load_incluster_config(client_configuration=found)
    return found
