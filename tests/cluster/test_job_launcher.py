"""Attempts as Jobs on a real API server with its controllers, in a namespace that enforces `restricted`. The test plays the kubelet.

Omitted: executors, and images that run (no node is there).
"""

from __future__ import annotations

import json

import pytest

from hudi_operator.api.resources import Identity, identity_of
from hudi_operator.api.status import RunStatus
from hudi_operator.kube.rest import Rest
from hudi_operator.launchers.job import JobLauncher
from hudi_operator.manifests.batch import JOB_SPEC, PodSettings
from hudi_operator.plan.effects import Launch
from hudi_table.errors import InvalidRequestError
from hudi_table.model.jobspec import JobResult, JobSpec
from tests.support.api_server import ApiServer
from tests.support.kubelet import end, eventually, pods
from tests.support.manifests import manifest, spec

SETTINGS = PodSettings("registry.example/hudi-spark@sha256:" + "0" * 64)
RUN = RunStatus("flights-1", "Ingest/feed", "Running", 1, 1, batch="b", started="2026-01-01T00:00:01Z")
WORK = JobSpec("flights-1", {"name": "flights"}, {"type": "Ingest"}, {"credentials": ["AWS_SECRET_ACCESS_KEY"]})
WANTED = Launch(RUN, WORK, "s3")
SECRET = {"AWS_SECRET_ACCESS_KEY": "very-secret-7f3a"}


@pytest.fixture
def owner(server: ApiServer, namespace: str) -> Identity:
    done = server.kubectl("create", "-n", namespace, "-o", "json", "-f", "-", given=json.dumps(manifest(**spec())))
    assert done.returncode == 0, done.stderr
    return identity_of(json.loads(done.stdout))


@pytest.fixture
def launcher(server: ApiServer) -> JobLauncher:
    return JobLauncher(Rest(server.client()), SETTINGS)


def pod_ends(server: ApiServer, owner: Identity, code: int, message: str = "", reason: str = "Completed") -> None:
    (pod,) = eventually(lambda: pods(server, owner.key.namespace), "the Job makes no pod")
    end(server, pod, code, message, reason)


def ended(launcher: JobLauncher, owner: Identity) -> RunStatus:
    def look() -> RunStatus | None:
        (found,) = launcher.runs(owner)
        return found if found.phase != "Running" else None

    return eventually(look, "the attempt does not end")


def test_an_attempt_is_one_job_however_often_it_is_launched(
    server: ApiServer, launcher: JobLauncher, owner: Identity
) -> None:
    assert launcher.launch(owner, WANTED, SECRET)
    assert not launcher.launch(owner, WANTED, SECRET)
    (job,) = server.get("jobs", "-n", owner.key.namespace)["items"]
    assert job["metadata"]["ownerReferences"][0]["uid"] == owner.uid
    assert launcher.runs(owner) == (RUN,)


def test_the_pod_is_admitted_as_restricted_and_holds_the_spec_and_no_secret(
    server: ApiServer, launcher: JobLauncher, owner: Identity
) -> None:
    launcher.launch(owner, WANTED, SECRET)
    (pod,) = eventually(lambda: pods(server, owner.key.namespace), "the Job makes no pod")
    assert JobSpec.from_json(pod["metadata"]["annotations"][JOB_SPEC]) == WORK
    (variable,) = [each for each in pod["spec"]["containers"][0]["env"] if "valueFrom" in each]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "s3", "key": "AWS_SECRET_ACCESS_KEY", "optional": True}
    everything = json.dumps([server.get("jobs,pods,events", "-n", owner.key.namespace)])
    assert SECRET["AWS_SECRET_ACCESS_KEY"] not in everything
    assert not any("token" in volume["name"] for volume in pod["spec"]["volumes"])


def test_what_the_job_says_is_what_is_told(server: ApiServer, launcher: JobLauncher, owner: Identity) -> None:
    launcher.launch(owner, WANTED, SECRET)
    result = JobResult(
        "flights-1", "Succeeded", message="done", instants=("20260101000000000",), figures={"seconds": 1.5}
    )
    pod_ends(server, owner, 0, result.to_json())
    found = ended(launcher, owner)
    assert (found.phase, found.instants, found.message) == ("Succeeded", ("20260101000000000",), "done")
    assert (found.figures, found.batch, found.attempt) == ({"seconds": 1.5}, "b", 1)
    assert found.finished is not None


def test_a_failure_keeps_its_name_and_message(server: ApiServer, launcher: JobLauncher, owner: Identity) -> None:
    launcher.launch(owner, WANTED, SECRET)
    result = JobResult("flights-1", "Failed", error_class="InvalidData", message="column 'id' is null")
    pod_ends(server, owner, 64, result.to_json(), "Error")
    found = ended(launcher, owner)
    assert (found.phase, found.reason, found.message) == ("Failed", "InvalidData", "column 'id' is null")


def test_a_pod_without_a_result_is_lost_and_its_end_is_told(
    server: ApiServer, launcher: JobLauncher, owner: Identity
) -> None:
    launcher.launch(owner, WANTED, SECRET)
    pod_ends(server, owner, 137, "", "OOMKilled")
    found = ended(launcher, owner)
    assert found.phase == "Lost"
    assert "137, OOMKilled" in str(found.message)
    assert len(pods(server, owner.key.namespace)) == 1, "a second driver was started"


def test_a_cancelled_attempt_ends_and_stays_known(server: ApiServer, launcher: JobLauncher, owner: Identity) -> None:
    launcher.launch(owner, WANTED, SECRET)
    eventually(lambda: pods(server, owner.key.namespace), "the Job makes no pod")
    launcher.cancel(owner, "flights-1")
    launcher.cancel(owner, "never-started")
    assert ended(launcher, owner).phase == "Lost"
    eventually(lambda: not pods(server, owner.key.namespace), "the pod lives on")
    assert not launcher.launch(owner, WANTED, SECRET), "a name is never given twice"


def test_attempts_of_others_are_not_told_and_never_adopted(
    server: ApiServer, launcher: JobLauncher, owner: Identity
) -> None:
    stranger = Identity(owner.key, "another-uid", 1)
    launcher.launch(owner, WANTED, SECRET)
    assert launcher.runs(stranger) == ()
    with pytest.raises(InvalidRequestError, match="flights-1"):
        launcher.launch(stranger, WANTED, SECRET)


def test_attempts_go_with_their_resource(server: ApiServer, launcher: JobLauncher, owner: Identity) -> None:
    launcher.launch(owner, WANTED, SECRET)
    assert server.kubectl("delete", "ht", owner.key.name, "-n", owner.key.namespace).returncode == 0
    eventually(lambda: not server.get("jobs", "-n", owner.key.namespace)["items"], "the Job outlives its table")
