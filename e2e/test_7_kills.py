"""Drivers that follow a topic are killed, deleted and evicted again and again, while messages come:
each row is in the table once, rows of a key keep their order, and each driver has one successor.

`HUDI_TEST_SCALE` multiplies how often.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import secrets
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from e2e.support import times
from e2e.support.broker import ADDRESS, Broker
from e2e.support.drivers import Ends, Sight, Way, attempt_of, delete_by_force, evict, kill_process, watched
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import REGION, Lake
from e2e.support.operator import NAMESPACE, OWNER, Resource
from e2e.support.tables import flights, on_one_executor
from hudi_operator.api.names import API_VERSION
from hudi_table import open_table
from hudi_table.api import HudiTable
from hudi_table.errors import TableNotFoundError
from hudi_table.model.job.checkpoint import KEY_PREFIX
from hudi_table.model.timeline.instants import Instant
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.scale import scaled

KILLS, KILLS_ON_SPARK = scaled(6), scaled(1)
KEYS = 7
LIVES_SECONDS = 3.0
"""How long a driver is let live at most, from its start or from its first commit on."""
SETTLED = 0.7
"""The share of drivers that commit before they are ended."""
PATIENCE = 900.0
SPARK_APPLICATIONS = "sparkapplications.sparkoperator.k8s.io"
WAYS: tuple[Way, ...] = (kill_process, delete_by_force, kill_process, evict)


def row(number: int) -> dict[str, Any]:
    """Of each of a few keys, the number tells the order."""
    return {"id": f"k{number % KEYS}", "number": number}


def newest_of(sent: int) -> dict[str, int]:
    return {f"k{number % KEYS}": number for number in range(sent)}


def table_of(name: str, topic: str, **more: Any) -> Document:
    source = {"type": "Kafka", "format": "json", "kafka": {"brokers": ADDRESS, "topics": [topic]}}
    ingest = {"name": "feed", "mode": "Continuous", "commitInterval": "1s", "source": source, **more.pop("ingest", {})}
    rest = {"mode": "Disabled"}
    spec = {
        "location": f"s3://lake/{name}",
        "storage": flights("any")["spec"]["storage"],
        "maintenance": {"cleaning": rest, "archiving": rest},
        "spark": {"launcher": "Job", "driver": {"cpuRequest": "100m", "memory": "1Gi"}},
        "ingest": [ingest],
        **more,
    }
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": API_VERSION, "kind": "HudiTable", "metadata": metadata, "spec": spec}


def inserting(name: str, topic: str) -> Document:
    """Takes rows in without a look for their keys: one that is taken twice is there twice."""
    once = {"operation": "Insert"}
    return table_of(name, topic, ingest=once, recordKey=["number"], index={"type": "Simple"})


def keeping_the_newest(name: str, topic: str, **more: Any) -> Document:
    """Without an ordering field: of each key the message of the latest offset wins."""
    return table_of(name, topic, type="MergeOnRead", recordKey=["id"], index={"type": "Bucket", "buckets": 2}, **more)


def versions(lake: Lake, name: str) -> dict[str, int]:
    found = rows_of(lake, name)
    assert len({each["id"] for each in found}) == len(found)
    return {each["id"]: each["number"] for each in found}


def rows_of(lake: Lake, name: str) -> list[dict[str, Any]]:
    """What another engine finds there; none while there is no table."""
    if not lake.has_table(name):
        return []
    found: list[dict[str, Any]] = lake.rows(f"s3://lake/{name}").to_pylist()
    return found


def made(kube: Kube, kind: str, table: Resource) -> list[Document]:
    """The attempts of a table, whatever has become of them."""
    return kube.items(kind, "-n", NAMESPACE, "-l", f"{OWNER}={table.uid()}")


def opened(lake: Lake, name: str) -> HudiTable:
    options = {"endpoint": lake.endpoint, "region": REGION, "access_key_id": lake.access_key}
    return open_table(f"s3://lake/{name}", storage_options={**options, "secret_access_key": lake.secret_key})


def commits_of(lake: Lake, name: str) -> list[tuple[str, datetime]]:
    """The attempt that made each commit, and when it was there, the oldest first."""
    table = opened(lake, name)
    modified = {each["instant"]: each["modified"].astimezone(UTC) for each in table.timeline().to_pylist()}
    commits = [(attempt_in(table, instant), modified[instant.time]) for instant in load_timeline(table.context).commits]
    return [(attempt, at) for attempt, at in commits if attempt]


def attempt_in(table: HudiTable, instant: Instant) -> str:
    """The attempt that made a commit, "" where that was no ingest."""
    held = commit_metadata(table.context, instant).extra_metadata.get(f"{KEY_PREFIX}feed")
    return str(json.loads(held)["attempt"]) if held is not None else ""


def has_committed(lake: Lake, name: str, attempt: str) -> bool:
    """Whether the newest commit is that of an attempt."""
    try:
        table = opened(lake, name)
    except TableNotFoundError:
        return False
    commits = load_timeline(table.context).commits
    return bool(commits) and attempt_in(table, commits[-1]) == attempt


def assert_one_successor_each(kube: Kube, lake: Lake, kind: str, ends: Ends, sight: Sight) -> None:
    """Never two at once, by the pods; one after the other, by the commits."""
    uid, names = ends.table.uid(), {each["metadata"]["name"] for each in made(kube, kind, ends.table)}
    assert not sight.together[uid], "two drivers were at work at once"
    assert len(sight.born[uid]) == len(names) == len(ends.all) + 1
    assert {end.attempt for end in ends.all} < names
    turns = [attempt for attempt, _ in itertools.groupby(attempt for attempt, _ in commits_of(lake, ends.table.name))]
    again = {attempt for attempt in turns if turns.count(attempt) > 1}
    # Kubernetes does not wait for the end of one whose pod is taken away by force before it calls it gone.
    assert again <= {end.attempt for end in ends.all if end.way == delete_by_force.__name__}


def tell(what: str, ends: Ends, commits: list[tuple[str, datetime]], rows: int) -> None:
    """How long it took from each end of a driver until another one had committed."""
    late, ended = [], set()
    for end in ends.all:
        ended.add(end.attempt)
        late.append(min(at - end.at for attempt, at in commits if attempt not in ended).total_seconds())
    counted = ", ".join(f"{way} {sum(e.way == way for e in ends.all)}" for way in sorted({e.way for e in ends.all}))
    half, most = statistics.median(late), max(late)
    times.tell(f"{what}: {len(late)} drivers ended ({counted}), {rows:,} rows, {len(commits)} commits;")
    times.tell(f"  until another one had committed: half within {half:.1f} s, all within {most:.1f} s")


def test_a_driver_that_is_killed_deleted_or_evicted_has_one_successor_and_each_row_is_there_once_in_order(
    kube: Kube, lake: Lake, broker: Broker
) -> None:
    topic = f"killed-{secrets.token_hex(3)}"
    once, newest = f"{topic}-once", f"{topic}-newest"
    broker.make(topic)
    draw, seen = random.Random(topic), dict[str, int]()
    with watched(kube) as sight, applied(kube, inserting(once, topic), keeping_the_newest(newest, topic)) as both:
        with broker.kept_busy(topic, row) as sent:
            for number in range(KILLS):
                end_next(lake, both[number % 2], WAYS[number // 2 % len(WAYS)], draw)
                found = versions(lake, newest)
                assert all(found.get(key, -1) >= version for key, version in seen.items()), "a key went back"
                seen = found
            for ends in both:
                eventually(ends.next_driver, f"a driver of {ends.table.name} is at work", PATIENCE)
        total = sent()
        eventually(lambda: len(rows_of(lake, once)) >= total, f"{once} has all {total} rows", PATIENCE)
        eventually(lambda: versions(lake, newest) == newest_of(total), f"{newest} has the newest of each key", PATIENCE)
        assert_once_and_in_order(rows_of(lake, once), total)
        for ends, what in zip(both, ("Job, Insert", "Job, Upsert"), strict=True):
            assert_one_successor_each(kube, lake, "jobs", ends, sight)
            tell(what, ends, commits_of(lake, ends.table.name), total)


@pytest.mark.usefixtures("spark_operators")
def test_a_driver_of_a_spark_application_that_is_killed_has_one_successor(
    kube: Kube, lake: Lake, broker: Broker
) -> None:
    topic = name = f"killed-spark-{secrets.token_hex(3)}"
    broker.make(topic)
    draw, spark = random.Random(topic), on_one_executor("SparkOperator")
    manifest = keeping_the_newest(name, topic, spark=spark, ingest={"engine": "Spark"})
    with watched(kube) as sight, applied(kube, manifest) as (ends,):
        with broker.kept_busy(topic, row) as sent:
            for _ in range(KILLS_ON_SPARK):
                end_next(lake, ends, kill_process, draw)
            eventually(ends.next_driver, "a driver is at work", PATIENCE)
        total = sent()
        eventually(lambda: versions(lake, name) == newest_of(total), "it has the newest of each key", PATIENCE)
        assert_one_successor_each(kube, lake, SPARK_APPLICATIONS, ends, sight)
        tell("SparkApplication, Upsert", ends, commits_of(lake, name), total)


@contextmanager
def applied(kube: Kube, *manifests: Document) -> Iterator[list[Ends]]:
    """Tables, gone with their drivers when the context ends."""
    kube.apply(*manifests)
    tables = [Resource(kube, "huditable", each["metadata"]["name"]) for each in manifests]
    drivers = [f"{OWNER}={table.uid()}" for table in tables]
    try:
        yield [Ends(kube, table) for table in tables]
    finally:
        for table in tables:
            table.delete()
        for label in drivers:
            left: Callable[[], bool] = functools.partial(is_gone, kube, label)
            eventually(left, "the drivers are gone")


def is_gone(kube: Kube, label: str) -> bool:
    return not kube.items("pods", "-n", NAMESPACE, "-l", label)


def end_next(lake: Lake, ends: Ends, way: Way, draw: random.Random) -> None:
    """End the driver that comes next at some moment of its life: while it begins, or once it has
    committed."""
    name = ends.table.name
    pod = eventually(ends.next_driver, f"a driver of {name} is at work", PATIENCE)
    if draw.random() < SETTLED:
        eventually(lambda: has_committed(lake, name, attempt_of(pod)), f"it commits to {name}", PATIENCE)
    time.sleep(draw.uniform(0.0, LIVES_SECONDS))
    assert ends.end(pod, way), f"{way.__name__} of {pod['metadata']['name']} was not done"


def assert_once_and_in_order(rows: list[dict[str, Any]], total: int) -> None:
    """Each number once; of each key no number in an earlier commit than one before it."""
    ordered = sorted(rows, key=lambda each: each["number"])
    assert [each["number"] for each in ordered] == list(range(total))
    for key in range(KEYS):
        moments = [each["_hoodie_commit_time"] for each in ordered if each["id"] == f"k{key}"]
        assert moments == sorted(moments)
