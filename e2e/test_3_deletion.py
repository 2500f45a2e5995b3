"""What is left of a table when its resource is deleted, by `deletionPolicy`."""

from __future__ import annotations

import pytest

from e2e.support.kube import Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import NAMESPACE, Resource
from e2e.support.tables import flights

pytestmark = pytest.mark.usefixtures("installed")


def test_retain_keeps_every_object(kube: Kube, lake: Lake) -> None:
    rows = lake.land("first", "retained/").rows
    kube.apply(flights("retained", deletionPolicy="Retain"))
    table = Resource(kube, "huditable", "retained")
    eventually(lambda: (table.status().get("data") or {}).get("records") == rows, "the table is loaded")
    keys = set(lake.keys("lake", "retained/"))
    table.delete()
    eventually(lambda: not kube.items("jobs", "-n", NAMESPACE, "-l", "app=retained"), "its Jobs are gone")
    assert set(lake.keys("lake", "retained/")) == keys
    assert lake.rows("s3://lake/retained").num_rows == rows


@pytest.mark.parametrize("policy", ["Unregister", "Purge"])
def test_a_policy_that_this_release_does_not_do_is_refused_by_its_name_and_deletes_nothing(
    kube: Kube, lake: Lake, policy: str
) -> None:
    name = f"refused-{policy.lower()}"
    lake.client().put_object(Bucket="lake", Key=f"{name}/mine", Body=b"kept")
    kube.apply(flights(name, deletionPolicy=policy))
    table = Resource(kube, "huditable", name)
    status = table.until("Stalled")
    assert any(policy in condition["message"] for condition in status["conditions"] if condition["type"] == "Stalled")
    assert table.delete() < 30
    assert lake.keys("lake", f"{name}/") == [f"{name}/mine"]
