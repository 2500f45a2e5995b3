"""How far an ingest is behind, partition by partition, as a person asks for it: `hudictl lag`, on a
real broker; and about how many bytes that is in the status."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.cli.kubectl.program import main
from tests.support.feeds import row
from tests.support.kafka import GUEST, GUEST_PASSWORD, PASSWORD, USER, Broker
from tests.support.operated import Place

RESTS = {"suspend": True}


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Place:
    return Place(tmp_path, broker, broker.topic(partitions=2))


def produce_at(place: Place, numbers: range, moment: int, partition: int) -> None:
    producer = place.broker.producer()
    for number in numbers:
        producer.produce(place.topic, row(number, text="x" * 100), partition=partition, timestamp=moment)
    assert producer.flush(30) == 0


def lag(place: Place, capsys: pytest.CaptureFixture[str], *more: str, code: int = 0) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["lag", "orders", *more, "--file", str(place.folder / "manifest.yaml"), "-o", "json"]) == code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"] if not code else []
    return found


def test_each_partition_tells_its_position_its_end_and_what_waits_between(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = int(time.time() * 1000) - 600_000
    produce_at(place, range(10), moment, 0)
    place.apply(place.document())
    produce_at(place, range(10, 40), moment + 300_000, 1)
    told = place.apply(place.document(of=RESTS))["status"]["ingest"][0]
    first, second = lag(place, capsys)
    assert (first["ingest"], first["stream"], first["partition"]) == ("feed", place.topic, "0")
    assert (first["position"], first["end"], first["rowsBehind"], first["bytesBehind"], first["secondsBehind"]) == ("10", "10", 0, 0, 0)  # fmt: skip
    assert (second["position"], second["end"], second["rowsBehind"]) == ("0", "30", 30)
    assert 290 < second["secondsBehind"] < 400
    exactly = sum(len(row(number, text="x" * 100)) for number in range(10, 40))
    assert second["bytesBehind"] == exactly, "all of them are in the first look"
    assert (told["pendingMessages"], told["pendingBytes"]) == (30, exactly)
    seconds = [(moment + late) // 1000 for late in (0, 300_000)]
    times = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(each)) for each in seconds]
    assert [each["newestEventTime"][:19] for each in (first, second)] == times
    place.apply(place.document())
    assert [each["rowsBehind"] for each in lag(place, capsys, "feed")] == [0, 0]


def test_bytes_are_those_of_the_first_messages_for_all(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(1)], partition=0)
    place.apply(place.document())
    value = b'{"id": "a", "n": 1, "text": "' + b"x" * 1000 + b'"}'
    place.broker.produce(place.topic, [value] * 3000, partition=0)
    told = place.apply(place.document(of=RESTS))["status"]["ingest"][0]
    (first, _) = lag(place, capsys)
    assert first["rowsBehind"] == told["pendingMessages"] == 3000
    assert first["bytesBehind"] == told["pendingBytes"] == 3000 * len(value)


def test_before_the_first_commit_nobody_knows_what_waits(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(1)], partition=0)
    found = place.apply(place.document(of=RESTS))["status"]["ingest"][0]
    assert "pendingMessages" not in found
    assert "pendingBytes" not in found
    first, second = lag(place, capsys)
    assert (first["position"], first["end"], first["rowsBehind"], first["bytesBehind"]) == (None, "1", None, None)
    assert second["newestEventTime"] is None


def test_what_the_brokers_no_longer_have_is_told(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(5)], partition=0)
    place.apply(place.document())
    place.broker.produce(place.topic, [row(i) for i in range(20)], partition=0)
    place.broker.forget(place.topic, 0, 12)
    place.apply(place.document(of=RESTS))
    path = str(place.folder / "manifest.yaml")
    assert main(["lag", "orders", "--file", path]) == 0
    assert "feed: at most 7 messages are lost: partition 0" in capsys.readouterr().err
    assert lag(place, capsys)[0]["rowsBehind"] == 13


def test_credentials_are_those_of_the_manifest_or_of_the_environment_and_are_not_told(
    guarded_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, guarded_broker, guarded_broker.topic(partitions=1))
    secret: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"},
        "stringData": {"KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": PASSWORD, "KAFKA_CA": place.broker.certificate.decode()},
    }  # fmt: skip
    secure: dict[str, Any] = {
        "brokers": place.broker.secure_address,
        "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
    }
    table = place.document(of={"storage": {"credentialsSecretRef": {"name": "kafka"}}}, **secure)
    place.broker.produce(place.topic, [row(1)], partition=0)
    place.apply(table, secret)
    assert [each["rowsBehind"] for each in lag(place, capsys)] == [0]
    secret["stringData"] |= {"KAFKA_SASL_USERNAME": GUEST, "KAFKA_SASL_PASSWORD": "not-" + GUEST_PASSWORD}
    (place.folder / "manifest.yaml").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [table, secret]})
    )
    assert main(["lag", "orders", "--file", str(place.folder / "manifest.yaml")]) == 1
    said = "".join(capsys.readouterr())
    assert "AccessDenied" in said
    assert GUEST_PASSWORD not in said
    (place.folder / "manifest.yaml").write_text(json.dumps(table))
    for name, value in {"USERNAME": USER, "PASSWORD": PASSWORD}.items():
        monkeypatch.setenv(f"KAFKA_SASL_{name}", value)
    monkeypatch.setenv("KAFKA_CA", place.broker.certificate.decode())
    assert [each["rowsBehind"] for each in lag(place, capsys)] == [0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["planes"], "there is no HudiTable 'planes' in"),
        (["orders", "-n", "elsewhere"], "there is no HudiTable 'orders' in"),
        (
            ["orders", "other"],
            "orders has no ingest 'other' from Kafka, Debezium or Kinesis; those from streams are feed",
        ),
    ],
)
def test_what_is_not_there_is_named(
    place: Place, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (place.folder / "manifest.yaml").write_text(json.dumps(place.document()))
    assert main(["lag", *arguments, "--file", str(place.folder / "manifest.yaml")]) != 0
    assert words in capsys.readouterr().err
