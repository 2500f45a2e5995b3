"""A driver that follows a topic for an hour with every service on: its memory stays flat, files and
timeline are bounded.

It commits every two seconds rows of a million keys, and compacts, cleans and archives behind its
commits, of which none is archived for ten minutes. What grows with time shows as the last quarter
of the run beside the second.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from bench.stream_rows import KEYS, PARTITIONS, sending
from bench.stream_settings import Feed
from bench.streams_ours import driver
from bench.tables import MIB, machine_lines, met_text, table_lines
from tests.support.kafka import running_broker

HOUR_SECONDS = 3_600.0
RATE = 5_000
SAMPLE_SECONDS = 5.0
SERVICES = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "20",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "30",
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": "40",
    "hoodie.keep.max.commits": "60",
    # Nothing is archived for as long as a sleeper may wake: an hour by default, in which the timeline would only grow.
    "hoodie.lakeops.txn.quarantine.seconds": "600",
}
GROWS_MAX = 1.1


@dataclass(frozen=True, slots=True)
class Sample:
    """At one moment: resident bytes of the driver, files of data, and files on the timeline."""

    memory: int
    files: int
    timeline: int


@dataclass(frozen=True, slots=True)
class Growth:
    """A figure in the second quarter of the run and in the last one: the median of memory, the most
    of files."""

    second: float
    last: float

    @property
    def ratio(self) -> float:
        return self.last / self.second


def measured_hour(folder: Path, seconds: float, say: Callable[[str], None]) -> list[Sample]:
    """The samples of a run."""
    folder.mkdir(parents=True)
    base, found = folder / "rides", list[Sample]()
    with running_broker() as broker:
        topic = broker.topic(partitions=PARTITIONS, **{"retention.ms": "600000", "segment.ms": "60000"})
        with (
            sending(broker.address, topic, "pace", str(RATE), str(seconds), str(KEYS)),
            driver(Feed(broker.address, topic), base, "Continuous", SERVICES) as process,
        ):
            watched, until = psutil.Process(process.pid), time.monotonic() + seconds
            while time.monotonic() < until and process.poll() is None:
                time.sleep(SAMPLE_SECONDS)
                found.append(_sample(watched, base))
                if len(found) % 60 == 0:
                    say(f"{len(found) * SAMPLE_SECONDS:.0f} s: {found[-1]}")
    shutil.rmtree(base)
    return found


def _sample(watched: psutil.Process, base: Path) -> Sample:
    # Folders go while they are walked through: `os.walk` passes over what is gone.
    names = [Path(folder, name) for folder, _, files in os.walk(base) for name in files]
    timeline = sum(path.parent.name in (".hoodie", "timeline") for path in names)
    data = sum(".hoodie" not in path.parts for path in names)
    return Sample(watched.memory_info().rss, data, timeline)


def growths(samples: Sequence[Sample]) -> dict[str, Growth]:
    """What became of each figure."""
    quarter = len(samples) // 4
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]

    def grown(of: Callable[[Sample], int], pick: Callable[[list[int]], float]) -> Growth:
        return Growth(pick([of(each) for each in second]), pick([of(each) for each in last]))

    return {
        "memory": grown(lambda each: each.memory // MIB, median),
        "data files": grown(lambda each: each.files, max),
        "timeline files": grown(lambda each: each.timeline, max),
    }


def hour_record(seconds: float, samples: Sequence[Sample]) -> dict[str, Any]:
    """Every sample, and what grew."""
    found = {
        name: asdict(each) | {"ratio": round(each.ratio, 2), "met": each.ratio <= GROWS_MAX}
        for name, each in growths(samples).items()
    }
    return {"seconds": seconds, "rate": RATE, "growth": found, "samples": [list(asdict(s).values()) for s in samples]}


def hour_lines(held: Mapping[str, Any]) -> list[str]:
    """The section as Markdown."""
    intro = (
        f"A driver of ours without a JVM follows a topic for {held['seconds']:,.0f} seconds: {held['rate']:,} messages a second of {KEYS:,} keys, a "
        "commit every two seconds; behind its commits it compacts, cleans and archives what is older than ten minutes. Memory: the median of a quarter, MiB; files: the most."
    )
    rows = [
        (name, f"{v['second']:g}", f"{v['last']:g}", f"{v['ratio']:.2f}", f"{GROWS_MAX:.2f}", met_text(v))
        for name, v in held["growth"].items()
    ]
    head = ("figure", "second quarter", "last quarter", "ratio", "at most", "met")
    return ["## Streams for an hour", "", *machine_lines(held["machine"]), "", intro, "", *table_lines(head, rows), ""]
