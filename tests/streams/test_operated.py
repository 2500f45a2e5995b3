"""An ingest from Kafka as a manifest asks for it: by `hudictl local`, with jobs in processes of
their own, and by `hudictl checkpoint`."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hudi_table.cli.program import main as hudictl
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.feeds import row
from tests.support.kafka import PASSWORD, USER, Broker
from tests.support.operated import Place, condition


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Place:
    return Place(tmp_path, broker, broker.topic())


def wait_for(found: Callable[[], bool], place: Place) -> None:
    until = time.monotonic() + 120
    while not found():
        assert time.monotonic() < until, place.lines
        time.sleep(0.1)


def test_a_manifest_makes_the_table_and_takes_what_comes_later(place: Place) -> None:
    place.broker.produce(place.topic, [row(i) for i in range(30)])
    first = place.apply(place.document())
    assert place.count() == 30, place.lines
    assert (condition(first, "Ready")["status"], condition(first, "Fresh")["reason"]) == ("True", "UpToDate")
    (told,) = first["status"]["ingest"]
    assert (told["pendingMessages"], told["lag"], told["lastCommit"]) == (
        0,
        "0s",
        load_timeline(place.table().context).commits[-1].time,
    )
    place.broker.produce(place.topic, [row(i) for i in range(30, 40)])
    again = place.apply(place.document())
    assert (place.count(), len(again["status"]["runs"])) == (40, 2)
    assert len(place.apply(place.document())["status"]["runs"]) == 2, "nothing waits: no run is started"


def test_a_topic_that_holds_nothing_yet_is_no_fault(place: Place) -> None:
    found = place.apply(place.document())
    assert condition(found, "Stalled") == {}, place.lines
    assert condition(found, "Fresh")["message"] == "feed has committed nothing yet"


def test_what_is_lost_stalls_the_table_and_is_counted(place: Place) -> None:
    topic = place.topic = place.broker.topic(partitions=1)
    place.broker.produce(topic, [row(i) for i in range(10)])
    place.apply(place.document())
    place.broker.produce(topic, [row(i) for i in range(10, 30)])
    place.broker.forget(topic, 0, 25)
    stalled = condition(place.apply(place.document()), "Stalled")
    assert stalled["reason"] == "DataLoss"
    assert "at most 15 messages are lost: partition 0" in stalled["message"]
    place.apply(place.document(onDataLoss="Continue"))
    assert place.count() == 15


def test_a_poison_message_stalls_the_table_and_names_its_offset(place: Place) -> None:
    place.broker.produce(place.topic, [row(1), b"{"], partition=1)
    stalled = condition(place.apply(place.document()), "Stalled")
    assert stalled["reason"] == "InvalidData"
    assert f"the message of topic {place.topic}, partition 1, offset 1 cannot be read as json" in stalled["message"]


def test_columns_that_the_policy_refuses_stall_the_table_with_all_of_the_difference(place: Place) -> None:
    place.broker.produce(place.topic, [row(1)])
    place.apply(place.document({"schemaPolicy": "Refuse"}))
    place.broker.produce(place.topic, [row(2, city="x")])
    stalled = condition(place.apply(place.document({"schemaPolicy": "Refuse"})), "Stalled")
    assert (stalled["reason"], place.count()) == ("InvalidSchema", 1), place.lines
    assert "give schemaPolicy AddColumns, or correct the source. added: city (string)" in stalled["message"]
    found = place.apply(place.document({"schemaPolicy": "AddColumns"}))
    assert (condition(found, "Stalled"), place.count()) == ({}, 2), place.lines


def test_what_is_quarantined_is_counted_in_the_status(place: Place) -> None:
    place.broker.produce(place.topic, [row(1), b"{", row(-2)], partition=0)
    checks = {
        "onUndecodable": "Quarantine",
        "expectations": [{"name": "positive", "sql": "n > 0", "onFail": "Quarantine"}],
    }
    found = place.apply(place.document(checks))
    assert (condition(found, "Ready")["status"], place.count()) == ("True", 1), place.lines
    assert found["status"]["ingest"][0]["refusedMessages"] == 2
    assert found["status"]["runs"][0]["figures"]["recordsRefused"] == 2
    wrong = {"expectations": [{"name": "positive", "sql": "n > reflect('a', 'b')"}]}
    stalled = condition(place.apply(place.document(wrong)), "Stalled")
    assert (stalled["reason"], "spec.ingest[0].expectations" in stalled["message"]) == ("InvalidSpec", True)


def test_brokers_that_are_away_are_told_and_secrets_are_not(place: Place) -> None:
    place.broker.produce(place.topic, [row(1)])
    secret: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kafka"},
        "stringData": {"KAFKA_SASL_USERNAME": USER, "KAFKA_SASL_PASSWORD": "wrong-and-secret", "KAFKA_CA": place.broker.certificate.decode()},
    }  # fmt: skip
    secure: dict[str, Any] = {
        "brokers": place.broker.secure_address,
        "security": {"protocol": "SaslTls", "mechanism": "PLAIN"},
    }
    table = place.document(of={"storage": {"credentialsSecretRef": {"name": "kafka"}}}, **secure)
    denied = condition(place.apply(table, secret), "Stalled")
    assert denied["reason"] == "AccessDenied", place.lines
    secret["stringData"]["KAFKA_SASL_PASSWORD"] = PASSWORD
    place.apply(table, secret)
    assert place.count() == 1, place.lines
    kept = [path for path in place.folder.rglob("*") if path.is_file() and path.name != "manifest.yaml"]
    assert not [
        path for path in kept if PASSWORD.encode() in path.read_bytes() or b"wrong-and-secret" in path.read_bytes()
    ]
    assert PASSWORD not in "".join(place.lines)


def test_a_continuous_driver_follows_beside_services_and_ends_for_another_manifest(place: Place) -> None:
    following = {"mode": "Continuous", "commitInterval": "300ms"}
    upkeep = {"maintenance": {"cleaning": {"mode": "Auto"}}}
    seen: dict[str, Any] = {}

    def life() -> None:
        for number in range(3):
            place.broker.produce(place.topic, [row(i) for i in range(20 * number, 20 * number + 20)])
            wait_for(lambda wanted=20 * number + 20: place.count() == wanted, place)  # type: ignore[misc]
        seen["runs"] = place.stored()["status"]["runs"]
        place.over.set()

    other = threading.Thread(target=life)
    other.start()
    try:
        place.apply(place.document(following, upkeep), watch=True)
    finally:
        other.join()
    drivers = [run for run in seen["runs"] if run["work"] == "Ingest/feed"]
    assert [run["phase"] for run in drivers] == ["Running"], place.lines
    results = list((place.folder / "state" / "attempts").glob("*/result.json"))
    ended = [json.loads(path.read_text()) for path in results]
    assert [each["outcome"] for each in ended if each["attempt"] == drivers[0]["name"]] == ["Succeeded"]
    # The next life goes on where this one ended, in mode Once, and ends.
    place.broker.produce(place.topic, [row(i) for i in range(60, 70)])
    place.apply(place.document(None, upkeep))
    assert place.count() == 70


def test_a_driver_that_was_killed_has_one_successor(place: Place) -> None:
    following = {"mode": "Continuous", "commitInterval": "300ms", "operation": "Insert"}
    unfound = {"index": {"type": "Simple"}}
    attempts = place.folder / "state" / "attempts"
    seen: list[str] = []

    def life() -> None:
        place.broker.produce(place.topic, [row(i) for i in range(20)])
        wait_for(lambda: place.count() == 20, place)
        (first,) = attempts.glob("*/process.json")
        os.kill(json.loads(first.read_text())["pid"], signal.SIGKILL)
        place.broker.produce(place.topic, [row(i) for i in range(20, 40)])
        wait_for(lambda: place.count() == 40, place)
        time.sleep(2)
        seen.extend(path.parent.name for path in attempts.glob("*/process.json"))
        place.over.set()

    other = threading.Thread(target=life)
    other.start()
    try:
        place.apply(place.document(following, unfound), watch=True)
    finally:
        other.join()
    assert len(seen) == 2, place.lines
    assert place.count() == 40


def test_a_checkpoint_is_shown_and_set(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    topic = place.topic = place.broker.topic(partitions=2)
    place.broker.produce(topic, [row(i) for i in range(10)], partition=0)
    place.broker.produce(topic, [row(i) for i in range(10, 15)], partition=1)
    place.apply(place.document())
    base = f"file://{place.location}"
    assert hudictl(["checkpoint", "show", base, "-o", "json"]) == 0
    shown = {each["ingest"]: each for each in json.loads(capsys.readouterr().out)["items"]}
    assert (shown["feed"]["source"], shown["feed"]["checkpoint"]) == ("Kafka", f"{topic},0:10,1:5")
    assert shown[None]["checkpoint"] == f"{topic},0:10,1:5", "as Hudi Streamer has it"
    assert hudictl(["checkpoint", "set", base, "feed", f"{topic},0:7"]) == 0
    assert f"{topic},0:7,1:5" in capsys.readouterr().out
    last = load_timeline(place.table().context).commits[-1]
    audit = json.loads(commit_metadata(place.table().context, last).extra_metadata["lakeops.checkpoint.set"])
    assert audit["ingest"] == "feed"
    assert f'"{topic}"' in audit["before"]
    done = place.apply(place.document())["status"]["runs"][0]
    assert done["figures"]["messagesRead"] == 3
    assert hudictl(["checkpoint", "set", base, "feed", "--from-commit", last.time]) == 0
    assert f"feed goes on at {topic},0:7,1:5" in capsys.readouterr().err
    assert place.apply(place.document())["status"]["runs"][0]["figures"]["messagesRead"] == 3
    assert (
        hudictl(["checkpoint", "set", base, "feed", "nonsense"]) == 2
        or "topic,partition:offset" in capsys.readouterr().err
    )
    assert hudictl(["checkpoint", "set", base, "feed"]) != 0
    assert "needs INGEST and OFFSETS" in capsys.readouterr().err


def test_a_step_back_of_an_ingest_that_inserts_is_confirmed(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    topic = place.topic = place.broker.topic(partitions=1)
    place.broker.produce(topic, [row(i) for i in range(10)])
    inserts, unfound = {"operation": "Insert"}, {"index": {"type": "Simple"}}
    place.apply(place.document(inserts, unfound))
    base = f"file://{place.location}"
    assert hudictl(["checkpoint", "set", base, "feed", f"{topic},0:12"]) == 0, "a step on takes nothing twice"
    assert hudictl(["checkpoint", "set", base, "feed", f"{topic},0:7"]) == 1
    refused = capsys.readouterr().err
    assert f"partition 0 of topic {topic} is at offset 12, and 7 lies before it" in refused
    assert "of operation INSERT" in refused
    assert "give --yes" in refused
    assert place.count() == 10
    assert hudictl(["checkpoint", "set", base, "feed", f"{topic},0:7", "--yes"]) == 0
    place.apply(place.document(inserts, unfound))
    assert place.count() == 13, "as was confirmed"
