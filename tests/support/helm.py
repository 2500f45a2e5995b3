"""Helm as the tests run it: the binary of `make setup-k8s`, on the charts of this repository, with
no file of the user's."""

from __future__ import annotations

import copy
import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.api_server import ROOT, ApiServer

CHART, CRDS = ROOT / "charts" / "hudi-operator", ROOT / "charts" / "hudi-operator-crds"
RELEASE = NAMESPACE = "hudi-operator"
KUBERNETES = "1.35.4"


@functools.cache
def binary(name: str = "helm") -> Path:
    """helm, or glua. Raises AssertionError that says what to type."""
    command = [sys.executable, str(ROOT / "scripts" / "setup_k8s.py"), "--helm-folder"]
    found = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()) / name
    assert found.exists(), f"{name} is not built yet: type make setup-k8s"
    return found


@dataclass(frozen=True, eq=False)
class Helm:
    """Helm with a home of its own, for a server if one is given."""

    home: Path
    server: ApiServer | None = None

    def __call__(self, *arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run it; its exit code is the caller's to judge."""
        own = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        if self.server is not None:
            own["KUBECONFIG"] = str(self.server.kubeconfig)
        kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        command = [str(binary()), *map(str, arguments)]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, env={**kept, **own})

    def done(self, *arguments: str | Path, given: str | None = None) -> str:
        """Run it and return what it prints. Raises AssertionError with what it says."""
        ended = self(*arguments, given=given)
        assert ended.returncode == 0, f"{ended.stderr}\n{ended.stdout}"
        return ended.stdout

    def template(self, values: dict[str, Any] | None = None, chart: Path = CHART) -> list[dict[str, Any]]:
        """The objects that a chart gives with some values. Raises AssertionError with what Helm
        says."""
        return copy.deepcopy(_rendered(self, yaml.safe_dump(values or {}), chart))


@functools.cache
def _rendered(helm: Helm, values: str, chart: Path) -> list[dict[str, Any]]:
    text = helm.done(
        "template",
        RELEASE,
        chart,
        "--namespace",
        NAMESPACE,
        "--kube-version",
        KUBERNETES,
        "--values",
        "-",
        given=values,
    )
    return [document for document in yaml.safe_load_all(text) if document]
