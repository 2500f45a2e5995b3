"""The operator in the cluster: installed, watched, killed; and what its resources say."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from e2e.support.kube import Document, Kube, eventually
from scripts import setup_k8s

NAMESPACE, INSTALLED = "lake", "hudi-operator"
"""Where tables are, and where the operator is."""
OPERATOR = "app.kubernetes.io/name=hudi-operator"
OWNER = "hudi.lakeops.dev/owner"
ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "examples" / "kubernetes"
"""Those of the tour."""
OPERATOR_IMAGE = os.environ.get("E2E_OPERATOR_IMAGE", "localhost/hudi-operator:dev")
SPARK_IMAGE = os.environ.get("E2E_SPARK_IMAGE", "localhost/hudi-spark:dev")


SETTINGS = (
    "rbac.purge=true",
    "launchers.sparkOperator.enabled=true,launchers.apacheSparkOperator.enabled=true",
    # A driver and an executor of a core each are all that fits on a machine of two.
    "resources.requests.cpu=0",
)


def install(kube: Kube, *more: str) -> None:
    """Both charts, as the lesson about a cluster installs them, with the images of the suite and
    the definitions of the public Spark operators, or what has changed of them; return once the
    operator runs. `more`: namespaces that it watches beside that of the suite."""
    for path in sorted((ROOT / "tests" / "data" / "crds").glob("*.yaml.xz")):
        group, _, plural = path.name.removesuffix(".yaml.xz").rpartition("_")
        if kube.find("crd", f"{plural}.{group}") is None:
            kube.need("apply", "--server-side", "-f", "-", given=lzma.decompress(path.read_bytes()).decode())
    helm(kube, "upgrade", "--install", "hudi-operator-crds", "charts/hudi-operator-crds")
    watched = f"watchNamespaces={{{','.join((NAMESPACE, *more))}}}"
    images = []
    for name, image in (("operator", OPERATOR_IMAGE), ("spark", SPARK_IMAGE)):
        repository, _, tag = image.rpartition(":")
        images += ["--set", f"image.{name}.repository={repository},image.{name}.tag={tag}"]
    helm(
        kube,
        "upgrade",
        "--install",
        "hudi-operator",
        "charts/hudi-operator",
        "--set",
        ",".join((watched, *SETTINGS)),
        *images,
    )
    kube.rollout("deployment/hudi-operator", INSTALLED)


def executors(kube: Kube) -> list[str]:
    """Pods of Spark's executors that run."""
    found = kube.find("pods", "-n", NAMESPACE, "-l", "spark-role=executor") or {"items": []}
    return [pod["metadata"]["name"] for pod in found["items"] if pod["status"]["phase"] == "Running"]


def helm(kube: Kube, *arguments: str) -> None:
    """Helm in the operator's namespace. Raises AssertionError with what it said."""
    command = [helm_program(), f"--kubeconfig={kube.kubeconfig}", "--namespace", INSTALLED, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def helm_program() -> str:
    """The one that is installed, else that of the tests, which is built if it has not been."""
    installed = shutil.which("helm")
    if installed:
        return installed
    setup_k8s.build_missing(setup_k8s.HELM_MODULE, setup_k8s.HELM_PACKAGES, setup_k8s.helm_folder())
    return str(setup_k8s.helm_folder() / "helm")


@dataclass(frozen=True, slots=True)
class Resource:
    """A HudiTable or TableService, of the suite's namespace unless another is named."""

    kube: Kube
    kind: str
    name: str
    namespace: str = NAMESPACE

    def now(self) -> Document | None:
        """As it is, or None."""
        return self.kube.find(self.kind, self.name, "-n", self.namespace)

    def status(self) -> Document:
        """Its status; empty if it has none yet."""
        found: Document = (self.now() or {}).get("status", {})
        return found

    def condition(self, kind: str) -> str:
        """Status of a condition, if it speaks of the newest generation; else an empty text."""
        found = self.now() or {}
        for condition in found.get("status", {}).get("conditions", ()):
            if condition["type"] == kind and condition["observedGeneration"] == found["metadata"]["generation"]:
                return str(condition["status"])
        return ""

    def until(self, kind: str = "Ready", value: str = "True") -> Document:
        """Its status once the condition holds. Raises AssertionError that shows the status."""
        try:
            return eventually(lambda: self.status() if self.condition(kind) == value else None, f"{self.name} {kind}")
        except AssertionError as error:
            error.add_note(str(self.status()))
            raise

    def uid(self) -> str:
        """Of the resource that is there now."""
        found = self.now()
        assert found is not None, f"{self.name} is not there"
        return str(found["metadata"]["uid"])

    def runs(self) -> list[Document]:
        """Its attempts, newest first."""
        return list(self.status().get("runs", ()))

    def pods(self) -> list[Document]:
        """The pods that work for it."""
        found = self.now()
        if found is None:
            return []
        return self.kube.items("pods", "-n", self.namespace, "-l", f"{OWNER}={found['metadata']['uid']}")

    def look(self) -> None:
        """Have it looked at now, not at the next of the regular looks: any change of the resource
        does."""
        self.kube.need(
            "annotate", self.kind, self.name, "-n", self.namespace, "--overwrite", f"looked-at={time.time_ns()}"
        )

    def delete(self) -> float:
        """Delete it; the seconds until it is gone."""
        began = time.monotonic()
        self.kube.need("delete", self.kind, self.name, "-n", self.namespace, "--wait=false")
        eventually(lambda: self.now() is None, f"{self.name} is gone")
        return time.monotonic() - began


def operator_pods(kube: Kube) -> list[Document]:
    """Pods of the operator."""
    return kube.items("pods", "-n", INSTALLED, "-l", OPERATOR)
