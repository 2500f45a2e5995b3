"""An attempt as a batch/v1 Job of one pod: one object, made in one call, that says all of what runs
and for whom.

The pod is the driver. With executors it starts them itself, in Spark's client mode, from a template
that it sees as a file.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hudi_operator.api.names import GROUP
from hudi_operator.manifests.pods import (
    CONTAINER,
    EXECUTOR_CONTAINER,
    RESULT,
    SPEC_FILE,
    SPEC_FOLDER,
    TTL_SECONDS,
    AnnotationFile,
    Attempt,
    PodSettings,
    cpu_conf,
    driver_pod,
    executor_account_of,
    executor_pod,
    memory_of,
    metadata_of,
    resources_of,
)
from hudi_operator.manifests.spark_conf import alone, client_mode, heap_and_rest, memory_conf
from hudi_table.model.job.jobspec import JobSpec

EXECUTOR_TEMPLATE, EXECUTOR_FILE = f"{GROUP}/executor-template", "executor.json"
POD_IP, POD_NAME = "HUDI_POD_IP", "HUDI_POD_NAME"
"""Environment variables by which a driver knows itself; `hudi_spark.jobs.session` reads them."""


def job_manifest(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    """The Job of one attempt. A pod that fails or vanishes is not replaced: repeats are attempts of
    their own."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata_of(attempt),
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "template": _template(attempt, settings),
        },
    }


def _template(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    files = []
    if attempt.executors:
        files.append(AnnotationFile(EXECUTOR_TEMPLATE, EXECUTOR_FILE, json.dumps(executor_pod(attempt, settings))))
    found = driver_pod(attempt, _spec(attempt, settings), settings, CONTAINER, *files)
    main = found["spec"]["containers"][0]
    main["args"] = ["job", f"{SPEC_FOLDER}/{SPEC_FILE}", RESULT]
    main["resources"] = resources_of(attempt, settings)
    if attempt.executors:
        main["env"] += [_own(POD_IP, "status.podIP"), _own(POD_NAME, "metadata.name")]
    return found


def _spec(attempt: Attempt, settings: PodSettings) -> JobSpec:
    """The JobSpec with the properties that its Spark must have."""
    if attempt.spec.engine != "Spark":
        return attempt.spec
    fixed = alone(attempt.spark)
    if attempt.executors:
        pods = {
            "spark.kubernetes.container.image": settings.image,
            "spark.kubernetes.container.image.pullPolicy": settings.pull_policy,
            "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
            "spark.kubernetes.authenticate.executor.serviceAccountName": executor_account_of(attempt, settings),
            **cpu_conf("executor", attempt.spark.executor, attempt, settings),
            **memory_conf("executor", memory_of(attempt.spark.executor, attempt, settings)),
        }
        if settings.pull_secrets:
            pods["spark.kubernetes.container.image.pullSecrets"] = ",".join(settings.pull_secrets)
        template = f"{SPEC_FOLDER}/{EXECUTOR_FILE}"
        fixed = client_mode(attempt.spark, attempt.owner.key.namespace, attempt.run.name, template, pods)
    # The pod is there already: of its memory Spark need know the heap alone.
    fixed["spark.driver.memory"], _ = heap_and_rest(memory_of(attempt.spark.driver, attempt, settings))
    return replace(attempt.spec, spark={**attempt.spec.spark, "fixed": fixed})


def _own(variable: str, path: str) -> dict[str, Any]:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}}
