"""Spark's driver and executors as pods of their own, by every launcher; the same rows and the same status.

The public Spark operators are played by `e2e.support.spark_controller`, which submits what they would submit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import MANIFESTS, NAMESPACE, Resource
from e2e.support.spark_controller import controller
from e2e.support.times import Stopwatch

pytestmark = pytest.mark.usefixtures("spark_operators")
LAUNCHERS = ("Job", "SparkOperator", "ApacheSparkOperator")


@pytest.fixture(scope="module")
def spark_operators(kube: Kube, installed: None) -> Iterator[None]:
    with controller(kube):
        yield


def transformed(launcher: str) -> Document:
    """The transformed flights, from one month, on one executor."""
    found: Document = yaml.safe_load((MANIFESTS / "flights-transformed.yaml").read_text())
    name = f"by-{launcher.lower()}"
    found["metadata"]["name"] = name
    spec: dict[str, Any] = found["spec"]
    spec["location"] = f"s3://lake/{name}"
    spec["ingest"][0]["source"]["path"] = "s3://landing/one-month/"
    small = {"cores": 1, "memory": "1536Mi"}
    spec["spark"] = {"launcher": launcher, "driver": small, "executor": {**small, "instances": 1}}
    return found


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_driver_and_executor_write_the_table(kube: Kube, lake: Lake, launcher: str) -> None:
    client = lake.client()
    for key in lake.keys("landing", "flights/flights-2013-01"):
        client.copy_object(Bucket="landing", Key="one-month/1.parquet", CopySource={"Bucket": "landing", "Key": key})
    manifest = transformed(launcher)
    name = manifest["metadata"]["name"]
    watch = Stopwatch(f"first commit with an executor visible, {launcher}")
    kube.apply(manifest)
    table = Resource(kube, "huditable", name)
    executors: set[str] = set()

    def visible() -> bool:
        found = kube.find("pods", "-n", NAMESPACE, "-l", "spark-role=executor") or {"items": []}
        executors.update(pod["metadata"]["name"] for pod in found["items"] if pod["status"]["phase"] == "Running")
        return any(key.endswith(".commit") and "metadata" not in key for key in lake.keys("lake", f"{name}/.hoodie/"))

    eventually(visible, f"{name} has a commit", 900)
    watch.seen()
    assert executors, "no executor ran"
    driver = eventually(
        lambda: [p for p in table.pods() if p["status"]["phase"] == "Succeeded"], "the driver has ended"
    )[0]
    watch.note(kube, driver)
    table.until("Fresh")
    assert table.runs()[0]["phase"] == "Succeeded"
    assert lake.rows(f"s3://lake/{name}").num_rows == 27_004
    eventually(
        lambda: (
            not [
                p
                for p in kube.items("pods", "-n", NAMESPACE, "-l", "spark-role=executor")
                if p["status"]["phase"] == "Running"
            ]
        ),
        "no executor is left",
    )
