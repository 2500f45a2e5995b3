"""The Job launcher: an attempt is a batch/v1 Job of one pod, which needs nothing but Kubernetes itself.

The name of the attempt is the name of the Job, so that launching again finds it. An attempt of that name that works for another
resource is never adopted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import Identity
from hudi_operator.api.status import RunStatus
from hudi_operator.kube.rest import Document, Rest
from hudi_operator.launchers.base import REASON_OF_EXIT_CODE, ended
from hudi_operator.manifests.batch import CONTAINER, OWNER, RUN, PodSettings, job_manifest
from hudi_operator.plan.effects import Launch
from hudi_table.errors import InvalidRequestError, ObjectExistsError, ObjectNotFoundError
from hudi_table.model.jobspec import JobResult

MESSAGE_LENGTH_MAX = 400
_JOB_NAME = "batch.kubernetes.io/job-name"
_STOP = {"spec": {"activeDeadlineSeconds": 1}}


class JobLauncher:
    """Jobs of a cluster. Raises AccessDeniedError and UnavailableError for what the API server says."""

    def __init__(self, rest: Rest, settings: PodSettings) -> None:
        self._rest = rest
        self._settings = settings

    def launch(self, owner: Identity, wanted: Launch, secret: Mapping[str, str]) -> bool:
        """Create the Job, or return False if the attempt has one already. Raises InvalidRequestError if another's has its name."""
        del secret  # the pod refers to it
        name = wanted.run.name
        manifest = job_manifest(
            owner, wanted.run, wanted.spec, wanted.secret or "", wanted.spark.driver, self._settings
        )
        try:
            self._rest.create(_jobs(owner), manifest)
        except ObjectExistsError:
            found = self._rest.get(f"{_jobs(owner)}/{name}")
            if found["metadata"].get("labels", {}).get(OWNER) != owner.uid:
                raise InvalidRequestError(
                    f"a Job {name} that is not ours lies in namespace {owner.key.namespace}; delete it or rename the resource"
                ) from None
            return False
        return True

    def cancel(self, owner: Identity, name: str) -> None:
        """Let the Job end: its pod is asked to stop, and killed after its grace period. The Job stays, to tell of it."""
        with contextlib.suppress(ObjectNotFoundError):
            self._rest.merge(f"{_jobs(owner)}/{name}", _STOP)

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        """The attempts that still have a Job, newest first."""
        chosen = f"{OWNER}={owner.uid}"
        jobs = self._rest.get(_jobs(owner), labelSelector=chosen)["items"]
        pods = f"/api/v1/namespaces/{owner.key.namespace}/pods"
        by_job: dict[str, list[Document]] = {}
        for pod in self._rest.get(pods, labelSelector=chosen)["items"] if jobs else ():
            by_job.setdefault(pod["metadata"]["labels"].get(_JOB_NAME, ""), []).append(pod)
        found = [_seen(job, by_job.get(job["metadata"]["name"], [])) for job in jobs]
        return tuple(sorted(found, key=lambda r: (r.started or "", r.attempt), reverse=True))


def _jobs(owner: Identity) -> str:
    return f"/apis/batch/v1/namespaces/{owner.key.namespace}/jobs"


def _seen(job: Mapping[str, Any], pods: list[Document]) -> RunStatus:
    """What has become of an attempt: the job's own word if there is one, else what Kubernetes says."""
    run = _run_of(job)
    last = next((item for item in job.get("status", {}).get("conditions", ()) if item["status"] == "True"
                 and item["type"] in ("Complete", "Failed")), None)  # fmt: skip
    if last is None:
        return run
    finished = last.get("lastTransitionTime")
    said = next((state for pod in pods if (state := _terminated(pod)) is not None), {})
    try:
        return ended(run, JobResult.from_json(said.get("message", "")), finished)
    except (ValueError, TypeError):
        pass
    code = said.get("exitCode")
    lines = str(said.get("message", "")).strip().splitlines()
    told = [
        str(last.get("message") or last.get("reason") or "the Job has ended"),
        *([f"the container ended with code {code}, {said.get('reason', 'no reason')}"] if code is not None else []),
        *(lines[-1:] if lines else []),
    ]
    return replace(
        run,
        phase="Lost",
        finished=finished,
        reason=REASON_OF_EXIT_CODE.get(code) if isinstance(code, int) else None,
        message=": ".join(text[:MESSAGE_LENGTH_MAX] for text in told),
    )


def _terminated(pod: Mapping[str, Any]) -> dict[str, Any] | None:
    for status in pod.get("status", {}).get("containerStatuses", ()):
        if status["name"] == CONTAINER and "terminated" in status.get("state", {}):
            return dict(status["state"]["terminated"])
    return None


def _run_of(job: Mapping[str, Any]) -> RunStatus:
    """The run as the plan described it; of a Job whose annotation was lost, what its name says."""
    name = job["metadata"]["name"]
    try:
        described = json.loads(job["metadata"].get("annotations", {}).get(RUN, ""))
    except ValueError:
        described = {}
    run, _ = parse(RunStatus, described, "run")
    return run or RunStatus(name, "", "Running", 0, 0)
