"""The folder that stands in for an API server: identity, generations, defaults, status, events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hudi_operator.api.resources import Key
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.runtime.local.folder import FolderCluster
from tests.support.manifests import manifest, spec
from tests.support.tables import TestClock

KEY = Key("HudiTable", "default", "flights")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FolderCluster]:
    found = FolderCluster(tmp_path, TestClock(), lambda key, event: None)
    found.acquire()
    yield found
    found.release()


def test_a_manifest_gets_an_identity_that_stays(cluster: FolderCluster) -> None:
    assert cluster.apply(manifest(**spec())) == KEY
    first = cluster.get(KEY)
    cluster.apply(manifest(**spec()))
    assert first is not None
    assert cluster.get(KEY) == first
    assert first["metadata"]["generation"] == 1
    assert first["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_only_a_changed_spec_is_a_new_generation(cluster: FolderCluster) -> None:
    cluster.apply(manifest(**spec()))
    cluster.apply({**manifest(**spec(suspend=False)), "metadata": {"name": "flights", "labels": {"a": "b"}}})
    found = cluster.get(KEY)
    assert found is not None
    assert (found["metadata"]["generation"], found["metadata"]["labels"]) == (1, {"a": "b"})
    cluster.apply(manifest(**spec(suspend=True)))
    found = cluster.get(KEY)
    assert found is not None
    assert found["metadata"]["generation"] == 2


def test_defaults_are_filled_in_and_a_spec_with_errors_is_kept_as_it_is(cluster: FolderCluster) -> None:
    cluster.apply(manifest(**spec()))
    found = cluster.get(KEY)
    assert found is not None
    assert found["spec"]["files"]["targetSize"] == "120Mi"
    cluster.apply(manifest(recordKey=[]))
    found = cluster.get(KEY)
    assert found is not None
    assert found["spec"] == {"recordKey": []}


def test_a_status_outlives_a_changed_spec(cluster: FolderCluster) -> None:
    cluster.apply(manifest(**spec()))
    cluster.set_status(KEY, {"observedGeneration": 1})
    cluster.apply(manifest(**spec(suspend=True)))
    found = cluster.get(KEY)
    assert found is not None
    assert found["status"] == {"observedGeneration": 1}


def test_a_spec_that_changes_while_a_status_is_written_is_kept_and_so_is_the_status(cluster: FolderCluster) -> None:
    cluster.apply(manifest(**spec()))
    changes = 200

    def report() -> None:
        for number in range(changes):
            cluster.set_status(KEY, {"observedGeneration": number})

    with ThreadPoolExecutor(1) as pool:
        reported = pool.submit(report)
        for number in range(changes):
            cluster.apply(manifest(**spec(suspend=number % 2 == 0)))
            found = cluster.get(KEY)
            assert found is not None
            assert found["metadata"]["generation"] == number + 2
        reported.result()
    found = cluster.get(KEY)
    assert found is not None
    assert (found["spec"]["suspend"], found["status"]) == (False, {"observedGeneration": changes - 1})


def test_a_status_of_nothing_is_not_written(cluster: FolderCluster) -> None:
    cluster.set_status(KEY, {"observedGeneration": 1})
    assert cluster.get(KEY) is None
    assert cluster.keys() == []


def test_events_are_kept_line_by_line(cluster: FolderCluster, tmp_path: Path) -> None:
    cluster.emit(KEY, Emit(EventType.WARNING, "InvalidData", "column 'id' is null"))
    (line,) = (tmp_path / "events.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:00Z",
        "object": "HudiTable default/flights",
        "type": "Warning",
        "reason": "InvalidData",
        "message": "column 'id' is null",
    }


def test_names_with_dots_are_found_again(cluster: FolderCluster) -> None:
    document = manifest("flights.2013", **spec())
    key = cluster.apply(document)
    assert cluster.keys() == [key]
