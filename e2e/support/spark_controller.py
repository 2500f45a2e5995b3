"""What a Spark operator does, in little: each SparkApplication, of kubeflow's kind or Apache's,
becomes `spark-submit --deploy-mode cluster`.

For clusters where the public operators cannot be had. It follows the drivers and writes the states
that the launchers read.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import yaml

from e2e.support.kube import Document, Kube
from e2e.support.operator import NAMESPACE

KUBEFLOW, APACHE = "sparkapplications.sparkoperator.k8s.io", "sparkapplications.spark.apache.org"
POLL_SECONDS = 1.0
_log = logging.getLogger(__name__)
_ENDS = {"Succeeded": ("COMPLETED", "Succeeded"), "Failed": ("FAILED", "Failed")}


@contextmanager
def controller(kube: Kube) -> Iterator[None]:
    """It runs, in a thread, until the context ends."""
    stop = threading.Event()

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            while not stop.wait(POLL_SECONDS):
                # What goes wrong stands in the log of the test; the next round tries again.
                try:
                    for kind in (KUBEFLOW, APACHE):
                        for application in (kube.find(kind, "-n", NAMESPACE) or {"items": []})["items"]:
                            _look(kube, kind, application, Path(folder))
                except (AssertionError, LookupError):
                    _log.exception("a SparkApplication was not followed")

    thread = threading.Thread(target=work, name="spark-controller", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(kube: Kube, kind: str, application: Document, folder: Path) -> None:
    """Submit what is new, follow what runs."""
    name = application["metadata"]["name"]
    status = application.get("status") or {}
    if not status:
        done = subprocess.run(
            submission(kube, kind, application, folder / name), capture_output=True, text=True, check=False,
            env={**os.environ, "KUBECONFIG": str(kube.kubeconfig), "SPARK_HOME": str(Path(pyspark.__file__).parent)},
        )  # fmt: skip
        said = "" if done.returncode == 0 else done.stderr[-1000:]
        states = ("SUBMISSION_FAILED", "Failed") if said else ("SUBMITTED", "Submitted")
        _write(kube, kind, application, *states, said)
        return
    pod = kube.find("pod", f"{name}-driver", "-n", NAMESPACE)
    phase = pod["status"]["phase"] if pod is not None else "Failed"
    states = _ENDS.get(phase) or (("RUNNING", "RunningHealthy") if phase == "Running" else ("SUBMITTED", "Submitted"))
    _write(kube, kind, application, *states)


def _write(kube: Kube, kind: str, application: Document, kubeflow: str, apache: str, said: str = "") -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    before = application.get("status") or {}
    if kind == KUBEFLOW:
        if (before.get("applicationState") or {}).get("state") == kubeflow:
            return
        ended = {"terminationTime": now} if kubeflow in ("COMPLETED", "FAILED") else {}
        status: Document = {"applicationState": {"state": kubeflow, "errorMessage": said}, "driverInfo": {}, **ended}
    else:
        history = dict(before.get("stateTransitionHistory") or {})
        current = {"currentStateSummary": apache, "lastTransitionTime": now, "message": said}
        if any(state["currentStateSummary"] == apache for state in history.values()):
            return
        history[str(len(history))] = current
        if apache in ("Succeeded", "Failed"):
            current = {**current, "currentStateSummary": "TerminatedWithoutReleaseResources"}
            history[str(len(history))] = current
        status = {"currentState": current, "stateTransitionHistory": history}
    name = application["metadata"]["name"]
    told = json.dumps({"status": status})
    kube.need("patch", kind, name, "-n", NAMESPACE, "--type=merge", "--subresource=status", "-p", told)


def submission(kube: Kube, kind: str, application: Document, folder: Path) -> list[str]:
    """The command line of spark-submit for an application."""
    folder.mkdir(exist_ok=True)
    spec, name = application["spec"], application["metadata"]["name"]
    conf, templates, program, arguments = (_kubeflow if kind == KUBEFLOW else _apache)(spec)
    for role, template in templates.items():
        if role == "driver":  # of the executors Spark makes the driver the owner
            template.setdefault("metadata", {})["ownerReferences"] = [_owner(application)]
        (folder / f"{role}.yaml").write_text(yaml.safe_dump(template))
        conf[f"spark.kubernetes.{role}.podTemplateFile"] = str(folder / f"{role}.yaml")
    conf |= {
        "spark.kubernetes.namespace": application["metadata"]["namespace"],
        "spark.kubernetes.driver.pod.name": f"{name}-driver",
        "spark.kubernetes.submission.waitAppCompletion": "false",
    }
    server = yaml.safe_load(kube.kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    submit = Path(sys.executable).parent / "spark-submit"
    told = [part for key, value in sorted(conf.items()) for part in ("--conf", f"{key}={value}")]
    return [
        str(submit),
        "--master",
        f"k8s://{server}",
        "--deploy-mode",
        "cluster",
        "--name",
        name,
        *told,
        program,
        *arguments,
    ]


def _kubeflow(spec: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Document], str, list[str]]:
    conf = dict(spec["sparkConf"])
    conf["spark.kubernetes.container.image"] = spec["image"]
    conf["spark.kubernetes.container.image.pullPolicy"] = spec["imagePullPolicy"]
    for role in ("driver", "executor"):
        given = spec[role]
        conf[f"spark.{role}.cores"] = str(given["cores"])
        conf[f"spark.{role}.memory"] = given["memory"]
        conf[f"spark.{role}.memoryOverhead"] = given["memoryOverhead"]
        conf[f"spark.kubernetes.authenticate.{role}.serviceAccountName"] = given["serviceAccount"]
        conf[f"spark.kubernetes.{role}.podTemplateContainerName"] = f"spark-kubernetes-{role}"
    conf["spark.executor.instances"] = str(spec["executor"]["instances"])
    templates = {role: dict(spec[role]["template"]) for role in ("driver", "executor")}
    return conf, templates, spec["mainApplicationFile"], list(spec["arguments"])


def _apache(spec: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Document], str, list[str]]:
    templates = {role: dict(spec[f"{role}Spec"]["podTemplateSpec"]) for role in ("driver", "executor")}
    return dict(spec["sparkConf"]), templates, spec["pyFiles"], list(spec["driverArgs"])


def _owner(application: Document) -> Document:
    identity = {name: application[name] for name in ("apiVersion", "kind")}
    return {
        **identity,
        "name": application["metadata"]["name"],
        "uid": application["metadata"]["uid"],
        "controller": True,
    }
