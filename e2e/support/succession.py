"""Tables whose drivers are ended one after the other: each has one successor, and what it commits
comes after all that the one before it has committed."""

from __future__ import annotations

import functools
import itertools
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from e2e.support import times
from e2e.support.drivers import Ends, Sight, Way, attempt_of, delete_by_force, is_of
from e2e.support.kube import Document, Kube, eventually
from e2e.support.lake import REGION, Lake
from e2e.support.operator import NAMESPACE, OWNER, Resource
from hudi_table import open_table
from hudi_table.api import HudiTable
from hudi_table.errors import TableNotFoundError
from hudi_table.model.job.checkpoint import KEY_PREFIX
from hudi_table.model.timeline.instants import Instant
from hudi_table.table.timeline.active import commit_metadata, load_timeline

LIVES_SECONDS = 3.0
"""How long a driver is let live at most, from its start or from its first commit on."""
SETTLED = 0.7
"""The share of drivers that commit before they are ended."""
PATIENCE = 900.0
END_SECONDS_MAX = 60
"""Of one end, on average: how long a test of many may last."""


@contextmanager
def applied(kube: Kube, *manifests: Document) -> Iterator[list[Ends]]:
    """Tables, gone with their drivers when the context ends."""
    kube.apply(*manifests)
    tables = [Resource(kube, "huditable", each["metadata"]["name"]) for each in manifests]
    ingests = [each["spec"]["ingest"][0]["name"] for each in manifests]
    drivers = [f"{OWNER}={table.uid()}" for table in tables]
    try:
        yield [Ends(kube, table, ingest) for table, ingest in zip(tables, ingests, strict=True)]
    finally:
        for table in tables:
            table.delete()
        for label in drivers:
            left: Callable[[], bool] = functools.partial(_is_gone, kube, label)
            eventually(left, "the drivers are gone")


def _is_gone(kube: Kube, label: str) -> bool:
    return not kube.items("pods", "-n", NAMESPACE, "-l", label)


def end_next(lake: Lake, ends: Ends, way: Way, draw: random.Random) -> None:
    """End the driver that comes next at some moment of its life: while it begins, or once it has
    committed."""
    name = ends.table.name
    pod = eventually(ends.next_driver, f"a driver of {name} is at work", PATIENCE)
    if draw.random() < SETTLED:
        eventually(lambda: _has_committed(lake, name, attempt_of(pod)), f"it commits to {name}", PATIENCE)
    time.sleep(draw.uniform(0.0, LIVES_SECONDS))
    assert ends.end(pod, way), f"{way.__name__} of {pod['metadata']['name']} was not done"


def assert_one_successor_each(
    what: str, kube: Kube, lake: Lake, kind: str, ends: Ends, sight: Sight, rows: int
) -> None:
    """Never two at once, by the pods; one after the other, by the commits. Tells how late each
    was."""
    uid, names = ends.table.uid(), _made(kube, kind, ends)
    assert not sight.together[uid], "two drivers were at work at once"
    assert len(sight.born[uid]) == len(names) == len(ends.all) + 1
    assert {end.attempt for end in ends.all} < names
    commits = _commits_of(lake, ends.table.name)
    turns = [attempt for attempt, _ in itertools.groupby(attempt for attempt, _ in commits)]
    again = {attempt for attempt in turns if turns.count(attempt) > 1}
    # Kubernetes does not wait for the end of one whose pod is taken away by force before it calls it gone.
    assert again <= {end.attempt for end in ends.all if end.way == delete_by_force.__name__}
    _tell(what, ends, commits, rows)


def _tell(what: str, ends: Ends, commits: list[tuple[str, datetime]], rows: int) -> None:
    """How long it took from each end of a driver until another one had committed."""
    late, ended = [], set()
    for end in ends.all:
        ended.add(end.attempt)
        late.append(min(at - end.at for attempt, at in commits if attempt not in ended).total_seconds())
    counted = ", ".join(f"{way} {sum(e.way == way for e in ends.all)}" for way in sorted({e.way for e in ends.all}))
    half, most = statistics.median(late), max(late)
    times.tell(f"{what}: {len(late)} drivers ended ({counted}), {rows:,} rows, {len(commits)} commits;")
    times.tell(f"  until another one had committed: half within {half:.1f} s, all within {most:.1f} s")


def _made(kube: Kube, kind: str, ends: Ends) -> set[str]:
    """The attempts of an ingest, whatever has become of them."""
    found = kube.items(kind, "-n", NAMESPACE, "-l", f"{OWNER}={ends.table.uid()}")
    return {name for each in found if is_of(ends.ingest, name := each["metadata"]["name"])}


def _opened(lake: Lake, name: str) -> HudiTable:
    options = {"endpoint": lake.endpoint, "region": REGION, "access_key_id": lake.access_key}
    return open_table(f"s3://lake/{name}", storage_options={**options, "secret_access_key": lake.secret_key})


def _commits_of(lake: Lake, name: str) -> list[tuple[str, datetime]]:
    """The attempt that made each commit, and when it was there, the oldest first."""
    table = _opened(lake, name)
    modified = {each["instant"]: each["modified"].astimezone(UTC) for each in table.timeline().to_pylist()}
    commits = [
        (_attempt_in(table, instant), modified[instant.time]) for instant in load_timeline(table.context).commits
    ]
    return [(attempt, at) for attempt, at in commits if attempt]


def _attempt_in(table: HudiTable, instant: Instant) -> str:
    """The attempt that made a commit, "" where that was no ingest."""
    more = commit_metadata(table.context, instant).extra_metadata
    checkpoints = [text for key, text in more.items() if key.startswith(KEY_PREFIX)]
    return str(json.loads(checkpoints[0])["attempt"]) if checkpoints else ""


def _has_committed(lake: Lake, name: str, attempt: str) -> bool:
    """Whether the newest commit is that of an attempt."""
    try:
        table = _opened(lake, name)
    except TableNotFoundError:
        return False
    commits = load_timeline(table.context).commits
    return bool(commits) and _attempt_in(table, commits[-1]) == attempt
