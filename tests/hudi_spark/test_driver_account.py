"""What a driver asks of the API server under the account of the chart: it is refused nothing, and
every right of its Role is used.

Spark itself starts, replaces and ends its executors in client mode, on a real API server without
nodes; no container runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.manifests.pods import JOB_SPEC
from tests.hudi_spark.conftest import FAST_JAVA
from tests.support import kubelet
from tests.support.api_server import ROOT, ApiServer, api_server
from tests.support.attempts import attempt, made
from tests.support.audit import POLICY, AuditLog, Right, granted
from tests.support.helm import Helm
from tests.support.kubelet import eventually

pytestmark = [pytest.mark.spark, pytest.mark.timeout(2400)]
NAMESPACE, ACCOUNT = "lake", "hudi-driver"
SECONDS_MAX = 600.0
PROGRAM = """
import sys
from pathlib import Path
from hudi_spark.jobs.session import end_executors, session
from hudi_table.model.job.jobspec import JobSpec
session(JobSpec.from_json(Path(sys.argv[1]).read_text()))
print("started", flush=True)
sys.stdin.readline()
end_executors()
"""


@dataclass
class Driver:
    """What is left to judge after a driver has ended."""

    server: ApiServer
    audit: AuditLog
    role: set[Right]
    started: int
    said: str

    user = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A driver that started two executors, lost one, got another, and ended."""
    folder = tmp_path_factory.mktemp("driver")
    policy, audit = folder / "policy.yaml", AuditLog(folder / "audit.log")
    policy.write_text(yaml.safe_dump(POLICY))
    with api_server(folder / "k8s", f"--audit-policy-file={policy}", f"--audit-log-path={audit.path}") as server:
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}})
        rendered = Helm(folder / "helm").template({"watchNamespaces": [NAMESPACE]})
        names = (ACCOUNT, "hudi-job")
        ours = [each for each in rendered if each["metadata"]["name"] in names and each["kind"] != "Deployment"]
        server.apply(*ours)
        (role,) = [each for each in ours if each["kind"] == "Role"]
        document = made("Job", attempt("Job"))
        document["metadata"]["ownerReferences"] = []
        document["metadata"]["namespace"] = NAMESPACE
        server.apply(document)
        (pod,) = eventually(lambda: kubelet.pods(server, NAMESPACE), "the driver's pod is not admitted")
        said = lives(server, pod, folder)
        started = {e["objectRef"].get("name") for e in audit.of(Driver.user) if e["verb"] == "create"}
        yield Driver(server, audit, granted(role["rules"]), len(started), said)


def lives(server: ApiServer, pod: dict[str, Any], folder: Path) -> str:
    """The driver's life; what it said."""
    spec = json.loads(pod["metadata"]["annotations"][JOB_SPEC])
    (folder / "token").write_text(server.account_token(NAMESPACE, ACCOUNT))
    template = folder / "executor.json"
    template.write_text(pod["metadata"]["annotations"]["hudi.lakeops.dev/executor-template"])
    spec["spark"]["fixed"] |= {
        "spark.master": f"k8s://{server.url}",
        "spark.kubernetes.authenticate.oauthTokenFile": str(folder / "token"),
        "spark.kubernetes.authenticate.caCertFile": str(server.trust),
        "spark.kubernetes.executor.podTemplateFile": str(template),
        # No container runs, so no executor ever says that it is there: half a minute of waiting for them.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s",
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    path = os.pathsep.join([str(ROOT / "spark_app"), str(ROOT / "operator")])
    own = {"HUDI_POD_IP": "127.0.0.1", "HUDI_POD_NAME": pod["metadata"]["name"], "PYTHONPATH": path}
    own["JDK_JAVA_OPTIONS"] = FAST_JAVA
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    log = folder / "driver.log"
    with log.open("w") as output, subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder / "spec.json")],
        stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, text=True, env={**kept, **own},
    ) as process:  # fmt: skip
        try:
            first = eventually(
                lambda: executors(server) if len(executors(server)) == 2 else None, "no executors", SECONDS_MAX
            )
            kubelet.end(server, first[0], 1, reason="Error")
            gone = first[0]["metadata"]["name"]
            eventually(
                lambda: len(executors(server)) == 2 and gone not in {p["metadata"]["name"] for p in executors(server)},
                "the executor that failed is not replaced", SECONDS_MAX,
            )  # fmt: skip
            eventually(lambda: "started" in log.read_text(), "the session does not begin", SECONDS_MAX)
            process.communicate("\n", SECONDS_MAX)
        finally:
            process.kill()
    return log.read_text()


def executors(server: ApiServer) -> list[dict[str, Any]]:
    found = kubelet.pods(server, NAMESPACE)
    return [pod for pod in found if pod["metadata"]["labels"].get("spark-role") == "executor"]


def test_it_is_refused_nothing(driver: Driver) -> None:
    assert driver.audit.of(driver.user)
    assert driver.audit.refused(driver.user) == [], driver.said[-2000:]


def test_every_right_of_its_role_is_used(driver: Driver) -> None:
    assert driver.role - driver.audit.used(driver.user, NAMESPACE) == set()


def test_its_role_speaks_of_no_secret_and_of_its_own_namespace_alone(driver: Driver) -> None:
    assert {right.resource for right in driver.role} == {"pods", "configmaps"}
    status, _ = driver.server.call("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets")
    assert status == 200, "the administrator may"
    asked = driver.server.kubectl("auth", "can-i", "get", "secrets", "-n", NAMESPACE, f"--as={driver.user}")
    assert asked.stdout.strip() == "no"


def test_its_executors_and_what_they_were_given_go_with_it(driver: Driver) -> None:
    assert driver.started >= 3
    eventually(lambda: not executors(driver.server), "executors stay")
    maps = driver.server.get("configmaps", "-n", NAMESPACE)["items"]
    assert [each["metadata"]["name"] for each in maps] == ["kube-root-ca.crt"]
