"""Spark's driver and executors as pods of their own, by every launcher; the same rows and the same
status.

Who submits them: `spark_operators` in conftest.
"""

from __future__ import annotations

import pytest

from e2e.support.kube import Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, Resource, executors
from e2e.support.tables import transformed
from e2e.support.times import Stopwatch

pytestmark = pytest.mark.usefixtures("spark_operators")
ROWS = 27_004
"""Flights of January 2013."""
ONE_MONTH = "s3://landing/one-month/"
LAUNCHERS = ("Job", "SparkOperator", "ApacheSparkOperator")


@pytest.fixture(scope="module", autouse=True)
def one_month(lake: Lake) -> None:
    for key in lake.keys("landing", "flights/flights-2013-01"):
        source = {"Bucket": "landing", "Key": key}
        lake.client().copy_object(Bucket="landing", Key="one-month/1.parquet", CopySource=source)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_driver_and_executor_write_the_table(kube: Kube, lake: Lake, launcher: str) -> None:
    name = f"by-{launcher.lower()}"
    manifest = transformed(name, launcher, ONE_MONTH)
    watch = Stopwatch(f"first commit with an executor visible, {launcher}")
    kube.apply(manifest)
    table = Resource(kube, "huditable", name)
    seen: set[str] = set()

    def visible() -> bool:
        seen.update(executors(kube))
        return any(key.endswith(".commit") and "metadata" not in key for key in lake.keys("lake", f"{name}/.hoodie/"))

    eventually(visible, f"{name} has a commit", 900)
    watch.seen()
    assert seen, "no executor ran"
    driver = eventually(
        lambda: [p for p in table.pods() if p["status"]["phase"] == "Succeeded"], "the driver has ended"
    )[0]
    watch.note(kube, driver)
    table.until("Fresh")
    assert table.runs()[0]["phase"] == "Succeeded"
    assert lake.rows(f"s3://lake/{name}").num_rows == ROWS
    eventually(lambda: not executors(kube), "no executor is left")


def test_an_executor_killed_mid_write_is_replaced(kube: Kube, lake: Lake) -> None:
    name = "executor-killed"
    # Many small files, so that the write takes long enough to be met.
    manifest = transformed(name, "Job", ONE_MONTH)
    manifest["spec"]["index"] = {"type": "Bucket", "buckets": 64}
    kube.apply(manifest)
    client, first = lake.client(), {"Bucket": "lake", "Prefix": f"{name}/2013", "MaxKeys": 1}
    eventually(lambda: client.list_objects_v2(**first)["KeyCount"], "a data file is there", 900)
    killed = executors(kube)
    kube.need("delete", "pod", *killed, "-n", NAMESPACE, "--grace-period=0", "--force", "--wait=false")
    eventually(lambda: set(executors(kube)) - set(killed), "another executor", 900)
    table = Resource(kube, "huditable", name)
    table.until("Fresh")
    assert lake.rows(f"s3://lake/{name}").num_rows == ROWS
    assert [run["phase"] for run in table.runs()] == ["Succeeded"], "Spark replaces executors; the driver goes on"
    eventually(lambda: not executors(kube), "no executor is left")
