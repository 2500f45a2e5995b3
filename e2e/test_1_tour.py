"""The tour of docs/tutorials/cluster.md and upkeep.md, step by step, with its manifests: rows as
clients from outside see them, boto3 and hudi-rs.

The steps build upon each other; each is a test, so that the first that fails names what is broken.
"""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import Lake
from e2e.support.operator import MANIFESTS, NAMESPACE, Resource
from e2e.support.times import Stopwatch
from examples.flights import generate

pytestmark = pytest.mark.usefixtures("installed")
URI = "s3://lake/flights"


@pytest.fixture(scope="module")
def table(kube: Kube) -> Resource:
    return Resource(kube, "huditable", "flights")


def commits(lake: Lake, suffix: str, name: str = "flights") -> list[str]:
    """Completed instants of an action, as a listing shows them."""
    timeline = f"{name}/.hoodie/timeline/"
    found = (key.removeprefix(timeline) for key in lake.keys("lake", timeline))
    return [key for key in found if key.endswith(suffix) and "/" not in key]


def ended_pod(resource: Resource, of: int = 1) -> Document:
    """The newest pod of a resource, once `of` of its pods have ended."""

    def ended() -> Document | None:
        pods = sorted(resource.pods(), key=lambda pod: pod["metadata"]["creationTimestamp"])
        done = [pod for pod in pods if pod["status"]["phase"] in ("Succeeded", "Failed")]
        return done[-1] if len(done) >= of else None

    return eventually(ended, f"{of} pods of {resource.name} have ended")


def test_the_first_files_become_a_table(kube: Kube, lake: Lake, table: Resource) -> None:
    landed = lake.land("first")
    assert not commits(lake, ""), "the tour was made on this cluster already: make cluster-down, and begin anew"
    watch = Stopwatch("first commit of 280,000 rows visible, Job")
    kube.apply_file(MANIFESTS / "flights.yaml")
    eventually(lambda: commits(lake, ".deltacommit"), "a first commit is visible")
    watch.seen()
    watch.note(kube, ended_pod(table))
    rows = lake.rows(URI)
    assert rows.num_rows == landed.rows
    status = eventually(
        lambda: s if (s := table.status()).get("data", {}).get("records") == landed.rows else None, "records"
    )
    assert status["runs"][0]["phase"] == "Succeeded"
    table.until("Fresh")
    table.until("Ready")


def test_later_files_correct_and_delete_rows(kube: Kube, lake: Lake, table: Resource) -> None:
    later = lake.land("later")
    table.look()
    expected = generate.flights().num_rows - later.cancelled
    eventually(lambda: len(commits(lake, ".deltacommit")) == 2, "a second commit is visible")
    table.until("Fresh")
    rows = lake.rows(URI)
    assert rows.num_rows == expected
    october = rows.filter(pc.equal(rows.column("month"), generate.CORRECTED_MONTH))
    assert pc.sum(pc.equal(october.column("arr_delay"), 9_999)).as_py() == 0
    moved = pc.subtract(october.column("updated_at"), october.column("time_hour"))
    assert pc.sum(pc.greater(moved.cast("int64"), 9 * 86_400 * 1_000_000)).as_py() == later.corrected


def test_a_compaction_merges_the_logs(kube: Kube, lake: Lake, table: Resource) -> None:
    before = lake.rows(URI)
    assert table.status()["data"]["logBytes"] > 0
    kube.apply_file(MANIFESTS / "compaction.yaml")
    service = Resource(kube, "tableservice", "flights-compaction")
    eventually(lambda: service.status().get("phase") == "Succeeded", "the compaction has succeeded")
    assert service.runs()[0]["phase"] == "Succeeded"
    assert commits(lake, ".commit")
    assert same_rows(lake.rows(URI), before)
    eventually(lambda: table.status()["data"]["logBytes"] == 0, "the table's status knows of it")


def test_a_clustering_rewrites_the_small_files(kube: Kube, lake: Lake, table: Resource) -> None:
    before = lake.rows(URI)
    kube.apply_file(MANIFESTS / "clustering.yaml")
    service = Resource(kube, "tableservice", "flights-clustering")
    eventually(lambda: service.status().get("phase") == "Succeeded", "the clustering has succeeded")
    assert service.runs()[0]["phase"] == "Succeeded"
    assert commits(lake, ".replacecommit")
    assert same_rows(lake.rows(URI), before)


def test_a_service_with_nothing_to_do_is_short(kube: Kube) -> None:
    watch = Stopwatch("service with nothing to do, Job")
    manifest = {
        "apiVersion": "hudi.lakeops.dev/v1alpha1",
        "kind": "TableService",
        "metadata": {"name": "flights-nothing", "namespace": NAMESPACE},
        "spec": {"tableRef": {"name": "flights"}, "type": "Compaction"},
    }
    kube.apply(manifest)
    service = Resource(kube, "tableservice", "flights-nothing")
    eventually(lambda: service.status().get("phase") == "Succeeded", "the service has ended")
    watch.seen()
    assert service.runs()[0]["phase"] == "NothingToDo"
    watch.note(kube, ended_pod(service))


def test_a_changed_spec_is_followed(kube: Kube, lake: Lake, table: Resource) -> None:
    """Cleaning is asked to keep one commit, after every commit: it is due at once."""
    rows = lake.rows(URI)
    cleaning = '"maintenance": {"cleaning": {"keepCommits": 1}}'
    patch = f'{{"spec": {{{cleaning}, "options": {{"hoodie.clean.trigger.max.commits": "1"}}}}}}'
    kube.need("patch", "huditable", "flights", "-n", NAMESPACE, "--type=merge", "-p", patch)
    generation = kube.get("huditable", "flights", "-n", NAMESPACE)["metadata"]["generation"]

    def cleaned() -> bool:
        runs = [
            run for run in table.runs() if run["work"] == "Cleaning" and run["phase"] in ("Succeeded", "NothingToDo")
        ]
        return any(run["generation"] == generation for run in runs)

    eventually(cleaned, f"a cleaning of generation {generation}")
    assert table.status()["observedGeneration"] == generation
    assert same_rows(lake.rows(URI), rows)


def test_a_transform_runs_on_spark(kube: Kube, lake: Lake) -> None:
    table = Resource(kube, "huditable", "flights-transformed")
    watch = Stopwatch("first commit of 336,000 rows on Spark visible, Job")
    kube.apply_file(MANIFESTS / "flights-transformed.yaml")
    eventually(lambda: commits(lake, ".commit", "flights-transformed"), "a first commit is visible")
    watch.seen()
    watch.note(kube, ended_pod(table))
    table.until("Fresh")
    assert "flight_id" in lake.rows("s3://lake/flights-transformed").column_names


def test_a_deleted_resource_leaves_its_table(kube: Kube, lake: Lake, table: Resource) -> None:
    rows, keys = lake.rows(URI).num_rows, set(lake.keys("lake", "flights/"))
    for name in ("flights-compaction", "flights-clustering", "flights-nothing"):
        Resource(kube, "tableservice", name).delete()
    table.delete()
    eventually(
        lambda: not kube.items("jobs", "-n", NAMESPACE, "-l", "hudi.lakeops.dev/table=flights"), "its Jobs are gone"
    )
    assert set(lake.keys("lake", "flights/")) == keys
    assert lake.rows(URI).num_rows == rows


def same_rows(left: object, right: object) -> bool:
    """Whether both hold the same rows, whatever their order and whichever commit wrote them
    last."""
    found = []
    for rows in (left, right):
        kept = rows.select([name for name in rows.column_names if not name.startswith("_hoodie")])  # type: ignore[attr-defined]
        found.append(kept.sort_by([(name, "ascending") for name in ("carrier", "flight", "time_hour")]))
    return bool(found[0].equals(found[1]))
