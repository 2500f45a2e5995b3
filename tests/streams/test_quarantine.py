"""Messages that cannot be read or do not hold what they must, on a real broker: told of, left out,
or kept beside the table with their place and reason."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import open_table
from hudi_table.errors import TableNotFoundError
from hudi_table.services.ingesting import Ingest
from hudi_table.services.transforming.steps import GROUP
from hudi_table.sources.checkpoints import current_positions
from tests.support.feeds import Feed, row
from tests.support.index_package import written_package
from tests.support.kafka import Broker
from tests.support.scale import scaled

QUARANTINE = {"onUndecodable": "Quarantine", "maxErrorRatio": 0.05}


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(partitions=1))


def errors(feed: Feed) -> list[dict[str, Any]]:
    try:
        table: pa.Table = open_table(f"file://{feed.location}_errors").scan().to_arrow()
    except TableNotFoundError:
        return []
    return sorted(table.to_pylist(), key=lambda each: (each["partition"], each["offset"]))


def refused_in_all(feed: Feed) -> int:
    held = current_positions(feed.open().context, "feed", feed.topic)
    assert held is not None
    return held.positions.refused


def expectation(sql: str, on_fail: str, name: str = "sound") -> dict[str, Any]:
    return {"expectations": [{"name": name, "sql": sql, "onFail": on_fail}], "maxErrorRatio": 0.05}


def test_a_message_that_cannot_be_read_is_kept_with_its_place_reason_and_bytes(feed: Feed) -> None:
    good = [row(i) for i in range(40)]
    feed.broker.produce(feed.topic, [(b"k", good[0]), (b"key", b"{"), *good[1:20], b"[1]", *good[20:]])
    done = feed.run(dict(QUARANTINE))
    assert done.outcome == "Succeeded", done.message
    assert (done.figures["messagesRead"], done.figures["recordsRefused"], done.figures["recordsInserted"]) == (
        42,
        2,
        40,
    )
    assert [each["n"] for each in feed.rows()] == sorted(range(40), key=lambda n: f"k{n}")
    first, second = errors(feed)
    assert {name: first[name] for name in ("ingest", "topic", "partition", "offset", "rule", "key", "value")} == {
        "ingest": "feed", "topic": feed.topic, "partition": 0, "offset": 1, "rule": None, "key": b"key", "value": b"{",
    }  # fmt: skip
    assert first["reason"].startswith("the value cannot be read as json: ")
    assert (first["timestamp"].year >= 2024, first["attempt"], first["topic_id"] != "") == (True, "run-1", True)
    assert (second["offset"], second["value"]) == (21, b"[1]")
    assert refused_in_all(feed) == 2
    feed.broker.produce(feed.topic, [b"{", row(50)])
    feed.run(dict(QUARANTINE))
    assert (refused_in_all(feed), len(errors(feed)), len(feed.rows())) == (3, 3, 41)


def test_a_message_that_contradicts_those_before_it_is_kept_too(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1), b'{"id":"a","n":"text"}', row(2)])
    assert feed.run(dict(QUARANTINE)).figures["recordsRefused"] == 1
    assert [each["offset"] for each in errors(feed)] == [1]
    # Now the table tells the type.
    feed.broker.produce(feed.topic, [b'{"id":"b","n":"text"}', row(3)])
    assert feed.run(dict(QUARANTINE)).figures["recordsRefused"] == 1
    assert {each["n"] for each in feed.rows()} == {1, 2, 3}


def test_more_than_may_be_refused_stops_the_ingest_and_commits_nothing(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [*(row(i) for i in range(189)), *[b"{"] * 11])
    failed = feed.run({**QUARANTINE, "maxErrorRatio": 0.05})
    assert failed.error_class == "InvalidData"
    assert "more messages of one commit cannot be read as json than maxErrorRatio 0.05 lets through" in failed.message
    assert f"the message of topic {feed.topic}, partition 0, offset 199" in failed.message
    assert (errors(feed), feed.location.exists()) == ([], False)
    assert feed.run({**QUARANTINE, "maxErrorRatio": 0.06}).figures["recordsRefused"] == 11


def test_ten_are_refused_in_any_case_also_before_there_is_a_table(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [b"{"] * 10)
    assert feed.run({**QUARANTINE, "maxErrorRatio": 0.0}).outcome == "NothingToDo"
    assert len(errors(feed)) == 10
    feed.broker.produce(feed.topic, [row(1)])
    # No table could hold how far it was: they are read again, and stand there once.
    assert feed.run(dict(QUARANTINE)).figures["recordsInserted"] == 1
    assert (len(errors(feed)), refused_in_all(feed)) == (10, 10)


def test_an_attempt_that_dies_between_the_two_tables_keeps_each_message_once(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.broker.produce(feed.topic, [row(1), b"{", row(2)])
    with monkeypatch.context() as patched:

        def dies(*_: Any, **__: Any) -> None:
            raise MemoryError("here")

        patched.setattr(Ingest, "commit", dies)
        assert feed.run(dict(QUARANTINE)).outcome == "Failed"
    assert len(errors(feed)) == 1
    assert feed.run(dict(QUARANTINE)).figures["recordsRefused"] == 1
    assert [(each["offset"], each["attempt"]) for each in errors(feed)] == [(1, "run-2")]
    assert {each["n"] for each in feed.rows()} == {1, 2}


@pytest.mark.parametrize(
    ("on_fail", "refused", "dropped"), [("Quarantine", 3, 0), ("Drop", 0, 3)], ids=["quarantine", "drop"]
)
def test_rows_that_do_not_hold_what_they_must_are_kept_beside_or_left_out(
    feed: Feed, on_fail: str, refused: int, dropped: int
) -> None:
    feed.broker.produce(feed.topic, [row(1), row(-2), b'{"id":"none"}', row(3), row(-4)])
    done = feed.run({**expectation("n >= 0", on_fail), "transform": [{"sql": "select id, n * 2 n from source"}]})
    assert done.outcome == "Succeeded", done.message
    assert (done.figures.get("recordsRefused", 0), done.figures.get("recordsDropped", 0)) == (refused, dropped)
    assert [each["n"] for each in feed.rows()] == [2, 6]
    told = [(each["offset"], each["rule"], each["reason"]) for each in errors(feed)]
    words = "it does not meet expectation 'sound': n >= 0"
    assert told == [(offset, "sound", words) for offset in ((1, 2, 4) if refused else ())]


def test_an_expectation_may_end_the_ingest_and_names_the_message(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1), row(-2), row(-3)])
    failed = feed.run(expectation("n >= 0", "Fail"))
    assert failed.error_class == "InvalidData"
    words = f"topic {feed.topic}, partition 0, offset 1 does not meet expectation 'sound': n >= 0, nor do 1 more"
    assert words in failed.message
    assert not feed.location.exists()


STRICT = """
def strict(rows):
    bad = [n for n in rows["n"].to_pylist() if n is not None and n > 90]
    if bad:
        raise ValueError(f"{bad[0]} is too much")
    return rows
"""


def test_rows_that_a_transform_cannot_take_are_kept_with_the_step_and_the_message(feed: Feed, tmp_path: Path) -> None:
    feed.broker.produce(feed.topic, [row(1), row(-2), row(91), row(3), b'{"id":"none"}', row(92)])
    steps = [{"function": "strict", "onFail": "Quarantine"}, {"sql": "select id, n from source"}]
    with written_package(tmp_path / "package", "strict_package", STRICT, "strict = strict_package:strict", GROUP):
        done = feed.run({**expectation("n is null or n >= 0", "Quarantine"), "transform": steps})
    assert done.outcome == "Succeeded", done.message
    assert (done.figures["recordsRefused"], refused_in_all(feed)) == (3, 3)
    assert [(each["id"], each["n"]) for each in feed.rows()] == [("k1", 1), ("k3", 3), ("none", None)]
    told = [(each["offset"], each["rule"]) for each in errors(feed)]
    assert told == [(1, "sound"), (2, "transform 1"), (5, "transform 1")]
    assert errors(feed)[1]["value"] == row(91)
    assert errors(feed)[1]["reason"].endswith("ValueError: 91 is too much")


def test_an_expectation_that_cannot_be_asked_of_a_message_is_not_met_by_it_alone(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1, size="1"), row(2, size="large"), row(3, size="0")])
    done = feed.run(expectation("cast(size as int) > 0", "Quarantine"))
    assert done.outcome == "Succeeded", done.message
    assert [each["n"] for each in feed.rows()] == [1]
    first, second = errors(feed)
    assert (first["offset"], second["offset"]) == (1, 2)
    assert "large is no whole number" in first["reason"]


def test_tombstones_have_nothing_to_meet_and_those_without_a_key_are_kept(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [(b"k1", row(1)), (b"k2", row(2)), (b"k1", None), (None, None)])
    work = {**expectation("n >= 0", "Quarantine"), **QUARANTINE}
    done = feed.run(work, tombstones="Delete")
    assert done.outcome == "Succeeded", done.message
    assert [each["n"] for each in feed.rows()] == [2]
    (kept,) = errors(feed)
    assert (kept["offset"], kept["reason"]) == (3, "a tombstone without a key: nothing says which row it deletes")


def test_keys_of_tombstones_that_cannot_be_read_are_kept(feed: Feed) -> None:
    messages = [(b'{"id":"k1"}', row(1)), (b"{", None), (b'{"id":"k1"}', None), (b'{"x":1}', None)]
    feed.broker.produce(feed.topic, messages)
    done = feed.run(dict(QUARANTINE), tombstones="Delete", keyFormat="json")
    assert done.outcome == "Succeeded", done.message
    assert (feed.rows(), [each["offset"] for each in errors(feed)]) == ([], [1, 3])


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("n >", "expectation 'sound': the transform"),
        ("hash(n) > 0", "uses HASH"),
        ("count(*) > 0", "is no condition on one row"),
        ("n > 0) from source where (n > 1", "expectation 'sound': the transform is no SQL"),
        ("n > 0, n < 9", "uses TUPLE"),
    ],
)
def test_an_expectation_that_is_none_is_refused_before_a_message_is_read(feed: Feed, sql: str, words: str) -> None:
    refused = feed.run(expectation(sql, "Drop"), brokers="127.0.0.1:1")
    assert (refused.error_class, words in refused.message) == ("InvalidRequest", True), refused.message


def test_what_is_no_condition_is_told_with_the_first_rows(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1)])
    refused = feed.run(expectation("n + 1", "Drop"))
    assert "expectation 'sound' is int64, which is no condition: n + 1" in refused.message


def test_under_kills_each_message_is_in_one_of_the_two_tables_and_once(feed: Feed) -> None:
    draw, sent = random.Random("quarantine"), 0
    work = {**QUARANTINE, "mode": "Continuous", "commitIntervalSeconds": 0.3, "operation": "Insert"}
    feed.table |= {"index": {"type": "Simple"}}

    def produce() -> int:
        feed.broker.produce(feed.topic, [b"{" if n % 20 == 0 else row(n) for n in range(sent, sent + 60)])
        return sent + 60

    for _ in range(scaled(3)):
        driver = feed.start(work)
        sent = produce()
        time.sleep(draw.uniform(1.0, 3.0))
        driver.kill()
        driver.wait()
    sent = produce()
    done = feed.run({**work, "mode": "Once"})
    assert done.outcome in ("Succeeded", "NothingToDo"), done.message
    assert sorted(each["n"] for each in feed.rows()) == [n for n in range(sent) if n % 20]
    assert [each["offset"] for each in errors(feed)] == [n for n in range(sent) if n % 20 == 0]
    assert refused_in_all(feed) == len(errors(feed))


def test_bad_messages_that_come_slowly_end_a_run_whose_every_commit_holds_few(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [b"{" if i % 5 < 2 else row(i) for i in range(40)])
    failed = feed.run(dict(QUARANTINE), maxRows=5)
    assert failed.error_class == "InvalidData"
    assert "12 of 30 messages of this run are refused, more than maxErrorRatio 0.05 lets through" in failed.message
    assert len(feed.rows()) == 15, "what was committed before stays"
    assert refused_in_all(feed) == 10


def test_a_first_commit_whose_rows_are_all_refused_makes_the_table_and_passes_them(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(-1), row(-2)])
    done = feed.run(expectation("n >= 0", "Quarantine"))
    assert (done.outcome, done.figures["recordsRefused"]) == ("Succeeded", 2)
    assert (feed.rows(), len(errors(feed))) == ([], 2)
    assert feed.run(expectation("n >= 0", "Quarantine")).outcome == "NothingToDo"


def test_where_no_message_can_be_read_there_is_no_table_and_each_is_kept_once_whoever_reads_it(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [b"{", b"[]"])
    for _ in range(2):
        done = feed.run(dict(QUARANTINE))
        assert done.outcome == "NothingToDo"
        assert "no message can be read, of which a table could be made: 2 are in its error table" in done.message
    assert not feed.location.exists()
    assert len(errors(feed)) == 2
