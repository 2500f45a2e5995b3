"""The two public Spark operators, from their own charts, where the internet can be reached.

Values: our own service accounts and roles serve the drivers, and neither chart is to make any in
the tables' namespace.
"""

from __future__ import annotations

import os
import subprocess

from e2e.cluster import kind
from e2e.support.kube import Kube
from e2e.support.operator import NAMESPACE, helm_program

CHOICE = "E2E_SPARK_OPERATORS"
"""Environment variable: `public` demands them, `none` does without; else they are tried on kind."""
CHARTS = (
    (
        "spark-operator",
        "https://kubeflow.github.io/spark-operator",
        {
            "spark.jobNamespaces": f"{{{NAMESPACE}}}",
            "spark.serviceAccount.create": "false",
            "spark.rbac.create": "false",
            "controller.uiService.enable": "false",
            "webhook.enable": "false",
        },
    ),
    (
        "spark-kubernetes-operator",
        "https://apache.github.io/spark-kubernetes-operator",
        {
            "workloadResources.namespaces.create": "false",
            "workloadResources.namespaces.data": f"{{{NAMESPACE}}}",
            "workloadResources.serviceAccount.create": "false",
            "workloadResources.clusterRole.create": "false",
            "workloadResources.roleBinding.create": "false",
            # A core and 2 GiB are asked for by default, which a small machine has no room for.
            "operatorDeployment.operatorPod.operatorContainer.resources.requests.cpu": "100m",
        },
    ),
)


def installed(kube: Kube) -> bool:
    """Install them and wait until they run; False where that is not wanted, or their charts cannot
    be had. Raises AssertionError if they are demanded."""
    choice = os.environ.get(CHOICE, "public" if kind.is_chosen() else "none")
    if choice == "none":
        return False
    said = [_install(kube, *chart) for chart in CHARTS]
    failed = "\n".join(filter(None, said))
    assert not failed or CHOICE not in os.environ, failed
    if failed:
        print(f"the suite plays the public Spark operators, which cannot be had: {failed}")
    return not failed


def _install(kube: Kube, chart: str, repository: str, values: dict[str, str]) -> str:
    """What Helm said, or nothing."""
    told = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    done = subprocess.run(
        [helm_program(), f"--kubeconfig={kube.kubeconfig}", "--namespace", chart, "--create-namespace", "upgrade", "--install",
         chart, chart, "--repo", repository, "--wait", "--timeout", "5m", *told],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr.strip()
