"""Attempts as batch/v1 Jobs, which need nothing but Kubernetes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_operator.launchers.objects import Kind
from hudi_operator.launchers.seen import Verdict
from hudi_operator.manifests.batch import job_manifest

_WITHOUT_POD = "its Job gets no pod: its account may be missing, or a quota is used up; kubectl describe job says which"


def _verdict(job: Mapping[str, Any]) -> Verdict:
    status = job.get("status", {})
    for condition in status.get("conditions") or ():
        if condition["status"] == "True" and condition["type"] in ("Complete", "Failed"):
            message = condition.get("message") or condition.get("reason") or "the Job has ended"
            return Verdict(ended=True, message=str(message), finished=condition.get("lastTransitionTime"))
    taken_up = "startTime" in status
    return Verdict(message=_WITHOUT_POD if taken_up and not status.get("active") and not status.get("ready") else "")


JOB = Kind("Job", "batch/v1", "jobs", job_manifest, _verdict, stop={"spec": {"activeDeadlineSeconds": 1}})
"""The Job stays when its attempt is cancelled, to tell of it."""
