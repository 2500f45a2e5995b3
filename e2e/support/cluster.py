"""What only somebody with power over the cluster itself can do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from e2e.support.operator import ROOT


def restart_api() -> None:
    """Kill the API server: of `make cluster-up` by its harness, of any other cluster by the command
    E2E_RESTART_API."""
    command = os.environ.get("E2E_RESTART_API")
    if command is None and os.environ.get("E2E_KUBECONFIG"):
        pytest.skip("the API server of a foreign cluster: say with E2E_RESTART_API how it is restarted")
    own = [sys.executable, "-m", "e2e.cluster", "restart-api"]
    subprocess.run(command if command is not None else own, shell=command is not None, cwd=ROOT, check=True)
