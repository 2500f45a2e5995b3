"""The images, as the cluster runs them: without root, with a read-only root file system, in a
`restricted` namespace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from e2e.support.kube import Kube, eventually
from e2e.support.operator import NAMESPACE, OPERATOR_IMAGE, SPARK_IMAGE

pytestmark = pytest.mark.usefixtures("lake")


def said(kube: Kube, name: str, image: str, command: list[str], **container: Any) -> tuple[int, str]:
    """Exit code and output of a command in a pod of the image."""
    scratch = {"name": "tmp", "mountPath": "/tmp"}
    kube.run("delete", "pod", name, "-n", NAMESPACE, "--ignore-not-found")
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {
                        "name": "main",
                        "image": image,
                        "imagePullPolicy": "IfNotPresent",
                        "command": command,
                        "securityContext": {
                            "allowPrivilegeEscalation": False,
                            "readOnlyRootFilesystem": True,
                            "capabilities": {"drop": ["ALL"]},
                        },
                        "volumeMounts": [scratch],
                        **container,
                    }
                ],
                "volumes": [{"name": "tmp", "emptyDir": {}}],
            },
        }
    )

    def ended() -> dict[str, Any] | None:
        status = kube.get("pod", name, "-n", NAMESPACE)["status"]
        states = [container["state"] for container in status.get("containerStatuses", ())]
        return states[0].get("terminated") if states else None

    code = eventually(ended, f"{name} has ended")["exitCode"]
    output = kube.need("logs", name, "-n", NAMESPACE)
    kube.need("delete", "pod", name, "-n", NAMESPACE, "--wait=false")
    return int(code), output


LOOK = """
import importlib.util, json, os, shutil
def writable():
    try:
        open('/opt/hudi/x', 'w').close()
        return True
    except OSError:
        return False
print(json.dumps({'uid': os.getuid(), 'java': shutil.which('java'), 'writable': writable(),
    'modules': {n: importlib.util.find_spec(n) is not None for n in ('pyspark', 'kopf', 'hudi_table', 'pip', 'pytest')}}))
"""


@pytest.mark.parametrize(("name", "image"), [("look-operator", OPERATOR_IMAGE), ("look-spark", SPARK_IMAGE)])
def test_an_image_runs_without_root_on_a_read_only_root(kube: Kube, name: str, image: str) -> None:
    code, output = said(kube, name, image, ["python", "-c", LOOK])
    assert code == 0, output
    found = json.loads(output)
    assert (found["uid"], found["writable"]) == (65532, False)
    is_spark = image == SPARK_IMAGE
    assert (found["java"] is not None) == is_spark
    assert found["modules"] == {
        "pyspark": is_spark,
        "kopf": not is_spark,
        "hudi_table": True,
        "pip": False,
        "pytest": False,
    }


@pytest.mark.parametrize(("name", "image"), [("compiled-operator", OPERATOR_IMAGE), ("compiled-spark", SPARK_IMAGE)])
def test_python_finds_everything_compiled(kube: Kube, name: str, image: str) -> None:
    """A read-only file system keeps nothing: what is not compiled in the image is compiled at every
    start."""
    look = (
        "import pathlib, sys; root = pathlib.Path(next(p for p in sys.path if p.endswith('site-packages'))); "
        "print([str(p) for p in root.glob('hudi_*/**/*.py') "
        "if not list((p.parent / '__pycache__').glob(p.stem + '.*.pyc'))])"
    )
    assert said(kube, name, image, ["python", "-c", look]) == (0, "[]\n")


def test_the_operator_says_what_is_missing(kube: Kube) -> None:
    code, output = said(kube, "usage-operator", OPERATOR_IMAGE, ["python", "-m", "hudi_operator", "run"])
    assert code == 2
    assert "--image" in output


def test_spark_computes_in_a_pod(kube: Kube) -> None:
    program = (
        "from pyspark.sql import SparkSession; s = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        ".getOrCreate(); print('sum', s.range(1000).mapInArrow(lambda b: b, 'id long').groupBy().sum().first()[0])"
    )
    code, output = said(kube, "spark-alone", SPARK_IMAGE, ["python", "-c", program])
    assert code == 0, output
    assert "sum 499500" in output
