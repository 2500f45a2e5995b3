"""The health script in the Lua that Argo CD runs, and how a cluster's Argo CD comes to know it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.charts.conftest import namespace_of
from tests.support.api_server import ApiServer
from tests.support.helm import CHART, binary
from tests.support.manifests import manifest

SCRIPT = CHART / "files" / "argocd-health.lua"
KINDS = ("HudiTable", "HudiTableSet", "TableService")


def lua(value: Any) -> str:
    """A document as a Lua table."""
    match value:
        case dict():
            return "{" + ", ".join(f"[{json.dumps(name)}] = {lua(each)}" for name, each in value.items()) + "}"
        case list():
            return "{" + ", ".join(map(lua, value)) + "}"
    return json.dumps(value)


def health(document: dict[str, Any], folder: Path) -> tuple[str, str]:
    """What Argo CD would show: status and message."""
    program = folder / "health.lua"
    judge = f"local function judge()\n{SCRIPT.read_text()}\nend\nlocal found = judge()\nprint(found.status)\nprint(found.message)\n"
    program.write_text(f"obj = {lua(document)}\n{judge}")
    done = subprocess.run([binary("glua"), program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, message = done.stdout.splitlines()
    return status, message


def condition(kind: str, status: str = "True") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "Why", "message": f"{kind} is {status}", "observedGeneration": 2}


CASES: list[tuple[dict[str, Any] | None, dict[str, Any], str, str]] = [
    (None, {}, "Progressing", "waits for the operator"),
    ({}, {}, "Progressing", "waits for the operator"),
    ({"observedGeneration": 1, "conditions": [condition("Ready")]}, {}, "Progressing", "has not seen this generation"),
    ({"observedGeneration": 2, "conditions": [condition("Ready")]}, {}, "Healthy", "Ready is True"),
    ({"observedGeneration": 2, "conditions": [condition("Ready"), condition("Reconciling")]}, {}, "Healthy", "Ready is True"),
    ({"observedGeneration": 2, "conditions": [condition("Ready", "False"), condition("Reconciling")]}, {}, "Progressing",
     "Reconciling is True"),
    ({"observedGeneration": 2, "conditions": [condition("Ready", "False")]}, {}, "Degraded", "Ready is False"),
    ({"observedGeneration": 2, "conditions": [condition("Ready", "Unknown")]}, {}, "Progressing", "Ready is Unknown"),
    ({"observedGeneration": 2, "conditions": [condition("Ready"), condition("Stalled")]}, {}, "Degraded", "Stalled is True"),
    ({"observedGeneration": 2, "conditions": [condition("Ready"), condition("Stalled")]}, {"suspend": True}, "Suspended", "suspend"),
    ({"observedGeneration": 2, "phase": "Planned", "conditions": [condition("Ready")]}, {}, "Suspended", "waits for approval"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "spec", "wanted", "words"), CASES)
def test_conditions_become_argos_health(
    tmp_path: Path, status: dict[str, Any] | None, spec: dict[str, Any], wanted: str, words: str
) -> None:
    document = {**manifest(**spec), "status": status}
    if status is None:
        del document["status"]
    document["metadata"] |= {"generation": 2}
    found, message = health(document, tmp_path)
    assert found == wanted
    assert words in message


def test_argocd_is_told_beside_what_its_configuration_already_says(server: ApiServer) -> None:
    """The command of docs/how-to/argo-cd.md."""
    before = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}}
    server.apply(namespace_of("argocd"), {**before, "data": {"url": "https://argocd.example"}})
    names = [f"resource.customizations.health.hudi.lakeops.dev_{kind}" for kind in KINDS]
    made = server.kubectl(
        "create", "configmap", "argocd-cm", "-n", "argocd", *(f"--from-file={name}={SCRIPT}" for name in names),
        "--dry-run=client", "-o", "yaml",
    )  # fmt: skip
    done = server.kubectl("apply", "--server-side", "--field-manager=hudi-health", "-f", "-", given=made.stdout)
    assert done.returncode == 0, done.stderr
    data = server.get("configmap", "argocd-cm", "-n", "argocd")["data"]
    assert data == {"url": "https://argocd.example", **dict.fromkeys(names, SCRIPT.read_text())}
