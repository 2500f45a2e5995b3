"""Which engine an ingest is given."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.resources import desired_table
from hudi_operator.manifests.jobs import ingest_job
from hudi_table.model.job.jobspec import MEMORY_BYTES, JobSpec
from tests.support.kafka_manifests import debezium, jdbc, kafka, table
from tests.support.manifests import ingest, manifest, stored


def job_of(fields: dict[str, Any], waiting: int = 1 << 40) -> JobSpec:
    desired = desired_table(stored(manifest(**fields)))
    assert desired.spec is not None, desired
    return ingest_job("orders", desired.spec, desired.spec.ingest[0], "orders-feed-0a1b2c3d-g1-1", waiting)


@pytest.mark.parametrize("of", [kafka, debezium, jdbc])
def test_tasks_of_spark_read_a_source_only_where_they_are_asked_to(of: Any) -> None:
    assert job_of(of()[1]).engine == "Local"
    assert job_of(of({"engine": "Local"})[1]).engine == "Local"
    asked = job_of(of({"engine": "Spark"})[1], waiting=0)
    assert asked.engine == "Spark"
    assert "engine" not in asked.work
    assert asked.work == job_of(of()[1]).work


def test_a_driver_without_an_end_may_have_executors() -> None:
    assert job_of(kafka({"mode": "Continuous"})[1]).engine == "Local"
    job = job_of(kafka({"mode": "Continuous", "engine": "Spark", "commitInterval": "2s"})[1])
    assert (job.engine, job.work["mode"], job.work["commitIntervalSeconds"]) == ("Spark", "Continuous", 2)


def test_a_driver_without_an_end_is_told_the_memory_that_its_manifest_gives_it() -> None:
    spec = kafka({"mode": "Continuous"})[1]
    assert MEMORY_BYTES not in job_of(spec).work, "its container tells it"
    assert job_of({**spec, "spark": {"driver": {"memory": "3Gi"}}}).work[MEMORY_BYTES] == 3 << 30
    once = {**kafka()[1], "spark": {"driver": {"memory": "3Gi"}}}
    assert MEMORY_BYTES not in job_of(once).work


SOUND = [{"name": "sound", "sql": "n > 0", "onFail": "Quarantine"}]
APART = [{"function": "strict", "onFail": "Quarantine"}]


@pytest.mark.parametrize(("asked", "engine"), [({"expectations": SOUND}, "Spark"), ({"transform": APART}, "Local")])
def test_rows_that_a_transform_cannot_take_are_found_in_one_process_however_many_wait(
    asked: dict[str, Any], engine: str
) -> None:
    assert job_of(table(ingest=[ingest()])[1]).engine == "Spark"
    job = job_of(table(ingest=[ingest(**asked)])[1])
    assert (job.engine, job.work["maxErrorRatio"]) == (engine, 0.05)
    assert {name: job.work[name] for name in asked} == asked
