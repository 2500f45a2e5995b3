"""Large values that a change of a real PostgreSQL leaves alone: each table has what the database
has, whatever holds it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.model.table.merging import UNAVAILABLE
from hudi_table.sources.kafka.stored import StoredTable
from tests.streams.test_continuous import count, wait_for
from tests.streams.test_continuous import end as end_driver
from tests.streams.test_debezium import BEFORE_TRUNCATE, LARGE, WIDE, messages, orders, run
from tests.support.feeds import Feed
from tests.support.kafka import Broker

SAMPLE = messages("schema-orders")[:17]
DELETED, CREATED = 5, 7
"""The places of the two events of a key that changes, from 2 to 20; a tombstone lies between."""
OLD_KEY, NEW_KEY = [("__debezium.oldkey", b'{"id":2}')], [("__debezium.newkey", b'{"id":20}')]
KINDS = [(kind, version) for kind in ("CopyOnWrite", "MergeOnRead") for version in (6, 8, 9)]


@pytest.fixture(params=KINDS, ids=lambda each: f"{each[0]} {each[1]}")
def feed(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Feed:
    kind, version = request.param
    table = {"orderingFields": ["_event_lsn"], "type": kind, "tableVersion": version}
    return Feed(tmp_path, broker, broker.topic(partitions=1), table)


def with_large(place: int, value: str | None) -> tuple[bytes | None, bytes]:
    """An event of the sample with another large value."""
    key, text = SAMPLE[place]
    event = json.loads(text or b"")
    event["payload"]["after"]["big"] = value
    return key, json.dumps(event).encode()


def large(feed: Feed) -> dict[int, Any]:
    return {each["id"]: each["big"] for each in feed.rows("id", "big")}


@pytest.mark.thinned("values")
def test_a_large_value_that_a_change_leaves_alone_stays_in_the_table(feed: Feed) -> None:
    for number, message in enumerate(SAMPLE):
        feed.broker.produce(feed.topic, [message])
        done = run(feed, source=WIDE)
        assert done.outcome in ("Succeeded", "NothingToDo"), done.message
        if number + 1 in LARGE:
            assert large(feed)[1] == LARGE[number + 1]
    assert orders(feed) == BEFORE_TRUNCATE


@pytest.mark.thinned("values")
@pytest.mark.parametrize("cut", [None, CREATED, DELETED], ids=["in one commit", "between delete and create", "before"])
def test_a_large_value_goes_along_with_a_row_whose_key_changes(feed: Feed, cut: int | None) -> None:
    feed.broker.produce(feed.topic, [SAMPLE[0], with_large(1, "kept"), *SAMPLE[2:DELETED]])
    for place in (DELETED, CREATED):
        if cut == place:
            done = run(feed, source=WIDE)
            assert (done.outcome, large(feed)[2]) == ("Succeeded", "kept"), "the delete waits for the create"
        key_changes(feed, place)
    done = run(feed, source=WIDE)
    assert done.outcome == "Succeeded", done.message
    assert (large(feed)[20], 2 in large(feed)) == ("kept", False)
    # The connector repeats both, and what the table has stays.
    key_changes(feed, DELETED)
    key_changes(feed, CREATED)
    assert run(feed, source=WIDE).outcome == "Succeeded"
    assert (large(feed)[20], 2 in large(feed)) == ("kept", False)


def key_changes(feed: Feed, place: int) -> None:
    """The two halves of such a change, as the connector sends them."""
    if place == DELETED:
        feed.broker.produce(feed.topic, SAMPLE[DELETED:CREATED], headers=NEW_KEY)
    else:
        feed.broker.produce(feed.topic, [with_large(CREATED, UNAVAILABLE)], headers=OLD_KEY)


@pytest.mark.thinned("values")
@pytest.mark.parametrize("behind", ["a change", "another key"])
def test_what_follows_a_key_change_that_comes_again_has_the_value_of_the_row_that_stands(
    feed: Feed, behind: str
) -> None:
    """No snapshot ever had the key before: the row came, and its key changed, in one commit."""
    feed.broker.produce(feed.topic, [SAMPLE[0], with_large(1, "kept"), *SAMPLE[2:DELETED]])
    key_changes(feed, DELETED)
    key_changes(feed, CREATED)
    assert run(feed, source=WIDE).outcome == "Succeeded"
    assert large(feed)[20] == "kept"
    key_changes(feed, DELETED)
    key_changes(feed, CREATED)
    if behind == "a change":
        feed.broker.produce(feed.topic, [later(CREATED, "u", 20)])
    else:
        feed.broker.produce(feed.topic, [later(DELETED, "d", 20)], headers=[("__debezium.newkey", b'{"id":30}')])
        feed.broker.produce(feed.topic, [later(CREATED, "c", 30)], headers=[("__debezium.oldkey", b'{"id":20}')])
    expected = 20 if behind == "a change" else 30
    # One that follows has all of it in one commit.
    driver = feed.start({"mode": "Continuous", "commitIntervalSeconds": 0.3, "source": debezium(feed)})
    wait_for(lambda: lsn(feed, expected) > lsn_of(CREATED), lambda: feed.log())
    end_driver(driver)
    assert large(feed)[expected] == "kept"


def debezium(feed: Feed) -> dict[str, Any]:
    kafka = {"brokers": feed.broker.address, "topics": [feed.topic]}
    return WIDE | {"type": "Debezium", "format": "json", "kafka": kafka}


def lsn(feed: Feed, key: int) -> int:
    """The place of a row's newest change, 0 where there is no row."""
    found = {each["id"]: each["_event_lsn"] for each in feed.rows("id", "_event_lsn")}
    return int(found.get(key, 0))


def lsn_of(place: int) -> int:
    return int(json.loads(SAMPLE[place][1] or b"")["payload"]["source"]["lsn"])


def later(place: int, op: str, key: int) -> tuple[bytes, bytes]:
    """An event of the sample as a later one of a key, which leaves the large value alone."""
    told, text = json.loads(SAMPLE[place][0] or b""), json.loads(SAMPLE[place][1] or b"")
    told["payload"]["id"] = key
    for row in (text["payload"]["before"], text["payload"]["after"]):
        if row is not None:
            row |= {"id": key, "big": UNAVAILABLE}
    text["payload"]["op"] = op
    text["payload"]["source"]["lsn"] += 800
    return json.dumps(told).encode(), json.dumps(text).encode()


@pytest.mark.thinned("values")
def test_a_delete_whose_create_does_not_come_waits_and_ends_the_run(feed: Feed) -> None:
    feed.broker.produce(feed.topic, SAMPLE[:DELETED])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    key_changes(feed, DELETED)
    assert run(feed, source=WIDE).outcome == "NothingToDo"
    assert 2 in large(feed)
    feed.broker.produce(feed.topic, [SAMPLE[8]])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    assert large(feed).keys() == {1}


@pytest.mark.thinned("values")
def test_a_change_that_comes_again_behind_the_delete_of_its_row_has_the_value_of_before(feed: Feed) -> None:
    created, deleted = SAMPLE[2], SAMPLE[8]
    change = json.loads(created[1] or b"")
    change["payload"]["op"] = "u"
    change["payload"]["source"]["lsn"] += 8
    change["payload"]["after"]["big"] = UNAVAILABLE
    key, text = created
    first = json.loads(text or b"")
    first["payload"]["after"]["big"] = "kept"
    again = (key, json.dumps(change).encode())
    for message in ((key, json.dumps(first).encode()), again, deleted):
        feed.broker.produce(feed.topic, [message])
        assert run(feed, source=WIDE).outcome == "Succeeded"
    assert large(feed) == {}
    feed.broker.produce(feed.topic, [again])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    # Logs of later versions keep the place of a delete, and with it what comes again is older.
    is_late = feed.table["type"] == "MergeOnRead" and feed.table["tableVersion"] > 6
    assert large(feed) == ({} if is_late else {3: "kept"})
    feed.broker.produce(feed.topic, [deleted])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    assert large(feed) == {}


@pytest.mark.thinned("values")
def test_a_value_that_is_nowhere_is_refused_by_the_name_of_its_column(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [SAMPLE[0]])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    feed.broker.produce(feed.topic, [with_large(CREATED, UNAVAILABLE)])
    refused = run(feed, source=WIDE)
    assert refused.error_class == "InvalidData"
    assert "its key has changed, and it leaves the large value of big alone, and nothing tells the key before" in (
        refused.message
    )
    assert large(feed).keys() == {1}
    done = run(feed, {"onUndecodable": "Quarantine", "maxErrorRatio": 0.5}, source=WIDE)
    assert (done.outcome, done.figures["recordsRefused"]) == ("Succeeded", 1), done.message


@pytest.mark.thinned("values")
@pytest.mark.parametrize("mode", ["Once", "Continuous"])
@pytest.mark.parametrize("behind", [8, 30], ids=["in the next batch", "far behind"])
def test_what_a_repeated_change_lacks_is_found_behind_the_end_of_its_batch(
    broker: Broker, tmp_path: Path, mode: str, behind: int
) -> None:
    """The connector repeats the change of a row that the table has no more, others follow, and the
    delete of the row."""
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), {"orderingFields": ["_event_lsn"]})
    (key, text), deleted = SAMPLE[2], SAMPLE[8]
    change = json.loads(text or b"")
    change["payload"] |= {"op": "u"}
    change["payload"]["after"]["big"] = UNAVAILABLE
    feed.broker.produce(feed.topic, [(key, json.dumps(change).encode()), *[SAMPLE[0]] * behind, deleted])
    work = {
        "mode": mode,
        **({"commitIntervalSeconds": 0.3} if mode == "Continuous" else {}),
        "source": WIDE
        | {
            "type": "Debezium",
            "format": "json",
            "kafka": {"brokers": broker.address, "topics": [feed.topic], "maxRows": 9},
        },
    }
    if mode == "Once":
        done = feed.run(work)
        assert done.outcome == "Succeeded", done.message
    else:
        driver = feed.start(work)
        wait_for(lambda: count(feed) > 0, lambda: feed.log())
        end_driver(driver)
    assert large(feed).keys() == {1}


def test_a_key_that_changes_waits_for_the_delete_of_the_key_before(broker: Broker, tmp_path: Path) -> None:
    """The two lie in different partitions, and changes of the old key may come still."""
    feed = Feed(tmp_path, broker, broker.topic(partitions=2), {"orderingFields": ["_event_lsn"]})
    broker.produce(feed.topic, [SAMPLE[0], with_large(1, "kept")], partition=0)
    assert run(feed, source=WIDE).outcome == "Succeeded"
    broker.produce(feed.topic, [with_large(CREATED, UNAVAILABLE)], partition=1, headers=OLD_KEY)
    refused = run(feed, source=WIDE)
    assert "the delete of the key before has not come yet" in refused.message
    broker.produce(feed.topic, [SAMPLE[DELETED]], partition=0)
    done = run(feed, source=WIDE)
    assert done.outcome == "Succeeded", done.message
    assert large(feed)[20] == "kept"


@pytest.mark.thinned("values")
@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize(
    "more", [{}, {"onUndecodable": "Quarantine", "maxErrorRatio": 1.0}], ids=["fail", "quarantine"]
)
def test_a_key_that_changes_between_two_partitions_of_one_batch_keeps_its_large_value(
    broker: Broker, tmp_path: Path, engine: str, more: dict[str, Any]
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=2), {"orderingFields": ["_event_lsn"]}, engine=engine)
    broker.produce(feed.topic, [SAMPLE[0], with_large(1, "kept")], partition=0)
    assert run(feed, source=WIDE).outcome == "Succeeded"
    broker.produce(feed.topic, [SAMPLE[DELETED]], partition=0)
    broker.produce(feed.topic, [with_large(CREATED, UNAVAILABLE), SAMPLE[2]], partition=1, headers=OLD_KEY)
    done = run(feed, more, source=WIDE)
    assert (done.outcome, done.figures.get("recordsRefused", 0)) == ("Succeeded", 0), done.message
    assert large(feed)[20] == "kept"


@pytest.mark.parametrize("engine", ["Local", pytest.param("Spark", marks=pytest.mark.spark)])
def test_a_key_that_changes_waits_while_the_other_partition_is_read_up_to_the_delete(
    broker: Broker, tmp_path: Path, engine: str
) -> None:
    """The row of the key before comes in many batches before its delete, and the create at once."""
    feed = Feed(tmp_path, broker, broker.topic(partitions=2), {"orderingFields": ["_event_lsn"]}, engine=engine)
    broker.produce(feed.topic, [with_large(CREATED, UNAVAILABLE)], partition=1, headers=OLD_KEY)
    others = [SAMPLE[0]] * (145 if engine == "Local" else 20)
    broker.produce(feed.topic, [*others, with_large(1, "kept"), *others, SAMPLE[DELETED]], partition=0)
    kafka = {"brokers": broker.address, "topics": [feed.topic], "maxRows": 5 if engine == "Local" else 15}
    done = run(feed, source={**WIDE, "kafka": kafka})
    assert done.outcome == "Succeeded", done.message
    assert large(feed) == {1: large(feed)[1], 20: "kept"}


@pytest.mark.parametrize("rows", [1, 0], ids=["a row", "no row"])
def test_a_value_that_another_writer_changes_meanwhile_is_read_again(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), {"orderingFields": ["_event_lsn"]})
    broker.produce(feed.topic, SAMPLE[:2])
    assert run(feed, source=WIDE).outcome == "Succeeded"
    broker.produce(feed.topic, [SAMPLE[3]])
    looked_up = StoredTable.versions

    def and_another_writes(self: StoredTable, *asked: Any) -> Any:
        for version in looked_up(self, *asked):
            if not others:
                others.append(feed.open())
                found = others[0].scan(filter="id = 1").to_arrow().slice(0, rows)
                place, newer = found.schema.get_field_index("big"), pa.array(["newer"] * rows, pa.string())
                changed = found.set_column(place, found.schema.field(place), newer)
                commit = others[0].upsert(changed, options={"hoodie.allow.empty.commit": "true"})
                assert commit.instant
            yield version

    others: list[Any] = []
    monkeypatch.setattr(StoredTable, "versions", and_another_writes)
    done = run(feed, source=WIDE)
    if rows:
        assert (done.error_class, "has changed rows since: read again" in done.message) == ("WriteConflict", True)
        done = run(feed, source=WIDE)
    assert done.outcome == "Succeeded", done.message
    assert (large(feed)[1] == "newer") == bool(rows)
