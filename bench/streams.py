"""The race of streams: one topic of JSON into a merge-on-read table by buckets, by ours without a
JVM, by ours on Spark, and by Apache Hudi on Spark.

catch-up: everything that is in the topic, in batches. follow: what comes, committed every two
seconds, at half of the rate at which Hudi catches up. Contenders take turns, each with the machine
for itself but for the broker and, in the second part, the sender. No contender compacts
or archives.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.peers import HUDI
from bench.process import Contender, Cost
from bench.race import HUDI_PYTHON
from bench.stream_jars import fetch_stream_jars
from bench.stream_rows import EVERY, KEYS, PARTITIONS, newest, sending
from bench.stream_settings import BATCH_ROWS, Feed
from bench.tables import MIB, machine_lines, met_text, table_lines
from hudi_table import open_table
from tests.support.kafka import Broker, running_broker

ROWS = 10_000_000
FOLLOW_SECONDS = 180.0
WARM_SECONDS = 60.0
"""Of a follower, not measured: its first batch makes the table."""
GRACE_SECONDS = 10.0
"""How long it goes on behind the last message."""
RATE_MIN = 1_000.0
HUDI_STREAMS = f"hudi-streams-{HUDI}"
ENTRIES = {
    "local-streams": "ours, without a JVM",
    "spark-streams": "ours, Spark",
    HUDI_STREAMS: f"Apache Hudi {HUDI}, Spark",
}
FOLLOWERS = {**ENTRIES, "spark-streams": "ours, engine Spark, in its driver"}
FASTER_MIN = 5.0
LATE_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """One catch-up: seconds from the call to the last commit's end, rows a second in all, and
    between the first commit and the last."""

    rows: int
    wall: float
    cpu: float
    peak: int
    rate: float
    steady: float


@dataclass(frozen=True, slots=True)
class Followed:
    """Seconds from a row's event to the commit that shows it; of a row that no commit shows, to the
    end."""

    rows: int
    commits: int
    missing: int
    cpu: float
    peak: int
    median: float
    late: float
    """The 99th percentile."""


@dataclass(frozen=True, slots=True)
class Window:
    """The rows that are looked at, by number, of which `rate` were sent a second, and how many
    seconds the follower had in all."""

    first: int
    last: int
    rate: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Streams:
    """Both parts, by contender; the followers' rate in rows a second."""

    caught_up: Mapping[str, CaughtUp]
    rate: float
    followed: Mapping[str, Followed]


def race_streams(
    folder: Path,
    rows: int,
    seconds: float,
    say: Callable[[str], None],
    names: Sequence[str] = tuple(ENTRIES),
    warm: float = WARM_SECONDS,
) -> Streams:
    """Both parts; the followers are measured for `seconds` after `warm`. Raises AssertionError if a
    table does not hold what its topic says."""
    fetch_stream_jars()
    folder.mkdir(parents=True)
    with running_broker() as broker:
        topic = broker.topic(partitions=PARTITIONS)
        say(f"{rows:,} messages are sent")
        with sending(broker.address, topic, "fill", str(rows), str(KEYS)) as sender:
            sender.wait()
        caught_up = {}
        for name in names:
            with _running(name) as contender, _base(folder, name) as base:
                caught_up[name] = _catch_up(contender, Feed(broker.address, topic), base, rows)
            say(f"catch-up: {ENTRIES[name]}: {caught_up[name]}")
        broker.delete(topic)
        rate = max(RATE_MIN, min(each.steady for each in caught_up.values()) / 2)
        behind = {}
        for name in names:
            with _running(name) as contender, _base(folder, name) as base:
                behind[name] = _follow(contender, broker, base, rate, (warm, seconds))
            say(f"follow: {ENTRIES[name]}: {behind[name]}")
    return Streams(caught_up, rate, behind)


def _running(name: str) -> Contender:
    return Contender(name, bloom=False, python=HUDI_PYTHON if name.startswith("hudi") else None)


@contextmanager
def _base(folder: Path, name: str) -> Iterator[Path]:
    base = folder / name
    yield base
    shutil.rmtree(base)
    shutil.rmtree(f"{base}.checkpoint", ignore_errors=True)


def _catch_up(contender: Contender, feed: Feed, base: Path, rows: int) -> CaughtUp:
    cost = contender.run("catch_up", feed.store(base.with_suffix(".json")), base)
    held = open_table(str(base)).scan(columns=["n"]).to_arrow()
    found = (len(held), pc.sum(held["n"]).as_py())
    assert found == newest(rows, KEYS), f"{base.name} holds {found}, must hold {newest(rows, KEYS)}"
    (_, began, _), *later = _commits(base)
    steady = sum(count for *_, count in later) / (later[-1][1] - began) if later else rows / cost.wall
    return CaughtUp(rows, cost.wall, cost.cpu, cost.peak, rows / cost.wall, steady)


def _follow(contender: Contender, broker: Broker, base: Path, rate: float, times: tuple[float, float]) -> Followed:
    topic = broker.topic(partitions=PARTITIONS)
    feed = Feed(broker.address, topic, seconds=sum(times) + GRACE_SECONDS)
    contender.wait_until_ready()
    with sending(broker.address, topic, "pace", str(rate), str(sum(times)), str(EVERY)):
        cost = contender.run("follow", feed.store(base.with_suffix(".json")), base)
    broker.delete(topic)
    window = Window(int(times[0] * rate), int((sum(times) - 1) * rate), rate, feed.seconds)
    return followed(base, cost, window)


def followed(base: Path, cost: Cost, window: Window) -> Followed:
    """How late the rows of the window are."""
    held = open_table(str(base)).scan(columns=["n", "at", "_hoodie_commit_time"]).to_arrow()
    shown = {instant: second for instant, second, _ in _commits(base)}
    place = pc.index_in(held["_hoodie_commit_time"], pa.array(list(shown)))
    assert not place.null_count, f"{base.name} has rows of commits that its timeline no longer names"
    sent = pc.divide(held["at"].cast(pa.float64()), 1000.0)
    late = pc.subtract(pa.array(list(shown.values())).take(place), sent)
    counted = late.filter(pc.and_(pc.greater_equal(held["n"], window.first), pc.less_equal(held["n"], window.last)))
    missing = np.setdiff1d(np.arange(window.first, window.last + 1), held["n"].to_numpy())
    waited = window.seconds - missing / window.rate
    middle, high = np.quantile(np.concatenate([counted.to_numpy(), waited]), [0.5, 0.99])
    return Followed(len(held), len(shown), len(missing), cost.cpu, cost.peak, float(middle), float(high))


def _commits(base: Path) -> list[tuple[str, float, int]]:
    """Of each commit with rows its instant, the second at which it was there, and its rows."""
    table = open_table(str(base))
    counts = {each["instant"]: each["rows"] for each in table.history().to_pylist()}
    return [
        (each["instant"], each["modified"].timestamp(), counts[each["instant"]])
        for each in table.timeline().to_pylist()
        if counts.get(each["instant"])
    ]


def streams_record(found: Streams) -> dict[str, Any]:
    """Everything that was measured, and the targets of those that took part."""
    return {
        "rate": round(found.rate),
        "caught_up": {name: _figures(each) for name, each in found.caught_up.items()},
        "followed": {name: _figures(each) for name, each in found.followed.items()},
        "targets": list(_targets(found)),
    }


def _figures(each: CaughtUp | Followed) -> dict[str, Any]:
    return {
        name: round(value / MIB) if name == "peak" else round(value, 2) if isinstance(value, float) else value
        for name, value in asdict(each).items()
    }


def _targets(found: Streams) -> Iterator[dict[str, Any]]:
    for name in found.caught_up:
        if name == HUDI_STREAMS or HUDI_STREAMS not in found.caught_up:
            continue
        ours, hudi = found.caught_up[name], found.caught_up[HUDI_STREAMS]
        for what, ratio in (("catch-up", ours.rate / hudi.rate), ("steady state", ours.steady / hudi.steady)):
            yield {
                "what": f"{what}, rows a second beside Hudi's",
                "ours": name,
                "wanted": f"at least {FASTER_MIN:g} ×",
                "found": f"{ratio:.1f} ×",
                "met": ratio >= FASTER_MIN,
            }
        late, median = found.followed[name].late, found.followed[HUDI_STREAMS].median
        yield {
            "what": "freshness, 99th percentile",
            "ours": name,
            "wanted": f"at most {LATE_SECONDS_MAX:g} s, and below Hudi's median",
            "found": f"{late:.1f} s, {median:.1f} s",
            "met": late <= LATE_SECONDS_MAX and late < median,
        }


def streams_lines(held: Mapping[str, Any]) -> list[str]:
    """The section as Markdown."""
    rows = next(iter(held["caught_up"].values()))["rows"]
    intro = (
        f"{rows:,} messages of JSON, 200 bytes each, {KEYS:,} keys, 4 partitions, into a merge-on-read table by buckets that is made by the "
        f"first batch. catch-up: all of it, in batches of {BATCH_ROWS:,}; both of ours count the start of their process, and of its JVM, where Hudi's session stands. "
        f"steady: rows a second between the first commit and the last. Freshness: {held['rate']:,} messages a second, each with a key of its own, "
        "a commit every two seconds; seconds from a message's event time to the commit that shows it, after a minute to warm up, or to the end, of one that is missing then. "
        "Broker and sender share the processors. No contender compacts or archives. "
        "So few messages of a commit ours with the engine Spark takes in its driver, without tasks and without a JVM: its freshness tells nothing of Spark."
    )
    lines = ["## Streams", "", *machine_lines(held["machine"]), "", intro, ""]
    caught = [
        (
            ENTRIES[name],
            f"{v['wall']} s",
            f"{v['rate']:,.0f}",
            f"{v['steady']:,.0f}",
            f"{v['cpu']} s",
            f"{v['peak']} MiB",
        )
        for name, v in held["caught_up"].items()
    ]
    lines += [*table_lines(("catch-up", "wall", "rows a second", "steady", "CPU", "peak"), caught), ""]
    late = [
        (
            FOLLOWERS[name],
            f"{v['median']} s",
            f"{v['late']} s",
            str(v["missing"]),
            str(v["commits"]),
            f"{v['cpu']} s",
            f"{v['peak']} MiB",
        )
        for name, v in held["followed"].items()
    ]
    lines += [*table_lines(("freshness", "median", "p99", "missing", "commits", "CPU", "peak"), late), ""]
    targets = [
        (
            t["what"],
            (FOLLOWERS if t["what"].startswith("freshness") else ENTRIES)[t["ours"]],
            t["wanted"],
            t["found"],
            met_text(t),
        )
        for t in held["targets"]
    ]
    return [*lines, *table_lines(("target", "ours", "wanted", "found", "met"), targets), ""]
