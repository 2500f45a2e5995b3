"""Drivers that follow a stream of Kinesis, in processes of their own, and what a manifest asks for
by `hudictl local`."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.cli.kubectl.program import main as kubectl_hudi
from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.runtime.local.loop import LocalRuntime
from hudi_table.api import open_table
from hudi_table.cli.program import main as hudictl
from hudi_table.errors import HudiError
from hudi_table.model.job.jobspec import MEMORY_BYTES
from hudi_table.model.job.shards import ShardPositions
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.feeds import end_drivers, row
from tests.support.kinesis import REGION, KinesisFeed, TestStream, as_of_aws, environment_of
from tests.support.manifests import manifest
from tests.support.s3 import S3Server, running_s3
from tests.support.scale import scaled

pytestmark = pytest.mark.s3
QUICK = RetryPolicy(attempts_max=2, backoff_first_seconds=0.2, backoff_max_seconds=0.2)


FOLLOWING = {"mode": "Continuous", "commitIntervalSeconds": 0.3}
FOLLOWS = "it follows the stream"


class OverError(Exception):
    """The test has seen enough."""


@pytest.fixture(scope="module")
def store() -> Iterator[S3Server]:
    with as_of_aws(), running_s3() as found:
        yield found


@pytest.fixture(autouse=True)
def no_driver_is_left() -> Iterator[None]:
    yield
    end_drivers()


@pytest.fixture
def feed(store: S3Server, tmp_path: Path) -> KinesisFeed:
    return KinesisFeed(tmp_path, TestStream(store), work={"operation": "Insert"})


@dataclass
class Place:
    """A folder with a manifest, and its state."""

    folder: Path
    stream: TestStream
    lines: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def location(self) -> str:
        return f"file://{self.folder}/lake/orders"

    def apply(self, *, watch: bool = False, **of_ingest: Any) -> Mapping[str, Any]:
        keys = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": environment_of(self.stream.store)}  # fmt: skip
        asked = of_ingest.pop("kinesis", {})
        source = {"type": "Kinesis", "format": "json", "kinesis": {"stream": self.stream.name, "endpoint": self.stream.store.endpoint, **asked}}  # fmt: skip
        spec: dict[str, Any] = {
            "location": self.location,
            "recordKey": ["id"],
            "index": {"type": "Simple"},
            "storage": {"region": REGION, "credentialsSecretRef": {"name": "keys"}},
            "ingest": [{"name": "feed", "operation": "Insert", "source": source, **of_ingest}],
        }
        path, over = self.folder / "manifest.yaml", self.over
        path.write_text(yaml.safe_dump_all([manifest("orders", **spec), keys]))

        class Clock(SystemClock):
            def sleep(self, seconds: float) -> None:
                if over.is_set():
                    raise OverError
                super().sleep(min(seconds, 0.1))

        runtime = LocalRuntime([path], self.folder / "state", Clock(), self.lines.append, QUICK, watch=watch)
        try:
            return runtime.run()[0]
        except OverError:
            over.clear()
            stored: dict[str, Any] = json.loads(
                (self.folder / "state" / "resources" / "HudiTable.default.orders.json").read_text()
            )
            return stored

    def count(self) -> int:
        try:
            return open_table(self.location).scan(columns=["id"]).to_arrow().num_rows
        except HudiError:
            return 0


@pytest.fixture
def place(store: S3Server, tmp_path: Path) -> Place:
    return Place(tmp_path, TestStream(store))


def condition(found: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return next((each for each in found["status"]["conditions"] if each["type"] == kind), {})


def wait_for(found: Callable[[], bool], place: Place) -> None:
    until = time.monotonic() + 120
    while not found():
        assert time.monotonic() < until, place.lines
        time.sleep(0.1)


def test_what_the_stream_holds_is_taken_and_what_cannot_be_read_is_told(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.stream.put([row(i) for i in range(30)])
    found = place.apply()
    assert (place.count(), condition(found, "Ready")["status"]) == (30, "True"), place.lines
    assert hudictl(["checkpoint", "show", place.location, "-o", "json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    (told,) = [each for each in items if each["ingest"] == "feed"]
    assert (told["source"], told["checkpoint"].startswith(f"{place.stream.name},shardId-")) == ("Kinesis", True)
    place.stream.put([b"{", row(30)])
    stalled = condition(place.apply(activeDeadline="1h"), "Stalled")
    assert stalled["reason"] == "InvalidData", place.lines
    found = place.apply(onUndecodable="Quarantine")
    assert (place.count(), found["status"]["ingest"][0]["refusedMessages"]) == (31, 1)


def lag(place: Place, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert kubectl_hudi(["lag", "orders", "--file", str(place.folder / "manifest.yaml"), "-o", "json"]) == 0
    items: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["items"]
    return items


def test_the_status_tells_for_how_long_a_record_waits(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.stream.put([row(i) for i in range(10)])
    found = place.apply(freshness="1s", kinesis={"every": "1h"})
    assert (condition(found, "Fresh")["reason"], found["status"]["ingest"][0]["lag"]) == ("UpToDate", "0s"), place.lines
    place.stream.put([row(10)])
    time.sleep(2.1)
    shards = {each["secondsBehind"]: each for each in lag(place, capsys)}
    late = max(shards)
    assert (late >= 2, min(shards)) == (True, 0), "of the shards that hold nothing new none does"
    assert (shards[late]["rowsBehind"], shards[late]["bytesBehind"], shards[0]["rowsBehind"]) == (None, None, 0)
    found = place.apply(freshness="1s", kinesis={"every": "1h"})
    assert "pendingBytes" not in found["status"]["ingest"][0]
    assert condition(found, "Fresh")["message"].endswith("the oldest for longer than 1s"), found["status"]
    assert found["status"]["ingest"][0]["lag"] != "0s"
    assert found["status"]["ingest"][0]["retentionRemaining"].startswith("23h")
    assert condition(found, "AtRisk")["reason"] == "KeptLongEnough"
    place.stream.state.retention_period_hours = 0
    found = place.apply(freshness="1s", kinesis={"every": "1h"})
    assert condition(found, "AtRisk")["reason"] == "DeletedUnread", found["status"]
    assert place.count() == 10


def test_a_checkpoint_is_set_in_hudis_own_words(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.stream = TestStream(place.stream.store, count=1)
    place.stream.put([row(i) for i in range(10)])
    place.apply()
    (shard,) = place.stream.open_shards()
    numbers = list(place.stream.state.shards[shard].records)
    there = f"{place.stream.name},{shard}:{numbers[6]}"
    assert hudictl(["checkpoint", "set", place.location, "feed", there]) == 1
    refused = capsys.readouterr().err
    assert f"shard {shard} of stream {place.stream.name} is at {numbers[9]}, and {numbers[6]} lies before it" in refused
    assert "give --yes" in refused
    assert hudictl(["checkpoint", "set", place.location, "feed", there, "--yes"]) == 0
    capsys.readouterr()
    assert hudictl(["checkpoint", "show", place.location, "-o", "json"]) == 0
    shown = {each["ingest"]: each["checkpoint"] for each in json.loads(capsys.readouterr().out)["items"]}
    assert shown == {"feed": there, None: there}
    context = open_table(place.location).context
    extra = commit_metadata(context, load_timeline(context).commits[-1]).extra_metadata
    audit = json.loads(extra["lakeops.checkpoint.set"])
    assert (audit["ingest"], ShardPositions.from_text(audit["before"]).shards[shard].after) == ("feed", str(numbers[9]))
    place.apply(activeDeadline="1h")
    assert place.count() == 13, "three came again, as was confirmed"
    for text in ("orders,shardId-1", f"{there},{shard}"):
        assert hudictl(["checkpoint", "set", place.location, "feed", text]) == 1
        assert "give stream,shard:sequence" in capsys.readouterr().err


def test_one_driver_follows_the_stream(place: Place) -> None:
    seen: list[str] = []

    def life() -> None:
        for number in range(3):
            place.stream.put([row(i) for i in range(20 * number, 20 * number + 20)])
            wait_for(lambda wanted=20 * number + 20: place.count() == wanted, place)  # type: ignore[misc]
            place.stream.split(place.stream.open_shards()[0])
        seen.extend(path.parent.name for path in (place.folder / "state" / "attempts").glob("*/process.json"))
        place.over.set()

    other = threading.Thread(target=life)
    other.start()
    try:
        place.apply(watch=True, mode="Continuous", commitInterval="300ms")
    finally:
        other.join()
    assert len(seen) == 1, place.lines
    assert place.count() == 60


def wait_until(found: Callable[[], bool], told: Callable[[], str]) -> None:
    until = time.monotonic() + 120
    while not found():
        assert time.monotonic() < until, told()
        time.sleep(0.05)


def count(feed: KinesisFeed) -> int:
    try:
        return len(feed.numbers())
    except (HudiError, FileNotFoundError):
        return 0


def end(driver: subprocess.Popen[bytes]) -> None:
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(30) == 0


def test_a_driver_follows_and_ends_with_what_it_has_read(feed: KinesisFeed) -> None:
    driver = feed.start(work=FOLLOWING)
    for number in range(3):
        feed.stream.put([row(i) for i in range(10 * number, 10 * number + 10)])
        wait_until(lambda wanted=10 * number + 10: count(feed) == wanted, feed.log)  # type: ignore[misc]
    feed.stream.split(feed.stream.open_shards()[0])
    feed.stream.put([row(i) for i in range(30, 60)])
    wait_until(lambda: count(feed) == 60, feed.log)
    end(driver)
    assert feed.result().figures["messagesRead"] == 60
    feed.stream.put([row(i) for i in range(60, 70)])
    driver = feed.start(work={**FOLLOWING, "commitIntervalSeconds": 600})
    wait_until(lambda: FOLLOWS in feed.log(), feed.log)
    time.sleep(3)
    assert count(feed) == 60
    end(driver)
    assert feed.numbers() == list(range(70))


def test_a_driver_ends_behind_the_commit_that_left_it_little_memory(feed: KinesisFeed) -> None:
    for number in range(2):
        feed.stream.put([row(i) for i in range(10 * number, 10 * number + 10)])
        assert feed.start(work={**FOLLOWING, MEMORY_BYTES: 1 << 20}).wait(60) == 0, feed.log()
        done = feed.result()
        assert (done.outcome, done.figures["commits"], done.figures[MEMORY_BYTES]) == ("Succeeded", 1, 1 << 20)
    assert feed.numbers() == list(range(20))


def test_two_drivers_of_one_ingest_do_not_double_a_record(feed: KinesisFeed) -> None:
    started = [feed.start(work=FOLLOWING), feed.start(work=FOLLOWING)]
    wait_until(lambda: FOLLOWS in feed.log(), feed.log)
    for number in range(scaled(5)):
        feed.stream.put([row(i) for i in range(50 * number, 50 * number + 50)])
        time.sleep(0.3)
    wait_until(lambda: count(feed) >= 50 * scaled(5), feed.log)
    for driver in started:
        wait_until(lambda: FOLLOWS in feed.log(), feed.log)
        end(driver)
    assert feed.numbers() == list(range(50 * scaled(5)))


def test_a_driver_that_is_killed_at_random_loses_and_doubles_nothing(feed: KinesisFeed) -> None:
    draw, sent = random.Random(3), 0
    for kill in range(scaled(5, quick=2)):
        driver = feed.start(work=FOLLOWING)
        feed.stream.put([row(i) for i in range(sent, sent + 40)])
        sent += 40
        time.sleep(draw.uniform(0.5, 2.5))
        if kill % 2:
            feed.stream.split(draw.choice(feed.stream.open_shards()))
        driver.kill()
        driver.wait()
    driver = feed.start(work=FOLLOWING)
    wait_until(lambda: FOLLOWS in feed.log(), feed.log)
    wait_until(lambda: count(feed) >= sent, feed.log)
    end(driver)
    assert feed.numbers() == list(range(sent))
