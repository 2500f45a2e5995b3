"""For how long the brokers keep what an ingest has not read, and whether that is told before it is
deleted; on a real broker, which deletes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.metrics.resources import seconds_of
from hudi_table.model.job.retention import Limits
from hudi_table.sources.kafka.brokers import Brokers
from hudi_table.sources.kafka.settings import KafkaSettings
from tests.support.feeds import row
from tests.support.kafka import GUEST, GUEST_PASSWORD, Broker
from tests.support.kubelet import eventually
from tests.support.operated import Place, condition

HOUR = 3_600_000
RESTS = {"suspend": True}


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Place:
    return Place(tmp_path, broker, broker.topic(partitions=2, **{"retention.ms": str(HOUR)}))


def millis() -> int:
    return int(time.time() * 1000)


def produce_at(place: Place, numbers: range, moment: int, partition: int = 0) -> None:
    producer = place.broker.producer()
    for number in numbers:
        producer.produce(place.topic, row(number), partition=partition, timestamp=moment)
    assert producer.flush(30) == 0


def begun(place: Place, **kafka: Any) -> None:
    """A first commit."""
    place.broker.produce(place.topic, [row(i) for i in range(10)], partition=0)
    place.apply(place.document(**kafka))
    assert place.count() == 10, place.lines


def told(document: Mapping[str, Any]) -> Mapping[str, Any]:
    (found,) = document["status"]["ingest"]
    return dict(found)


def test_where_nothing_waits_nothing_is_at_risk_and_no_time_is_told(place: Place) -> None:
    begun(place)
    found = place.apply(place.document())
    assert condition(found, "AtRisk")["reason"] == "KeptLongEnough"
    assert "retentionRemaining" not in told(found)


def test_what_has_come_just_now_is_kept_for_the_retention_of_its_topic(place: Place) -> None:
    begun(place)
    place.broker.produce(place.topic, [row(i) for i in range(10, 15)], partition=1)
    found = place.apply(place.document(of=RESTS))
    assert (condition(found, "AtRisk")["status"], told(found)["pendingMessages"]) == ("False", 5), place.lines
    assert 3500 < seconds_of(told(found)["retentionRemaining"]) <= 3600


def test_what_waits_near_its_end_is_at_risk_until_it_is_read(place: Place) -> None:
    begun(place)
    produce_at(place, range(10, 15), millis() - HOUR + 600_000, partition=1)
    place.broker.produce(place.topic, [row(i) for i in range(15, 18)], partition=0)
    found = place.apply(place.document(of=RESTS))
    risk = condition(found, "AtRisk")
    assert (risk["status"], risk["reason"]) == ("True", "DeletedUnread"), place.lines
    where = f"feed: of topic {place.topic}, partition 1 at most 5 messages are not in the table"
    assert where in risk["message"]
    assert "the oldest can be deleted in 9m" in risk["message"]
    assert "partition 0" not in risk["message"], "it has an hour"
    assert 500 < seconds_of(told(found)["retentionRemaining"]) <= 600
    events = [line for line in place.lines if "DeletedUnread" in line]
    assert len(events) == 1
    place.apply(place.document(of=RESTS))
    assert len([line for line in place.lines if "DeletedUnread" in line]) == 1, "it is told once"
    place.apply(place.document())
    assert condition(place.apply(place.document()), "AtRisk")["status"] == "False"
    assert place.count() == 18


def test_the_broker_deletes_nothing_before_the_moment_that_is_told(place: Place) -> None:
    place.topic = place.broker.topic(partitions=1, **{"retention.ms": str(HOUR), "segment.ms": "1000"})
    begun(place)
    place.broker.configure(place.topic, **{"retention.ms": "20000"})
    place.broker.produce(place.topic, [row(i) for i in range(10, 15)], partition=0)
    found = place.apply(place.document(of=RESTS))
    at_least = time.monotonic() + seconds_of(told(found)["retentionRemaining"])
    brokers = Brokers(KafkaSettings(place.broker.address, (place.topic,)), {})
    eventually(lambda: brokers.extent().topics[place.topic].begin[0] > 10, "the broker has deleted what waited", 90)
    assert time.monotonic() >= at_least
    stalled = place.apply(place.document())
    assert condition(stalled, "Stalled")["reason"] == "DataLoss"


def test_a_partition_that_is_full_soon_is_at_risk_however_young_it_is(place: Place) -> None:
    place.topic = place.broker.topic(
        partitions=1, **{"retention.ms": "-1", "retention.bytes": "200000", "segment.bytes": "1048576"}
    )
    begun(place)
    place.broker.produce(place.topic, [row(i, text="x" * 1000) for i in range(10, 60)], partition=0)
    some = place.apply(place.document(of=RESTS))
    assert condition(some, "AtRisk")["status"] == "False", condition(some, "AtRisk")
    place.broker.produce(place.topic, [row(i, text="x" * 1000) for i in range(60, 180)], partition=0)
    found = place.apply(place.document(of=RESTS))
    assert condition(found, "AtRisk")["status"] == "True", place.lines
    assert f"of topic {place.topic}, partition 0 at most 170 messages" in condition(found, "AtRisk")["message"]


def test_what_no_retention_deletes_is_never_at_risk(place: Place) -> None:
    place.topic = place.broker.topic(partitions=1, **{"cleanup.policy": "compact", "retention.ms": "1000"})
    place.broker.produce(place.topic, [(b"a", row(1))], partition=0)
    place.apply(place.document())
    place.broker.produce(place.topic, [(b"b", row(2))], partition=0)
    found = place.apply(place.document(of=RESTS))
    assert condition(found, "AtRisk")["status"] == "False", place.lines
    assert (told(found)["pendingMessages"], "retentionRemaining" in told(found)) == (1, False)
    assert told(found)["pendingBytes"] == len(b"b" + row(2)), "key and value"


def test_before_the_first_commit_it_is_not_known_what_is_at_risk(place: Place) -> None:
    assert condition(place.apply(place.document(of=RESTS)), "AtRisk")["reason"] == "NothingCommitted"


def test_limits_are_those_of_the_topic(broker: Broker) -> None:
    mine = {"retention.ms": "5000", "retention.bytes": "70000"}
    first, second = broker.topic(partitions=1, **mine), broker.topic(partitions=1, **{"retention.ms": "-1"})
    both = broker.topic(partitions=1, **{"cleanup.policy": "compact,delete", "retention.ms": "7000"})
    found = Brokers(KafkaSettings(broker.address, (first,)), {}).limits([first, second, both])
    assert found == {first: Limits(5000, 70000), second: Limits(), both: Limits(7000)}


def test_brokers_that_do_not_tell_their_configuration_keep_no_ingest_from_its_work(
    guarded_broker: Broker, tmp_path: Path
) -> None:
    place = Place(tmp_path, guarded_broker, guarded_broker.topic(partitions=2, **{"retention.ms": str(HOUR)}))
    place.broker.allow_reading(place.topic)
    secret: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"},
        "stringData": {"KAFKA_SASL_USERNAME": GUEST, "KAFKA_SASL_PASSWORD": GUEST_PASSWORD, "KAFKA_CA": place.broker.certificate.decode()},
    }  # fmt: skip
    secure: dict[str, Any] = {
        "brokers": place.broker.secure_address,
        "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
    }
    storage = {"storage": {"credentialsSecretRef": {"name": "kafka"}}}
    place.broker.produce(place.topic, [row(1)], partition=0)
    place.apply(place.document(of=storage, **secure), secret)
    assert place.count() == 1, place.lines
    place.broker.produce(place.topic, [row(2)], partition=0)
    found = place.apply(place.document(of={**storage, **RESTS}, **secure), secret)
    risk = condition(found, "AtRisk")
    assert (risk["status"], risk["reason"]) == ("Unknown", "RetentionNotTold")
    assert "refuse" in risk["message"]
    assert (told(found)["pendingMessages"], "retentionRemaining" in told(found)) == (1, False)
    assert told(found)["pendingBytes"] == len(row(2)), "messages may be read"


def test_the_rate_is_that_of_the_newest_commits_and_event_times_are_those_of_their_rows(place: Place) -> None:
    tracked = {
        "orderingFields": ["at"],
        "options": {
            "hoodie.write.track.event.time.watermark": "true",
            "hoodie.payload.event.time.field": "at",
        },
    }
    moment = 1_767_225_600_000
    place.broker.produce(place.topic, [row(i, at=moment + 1000 * i) for i in range(40)], partition=0)
    first = place.apply(place.document(of=tracked))
    assert "rate" not in told(first), "one commit has no pace"
    assert told(first)["watermark"] == "2026-01-01T00:00:39Z", place.lines
    place.broker.produce(place.topic, [row(i, at=moment + 1000 * i) for i in range(30)], partition=0)
    found = told(place.apply(place.document(of=tracked)))
    assert 0 < found["rate"] <= 30
    assert (found["newestEventTime"], found["watermark"]) == ("2026-01-01T00:00:29Z", "2026-01-01T00:00:39Z")
