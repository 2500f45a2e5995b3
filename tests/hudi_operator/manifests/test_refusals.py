"""What no job of a cluster, or of a machine, can be given; and the operator's own words about
pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_operator.api.fields.pods import PodPolicy, Volume
from hudi_operator.api.parsing import parse
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.errors import InvalidSpecError
from hudi_operator.manifests.policies import read_policies
from hudi_operator.manifests.refusals import refused_in_cluster, refused_on_machine
from tests.support.manifests import PARTS, ingest, spec

DATA = PodPolicy(volumes=(Volume("lake", "/data"),))


def told(policy: PodPolicy, **changes: Any) -> list[str]:
    found, errors = parse(HudiTableSpec, spec(**changes), "spec")
    assert found is not None, errors
    return [str(each) for each in refused_in_cluster(found, policy)]


def source(path: str) -> list[dict[str, Any]]:
    return [ingest(source={"type": "Files", "path": path, "format": "json"})]


def test_places_that_each_pod_has_for_itself_are_refused() -> None:
    (said,) = told(PodPolicy(), location="file:///data/flights")
    assert said.startswith("spec.location: is 'file:///data/flights', which each pod has for itself")
    (said,) = told(PodPolicy(), location="memory://x/flights")
    assert "the memory of one process" in said
    (said,) = told(PodPolicy(), ingest=source("file:///in/"))
    assert said.startswith("spec.ingest[0].source.path: is 'file:///in/'")
    assert told(PodPolicy()) == []


@pytest.mark.parametrize("place", ["file:///etc/orders.avsc", "memory://x/orders.avsc"])
def test_so_is_a_schema_that_lies_in_each_pod(place: str) -> None:
    kafka = {"brokers": "kafka:9092", "topics": ["orders"], "avro": {"schemaFile": place}}
    topic = ingest(source={"type": "Kafka", "format": "avro", "kafka": kafka})
    (said,) = told(DATA, ingest=[topic])
    assert said.startswith(f"spec.ingest[0].source.kafka.avro.schemaFile: is {place!r}")
    kafka["avro"] = {"schemaFile": "s3://lake/orders.avsc"}
    assert told(DATA, ingest=[topic]) == []


def test_so_is_a_table_to_follow_that_lies_in_each_pod() -> None:
    followed = ingest(source={"type": "Hudi", "hudi": {"location": "file:///etc/orders"}})
    (said,) = told(DATA, ingest=[followed])
    assert said.startswith(
        "spec.ingest[0].source.hudi.location: is 'file:///etc/orders', which each pod has for itself"
    )


def test_a_volume_of_the_namespace_holds_them() -> None:
    assert told(DATA, location="file:///data/flights", ingest=source("file:///data/in/")) == []
    assert told(DATA, location="file:///data2/flights")
    assert told(DATA, location="file:///data/../etc/flights")
    assert told(DATA, location="file:///data/%2e%2e/etc")


def test_properties_and_pods_are_refused_with_them_at_once() -> None:
    spark = {
        "conf": {"spark.jars": "x"},
        "driver": {"priorityClassName": "high"},
        "executor": {"labels": {"spark-role": "x"}},
    }
    assert [each.partition(":")[0] for each in told(PodPolicy(), spark=spark)] == [
        "spec.spark.conf[spark.jars]", "spec.spark.driver.priorityClassName", "spec.spark.executor.labels[spark-role]",
    ]  # fmt: skip


def test_a_machine_without_pods_refuses_their_settings_by_name_and_takes_variables() -> None:
    def local(**said: Any) -> list[str]:
        found, errors = parse(HudiTableSpec, spec(spark=said, location="file:///here"), "spec")
        assert found is not None, errors
        return [str(each).partition(":")[0] for each in refused_on_machine(found)]

    assert local() == local(driver={"cores": 3, "memory": "1Gi", "env": [{"name": "MODE", "value": "x"}]}) == []
    names = sorted(f"spec.spark.driver.{name}" for name in PARTS if name != "env")
    assert sorted(local(driver=PARTS)) == sorted([*names, "spec.spark.driver.env[1].secretKeyRef"])
    assert local(executor={"env": [{"name": "MODE", "value": "x"}]}) == ["spec.spark.executor.env"]


def test_a_namespace_replaces_what_is_said_of_all_field_by_field() -> None:
    found = read_policies(
        json.dumps({
            "pods": {"nodeSelector": {"pool": "hudi"}, "maxAttempts": 5}, "maxAttempts": 20,
            "podsByNamespace": {"lake": {"maxAttempts": 1}, "team": {"nodeSelector": {"pool": "team"}}},
        })
    )  # fmt: skip
    seen = {name: (found.of(name).node_selector["pool"], found.of(name).max_attempts) for name in ("lake", "team", "x")}
    assert seen == {"lake": ("hudi", 1), "team": ("team", 5), "x": ("hudi", 5)}
    assert found.max_attempts == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "takes an object of pods, podsByNamespace, maxAttempts"),
        ('{"pod": {}}', "takes an object of"),
        ('{"pods": {"hostNetwork": true}}', "jobs.pods.hostNetwork: unknown field"),
        (
            '{"podsByNamespace": {"a": {"maxAttempts": 0}}}',
            "jobs.podsByNamespace[a].maxAttempts: is 0, must be at least 1",
        ),
        ('{"pods": {"memory": "2 GB"}}', "jobs.pods.memory: "),
        ('{"podsByNamespace": {"a": 7}}', "jobs.podsByNamespace[a]: must be an object"),
        ('{"maxAttempts": "9"}', "jobs.maxAttempts: is '9'"),
        ('{"pods": {"volumes": [{"claim": "c", "path": "/etc/hudi"}]}}', "/etc/hudi is a folder of the pod's own"),
        ('{"pods": {"volumes": [{"claim": "c", "path": "data"}]}}', "where it is mounted, absolute"),
    ],
)
def test_wrong_settings_are_told_by_name(text: str, words: str) -> None:
    with pytest.raises(InvalidSpecError) as raised:
        read_policies(text)
    assert words in str(raised.value)
