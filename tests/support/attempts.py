"""Attempts as each launcher carries them, and the pods that come of them."""

from __future__ import annotations

import json
from typing import Any

from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.api.resources import Identity, Key
from hudi_operator.api.status import RunStatus
from hudi_operator.manifests.attempts import attempt_name
from hudi_operator.manifests.batch import EXECUTOR_TEMPLATE, job_manifest
from hudi_operator.manifests.pods import Attempt, PodSettings
from hudi_operator.manifests.spark_applications import apache_application, kubeflow_application
from hudi_table.model.job.jobspec import JobSpec

DIGEST = "sha256:" + "0" * 64
SETTINGS = PodSettings(f"registry.example/hudi-spark@{DIGEST}", "IfNotPresent", ("pull",), "hudi-job", "hudi-driver")
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
WAYS: tuple[str, ...] = ("one pod", "Job", "SparkOperator", "ApacheSparkOperator")


def attempt(
    way: str, *, table: str = "flights", location: str = "s3://lake/flights", secret: str = "s3",
    conf: dict[str, str] | None = None, driver: PodSize | None = None, executor: PodSize | None = None,
) -> Attempt:  # fmt: skip
    """One, with what a manifest may say of it."""
    name = attempt_name(table, "uid", "Ingest/feed", 1, 1)
    run = RunStatus(name, "Ingest/feed", "Running", 1, 1)
    storage = {"credentials": list(CREDENTIALS)} if secret else {}
    spec = JobSpec(name, {"location": location}, {}, storage=storage, spark={"conf": conf or {}})
    if way == "one pod":
        spec = JobSpec(name, {"location": location}, {}, storage=storage, engine="Local")
    sizes = SparkSpec(driver=driver or PodSize(), executor=executor or PodSize(2))
    return Attempt(Identity(Key("HudiTable", "lake", table), "uid", 1), run, spec, secret, sizes)


def made(way: str, wanted: Attempt, settings: PodSettings = SETTINGS) -> dict[str, Any]:
    """The object of an attempt."""
    if way == "SparkOperator":
        return kubeflow_application(wanted, settings)
    return (apache_application if way == "ApacheSparkOperator" else job_manifest)(wanted, settings)


def pods(way: str, document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The templates of its pods, by role."""
    spec = document["spec"]
    if way == "SparkOperator":
        return {role: spec[role]["template"] for role in ("driver", "executor")}
    if way == "ApacheSparkOperator":
        return {role: spec[f"{role}Spec"]["podTemplateSpec"] for role in ("driver", "executor")}
    found = {"driver": spec["template"]}
    annotations = found["driver"]["metadata"]["annotations"]
    if EXECUTOR_TEMPLATE in annotations:
        found["executor"] = json.loads(annotations[EXECUTOR_TEMPLATE])
    return found
