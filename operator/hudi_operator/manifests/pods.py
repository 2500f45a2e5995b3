"""The pods of attempts: what every driver and every executor is, whichever object makes it.

The JobSpec travels as an annotation that the pod sees as a file; the result comes back as the
container's termination message. Each pod passes Pod Security `restricted` and gets credentials by
reference alone; only a driver of executors holds a token of the API.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hudi_operator.api.fields.pods import LightSize, PodParts, PodPolicies, PodPolicy
from hudi_operator.api.fields.spark import PodSize, SparkSpec
from hudi_operator.api.names import API_VERSION, GROUP
from hudi_operator.api.resources import Identity
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import RunStatus
from hudi_operator.manifests.pod_parts import ATTEMPT, dress, joined
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.service.services import ServiceType

OWNER = f"{GROUP}/owner"
"""Label: uid of the resource that an object works for."""
RUN = f"{GROUP}/run"
JOB_SPEC = f"{GROUP}/job-spec"
MANAGED_BY = {"app.kubernetes.io/managed-by": "hudi-operator"}
CONTAINER = "job"
DRIVER_CONTAINER, EXECUTOR_CONTAINER = "spark-kubernetes-driver", "spark-kubernetes-executor"
"""Names by which Spark and its operators know the containers of their pods."""
SPEC_FOLDER, SPEC_FILE = "/etc/hudi", "job-spec.json"
RESULT = "/dev/termination-log"
TTL_SECONDS = 24 * 3600
"""How long the object of an attempt stays after its end."""
MEMORY = "2Gi"
"""Of a driver or executor of which nobody says it."""
_SCRATCH = "/tmp"  # noqa: S108 - a volume of the pod alone
_USER = 65532


LIGHT = frozenset(
    kind.value
    for kind in (
        ServiceType.CLEANING, ServiceType.ARCHIVING, ServiceType.SAVEPOINT, ServiceType.ROLLBACK, ServiceType.RESTORE,
        ServiceType.PARTITION_TTL,
    )
) | {"Purge"}  # fmt: skip
"""Work that lists, writes and deletes files, and reads no rows."""


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What the operator's own configuration says of pods. Quantities as Kubernetes writes them.

    `service_account`: of pods that ask nothing of the API; `driver_account`: of drivers that start
    executors.
    """

    image: str
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    service_account: str = "default"
    driver_account: str = "hudi-driver"
    scratch: str = "10Gi"
    policies: PodPolicies = field(default_factory=lambda: PodPolicies(PodPolicy(), {}))


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is to run, and for whom. `secret`: name of the Secret that fills the environment, or
    ""."""

    owner: Identity
    run: RunStatus
    spec: JobSpec
    secret: str = ""
    spark: SparkSpec = field(default_factory=SparkSpec)

    @property
    def executors(self) -> int:
        """How many executors it gets: none if its work needs no Spark."""
        return self.spark.executor.instances if self.spec.engine == "Spark" else 0

    @property
    def namespace(self) -> str:
        """Where its pods are."""
        return self.owner.key.namespace

    @property
    def is_light(self) -> bool:
        """Whether its work reads no rows."""
        return self.spec.engine != "Spark" and self.spec.work.get("type") in LIGHT


@dataclass(frozen=True, slots=True)
class AnnotationFile:
    """A text that a pod carries as an annotation and sees as a file of `SPEC_FOLDER`."""

    annotation: str
    name: str
    text: str


def metadata_of(attempt: Attempt) -> dict[str, Any]:
    """The metadata of an attempt's object, which describes the run."""
    return {
        "name": attempt.run.name,
        "namespace": attempt.owner.key.namespace,
        "labels": {**MANAGED_BY, OWNER: attempt.owner.uid},
        "annotations": {RUN: json.dumps(to_document(attempt.run))},
        "ownerReferences": [owner_reference(attempt.owner)],
    }


def owner_reference(owner: Identity) -> dict[str, Any]:
    """What the garbage collector needs: the attempt goes with its resource. It never holds the
    resource back."""
    return {
        "apiVersion": API_VERSION,
        "kind": owner.key.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def driver_pod(
    attempt: Attempt, spec: JobSpec, settings: PodSettings, container: str, *files: AnnotationFile
) -> dict[str, Any]:
    """The pod template of a driver, which sees its JobSpec as a file, and what else is in
    `files`."""
    seen = (AnnotationFile(JOB_SPEC, SPEC_FILE, spec.to_json()), *files)
    pod = _pod(settings, container)
    pod["serviceAccountName"] = account_of(attempt, settings)
    pod["automountServiceAccountToken"] = attempt.executors > 0
    main = pod["containers"][0]
    main["env"] = [*_credentials(spec, attempt.secret), *main["env"]]
    main |= {"terminationMessagePath": RESULT, "terminationMessagePolicy": "FallbackToLogsOnError"}
    main["volumeMounts"].insert(0, {"name": "job-spec", "mountPath": SPEC_FOLDER, "readOnly": True})
    pod["volumes"].insert(0, {"name": "job-spec", "downwardAPI": {"items": [_item(f) for f in seen]}})
    labels = {**MANAGED_BY, OWNER: attempt.owner.uid, ATTEMPT: attempt.run.name}
    found = {"metadata": {"labels": labels, "annotations": {f.annotation: f.text for f in seen}}, "spec": pod}
    return _dressed(found, attempt, settings, attempt.spark.driver)


def executor_pod(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    """The pod template of an executor. It has no credentials: the driver hands them to its tasks
    over an encrypted wire."""
    labels = {**MANAGED_BY, ATTEMPT: attempt.run.name}
    pod = _pod(settings, EXECUTOR_CONTAINER)
    pod["serviceAccountName"] = executor_account_of(attempt, settings)
    return _dressed({"metadata": {"labels": labels}, "spec": pod}, attempt, settings, attempt.spark.executor)


def _dressed(template: dict[str, Any], attempt: Attempt, settings: PodSettings, parts: PodParts) -> dict[str, Any]:
    policy = settings.policies.of(attempt.namespace)
    return dress(template, joined(policy, parts), policy, attempt.run.name)


def account_of(attempt: Attempt, settings: PodSettings) -> str:
    """The account of an attempt's driver."""
    account = joined(settings.policies.of(attempt.namespace), attempt.spark.driver).service_account_name
    return account or (settings.driver_account if attempt.executors else settings.service_account)


def executor_account_of(attempt: Attempt, settings: PodSettings) -> str:
    """The account of its executors."""
    account = joined(settings.policies.of(attempt.namespace), attempt.spark.executor).service_account_name
    return account or settings.service_account


def cpu_of(size: PodSize, attempt: Attempt, settings: PodSettings) -> tuple[str, str | None]:
    """CPU that a driver or executor asks for, and at most gets."""
    parts = joined(settings.policies.of(attempt.namespace), size)
    return parts.cpu_request or str(size.cores), parts.cpu_limit


def cpu_conf(role: str, size: PodSize, attempt: Attempt, settings: PodSettings) -> dict[str, str]:
    """The same as properties of Spark, which makes the pod of that role; none where its own
    defaults say it."""
    request, most = cpu_of(size, attempt, settings)
    found = {f"spark.kubernetes.{role}.request.cores": request} if request != str(size.cores) else {}
    return found | ({f"spark.kubernetes.{role}.limit.cores": most} if most is not None else {})


def memory_of(size: PodSize, attempt: Attempt, settings: PodSettings) -> str:
    """Memory of a driver or executor: what the table says counts, then what is said of its
    namespace."""
    return size.memory or settings.policies.of(attempt.namespace).memory or MEMORY


def resources_of(attempt: Attempt, settings: PodSettings) -> dict[str, Any]:
    """Requests and limits of the driver's container. Memory is asked for as much as it may have."""
    size = attempt.spark.driver
    (cpu, most), memory = cpu_of(size, attempt, settings), memory_of(size, attempt, settings)
    if attempt.is_light:
        light = attempt.spark.light or settings.policies.of(attempt.namespace).light or LightSize()
        cpu, memory = light.cpu, light.memory
    limits = {"memory": memory} | ({"cpu": most} if most is not None and not attempt.is_light else {})
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": limits}


def _item(file: AnnotationFile) -> dict[str, Any]:
    return {"path": file.name, "fieldRef": {"fieldPath": f"metadata.annotations['{file.annotation}']"}}


def _pod(settings: PodSettings, container: str) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": settings.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": container,
                "image": settings.image,
                "imagePullPolicy": settings.pull_policy,
                "env": [{"name": "HOME", "value": _SCRATCH}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "scratch", "mountPath": _SCRATCH}],
            }
        ],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": settings.scratch}}],
    }
    if settings.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    return pod


def _credentials(spec: JobSpec, secret: str) -> list[dict[str, Any]]:
    """Credentials by reference: each variable that the Secret has, under its own name."""
    if not secret:
        return []
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name, "optional": True}}}
        for name in spec.storage.get("credentials", ())
    ]
