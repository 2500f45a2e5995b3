"""Which launcher an attempt gets: what its table asks for and what the cluster serves, here and
now, and what is told if there is none.

Omitted: what each launcher then does, see test_launchers.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_operator.api.fields.spark import Launcher as Choice
from hudi_operator.api.names import API_VERSION
from hudi_operator.api.resources import Key
from hudi_operator.errors import InvalidSpecError, LauncherNotServedError
from hudi_operator.kube.rest import Rest
from hudi_operator.kube.served import Served
from hudi_operator.launchers.cluster import KINDS, ClusterLauncher
from hudi_operator.launchers.job import JOB
from hudi_operator.manifests.spark_applications import APACHE, KUBEFLOW
from hudi_operator.plan.effects import Launch
from hudi_operator.runtime.api_cluster import ApiCluster
from hudi_operator.runtime.reconcile import Reconciler
from hudi_table.table.store.clock import SystemClock
from tests.support import spark_operators
from tests.support.api_server import ApiServer
from tests.support.killed import Killed, KilledRest
from tests.support.manifests import ingest, manifest, spec
from tests.support.ways import SECRET, SETTINGS, ClusterWay, wanted

TRANSFORM = {"sql": "select * from source where hash(1) is not null"}


@pytest.fixture
def bare(server: ApiServer) -> Iterator[ApiServer]:
    """The shared server without any SparkApplications; others find both again."""
    there = [version for version in (KUBEFLOW, APACHE) if spark_operators.is_served(server, version)]
    spark_operators.serve(server, *there, served=False)
    yield server
    spark_operators.serve(server, *there, served=True)


@pytest.fixture
def way(bare: ApiServer, namespace: str) -> ClusterWay:
    return ClusterWay.of(bare, namespace, JOB, "Spark", 2)


def launcher(server: ApiServer, *allowed: str, user: str = "", fresh_seconds: float = 0.0) -> ClusterLauncher:
    client = server.client()
    if user:
        client.set_default_header("Impersonate-User", user)
    rest = Rest(client)
    served = Served(rest, SystemClock(), fresh_seconds)
    return ClusterLauncher(rest, SETTINGS, served, allowed) if allowed else ClusterLauncher(rest, SETTINGS, served)


def asking(launch: Launch, choice: Choice) -> Launch:
    return replace(launch, spark=replace(launch.spark, launcher=choice))


def served_open(server: ApiServer, *versions: str) -> None:
    spark_operators.install(server, *versions, real=False)


def carriers(server: ApiServer, namespace: str) -> dict[str, str]:
    """Attempt → the kind that carries it."""
    found: dict[str, str] = {}
    for kind in KINDS:
        status, listed = server.call("GET", kind.path(namespace))
        assert status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND), listed
        if status == HTTPStatus.OK:
            found |= {item["metadata"]["name"]: kind.name for item in listed["items"]}
    return found


def test_auto_takes_what_the_cluster_has_at_that_moment(way: ClusterWay) -> None:
    found = launcher(way.server)
    found.launch(way.owner, wanted("sleep", 1), SECRET)
    served_open(way.server, APACHE)
    found.launch(way.owner, wanted("sleep", 2), SECRET)
    served_open(way.server, KUBEFLOW)
    found.launch(way.owner, wanted("sleep", 3), SECRET)
    assert carriers(way.server, way.namespace) == {
        "flights-1": "Job",
        "flights-2": "ApacheSparkOperator",
        "flights-3": "SparkOperator",
    }
    assert [run.name for run in found.runs(way.owner)] == ["flights-3", "flights-2", "flights-1"], "runs of all kinds"


@pytest.mark.parametrize("choice", [Choice.SPARK_OPERATOR, Choice.APACHE_SPARK_OPERATOR, Choice.JOB])
def test_a_table_gets_the_launcher_that_it_asks_for(way: ClusterWay, choice: Choice) -> None:
    served_open(way.server, KUBEFLOW, APACHE)
    launcher(way.server).launch(way.owner, asking(wanted("sleep"), choice), SECRET)
    assert carriers(way.server, way.namespace) == {"flights-1": choice.value}


@pytest.mark.parametrize(("engine", "executors"), [("Local", 2), ("Spark", 0)])
def test_what_needs_no_executors_is_a_job_whatever_is_asked_for(way: ClusterWay, engine: str, executors: int) -> None:
    launch = asking(wanted("sleep", engine=engine, executors=executors), Choice.SPARK_OPERATOR)
    launcher(way.server).launch(way.owner, launch, SECRET)
    assert carriers(way.server, way.namespace) == {"flights-1": "Job"}


def test_an_attempt_that_began_one_way_is_not_begun_another_way(way: ClusterWay) -> None:
    """The choice may change between the launch and the status that tells of it."""
    assert launcher(way.server).launch(way.owner, wanted("sleep"), SECRET)
    served_open(way.server, KUBEFLOW)
    assert not launcher(way.server).launch(way.owner, wanted("sleep"), SECRET)
    assert carriers(way.server, way.namespace) == {"flights-1": "Job"}


@pytest.mark.parametrize("choice", [Choice.SPARK_OPERATOR, Choice.APACHE_SPARK_OPERATOR, Choice.JOB])
def test_a_launch_that_is_killed_anywhere_is_adopted_by_the_next(
    way: ClusterWay, choice: Choice, figure: Callable[[int, str], None]
) -> None:
    served_open(way.server, KUBEFLOW, APACHE)
    points = 0
    for after in (False, True):
        for at in itertools.count(1):
            rest = KilledRest(way.server, at, after=after)
            launch = asking(wanted("sleep", 2 * at + after), choice)
            with contextlib.suppress(Killed):
                ClusterLauncher(rest, SETTINGS, Served(rest, SystemClock())).launch(way.owner, launch, SECRET)
            launcher(way.server).launch(way.owner, launch, SECRET)
            assert carriers(way.server, way.namespace)[launch.run.name] == choice.value
            if rest.calls < at:
                break
            points += 1
    found = launcher(way.server).runs(way.owner)
    assert len(found) == len({run.name for run in found}) == points + 2
    figure(points, "kills between calls of the API")


def test_an_attempt_is_cancelled_whatever_carries_it(way: ClusterWay) -> None:
    served_open(way.server, KUBEFLOW)
    found = launcher(way.server)
    found.launch(way.owner, wanted("sleep"), SECRET)
    found.cancel(way.owner, "flights-1")
    assert not [run for run in found.runs(way.owner) if run.phase == "Running"]


@pytest.mark.parametrize(
    ("choice", "allowed", "told"),
    [
        (Choice.SPARK_OPERATOR, (), "serves no sparkapplications of sparkoperator.k8s.io/v1beta2"),
        (Choice.APACHE_SPARK_OPERATOR, ("SparkOperator",), "was started without; it has Auto, SparkOperator, Job"),
        (Choice.LOCAL, (), "in a cluster use Auto or Job"),
    ],
)
def test_a_launcher_that_is_not_there_is_refused_by_name(
    way: ClusterWay, choice: Choice, allowed: tuple[str, ...], told: str
) -> None:
    with pytest.raises(LauncherNotServedError, match=told):
        launcher(way.server, *allowed).launch(way.owner, asking(wanted("sleep"), choice), SECRET)


def test_properties_that_would_load_code_or_change_pods_are_refused_by_name(way: ClusterWay) -> None:
    launch = wanted("sleep")
    conf = {
        "spark.sql.shuffle.partitions": "8",
        "spark.jars": "s3://x/y.jar",
        "spark.kubernetes.namespace": "kube-system",
    }
    with pytest.raises(InvalidSpecError, match=r"conf\[spark.jars\].*conf\[spark.kubernetes.namespace\]"):
        launcher(way.server).launch(way.owner, replace(launch, spark=replace(launch.spark, conf=conf)), SECRET)


def test_what_is_served_is_asked_once_in_a_while(bare: ApiServer) -> None:
    asked: list[str] = []

    class Counting(Rest):
        def get(self, path: str, **query: str) -> dict[str, Any]:
            asked.append(path)
            return super().get(path, **query)

    served = Served(Counting(bare.client()), SystemClock())
    assert [served.serves(KUBEFLOW, "sparkapplications") for _ in range(3)] == [False] * 3
    assert [served.serves("batch/v1", name) for name in ("jobs", "nothings")] == [True, False]
    assert asked == [f"/apis/{KUBEFLOW}", "/apis/batch/v1"]


def test_only_what_may_be_watched_is_watched(bare: ApiServer, namespace: str) -> None:
    """kopf ends with the first watch that is refused."""
    served_open(bare, KUBEFLOW)
    assert [kind.name for kind in launcher(bare).watchable([namespace])] == ["SparkOperator", "Job"]
    assert [kind.name for kind in launcher(bare).watchable([])] == ["SparkOperator", "Job"]
    assert [kind.name for kind in launcher(bare, user="nobody").watchable([namespace])] == ["Job"]


@pytest.fixture
def looked_at(bare: ApiServer, namespace: str, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Applies a table with a file that waits for Spark, looks at it once, and returns its
    conditions by type."""
    landing = tmp_path / "landing"
    landing.mkdir()
    pq.write_table(pa.table({"id": ["a"], "ts": pa.array([1], pa.int64())}), landing / "1.parquet")

    def look(choice: str, with_launcher: ClusterLauncher) -> dict[str, Any]:
        source = {"type": "Files", "path": f"file://{landing}/", "format": "parquet"}
        document = spec(
            location=f"file://{tmp_path}/lake",
            ingest=[ingest(source=source, transform=[TRANSFORM])],
            spark={"launcher": choice, "executor": {"instances": 2}},
        )
        table = {**manifest("flights", **document), "metadata": {"name": "flights", "namespace": namespace}}
        done = bare.kubectl("apply", "--server-side", "-f", "-", given=json.dumps(table))
        assert done.returncode == 0, done.stderr
        rest = Rest(bare.client())
        clock = SystemClock()
        cluster = ApiCluster(rest, clock, "test")
        cluster.load("HudiTable", namespace)
        again = Reconciler(cluster, with_launcher, clock).reconcile(Key("HudiTable", namespace, "flights"))
        assert again is None or timedelta(seconds=again.seconds) <= timedelta(minutes=1), "it is looked at again soon"
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/huditables/flights"
        status = bare.done("GET", path)["status"]
        return {each["type"]: each for each in status["conditions"]} | {"runs": status.get("runs", [])}

    return look


def test_a_table_says_that_its_launcher_is_missing_and_goes_on_once_it_is_there(
    bare: ApiServer, looked_at: Callable[..., dict[str, Any]], namespace: str
) -> None:
    found = looked_at("SparkOperator", launcher(bare))
    assert (found["Stalled"]["reason"], found["Ready"]["status"]) == ("LauncherNotServed", "False")
    assert "install that Spark operator, or use Auto or Job" in found["Stalled"]["message"]
    assert found["runs"] == []
    served_open(bare, KUBEFLOW)
    found = looked_at("SparkOperator", launcher(bare))
    assert "Stalled" not in found
    assert [run["phase"] for run in found["runs"]] == ["Running"]
    assert set(carriers(bare, namespace).values()) == {"SparkOperator"}


def test_rights_that_are_missing_are_told_and_nothing_is_taken_for_lost(
    bare: ApiServer, looked_at: Callable[..., dict[str, Any]], namespace: str
) -> None:
    served_open(bare, KUBEFLOW)
    before = looked_at("SparkOperator", launcher(bare))
    assert [run["phase"] for run in before["runs"]] == ["Running"]
    for _ in range(2):
        found = looked_at("SparkOperator", launcher(bare, user="nobody"))
        assert found["Ready"]["reason"] == "AccessDenied"
        assert 'User "nobody" cannot list resource "sparkapplications"' in found["Ready"]["message"]
        assert found["runs"] == before["runs"]
    assert len(carriers(bare, namespace)) == 1
