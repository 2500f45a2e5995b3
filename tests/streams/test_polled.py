"""`Continuous` drivers of sources that are asked, against real parts: a folder, a queue of SQS
(moto), a PostgreSQL, a statement over another table, a package. Each takes what comes once, ends
when it is told to, and what it is killed amid is once in the table."""

from __future__ import annotations

import random
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_operator.runtime.local import loop
from hudi_table.model.job.jobspec import MEMORY_BYTES
from hudi_table.sources.custom import GROUP
from tests.support import polled, postgres
from tests.support.index_package import written_package
from tests.support.manifests import manifest
from tests.support.operated import Kept
from tests.support.polled import Polled
from tests.support.s3 import ACCESS, running_s3
from tests.support.scale import scaled

FOLLOWS = "it follows its source"
SECONDS_MAX = 60.0
KINDS = ["folder", pytest.param("queue", marks=pytest.mark.s3), "database", "statement", "package"]
ACCOUNT = "123456789012"


def wait_for(found: Callable[[], bool], told: Callable[[], str]) -> None:
    until = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < until, told()
        time.sleep(0.05)


def end(driver: subprocess.Popen[bytes]) -> float:
    """Tell it to end; the seconds that it took."""
    began = time.monotonic()
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(30) == 0
    return time.monotonic() - began


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with postgres.running_postgres() as found:
        yield found


@pytest.fixture
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Polled]]:
    """Makes the ingest of a kind of source."""
    with written_package(tmp_path / "package", "lines_package", polled.PACKAGE, "lines = lines_package:Lines", GROUP):

        def make(kind: str) -> Polled:
            folder = tmp_path / "work"
            folder.mkdir()
            if kind == "folder":
                return polled.of_folder(folder)
            if kind == "statement":
                return polled.of_statement(folder)
            if kind == "package":
                return polled.of_package(folder)
            if kind == "database":
                monkeypatch.setenv("DATABASE_USERNAME", postgres.USER)
                monkeypatch.setenv("DATABASE_PASSWORD", postgres.PASSWORD)
                return polled.of_database(folder, request.getfixturevalue("server"))
            for name, value in ACCESS.items():
                monkeypatch.setenv(f"AWS_{name.upper()}", value)
            return queued(folder, request.getfixturevalue("store"))

        yield make


@pytest.fixture
def store() -> Iterator[Any]:
    with running_s3() as found:
        yield found


def queued(folder: Path, store: Any) -> Polled:
    """An ingest whose bucket sends its events to a queue."""
    import boto3  # type: ignore[import-untyped]

    keys = {f"aws_{name}": value for name, value in ACCESS.items()}
    client = boto3.client("sqs", endpoint_url=store.endpoint, region_name="us-east-1", **keys)
    name = uuid.uuid4().hex[:10]
    url = client.create_queue(QueueName=name)["QueueUrl"]
    configured = {"QueueArn": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}", "Events": ["s3:ObjectCreated:*"]}
    store.client().put_bucket_notification_configuration(
        Bucket=store.bucket, NotificationConfiguration={"QueueConfigurations": [configured]}
    )
    return polled.of_queue(folder, store, name, url)


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_takes_what_comes_and_ends_when_told(made: Callable[[str], Polled], kind: str) -> None:
    feed = made(kind)
    driver = feed.start()
    for number in range(3):
        feed.put(range(10 * number, 10 * number + 10))
        wait_for(lambda wanted=10 * number + 10: len(feed.numbers()) == wanted, feed.log)  # type: ignore[misc]
    assert end(driver) < 30
    done = feed.result()
    assert (done.outcome, done.figures["recordsInserted"]) == ("Succeeded", 30), done.message
    assert done.figures["commits"] >= 3
    assert feed.numbers() == list(range(30))
    assert feed.run().outcome == "NothingToDo", "a run in mode Once goes on from there"


@pytest.mark.parametrize("kind", KINDS)
def test_it_looks_each_interval_and_is_not_kept_by_one_from_ending(made: Callable[[str], Polled], kind: str) -> None:
    feed = made(kind)
    feed.put(range(10))
    driver = feed.start(commitIntervalSeconds=600)
    wait_for(lambda: len(feed.numbers()) == 10, feed.log)
    feed.put(range(10, 20))
    time.sleep(2)
    assert end(driver) < 30
    assert feed.numbers() == list(range(10))
    assert feed.result().figures["commits"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_it_ends_behind_the_commit_that_left_it_little_memory(made: Callable[[str], Polled], kind: str) -> None:
    feed = made(kind)
    for number in range(2):
        feed.put(range(10 * number, 10 * number + 10))
        assert feed.start(**{MEMORY_BYTES: 1 << 20}).wait(60) == 0, feed.log()
        done = feed.result()
        assert (done.outcome, done.figures["commits"], done.figures[MEMORY_BYTES]) == ("Succeeded", 1, 1 << 20)
        assert "ended for a successor to go on" in done.message
    assert feed.numbers() == list(range(20))


@pytest.mark.parametrize("kind", KINDS)
def test_two_drivers_of_one_ingest_do_not_double_a_row(made: Callable[[str], Polled], kind: str) -> None:
    feed = made(kind)
    started = [feed.start(), feed.start()]
    for run in (1, 2):
        wait_for(lambda run=run: FOLLOWS in feed.log(run), lambda run=run: feed.log(run))  # type: ignore[misc]
    total = 20 * scaled(6, quick=3)
    for first in range(0, total, 20):
        feed.put(range(first, first + 20))
        time.sleep(0.2)
    wait_for(lambda: len(feed.numbers()) >= total, feed.log)
    for driver in started:
        end(driver)
    assert feed.numbers() == list(range(total))


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_that_is_killed_at_random_loses_and_doubles_nothing(
    made: Callable[[str], Polled], kind: str, figure: Callable[[int, str], None]
) -> None:
    """Rows are inserted, where the source takes that, without a look for their keys: one that is
    taken twice is there twice."""
    feed, draw = made(kind), random.Random(f"polled {kind}")
    kills, sent = scaled(4, quick=2), 0
    for _ in range(kills):
        driver = feed.start()
        for _ in range(4):
            feed.put(range(sent, sent + 10))
            sent += 10
            time.sleep(draw.uniform(0.2, 0.8))
        driver.kill()
        driver.wait()
        if kind == "queue":
            # Nobody hides any more what the killed one has received.
            shown(feed)
    driver = feed.start()
    wait_for(lambda: FOLLOWS in feed.log(), feed.log)
    wait_for(lambda: len(feed.numbers()) >= sent, feed.log)
    end(driver)
    assert feed.numbers() == list(range(sent))
    figure(kills, "kills of a continuous driver that asks its source")


def shown(feed: Polled) -> None:
    """Let every message of the queue be seen, as the end of its visibility timeout does."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.sqs.models import sqs_backends

    queue = sqs_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].queues[
        feed.source["notifications"]["queue"].rpartition("/")[2]
    ]
    for message in queue._messages:
        message.change_visibility(0)


@pytest.mark.parametrize("kind", ["folder", "database", "statement", "package"])
def test_a_driver_that_dies_has_one_successor(
    made: Callable[[str], Polled], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "RUN_RECHECK_SECONDS", 3.0)
    feed, kept = made(kind), Kept(tmp_path / "kept")
    kept.folder.mkdir()
    asked: dict[str, Any] = {
        "name": "feed", "mode": "Continuous", "commitInterval": "300ms", "operation": feed.operation, "source": feed.source,
    }  # fmt: skip
    if kind in ("database", "statement"):
        own = {**asked["source"][asked["source"]["type"].lower()], "incremental": {"column": "n", "lag": "0"}}
        asked["source"] = {"type": asked["source"]["type"], asked["source"]["type"].lower(): own}
    document = manifest(
        "orders", location=f"file://{kept.location}", recordKey=["id"], index={"type": "Simple"}, ingest=[asked]
    )

    def life() -> None:
        feed.put(range(10))
        kept.wait_for(lambda: kept.count() == 10)
        (first,) = (kept.folder / "state" / "attempts").glob("*/process.json")
        polled.kill_of(first)
        feed.put(range(10, 20))
        kept.wait_for(lambda: kept.count() == 20)
        assert len(kept.attempts()) == 2
        if kind in ("database", "statement"):
            kept.wait_for(lambda: kept.stored()["status"]["ingest"][0].get("position") == "19")

    kept.keep(life, document)
    assert (kept.count(), len(kept.attempts())) == (20, 2), kept.lines


def test_a_backlog_of_files_becomes_commits_of_so_many_bytes(made: Callable[[str], Polled]) -> None:
    feed = made("folder")
    for number in range(6):
        feed.put(range(10 * number, 10 * number + 10))
    size = len(polled.parquet(polled.rows_of(range(10))))
    once = feed.run(source={"maxBytes": 4 * size + size // 2})
    assert (once.figures["commits"], once.figures["filesConsumed"]) == (2, 6)
    for number in range(6, 12):
        feed.put(range(10 * number, 10 * number + 10))
    driver = feed.start(source={"maxBytes": 1}, commitIntervalSeconds=600)
    wait_for(lambda: len(feed.numbers()) == 120, feed.log)
    end(driver)
    assert feed.result().figures["commits"] == 6, (
        "one larger than that is a commit of its own, and the next comes at once"
    )


@pytest.mark.s3
def test_messages_of_files_that_one_commit_does_not_hold_are_received_once(made: Callable[[str], Polled]) -> None:
    feed = made("queue")
    feed.put(range(10))
    assert feed.run().outcome == "Succeeded"
    for number in range(1, 4):
        feed.put(range(10 * number, 10 * number + 10))
    done = feed.run(source={"maxBytes": 1})
    assert (done.figures["commits"], done.figures["filesConsumed"]) == (3, 3)
    assert feed.run().outcome == "NothingToDo"
    assert feed.numbers() == list(range(40))


@pytest.mark.parametrize("kind", ["database", "statement"])
def test_what_would_be_read_whole_again_and_again_is_refused_by_name(made: Callable[[str], Polled], kind: str) -> None:
    feed = made(kind)
    name = str(feed.source["type"])
    whole = {key: value for key, value in feed.source[name.lower()].items() if key != "incremental"}
    refused = feed.run(source={name.lower(): whole}, mode="Continuous")
    assert refused.error_class == "InvalidRequest"
    assert f"mode Continuous of a source of type {name} needs {name.lower()}.incremental" in refused.message


def test_answers_of_a_package_are_one_commit_until_their_columns_change(made: Callable[[str], Polled]) -> None:
    feed = made("package")
    feed.put(range(21))
    lines = Path(feed.source["custom"]["options"]["path"])
    lines.write_text(lines.read_text() + '{"id": "k21", "n": 21, "more": "x"}\n')
    driver = feed.start(commitIntervalSeconds=600)
    wait_for(lambda: len(feed.numbers()) == 22, feed.log)
    end(driver)
    assert feed.result().figures["commits"] == 2, feed.log()
    assert feed.run().outcome == "NothingToDo"


def test_a_file_that_cannot_be_read_ends_the_driver_by_its_name(made: Callable[[str], Polled]) -> None:
    feed = made("folder")
    feed.put(range(10))
    driver = feed.start()
    wait_for(lambda: len(feed.numbers()) == 10, feed.log)
    (feed.folder / "landing" / "bad.parquet").write_bytes(b"no parquet at all")
    assert driver.wait(60) != 0
    done = feed.result()
    assert (done.error_class, "bad.parquet" in done.message) == ("InvalidData", True), done.message
    assert feed.numbers() == list(range(10))


def test_a_database_that_is_away_is_asked_again(made: Callable[[str], Polled], server: postgres.Server) -> None:
    feed = made("database")
    feed.put(range(10))
    driver = feed.start()
    wait_for(lambda: len(feed.numbers()) == 10, feed.log)
    server.kill()
    wait_for(lambda: "goes on from the newest checkpoint" in feed.log(), feed.log)
    server.start()
    feed.put(range(10, 20))
    wait_for(lambda: len(feed.numbers()) == 20, feed.log)
    end(driver)


def test_a_file_that_is_replaced_is_taken_anew(made: Callable[[str], Polled]) -> None:
    feed = made("folder")
    feed.operation = "Upsert"
    path, part = (feed.folder / "landing" / name for name in ("a.parquet", ".a.parquet"))
    path.write_bytes(polled.parquet(polled.rows_of(range(10))))
    driver = feed.start()
    wait_for(lambda: len(feed.numbers()) == 10, feed.log)
    again = pa.table({"id": ["k0"], "n": pa.array([100], pa.int64())})
    part.write_bytes(polled.parquet(again))
    part.rename(path)
    wait_for(lambda: 100 in feed.numbers(), feed.log)
    end(driver)
    assert feed.numbers() == [*range(1, 10), 100]


SLOW = """create or replace function slow(id text) returns text language plpgsql stable as
$$ begin perform pg_sleep(0.5); return repeat(id, 500000); end $$"""


@pytest.mark.parametrize(
    ("query", "begun", "seconds"),
    [
        ("select id, n, slow(id) as text from {table}", "reading 200 rows", 12),
        ("select id, n from {table}, pg_sleep(90)", "the job begins", 30),
    ],
    ids=["rows that come slowly", "an answer that does not begin"],
)
def test_a_driver_that_is_told_to_end_amid_a_long_first_load_ends_in_time_and_leaves_nothing(
    made: Callable[[str], Polled], server: postgres.Server, query: str, begun: str, seconds: float
) -> None:
    feed = made("database")
    feed.put(range(200))
    server.execute(SLOW)
    jdbc = feed.source["jdbc"]
    asked = {key: value for key, value in jdbc.items() if key != "table"} | {"query": query.format(table=jdbc["table"])}
    driver = feed.start(source={"jdbc": asked})
    wait_for(lambda: begun in feed.log(), feed.log)
    time.sleep(3)
    assert end(driver) < seconds, feed.log()
    done = feed.result()
    assert (done.outcome, done.message.startswith("it was told to end")) == ("NothingToDo", True), done.message
    assert feed.numbers() == []
    assert feed.run().outcome == "Succeeded"
    assert feed.numbers() == list(range(200))
