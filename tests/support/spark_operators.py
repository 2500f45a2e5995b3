"""The two public Spark operators, played by a test: each makes the driver's pod of a SparkApplication and tells of it in its status.

The pod is what Spark's Kubernetes mode makes of a driver's template: its name, its arguments, its sizes. No executor is made.
"""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually

DEFINITIONS = Path(__file__).resolve().parents[1] / "data" / "crds"
PLURAL = "sparkapplications"
MOMENT = "2026-01-01T00:04:00.123456789Z"


def definition(version: str) -> dict[str, Any]:
    """The CRD of a SparkApplication, as its project publishes it."""
    packed = DEFINITIONS / f"{version.partition('/')[0]}_{PLURAL}.yaml.xz"
    found: dict[str, Any] = yaml.load(lzma.decompress(packed.read_bytes()), Loader=yaml.CSafeLoader)
    return found


def install(server: ApiServer, *versions: str) -> None:
    """Serve the SparkApplications of these versions."""
    for version in versions:
        done = server.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(definition(version)))
        assert done.returncode == 0, done.stderr
    for version in versions:
        eventually(lambda version=version: is_served(server, version), f"{version} is not served")  # type: ignore[misc]


def is_served(server: ApiServer, version: str) -> bool:
    """Whether there are SparkApplications of a version."""
    done = server.kubectl("get", "--raw", f"/apis/{version}")
    return done.returncode == 0 and any(each["name"] == PLURAL for each in json.loads(done.stdout)["resources"])


def uninstall(server: ApiServer, *versions: str) -> None:
    """Serve them no more; their objects go with them."""
    for version in versions:
        done = server.kubectl("delete", "crd", f"{PLURAL}.{version.partition('/')[0]}", "--ignore-not-found", "--wait")
        assert done.returncode == 0, done.stderr


def drive(server: ApiServer, version: str, namespace: str, name: str) -> dict[str, Any]:
    """Make the driver's pod of an application, and tell that it runs."""
    application = get(server, version, namespace, name)
    pod = driver_pod(application)
    done = server.kubectl("create", "-n", namespace, "-o", "json", "-f", "-", given=json.dumps(pod))
    assert done.returncode == 0, done.stderr
    tell(server, version, namespace, name, "RUNNING" if version == KUBEFLOW else "RunningHealthy")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tell(server: ApiServer, version: str, namespace: str, name: str, state: str, message: str = "") -> None:
    """Write the state of an application as its operator does."""
    if version == KUBEFLOW:
        ended = {"terminationTime": "2026-01-01T00:04:00Z"} if state in ("COMPLETED", "FAILED") else {}
        status = {
            "applicationState": {"state": state, **({"errorMessage": message} if message else {})},
            "driverInfo": {"podName": f"{name}-driver"},
            **ended,
        }
    else:
        status = _apache_status(get(server, version, namespace, name).get("status", {}), state, message)
    done = server.kubectl(
        "patch", f"{PLURAL}.{version.partition('/')[0]}", name, "-n", namespace, "--subresource=status", "--type=merge",
        "-p", json.dumps({"status": status}),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def get(server: ApiServer, version: str, namespace: str, name: str) -> dict[str, Any]:
    """An application."""
    group, _, release = version.partition("/")
    return server.get(f"{PLURAL}.{release}.{group}", name, "-n", namespace)


def templates(application: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The pod templates of driver and executor."""
    spec = application["spec"]
    if application["apiVersion"] == APACHE:
        return spec["driverSpec"]["podTemplateSpec"], spec["executorSpec"]["podTemplateSpec"]
    return spec["driver"]["template"], spec["executor"]["template"]


def driver_pod(application: dict[str, Any]) -> dict[str, Any]:
    """What Spark makes of the driver's template."""
    name, spec = application["metadata"]["name"], application["spec"]
    template = copy.deepcopy(templates(application)[0])
    program = spec.get("mainApplicationFile") or spec["pyFiles"]
    arguments = spec.get("arguments") or spec["driverArgs"]
    container = template["spec"]["containers"][0]
    container["args"] = [
        "driver", "--properties-file", "/opt/spark/conf/spark.properties",
        "--class", "org.apache.spark.deploy.PythonRunner", program, *arguments,
    ]  # fmt: skip
    container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    owner = {
        "apiVersion": application["apiVersion"],
        "kind": "SparkApplication",
        "name": name,
        "uid": application["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    labels = {**template["metadata"]["labels"], "spark-role": "driver"}
    metadata = {**template["metadata"], "labels": labels, "name": f"{name}-driver", "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _apache_status(before: dict[str, Any], state: str, message: str) -> dict[str, Any]:
    """Its states are a history; the end of one is followed by the end of its resources."""
    history = dict(before.get("stateTransitionHistory", {}))
    entry = {"currentStateSummary": state, "message": message, "lastTransitionTime": MOMENT}
    for each in ([] if history else [_plain("Submitted"), _plain("DriverRequested")]) + [entry]:
        history[str(len(history))] = each
    if state in ("Succeeded", "Failed", "SchedulingFailure", "DriverStartTimedOut"):
        entry = _plain("TerminatedWithoutReleaseResources")
        history[str(len(history))] = entry
    return {
        "currentState": entry,
        "stateTransitionHistory": history,
        "currentAttemptSummary": {"attemptInfo": {"id": 0}},
    }


def _plain(state: str) -> dict[str, Any]:
    return {"currentStateSummary": state, "message": "", "lastTransitionTime": MOMENT}
