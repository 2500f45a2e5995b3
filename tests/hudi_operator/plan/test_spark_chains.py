"""What a HudiTable may ask of `engine: Spark` of a topic, beside what the job of that engine does:
the one refuses what the other does. No broker and no JVM: a job is followed to its first read."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_operator.api.resources import DesiredTable, desired_table
from hudi_operator.manifests.jobs import ingest_job
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Observed, SourceObservation
from hudi_operator.plan.table import plan_table
from hudi_spark.jobs.ingests.kafka import attempt
from hudi_spark.jobs.progress import Progress
from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.job.positions import Extent, TopicExtent
from tests.support.kafka_manifests import debezium, kafka
from tests.support.manifests import manifest, stored
from tests.support.plans import NOW, conditions, of

THERE = Extent("c", {"orders": TopicExtent("one", {0: 0}, {0: 10}, {0: 10})})
LATEST = {"of": {"orderingFields": [], "mergeMode": "CommitTime"}}
TOPICS: dict[str, Any] = {
    "Kafka": lambda of: kafka(of, **LATEST),
    "tombstones": lambda of: kafka(of, tombstones="Delete", keyFormat="json", **LATEST),
    "Debezium": debezium,
}
STEPS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "flatten": ({"flatten": {}}, set()),
    "a function": ({"function": "clean"}, {"tombstones", "Debezium"}),
    "a statement": ({"sql": "select * from source"}, set()),
    "a statement of Spark": ({"sql": "select *, regexp_replace(id, 'a', 'b') b from source"}, set()),
    "a statement that groups": ({"sql": "select id, max(n) n from source group by id"}, set(TOPICS)),
    "rows kept apart": ({"sql": "select * from source", "onFail": "Quarantine"}, set(TOPICS)),
}
"""A step, and of which topics it is refused."""


class Reached(Exception):  # noqa: N818 - no error
    """A job was about to read."""


@pytest.fixture(autouse=True)
def reading_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: Any) -> None:
        raise Reached

    def installed(**_: Any) -> list[Any]:
        return [SimpleNamespace(name="clean", load=lambda: lambda rows: rows)]

    monkeypatch.setattr(attempt, "run", reached)
    monkeypatch.setattr(metadata, "entry_points", installed)


def takes(job: JobSpec) -> bool:
    """Whether a job begins to read."""
    try:
        attempt.run_kafka(job, Progress(""))
    except InvalidRequestError:
        return False
    except Reached:
        return True
    raise AssertionError("it has ended in another way")


def asked(wanted: tuple[str, dict[str, Any]]) -> DesiredTable:
    return desired_table(stored(manifest(**wanted[1])))


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_a_topic_is_refused_on_spark_where_the_job_refuses_it_and_nowhere_else(step: str, topic: str) -> None:
    raw, refused = STEPS[step]
    wanted = asked(TOPICS[topic]({"engine": "Spark", "transform": [raw]}))
    effects = plan_table(wanted, Observed(sources=(SourceObservation("feed", extent=THERE),)), NOW)
    assert bool(of(Launch, effects)) is (topic not in refused), conditions(effects)
    # What is refused as it is written has no job: that of the other engine has the same work.
    spec = asked(TOPICS[topic]({"transform": [raw]})).spec
    assert spec is not None
    job = ingest_job("orders", spec, spec.ingest[0], "orders-feed-0a1b2c3d-g1-1", 0)
    assert takes(replace(job, engine="Spark")) is (topic not in refused)
