"""What is left of a table when its resource is deleted, by `deletionPolicy`."""

from __future__ import annotations

import functools

import pytest

from e2e.support.kube import Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, OWNER, Resource
from e2e.support.tables import flights, transformed

pytestmark = pytest.mark.usefixtures("installed")


@pytest.mark.parametrize("policy", ["Retain", "Unregister"])
def test_a_policy_that_keeps_the_table_keeps_every_object(kube: Kube, lake: Lake, policy: str) -> None:
    name = policy.lower()
    rows = lake.land("first", f"{name}/").rows
    keys, table = loaded(kube, lake, name, rows, policy)
    jobs = functools.partial(kube.items, "jobs", "-n", NAMESPACE, "-l", f"{OWNER}={table.uid()}")
    table.delete()
    eventually(lambda: not jobs(), "its Jobs are gone")
    assert set(lake.keys("lake", f"{name}/")) == keys
    assert lake.rows(f"s3://lake/{name}").num_rows == rows


def test_purge_deletes_every_object_of_the_table_and_no_other(kube: Kube, lake: Lake) -> None:
    rows = lake.land("first", "purge/").rows
    landed = set(lake.keys("landing", "purge/"))
    _, table = loaded(kube, lake, "purge", rows, "Purge")
    lake.client().put_object(Bucket="lake", Key="purge2/mine", Body=b"kept")
    table.delete()
    assert lake.keys("lake", "purge/") == []
    assert lake.keys("lake", "purge2/") == ["purge2/mine"]
    assert set(lake.keys("landing", "purge/")) == landed


@pytest.mark.parametrize(
    ("launcher", "kind"),
    [
        ("Job", "jobs"),
        ("SparkOperator", "sparkapplications.sparkoperator.k8s.io"),
        ("ApacheSparkOperator", "sparkapplications.spark.apache.org"),
    ],
)
def test_purge_ends_the_driver_of_a_table_at_work(kube: Kube, lake: Lake, launcher: str, kind: str) -> None:
    name = f"busy-{launcher.lower()}"
    lake.land("first", f"{name}/")
    manifest = transformed(name, launcher, f"s3://landing/{name}/")
    manifest["spec"]["deletionPolicy"] = "Purge"
    kube.apply(manifest)
    table = Resource(kube, "huditable", name)
    attempts = functools.partial(kube.items, kind, "-n", NAMESPACE, "-l", f"{OWNER}={table.uid()}")
    eventually(attempts, "an attempt is made")
    table.delete()
    eventually(lambda: not attempts(), "its attempts are gone")
    assert lake.keys("lake", f"{name}/") == []


def loaded(kube: Kube, lake: Lake, name: str, rows: int, policy: str) -> tuple[set[str], Resource]:
    """A table with the rows of what has landed; its objects."""
    kube.apply(flights(name, deletionPolicy=policy))
    table = Resource(kube, "huditable", name)
    eventually(lambda: (table.status().get("data") or {}).get("records") == rows, "the table is loaded")
    return set(lake.keys("lake", f"{name}/")), table
