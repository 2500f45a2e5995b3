"""What one namespace does, or what becomes of it, is nobody else's affair: a Secret that no client
takes, a namespace that goes, tables that are purged while theirs goes; and an ingest that rests
while others write.
"""

from __future__ import annotations

import itertools
import urllib.request
from collections.abc import Iterator

import pyarrow.compute as pc
import pytest

from e2e.support.kube import Kube, eventually
from e2e.support.lake import REGION, Lake
from e2e.support.operator import INSTALLED, NAMESPACE, Resource
from e2e.support.tables import flights
from e2e.support.tenants import SERVED_SECONDS, secret, the_operator_goes_on, unwatch, watch
from examples.flights import generate
from hudi_operator.api.resources import FINALIZER
from hudi_table import open_table
from hudi_table.api import HudiTable
from hudi_table.table.store.opening import open_storage
from tests.support.aged import AgedStorage
from tests.support.crashes import opened

FIRST = ("the namespace", "the rights", "the credentials", "the table")
POISONED, GOING = "poisoned", "going"
PURGED = {first: f"purged-{number}" for number, first in enumerate(FIRST)}
TENANTS = (POISONED, GOING, *PURGED.values())
ROWS = generate.flights().slice(0, 1000)
LATER = generate.flights().slice(1000, 500)
_numbers = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def tenants(kube: Kube, lake: Lake, installed: None) -> Iterator[None]:
    watch(kube, lake, *TENANTS)
    yield
    unwatch(kube, *TENANTS)


def loaded(kube: Kube, lake: Lake, name: str, namespace: str = NAMESPACE, **spec: object) -> Resource:
    """A table that holds the rows which land for it."""
    lake.land_rows(ROWS, f"{name}/1.parquet")
    kube.apply(flights(name, namespace, **spec))
    table = Resource(kube, "huditable", name, namespace)
    eventually(lambda: table.condition("Fresh") == "True", f"{namespace}/{name} is fresh", SERVED_SECONDS)
    assert lake.rows(f"s3://lake/{name}").num_rows == ROWS.num_rows
    return table


def a_neighbour_is_served(kube: Kube, lake: Lake) -> None:
    loaded(kube, lake, f"neighbour-{next(_numbers)}")


@pytest.mark.parametrize("end", ["\n", "\x00\x1b\r\n"], ids=["newline", "controls"])
def test_a_secret_that_no_client_takes_stalls_its_table_alone(kube: Kube, lake: Lake, end: str) -> None:
    """A newline at the end is what `echo KEY | base64` puts into a Secret."""
    name = f"poisoned-{next(_numbers)}"
    lake.land_rows(ROWS, f"{name}/1.parquet")
    manifest = flights(name, POISONED)
    manifest["spec"]["storage"]["credentialsSecretRef"]["name"] = name
    table = Resource(kube, "huditable", name, POISONED)
    with the_operator_goes_on(kube):
        kube.apply(secret(POISONED, lake.access_key, f"{lake.secret_key}{end}", name), manifest)
        stalled = table.until("Stalled")
        told = next(each for each in stalled["conditions"] if each["type"] == "Stalled")
        assert told["reason"] == "InvalidOption"
        assert "control character" in told["message"]
        a_neighbour_is_served(kube, lake)
        kube.apply(secret(POISONED, lake.access_key, lake.secret_key, name))
        table.look()
        table.until("Fresh")
    assert lake.rows(f"s3://lake/{name}").num_rows == ROWS.num_rows


def test_a_namespace_that_is_deleted_costs_no_other_one_anything_and_is_served_again(kube: Kube, lake: Lake) -> None:
    def ready() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30) as answer:
            return str(answer.read().decode())

    with the_operator_goes_on(kube), kube.forwarded("deployment/hudi-operator", INSTALLED, 8080) as port:
        loaded(kube, lake, "went", GOING)
        kube.need("delete", "namespace", GOING, "--wait=false")
        a_neighbour_is_served(kube, lake)
        eventually(lambda: is_gone(kube, GOING), f"{GOING} is gone", SERVED_SECONDS)
        eventually(lambda: f"{GOING} is not heard: " in ready(), "it is said to be missing")
        a_neighbour_is_served(kube, lake)
        # Its rights and its accounts come again with it.
        watch(kube, lake, *TENANTS)
        loaded(kube, lake, "came", GOING)
        eventually(lambda: "namespaces: all are heard" in ready(), "it is heard again")


@pytest.mark.parametrize("place", ["behind others' commits", "in the archive"])
def test_an_ingest_that_rests_goes_on_where_it_stopped(kube: Kube, lake: Lake, place: str) -> None:
    """Somebody else writes to its table, which moves the commit that holds its checkpoint back, and
    out of the timeline."""
    name = f"resting-{next(_numbers)}"
    table = loaded(kube, lake, name, type="CopyOnWrite")
    options = {"endpoint": lake.endpoint, "region": REGION, "access_key_id": lake.access_key}
    store = open_storage(f"s3://lake/{name}", {**options, "secret_access_key": lake.secret_key})
    outside = open_table(f"s3://lake/{name}", storage_options={**options, "secret_access_key": lake.secret_key})
    for number in range(6):
        outside.upsert(LATER.slice(number, 1))
    first = commits(outside)[0]
    if place == "in the archive":
        keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
        assert opened(AgedStorage(store)).archive(keep)
        assert commits(outside)[0] > first
    last = commits(outside)[-1]
    table.look()
    eventually(lambda: table.status()["timeline"]["lastInstant"] == last, "the operator has seen what others did")
    assert ingests(table) == 1, "files are taken again"
    lake.land_rows(LATER, f"{name}/2.parquet")
    table.look()
    eventually(lambda: ingests(table) == 2, "the new file is taken")
    table.until("Fresh")
    assert lake.rows(f"s3://lake/{name}").num_rows == ROWS.num_rows + LATER.num_rows
    eventually(lambda: table.status()["runs"][0]["phase"] == "Succeeded", "its job is seen to end, after its commit")


@pytest.mark.parametrize("first", FIRST)
def test_a_namespace_with_a_table_that_is_purged_goes_whatever_goes_first(kube: Kube, lake: Lake, first: str) -> None:
    """What lies at the location is the whole table, or none."""
    namespace = name = PURGED[first]
    table = loaded(kube, lake, name, namespace, deletionPolicy="Purge")
    found = table.now()
    assert found is not None
    assert FINALIZER in found["metadata"]["finalizers"]
    with the_operator_goes_on(kube):
        goes = {
            "the rights": ("rolebinding", "hudi-operator"),
            "the credentials": ("secret", "s3"),
            "the table": ("huditable", name),
        }
        if first in goes:
            kube.need("delete", *goes[first], "-n", namespace, "--wait=false")
        kube.need("delete", "namespace", namespace, "--wait=false")
        a_neighbour_is_served(kube, lake)
        eventually(lambda: is_gone(kube, namespace), f"{namespace} is gone", SERVED_SECONDS)
    if f"{name}/.hoodie/hoodie.properties" in lake.keys("lake", f"{name}/"):
        assert lake.rows(f"s3://lake/{name}").num_rows == ROWS.num_rows


def is_gone(kube: Kube, namespace: str) -> bool:
    return "NotFound" in kube.run("get", "namespace", namespace).stderr


def commits(table: HudiTable) -> list[str]:
    """Instants of the commits in the active timeline, the oldest first."""
    found: list[str] = table.timeline().filter(pc.field("action") == "commit")["instant"].to_pylist()
    return found


def ingests(table: Resource) -> int:
    """Its attempts to ingest."""
    return len([run for run in table.runs() if run["work"] == "Ingest/feed"])
