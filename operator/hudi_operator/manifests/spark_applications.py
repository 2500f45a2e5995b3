"""An attempt as a SparkApplication, of kubeflow's operator or of Apache's: one object is one
attempt, and is never restarted.

What a pod must be stands in pod templates, which need no webhook of the operator. The two share no
dictionary of properties: kubeflow's admission refuses image, accounts and master in `sparkConf`,
and Apache's definition takes them nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_operator.api.fields.spark import PodSize
from hudi_operator.manifests.pods import (
    DRIVER_CONTAINER,
    EXECUTOR_CONTAINER,
    RESULT,
    SPEC_FILE,
    SPEC_FOLDER,
    TTL_SECONDS,
    Attempt,
    PodSettings,
    account_of,
    cpu_conf,
    cpu_of,
    driver_pod,
    executor_account_of,
    executor_pod,
    memory_of,
    metadata_of,
)
from hudi_operator.manifests.spark_conf import (
    SCALA_VERSION,
    SPARK_VERSION,
    heap_and_rest,
    leaves,
    memory_conf,
    totals,
    wire,
)

KUBEFLOW, APACHE = "sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1"
PROGRAM = "local:///opt/hudi/job.py"
ARGUMENTS = (f"{SPEC_FOLDER}/{SPEC_FILE}", RESULT)
_TTL_MILLIS = TTL_SECONDS * 1000


def kubeflow_application(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    """The `sparkoperator.k8s.io/v1beta2` SparkApplication of an attempt."""
    driver, executor = attempt.spark.driver, attempt.spark.executor
    spec: dict[str, Any] = {
        "type": "Python",
        "pythonVersion": "3",
        "mode": "cluster",
        "sparkVersion": SPARK_VERSION,
        "image": settings.image,
        "imagePullPolicy": settings.pull_policy,
        "mainApplicationFile": PROGRAM,
        "arguments": list(ARGUMENTS),
        "restartPolicy": {"type": "Never"},
        "timeToLiveSeconds": TTL_SECONDS,
        "sparkConf": {**attempt.spec.spark.get("conf", {}), **wire(), **leaves()},
        "driver": {
            "cores": driver.cores,
            **_memory(driver, attempt, settings),
            "serviceAccount": account_of(attempt, settings),
            **_cores(driver, attempt, settings),
            "template": _driver(attempt, settings),
        },
        "executor": {
            "instances": executor.instances,
            "cores": executor.cores,
            **_memory(executor, attempt, settings),
            "serviceAccount": executor_account_of(attempt, settings),
            **_cores(executor, attempt, settings),
            "template": executor_pod(attempt, settings),
        },
    }
    if settings.pull_secrets:
        spec["imagePullSecrets"] = list(settings.pull_secrets)
    return _object(KUBEFLOW, attempt, spec)


def apache_application(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    """The `spark.apache.org/v1` SparkApplication of an attempt.

    Its pods are kept for the result of a driver that has ended lies in its pod alone. The
    operator's own time limits on a start would end the application and leave a pod that starts
    after all, so they are as long as that.
    """
    spec = {
        "mainClass": "org.apache.spark.deploy.PythonRunner",
        "pyFiles": PROGRAM,
        "driverArgs": list(ARGUMENTS),
        "deploymentMode": "ClusterMode",
        "runtimeVersions": {"sparkVersion": SPARK_VERSION, "scalaVersion": SCALA_VERSION},
        "sparkConf": {**attempt.spec.spark.get("conf", {}), **_apache_conf(attempt, settings)},
        "driverSpec": {"podTemplateSpec": _driver(attempt, settings)},
        "executorSpec": {"podTemplateSpec": executor_pod(attempt, settings)},
        "applicationTolerations": {
            "restartConfig": {"restartPolicy": "Never"},
            "resourceRetainPolicy": "Always",
            "resourceRetainDurationMillis": _TTL_MILLIS,
            "ttlAfterStopMillis": _TTL_MILLIS,
            "applicationTimeoutConfig": {
                "driverStartTimeoutMillis": _TTL_MILLIS,
                "driverReadyTimeoutMillis": _TTL_MILLIS,
                "executorStartTimeoutMillis": _TTL_MILLIS,
            },
        },
    }
    return _object(APACHE, attempt, spec)


def _apache_conf(attempt: Attempt, settings: PodSettings) -> dict[str, str]:
    driver, executor = attempt.spark.driver, attempt.spark.executor
    conf = {
        "spark.driver.cores": str(driver.cores),
        "spark.kubernetes.container.image": settings.image,
        "spark.kubernetes.container.image.pullPolicy": settings.pull_policy,
        "spark.kubernetes.authenticate.driver.serviceAccountName": account_of(attempt, settings),
        "spark.kubernetes.authenticate.executor.serviceAccountName": executor_account_of(attempt, settings),
        **cpu_conf("driver", driver, attempt, settings),
        **cpu_conf("executor", executor, attempt, settings),
        **memory_conf("driver", memory_of(driver, attempt, settings)),
        **memory_conf("executor", memory_of(executor, attempt, settings)),
        "spark.kubernetes.driver.podTemplateContainerName": DRIVER_CONTAINER,
        "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR_CONTAINER,
        **totals(attempt.spark),
        **wire(),
        **leaves(),
    }
    if settings.pull_secrets:
        conf["spark.kubernetes.container.image.pullSecrets"] = ",".join(settings.pull_secrets)
    return conf


def _cores(size: PodSize, attempt: Attempt, settings: PodSettings) -> dict[str, str]:
    """Kubeflow's fields for what `cpu_conf` says; it asks for `cores` by itself."""
    request, most = cpu_of(size, attempt, settings)
    found = {"coreRequest": request} if request != str(size.cores) else {}
    return found | ({"coreLimit": most} if most is not None else {})


def _memory(size: PodSize, attempt: Attempt, settings: PodSettings) -> dict[str, str]:
    """Kubeflow's fields for what `memory_conf` says."""
    heap, rest = heap_and_rest(memory_of(size, attempt, settings))
    return {"memory": heap, "memoryOverhead": rest}


def _driver(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    spec = replace(attempt.spec, spark={**attempt.spec.spark, "fixed": totals(attempt.spark)})
    return driver_pod(attempt, spec, settings, DRIVER_CONTAINER)


def _object(version: str, attempt: Attempt, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "SparkApplication", "metadata": metadata_of(attempt), "spec": spec}
