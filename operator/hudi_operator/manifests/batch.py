"""An attempt as a batch/v1 Job of one pod: one object, made in one call, that says all of what runs and for whom.

The JobSpec travels as an annotation that the pod sees as a file; the result comes back as the container's termination message.
The pod passes Pod Security `restricted`, holds no token of the API, and gets credentials by reference alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hudi_operator.api.crd import GROUP
from hudi_operator.api.resources import API_VERSION, Identity
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import PodSize
from hudi_table.model.jobspec import JobSpec

OWNER = f"{GROUP}/owner"
"""Label: uid of the resource that an object works for."""
RUN = f"{GROUP}/run"
JOB_SPEC = f"{GROUP}/job-spec"
MANAGED_BY = {"app.kubernetes.io/managed-by": "hudi-operator"}
CONTAINER = "job"
SPEC_FOLDER, SPEC_FILE = "/etc/hudi", "job-spec.json"
RESULT = "/dev/termination-log"
_SCRATCH = "/tmp"
_TTL_SECONDS = 24 * 3600
_USER = 65532


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What the operator's own configuration says of pods. Quantities as Kubernetes writes them."""

    image: str
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    service_account: str = "default"
    scratch: str = "10Gi"


def job_manifest(
    owner: Identity, run: RunStatus, spec: JobSpec, secret: str, size: PodSize, settings: PodSettings
) -> dict[str, Any]:
    """The Job of one attempt. A pod that fails or vanishes is not replaced: repeats are attempts of their own."""
    labels = {**MANAGED_BY, OWNER: owner.uid}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": run.name,
            "namespace": owner.key.namespace,
            "labels": labels,
            "annotations": {RUN: json.dumps(to_document(run))},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": _TTL_SECONDS,
            "template": {
                "metadata": {"labels": labels, "annotations": {JOB_SPEC: spec.to_json()}},
                "spec": _pod(spec, secret, size, settings),
            },
        },
    }


def owner_reference(owner: Identity) -> dict[str, Any]:
    """What the garbage collector needs: the attempt goes with its resource. It never holds the resource back."""
    return {
        "apiVersion": API_VERSION,
        "kind": owner.key.kind,
        "name": owner.key.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _pod(spec: JobSpec, secret: str, size: PodSize, settings: PodSettings) -> dict[str, Any]:
    found: dict[str, Any] = {
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
                "name": CONTAINER,
                "image": settings.image,
                "imagePullPolicy": settings.pull_policy,
                "args": ["job", f"{SPEC_FOLDER}/{SPEC_FILE}", RESULT],
                "env": [*_environment(spec, secret), {"name": "HOME", "value": _SCRATCH}],
                "resources": {
                    "requests": {"cpu": str(size.cores), "memory": size.memory},
                    "limits": {"memory": size.memory},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePath": RESULT,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [
                    {"name": "job-spec", "mountPath": SPEC_FOLDER, "readOnly": True},
                    {"name": "scratch", "mountPath": _SCRATCH},
                ],
            }
        ],
        "volumes": [
            {
                "name": "job-spec",
                "downwardAPI": {
                    "items": [{"path": SPEC_FILE, "fieldRef": {"fieldPath": f"metadata.annotations['{JOB_SPEC}']"}}]
                },
            },
            {"name": "scratch", "emptyDir": {"sizeLimit": settings.scratch}},
        ],
    }
    if settings.pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in settings.pull_secrets]
    return found


def _environment(spec: JobSpec, secret: str) -> list[dict[str, Any]]:
    """Credentials by reference: each variable that the Secret has, under its own name."""
    if not secret:
        return []
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name, "optional": True}}}
        for name in spec.storage.get("credentials", ())
    ]
