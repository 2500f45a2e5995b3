"""A `Continuous` driver on a real broker: it follows the topic, ends when it is told to, and what
it is killed amid is once in the table."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hudi_table.errors import HudiError
from tests.support.feeds import Feed, row
from tests.support.kafka import Broker, running_broker
from tests.support.scale import scaled

FOLLOWING = {"mode": "Continuous", "commitIntervalSeconds": 0.3}
LOGS = {"type": "MergeOnRead", "options": {"hoodie.clean.automatic": "true"}}
UNFOUND = {"index": {"type": "Simple"}}
"""Of tables whose rows are inserted: in a bucket a row that comes again meets the first, and nobody
sees that there were two."""
FOLLOWS = "it follows the topics"
SECONDS_MAX = 60.0
KEYS = 7


def wait_for(found: Callable[[], bool], told: Callable[[], str]) -> None:
    """Until it is found; a failure shows what is told by then."""
    until = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < until, told()
        time.sleep(0.05)


def count(feed: Feed) -> int:
    try:
        return len(feed.rows("id"))
    except (HudiError, FileNotFoundError):
        return 0


def end(driver: subprocess.Popen[bytes]) -> float:
    """Tell it to end; the seconds that it took."""
    began = time.monotonic()
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(30) == 0
    return time.monotonic() - began


def wait_until_it_follows(feed: Feed, run: int | None = None) -> None:
    """Before that a driver that is told to end has nothing to end, and dies of it."""
    wait_for(lambda: FOLLOWS in feed.log(run), lambda: feed.log(run))


@pytest.fixture
def feed(broker: Broker, tmp_path: Path) -> Feed:
    return Feed(tmp_path, broker, broker.topic(), dict(LOGS), dict(FOLLOWING))


def test_it_follows_and_ends_when_told(feed: Feed) -> None:
    driver = feed.start()
    for number in range(3):
        feed.broker.produce(feed.topic, [row(i) for i in range(10 * number, 10 * number + 10)])
        wait_for(lambda wanted=10 * number + 10: count(feed) == wanted, feed.log)  # type: ignore[misc]
    assert end(driver) < 30
    done = feed.result()
    assert (done.outcome, done.figures["messagesRead"]) == ("Succeeded", 30)
    assert done.figures["commits"] >= 3


def test_what_was_read_when_it_is_told_to_end_is_committed(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(i) for i in range(100)])
    driver = feed.start(work={"commitIntervalSeconds": 600})
    wait_until_it_follows(feed)
    time.sleep(3)
    assert count(feed) == 0
    assert end(driver) < 30
    assert (count(feed), feed.result().outcome) == (100, "Succeeded"), feed.log()


def test_it_begins_at_the_end_and_keeps_that_place_while_nothing_comes(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1)])
    driver = feed.start(startFrom={"position": "Latest"})
    wait_until_it_follows(feed)
    feed.broker.produce(feed.topic, [row(2)])
    wait_for(lambda: count(feed) == 1, feed.log)
    end(driver)
    assert [each["n"] for each in feed.rows()] == [2]


def test_its_first_place_is_kept_though_nothing_came_before_it_ended(feed: Feed) -> None:
    feed.broker.produce(feed.topic, [row(1)])
    feed.run({"mode": "Once"})
    feed.work["name"] = "another"
    latest = {"position": "Latest"}
    driver = feed.start(startFrom=latest)
    wait_until_it_follows(feed)
    end(driver)
    feed.broker.produce(feed.topic, [row(2)])
    driver = feed.start(startFrom=latest)
    wait_for(lambda: count(feed) == 2, feed.log)
    end(driver)


def test_a_topic_of_a_pattern_that_is_deleted_keeps_nobody_from_the_others(feed: Feed) -> None:
    gone = feed.broker.topic(f"{feed.topic}-gone")
    feed.broker.produce(gone, [row(1)])
    driver = feed.start(topicPattern=f"{feed.topic}.*")
    wait_for(lambda: count(feed) == 1, feed.log)
    feed.broker.delete(gone)
    for number in (2, 3):
        feed.broker.produce(feed.topic, [row(number)])
        wait_for(lambda wanted=number: count(feed) == wanted, feed.log)  # type: ignore[misc]
    assert end(driver) < 30
    assert f"topic {gone} is not there any more" in feed.log()


def test_two_drivers_of_one_ingest_do_not_double_a_row(feed: Feed) -> None:
    feed.work["operation"] = "Insert"
    feed.table |= UNFOUND
    drivers = [feed.start(), feed.start()]
    for run in (1, 2):
        wait_until_it_follows(feed, run)
    for number in range(scaled(10)):
        feed.broker.produce(feed.topic, [row(i) for i in range(50 * number, 50 * number + 50)])
        time.sleep(0.2)
    total = 50 * scaled(10)
    wait_for(lambda: count(feed) >= total, feed.log)
    for driver in drivers:
        end(driver)
    assert sorted(each["n"] for each in feed.rows()) == list(range(total))


def test_retention_that_passes_by_a_running_driver_stops_it(broker: Broker, tmp_path: Path) -> None:
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), dict(LOGS), dict(FOLLOWING))
    broker.produce(feed.topic, [row(i) for i in range(5)])
    driver = feed.start()
    wait_for(lambda: count(feed) == 5, feed.log)
    driver.send_signal(signal.SIGSTOP)
    broker.produce(feed.topic, [row(i) for i in range(5, 3000)])
    broker.forget(feed.topic, 0, 2990)
    driver.send_signal(signal.SIGCONT)
    # What it had fetched already it may still take.
    wait_for(lambda: driver.poll() is not None or count(feed) == 3000, feed.log)
    if driver.poll() is None:
        end(driver)
        return
    assert feed.result().error_class == "DataLoss", feed.log()
    assert "messages are lost" in feed.result().message


def test_a_driver_that_is_killed_at_random_loses_and_doubles_nothing(
    feed: Feed, figure: Callable[[int, str], None]
) -> None:
    """Rows are inserted without a look for their keys: one that is taken twice is there twice."""
    feed.work["operation"] = "Insert"
    feed.table |= UNFOUND
    draw = random.Random(f"driver {os.environ.get('HUDI_STREAMS_PASS', '')}")
    kills, sent = scaled(4, quick=2), 0
    for _ in range(kills):
        driver = feed.start()
        feed.broker.produce(feed.topic, [row(i) for i in range(sent, sent + 40)])
        sent += 40
        # From before its imports to amid a commit.
        time.sleep(draw.uniform(0.5, 2.5))
        driver.kill()
        driver.wait()
    driver = feed.start()
    wait_until_it_follows(feed)
    wait_for(lambda: count(feed) >= sent, feed.log)
    end(driver)
    assert sorted(each["n"] for each in feed.rows()) == list(range(sent))
    figure(kills, "kills of a continuous driver")


def keyed(first: int, count: int) -> list[tuple[bytes, bytes]]:
    """Messages of a few keys: of each key the number tells the order."""
    return [(f"k{n % KEYS}".encode(), row(n % KEYS, version=n)) for n in range(first, first + count)]


def versions(feed: Feed) -> dict[str, int]:
    try:
        return {each["id"]: each["version"] for each in feed.rows("id", "version")}
    except (HudiError, FileNotFoundError):
        return {}


def newest_of(sent: int) -> dict[str, int]:
    return {f"k{n % KEYS}": n for n in range(sent)}


def test_rows_of_a_key_keep_their_order_under_a_driver_that_is_killed_again_and_again(
    feed: Feed, figure: Callable[[int, str], None]
) -> None:
    """The table has no ordering field: the latest offset of each key wins, and no look at the table
    finds an earlier one than the look before."""
    draw = random.Random(f"order {os.environ.get('HUDI_STREAMS_PASS', '')}")
    kills, sent, seen = scaled(4, quick=2), 0, dict[str, int]()
    for _ in range(kills):
        driver = feed.start()
        feed.broker.produce(feed.topic, keyed(sent, 40))
        sent += 40
        time.sleep(draw.uniform(0.5, 2.5))
        driver.kill()
        driver.wait()
        found = versions(feed)
        assert all(found.get(key, -1) >= version for key, version in seen.items()), "a key went back"
        seen = found
    driver = feed.start()
    # What only this one can have taken: it has begun once that is there.
    feed.broker.produce(feed.topic, keyed(sent, 40))
    sent += 40
    wait_for(lambda: versions(feed) == newest_of(sent), feed.log)
    end(driver)
    assert versions(feed) == newest_of(sent)
    figure(kills, "kills of a continuous driver amid rows of the same keys")


def test_a_broker_that_is_killed_at_random_loses_and_doubles_nothing(
    tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    draw = random.Random(f"broker {os.environ.get('HUDI_STREAMS_PASS', '')}")
    kills, sent = scaled(1), 0
    with running_broker() as broker:
        feed = Feed(tmp_path, broker, broker.topic(), {**LOGS, **UNFOUND}, {**FOLLOWING, "operation": "Insert"})
        ordered = Feed(tmp_path / "ordered", broker, broker.topic(), dict(LOGS), dict(FOLLOWING))
        ordered.folder.mkdir()
        driver, other = feed.start(), ordered.start()
        for _ in range(kills):
            broker.produce(feed.topic, [row(i) for i in range(sent, sent + 40)])
            broker.produce(ordered.topic, keyed(sent, 40))
            sent += 40
            time.sleep(draw.uniform(0.0, 2.0))
            broker.kill()
            time.sleep(draw.uniform(0.0, 1.0))
            broker.start()
        broker.produce(feed.topic, [row(i) for i in range(sent, sent + 40)])
        broker.produce(ordered.topic, keyed(sent, 40))
        sent += 40
        wait_for(lambda: count(feed) >= sent, feed.log)
        wait_for(lambda: versions(ordered) == newest_of(sent), ordered.log)
        end(driver)
        end(other)
        assert sorted(each["n"] for each in feed.rows()) == list(range(sent))
        assert versions(ordered) == newest_of(sent)
    figure(kills, "kills of a broker")


@pytest.mark.parametrize("outlives", [False, True], ids=["nothing is left", "the state is left"])
def test_a_driver_with_a_key_state_that_is_killed_leaves_each_key_once_where_it_went_last(
    outlives: bool, broker: Broker, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    """A few keys move from partition to partition; each driver begins without a state, or with that
    of the one before."""
    options = {"hoodie.clean.automatic": "true"}
    options |= {"hoodie.lakeops.key.state.folder": str(tmp_path / "state")} if outlives else {}
    table = LOGS | {"index": {"type": "KeyState"}, "partitionBy": [{"field": "city"}], "options": options}
    feed = Feed(tmp_path, broker, broker.topic(partitions=1), table, dict(FOLLOWING))
    draw = random.Random(f"state {outlives} {os.environ.get('HUDI_STREAMS_PASS', '')}")
    kills, sent, last = scaled(4, quick=2), 0, dict[str, tuple[str, int]]()
    for round_number in range(kills + 1):
        driver = feed.start()
        wait_until_it_follows(feed)
        for _ in range(5):
            cities = [(draw.randrange(20), draw.choice("xyz"), sent + at) for at in range(8)]
            sent += len(cities)
            feed.broker.produce(feed.topic, [message(key, city, number) for key, city, number in cities])
            last |= {f"k{key}": (city, number) for key, city, number in cities}
            time.sleep(draw.uniform(0, 0.5))
        if round_number < kills:
            driver.kill()
            driver.wait()
    wait_for(lambda: stored(feed) == last, feed.log)
    end(driver)
    assert len(feed.rows("id")) == len(last)
    assert bool(list(tmp_path.glob("state/*/state"))) == outlives
    figure(kills, "kills of a continuous driver with a key state")


def message(key: int, city: str, number: int) -> bytes:
    return json.dumps({"id": f"k{key}", "city": city, "n": number}).encode()


def stored(feed: Feed) -> dict[str, tuple[str, int]]:
    """City and number by key; of a key that is there twice only one."""
    return {each["id"]: (each["city"], each["n"]) for each in feed.rows("id", "city", "n")}
