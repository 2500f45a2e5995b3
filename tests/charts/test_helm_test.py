"""`helm test` says whether the release works: its pod is admitted, and its questions are answered
by a real API server and a real operator.

The kubelet is played: what the pods would run runs as processes, with the tokens of their accounts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import chart_operator
from tests.support.api_server import ApiServer
from tests.support.helm import CHART, NAMESPACE, RELEASE, Helm
from tests.support.kubelet import eventually

POD = f"{RELEASE}-test"
SECONDS_MAX = 120.0


@pytest.fixture
def deployment(server: ApiServer, helm: Helm, resources: None, namespace: str) -> Iterator[dict[str, Any]]:
    """The operator's, of a release that looks after one namespace."""
    helm.done("install", RELEASE, CHART, "--namespace", NAMESPACE, "--set", f"watchNamespaces={{{namespace}}}")
    yield server.get("deployment", RELEASE, "-n", NAMESPACE)
    helm.done("uninstall", RELEASE, "--namespace", NAMESPACE)


def reports(server: ApiServer, pod: str, status: dict[str, Any]) -> None:
    done = server.kubectl(
        "patch", "pod", pod, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def operator_pod_is_ready(server: ApiServer) -> None:
    def pods() -> list[dict[str, Any]]:
        return list(server.get("pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/name={RELEASE}")["items"])

    (pod,) = eventually(pods, "the operator's pod is not admitted")
    reports(server, pod["metadata"]["name"], {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})


def runs(server: ApiServer, pod: dict[str, Any], folder: Path, **changed: str) -> subprocess.CompletedProcess[str]:
    """What the container of the test's pod would do."""
    account = folder / "account"
    account.mkdir(parents=True)
    (account / "token").write_text(server.account_token(NAMESPACE, pod["spec"]["serviceAccountName"]))
    (account / "ca.crt").write_text(server.trust.read_text())
    (container,) = pod["spec"]["containers"]
    (config,) = [each["configMap"]["name"] for each in pod["spec"]["volumes"] if "configMap" in each]
    (folder / "test.py").write_text(server.get("configmap", config, "-n", NAMESPACE)["data"]["test.py"])
    assert container["command"] == ["python", "/etc/hudi/test.py"]
    given = {each["name"]: each["value"] for each in container["env"]}
    reached = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(server.port),
        "ACCOUNT": str(account),
    }
    return subprocess.run(
        [sys.executable, "-S", str(folder / "test.py")], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], **given, **reached, **changed},
    )  # fmt: skip


def test_a_release_that_works_passes_its_test(
    server: ApiServer, helm: Helm, deployment: dict[str, Any], tmp_path: Path
) -> None:
    ended: list[subprocess.CompletedProcess[str]] = []

    def ask() -> None:
        ended.append(helm("test", RELEASE, "--namespace", NAMESPACE, "--timeout", "120s"))

    def test_pod() -> dict[str, Any] | None:
        return server.get("pod", POD, "-n", NAMESPACE, "--ignore-not-found") or None

    with chart_operator.operator(server, deployment, tmp_path / "operator"):
        operator_pod_is_ready(server)
        asking = threading.Thread(target=ask)
        asking.start()
        pod = eventually(test_pod, "the test's pod is not admitted", SECONDS_MAX)
        said = runs(server, pod, tmp_path / "test")
        wrong = runs(server, pod, tmp_path / "wrong", TABLES="nowhere")
        reports(server, POD, {"phase": "Failed" if said.returncode else "Succeeded"})
        asking.join()
        assert said.returncode == 0, said.stdout + said.stderr
        assert said.stdout.count("good: ") == 7
        assert wrong.returncode == 1
        assert "bad: a HudiTable is taken: 40" in wrong.stderr
    assert ended[0].returncode == 0, ended[0].stderr
    assert "Succeeded" in ended[0].stdout
    left = server.kubectl("get", "sa,role,rolebinding,configmap,pod", "-A", "-o", "name").stdout
    assert POD not in left, "what the test needed stays behind"
