"""What is left of a table when its resource is deleted, by `deletionPolicy`."""

from __future__ import annotations

import pytest

from e2e.support.kube import Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, Resource
from e2e.support.tables import flights

pytestmark = pytest.mark.usefixtures("installed")


@pytest.mark.parametrize("policy", ["Retain", "Unregister"])
def test_a_policy_that_keeps_the_table_keeps_every_object(kube: Kube, lake: Lake, policy: str) -> None:
    name = policy.lower()
    rows = lake.land("first", f"{name}/").rows
    keys, table = loaded(kube, lake, name, rows, policy)
    table.delete()
    eventually(lambda: not kube.items("jobs", "-n", NAMESPACE, "-l", f"app={name}"), "its Jobs are gone")
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


def loaded(kube: Kube, lake: Lake, name: str, rows: int, policy: str) -> tuple[set[str], Resource]:
    """A table with the rows of what has landed; its objects."""
    kube.apply(flights(name, deletionPolicy=policy))
    table = Resource(kube, "huditable", name)
    eventually(lambda: (table.status().get("data") or {}).get("records") == rows, "the table is loaded")
    return set(lake.keys("lake", f"{name}/")), table
