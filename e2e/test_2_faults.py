"""What fails meanwhile: a driver, the operator, the API server. Each table still ends with every
row once."""

from __future__ import annotations

import functools
import time

import pytest

from e2e.support.cluster import restart_api
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import INSTALLED, NAMESPACE, OWNER, Resource, operator_pods
from e2e.support.tables import flights
from examples.flights import generate

pytestmark = pytest.mark.usefixtures("installed")


def is_whole(kube: Kube, lake: Lake, name: str, rows: int) -> Resource:
    """The table holds each row once and its resource says so; no attempt has two Jobs, none is left
    at work."""
    table = Resource(kube, "huditable", name)
    # Not by the status: it counts no rows of a table with log files.
    eventually(lambda: number_of_rows(lake, name) == rows, f"{name} has {rows} rows")
    table.until("Fresh")
    table.until("Ready")
    found = lake.rows(f"s3://lake/{name}")
    assert (
        found.select(["carrier", "flight", "time_hour"])
        .group_by(["carrier", "flight", "time_hour"])
        .aggregate([])
        .num_rows
        == rows
    )
    names = [job["metadata"]["name"] for job in jobs(kube, table)]
    assert len(names) == len(set(names))
    # The rows are there before the pod that wrote them has ended, and long before an API server that has just started is told of it.
    at_work = ("Pending", "Running")
    eventually(lambda: not [pod for pod in table.pods() if pod["status"]["phase"] in at_work], "no pod is at work")
    return table


def number_of_rows(lake: Lake, name: str) -> int | None:
    """None of a table that is not there yet."""
    if not lake.has_table(name):
        return None
    return int(lake.rows(f"s3://lake/{name}").num_rows)


def jobs(kube: Kube, table: Resource) -> list[Document]:
    found = table.now()
    assert found is not None
    return kube.items("jobs", "-n", NAMESPACE, "-l", f"{OWNER}={found['metadata']['uid']}")


def others(kube: Kube, names: list[str]) -> set[str]:
    """Operators that are none of these."""
    return {pod["metadata"]["name"] for pod in operator_pods(kube)} - set(names)


def test_a_driver_killed_mid_write_is_followed_by_another(kube: Kube, lake: Lake) -> None:
    rows = lake.land("first", "killed/").rows
    # Many small files, so that the write takes long enough to be met.
    kube.apply(flights("killed", index={"type": "Bucket", "buckets": 64}))
    table, client = Resource(kube, "huditable", "killed"), lake.client()
    name = eventually(table.pods, "its driver is there")[0]["metadata"]["name"]
    first = {"Bucket": "lake", "Prefix": "killed/2013", "MaxKeys": 1}
    eventually(lambda: client.list_objects_v2(**first)["KeyCount"], "a data file is there")
    kube.need("delete", "pod", name, "-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false")
    is_whole(kube, lake, "killed", rows)
    runs = table.runs()
    assert [run["attempt"] for run in runs] == [2, 1], "the write was over before its driver was killed"
    assert (runs[0]["phase"], runs[1]["reason"]) == ("Succeeded", "JobLost")


def test_an_operator_killed_again_and_again_starts_nothing_twice(kube: Kube, lake: Lake) -> None:
    rows = lake.land("first", "orphaned/").rows
    kube.apply(flights("orphaned"))
    table = Resource(kube, "huditable", "orphaned")
    for _ in range(3):
        names = [pod["metadata"]["name"] for pod in operator_pods(kube)]
        kube.run("delete", "pod", *names, "-n", INSTALLED, "--grace-period=0", "--force")
        eventually(functools.partial(others, kube, names), "another operator")
        time.sleep(2)
    is_whole(kube, lake, "orphaned", rows)
    assert len(jobs(kube, table)) == 1
    assert [run["phase"] for run in table.runs()] == ["Succeeded"]


def test_a_restarted_api_server_is_met_again(kube: Kube, lake: Lake) -> None:
    rows = lake.land("first", "interrupted/").rows
    kube.apply(flights("interrupted"))
    table = Resource(kube, "huditable", "interrupted")
    eventually(lambda: jobs(kube, table), "a Job is there")
    restart_api()
    eventually(lambda: kube.run("get", "--raw", "/readyz").returncode == 0, "the API server answers")
    eventually(lambda: lake.keys("landing"), "the S3 server can be reached again")
    is_whole(kube, lake, "interrupted", rows)
    assert len(jobs(kube, table)) == 1
    landed = generate.flights().num_rows - lake.land("later", "interrupted/").cancelled
    table.look()
    is_whole(kube, lake, "interrupted", landed)
