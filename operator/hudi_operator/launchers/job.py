"""Attempts as batch/v1 Jobs, which need nothing but Kubernetes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_operator.launchers.objects import Kind
from hudi_operator.launchers.seen import Verdict
from hudi_operator.manifests.batch import job_manifest


def _verdict(job: Mapping[str, Any]) -> Verdict:
    for condition in job.get("status", {}).get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            message = condition.get("message") or condition.get("reason") or "the Job has ended"
            return Verdict(ended=True, message=str(message), finished=condition.get("lastTransitionTime"))
    return Verdict()


JOB = Kind("Job", "batch/v1", "jobs", job_manifest, _verdict, stop={"spec": {"activeDeadlineSeconds": 1}})
"""The Job stays when its attempt is cancelled, to tell of it."""
