"""The two public Spark operators, played by a test: each makes the driver's pod of a
SparkApplication and tells of it in its status.

The pod is what Spark's Kubernetes mode makes of a driver's template: its name, its arguments, its
sizes. No executor is made.
"""

from __future__ import annotations

import copy
import functools
import json
import lzma
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from tests.support.api_server import ApiServer
from tests.support.kubelet import MERGE, eventually

DEFINITIONS = Path(__file__).resolve().parents[1] / "data" / "crds"
PLURAL = "sparkapplications"
MOMENT = "2026-01-01T00:04:00.123456789Z"


@functools.cache
def definition(version: str) -> dict[str, Any]:
    """The CRD of a SparkApplication, as its project publishes it."""
    packed = DEFINITIONS / f"{version.partition('/')[0]}_{PLURAL}.yaml.xz"
    found: dict[str, Any] = yaml.load(lzma.decompress(packed.read_bytes()), Loader=yaml.CSafeLoader)
    return found


def open_definition(version: str) -> dict[str, Any]:
    """The same without its megabyte of schema: it is served within a second, and takes
    everything."""
    found = copy.deepcopy(definition(version))
    for each in found["spec"]["versions"]:
        each["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return found


def install(server: ApiServer, *versions: str, real: bool = True) -> None:
    """Serve the SparkApplications of these versions."""
    for version in versions:
        document = definition(version) if real else open_definition(version)
        done = server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=json.dumps(document))
        assert done.returncode == 0, done.stderr
    for version in versions:
        eventually(lambda version=version: is_served(server, version), f"{version} is not served")  # type: ignore[misc]


def is_served(server: ApiServer, version: str) -> bool:
    """Whether there are SparkApplications of a version."""
    status, found = server.call("GET", f"/apis/{version}")
    return status == HTTPStatus.OK and any(each["name"] == PLURAL for each in found["resources"])


def serve(server: ApiServer, *versions: str, served: bool) -> None:
    """Serve what is installed, or serve it no more: to delete a definition takes an API server up
    to a minute."""
    for version in versions:
        count = len(definition(version)["spec"]["versions"])
        patch = [{"op": "replace", "path": f"/spec/versions/{i}/served", "value": served} for i in range(count)]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{version.partition('/')[0]}"
        server.done("PATCH", path, patch, "application/json-patch+json")
    for version in versions:
        eventually(lambda version=version: is_served(server, version) == served, f"{version}: not {served}")  # type: ignore[misc]


def drive(server: ApiServer, version: str, namespace: str, name: str) -> dict[str, Any]:
    """Make the driver's pod of an application, and tell that it runs."""
    application = get(server, version, namespace, name)
    found = server.done("POST", f"/api/v1/namespaces/{namespace}/pods", driver_pod(application))
    tell(server, version, namespace, name, "RUNNING" if version == KUBEFLOW else "RunningHealthy")
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
    path = f"/apis/{version}/namespaces/{namespace}/{PLURAL}/{name}/status"
    server.done("PATCH", path, {"status": status}, MERGE)


def get(server: ApiServer, version: str, namespace: str, name: str) -> dict[str, Any]:
    """An application."""
    return server.done("GET", f"/apis/{version}/namespaces/{namespace}/{PLURAL}/{name}")


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
