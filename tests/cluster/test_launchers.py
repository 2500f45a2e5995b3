"""What every launcher keeps to, whatever runs the attempt: one suite over Jobs, both Spark
operators, and local processes.

The API server, its controllers and the definitions are real, and the namespaces enforce
`restricted`; the test plays the kubelet and the Spark operators. Omitted: images that run (no node
is there), executors that run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.resources import Identity, Key
from hudi_operator.api.status import RunStatus
from hudi_operator.kube.rest import Rest
from hudi_operator.launchers.apache_spark_operator import APACHE_SPARK_OPERATOR
from hudi_operator.launchers.base import Launcher
from hudi_operator.launchers.job import JOB
from hudi_operator.launchers.objects import ObjectLauncher
from hudi_operator.launchers.spark_operator import SPARK_OPERATOR
from hudi_operator.manifests.batch import EXECUTOR_TEMPLATE
from hudi_operator.manifests.pods import JOB_SPEC, Attempt
from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.jobspec import JobSpec
from tests.support import kubelet, spark_operators
from tests.support.api_server import ApiServer
from tests.support.kubelet import eventually
from tests.support.volumes import PATHS
from tests.support.ways import SECRET, SETTINGS, ClusterWay, LocalWay, Way

WAYS: dict[str, Any] = {
    "a Job of one pod": (JOB, "Local", 2),
    "a Job without executors": (JOB, "Spark", 0),
    "a Job with executors": (JOB, "Spark", 2),
    "SparkOperator": (SPARK_OPERATOR, "Spark", 2),
    "ApacheSparkOperator": (APACHE_SPARK_OPERATOR, "Spark", 2),
}
OPERATED = ("SparkOperator", "ApacheSparkOperator")
WITH_EXECUTORS = ("a Job with executors", *OPERATED)
FAILED = {"SparkOperator": "FAILED", "ApacheSparkOperator": "Failed"}


@pytest.fixture(scope="module")
def applications(server: ApiServer) -> ApiServer:
    """The shared server, which serves both kinds of SparkApplications."""
    spark_operators.install(server, KUBEFLOW, APACHE)
    return server


def cluster_way(name: str, request: pytest.FixtureRequest) -> ClusterWay:
    server: ApiServer = request.getfixturevalue("applications")
    kind, engine, executors = WAYS[name]
    return ClusterWay.of(server, request.getfixturevalue("namespace"), kind, engine, executors)


@pytest.fixture(params=[*WAYS, "Local"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    if request.param != "Local":
        yield cluster_way(request.param, request)
        return
    owner, stranger = (Identity(Key("HudiTable", "lake", name), name, 1) for name in ("flights", "stranger"))
    found = LocalWay(tmp_path / "attempts", owner, stranger)
    yield found
    found.stop()


@pytest.fixture(params=list(WAYS))
def cluster(request: pytest.FixtureRequest) -> ClusterWay:
    return cluster_way(request.param, request)


@pytest.fixture(params=WITH_EXECUTORS)
def driving(request: pytest.FixtureRequest) -> ClusterWay:
    return cluster_way(request.param, request)


@pytest.fixture(params=OPERATED)
def operated(request: pytest.FixtureRequest) -> ClusterWay:
    return cluster_way(request.param, request)


def ended(way: Way, launcher: Launcher | None = None) -> RunStatus:
    """The one run once it has ended, as this launcher tells it, else one that has just started."""

    def look() -> RunStatus | None:
        (found,) = (launcher or way.launcher()).runs(way.owner)
        return found if found.phase != "Running" else None

    return eventually(look, "the attempt does not end")


def test_an_attempt_is_launched_once_and_adopted_after_that(way: Way) -> None:
    first = way.wanted("sleep")
    assert way.launcher().launch(way.owner, first, SECRET)
    assert not way.launcher().launch(way.owner, first, SECRET)
    (run,) = way.launcher().runs(way.owner)
    assert (run.name, run.phase, run.work, run.batch, run.attempt) == ("flights-1", "Running", "Ingest/feed", "b", 1)


def test_what_the_job_says_is_what_is_told(way: Way) -> None:
    launch = way.wanted("succeed")
    way.launcher().launch(way.owner, launch, SECRET)
    way.finish(launch)
    run = ended(way)
    assert (run.phase, run.instants, run.reason) == ("Succeeded", ("20260101000000000",), None)
    assert (run.batch, run.attempt, run.generation) == ("b", 1, 1)
    assert run.finished is not None


def test_a_failure_keeps_its_name_and_message(way: Way) -> None:
    launch = way.wanted("fail")
    way.launcher().launch(way.owner, launch, SECRET)
    way.finish(launch)
    run = ended(way)
    assert (run.phase, run.reason, run.message) == ("Failed", "InvalidData", "column 'id' is null")


def test_a_job_without_a_result_is_lost_and_its_exit_code_says_why(way: Way) -> None:
    launch, launcher = way.wanted("die"), way.launcher()
    launcher.launch(way.owner, launch, SECRET)
    way.finish(launch)
    run = ended(way, launcher)  # the end of a process is known to its parent alone
    assert (run.phase, run.reason) == ("Lost", "CommitStateUnknown")
    assert "code 76" in str(run.message)
    assert "something broke" in str(run.message)


def test_runs_are_told_newest_first_and_those_of_others_not_at_all(way: Way) -> None:
    launcher = way.launcher()
    for number in (1, 2):
        launcher.launch(way.owner, way.wanted("sleep", number), SECRET)
    launcher.launch(way.stranger, way.wanted("sleep", 3), SECRET)
    assert [run.name for run in way.launcher().runs(way.owner)] == ["flights-2", "flights-1"]
    assert [run.name for run in way.launcher().runs(way.stranger)] == ["flights-3"]


def test_one_attempt_is_cancelled_and_no_other(way: Way) -> None:
    launcher = way.launcher()
    for number in (1, 2):
        launcher.launch(way.owner, way.wanted("sleep", number), SECRET)
    if isinstance(way, ClusterWay):
        way.driver(way.wanted("sleep"))
    for _ in range(2):
        way.launcher().cancel(way.owner, "flights-1")
    way.launcher().cancel(way.owner, "never-started")

    def running() -> list[str]:
        return [run.name for run in way.launcher().runs(way.owner) if run.phase == "Running"]

    eventually(lambda: running() == ["flights-2"], "the attempt runs on")
    if isinstance(way, ClusterWay):
        left = [pod["metadata"]["name"] for pod in way.pods()]
        assert not any("flights-1-" in name for name in left), "its driver lives on"


def test_the_object_of_another_is_neither_adopted_nor_ended(cluster: ClusterWay) -> None:
    launch = cluster.wanted("sleep")
    cluster.launcher().launch(cluster.owner, launch, SECRET)
    with pytest.raises(InvalidRequestError, match="flights-1 that is not ours"):
        cluster.launcher().launch(cluster.stranger, launch, SECRET)
    cluster.launcher().cancel(cluster.stranger, "flights-1")
    assert [run.phase for run in cluster.launcher().runs(cluster.owner)] == ["Running"]


def test_an_attempt_goes_with_its_resource(cluster: ClusterWay) -> None:
    launch = cluster.wanted("sleep")
    cluster.launcher().launch(cluster.owner, launch, SECRET)
    cluster.driver(launch)
    done = cluster.server.kubectl("delete", "ht", "flights", "-n", cluster.namespace)
    assert done.returncode == 0, done.stderr
    eventually(lambda: not cluster.objects() and not cluster.pods(), "the attempt outlives its resource")


def test_the_driver_holds_its_spec_and_references_to_secrets_alone(cluster: ClusterWay) -> None:
    """The namespace admits only pods that are `restricted`, so that the pod is there says that it
    is."""
    launch = cluster.wanted("sleep")
    cluster.launcher().launch(cluster.owner, launch, SECRET)
    pod = cluster.driver(launch)
    given = JobSpec.from_json(pod["metadata"]["annotations"][JOB_SPEC])
    assert (given.work, given.attempt, given.engine) == (launch.spec.work, "flights-1", launch.spec.engine)
    (variable,) = [e for e in pod["spec"]["containers"][0]["env"] if "secretKeyRef" in e.get("valueFrom", {})]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "s3", "key": "AWS_SECRET_ACCESS_KEY", "optional": True}
    everything = cluster.server.get("pods,jobs,configmaps,events", "-n", cluster.namespace)
    assert SECRET["AWS_SECRET_ACCESS_KEY"] not in json.dumps([everything, cluster.objects()])


def test_only_a_driver_of_executors_holds_a_token(cluster: ClusterWay) -> None:
    launch = cluster.wanted("sleep")
    cluster.launcher().launch(cluster.owner, launch, SECRET)
    pod = cluster.driver(launch)["spec"]
    starts = launch.spec.engine == "Spark" and launch.spark.executor.instances > 0
    assert pod["serviceAccountName"] == (SETTINGS.driver_account if starts else SETTINGS.service_account)
    assert any("kube-api-access" in volume["name"] for volume in pod["volumes"]) == starts


def test_the_real_schema_takes_every_field(cluster: ClusterWay) -> None:
    launch = cluster.wanted("sleep")
    attempt = Attempt(cluster.owner, launch.run, launch.spec, "s3", launch.spark)
    document = json.dumps(cluster.kind.manifest(attempt, SETTINGS))
    done = cluster.server.kubectl(
        "create", "--dry-run=server", "--validate=strict", "-n", cluster.namespace, "-f", "-", given=document
    )
    assert done.returncode == 0, done.stderr


def test_executors_are_restricted_and_hold_neither_token_nor_secret(driving: ClusterWay) -> None:
    launch = driving.wanted("sleep")
    driving.launcher().launch(driving.owner, launch, SECRET)
    (found,) = driving.objects()
    if driving.is_operated:
        template = spark_operators.templates(found)[1]
    else:
        template = json.loads(found["spec"]["template"]["metadata"]["annotations"][EXECUTOR_TEMPLATE])
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        **template,
        "metadata": {**template["metadata"], "name": "flights-exec-1"},
    }
    done = driving.server.kubectl(
        "create", "--dry-run=server", "-o", "json", "-n", driving.namespace, "-f", "-", given=json.dumps(pod)
    )
    assert done.returncode == 0, done.stderr
    admitted = json.loads(done.stdout)["spec"]
    assert admitted["serviceAccountName"] == SETTINGS.service_account
    scratch, *claims = admitted["volumes"]
    assert scratch["name"] == "scratch"
    assert [volume.keys() - {"name"} for volume in claims] == [{"persistentVolumeClaim"}] * len(PATHS)
    assert "secretKeyRef" not in json.dumps(admitted)


def test_what_keeps_a_driver_from_starting_is_told(cluster: ClusterWay) -> None:
    launch = cluster.wanted("sleep")
    cluster.launcher().launch(cluster.owner, launch, SECRET)
    kubelet.waits(cluster.server, cluster.driver(launch), "ImagePullBackOff", "no such image")
    (run,) = cluster.launcher().runs(cluster.owner)
    assert (run.phase, run.message) == ("Running", "ImagePullBackOff: no such image")


def test_a_job_that_gets_no_pod_says_so(applications: ApiServer, namespace: str) -> None:
    way = ClusterWay.of(applications, namespace, JOB, "Spark", 2)
    settings = replace(SETTINGS, driver_account="not-there")
    launcher = ObjectLauncher(Rest(applications.client()), settings, JOB)
    launcher.launch(way.owner, way.wanted("sleep"), SECRET)
    eventually(lambda: "its account may be missing" in str(launcher.runs(way.owner)[0].message), "it is not told")


def test_a_driver_that_lives_is_running_whatever_its_operator_says(operated: ClusterWay) -> None:
    """An operator that submitted twice calls the second time a failure, one that waited too long
    leaves a pod that starts after all."""
    launch = operated.wanted("succeed")
    operated.launcher().launch(operated.owner, launch, SECRET)
    pod = operated.driver(launch)
    state = FAILED[operated.kind.name]
    spark_operators.tell(operated.server, operated.kind.version, operated.namespace, "flights-1", state, "gave it up")
    assert [run.phase for run in operated.launcher().runs(operated.owner)] == ["Running"]
    kubelet.end(operated.server, pod, 0, kubelet.result("flights-1", "NothingToDo"))
    assert [run.phase for run in operated.launcher().runs(operated.owner)] == ["NothingToDo"]


def test_an_end_that_the_operator_has_not_seen_is_told(operated: ClusterWay) -> None:
    """It may be gone, or stand still."""
    launch = operated.wanted("die")
    operated.launcher().launch(operated.owner, launch, SECRET)
    kubelet.end(operated.server, operated.driver(launch), 137, "", "OOMKilled")
    (run,) = operated.launcher().runs(operated.owner)
    assert run.phase == "Lost"
    assert "137, OOMKilled" in str(run.message)


def test_an_application_that_never_got_a_driver_is_lost_and_says_why(operated: ClusterWay) -> None:
    operated.launcher().launch(operated.owner, operated.wanted("sleep"), SECRET)
    (run,) = operated.launcher().runs(operated.owner)
    assert (run.phase, run.message) == ("Running", "the Spark operator has not taken up its SparkApplication yet")
    state = "FAILED" if operated.kind is SPARK_OPERATOR else "SchedulingFailure"
    spark_operators.tell(
        operated.server, operated.kind.version, operated.namespace, "flights-1", state, "quota exceeded"
    )
    (run,) = operated.launcher().runs(operated.owner)
    assert (run.phase, run.finished) == ("Lost", "2026-01-01T00:04:00Z")
    assert run.message == f"the SparkApplication is {state}: quota exceeded"


def test_an_evicted_driver_is_lost_and_says_why(cluster: ClusterWay) -> None:
    launch = cluster.wanted("sleep")
    cluster.launcher().launch(cluster.owner, launch, SECRET)
    kubelet.evict(cluster.server, cluster.driver(launch), "the node was low on memory")
    (run,) = cluster.launcher().runs(cluster.owner)
    assert run.phase == "Lost"
    assert "Evicted: the node was low on memory" in str(run.message)
