"""The race of streams at a small size: a topic is caught up with and followed, and the report tells
who is late."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from bench.process import Cost
from bench.report import markdown
from bench.stream_hour import Sample, hour_record, measured_hour
from bench.stream_rows import KEYS, message, newest
from bench.stream_settings import COLUMNS
from bench.streams import (
    ENTRIES,
    HUDI_STREAMS,
    CaughtUp,
    Followed,
    Streams,
    Window,
    followed,
    race_streams,
    streams_record,
)
from hudi_table import create_table
from tests.bench.test_race import MACHINE


def test_a_message_has_about_200_bytes_and_the_columns_of_the_race() -> None:
    sent = message(123_456, KEYS, 1.7e9)
    assert 185 <= len(sent) <= 215
    assert list(json.loads(sent)) == list(COLUMNS)


def test_no_key_comes_twice_before_all_came_once() -> None:
    keys = [json.loads(message(number, 100, 0))["id"] for number in range(250)]
    assert all(len(set(keys[i : i + 100])) == 100 for i in (0, 100))
    last = {key: number for number, key in enumerate(keys)}
    assert (len(last), sum(last.values())) == newest(250, 100)


def test_a_row_is_as_late_as_the_commit_that_shows_it_and_one_that_is_missing_as_the_end(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int64()), ("at", pa.int64())])
    table = create_table(tmp_path / "rides", schema, record_key="id", type="MergeOnRead", index="Simple")
    for number, at in {0: 0, 7: 70_000, 8: 80_000}.items():
        table.upsert(pa.table({"id": [f"k{number}"], "n": [number], "at": [at]}, schema))
    shown = [each["modified"].timestamp() for each in table.timeline().to_pylist()[-2:]]
    # The first was sent before the follower was warm; the last one, of the second 90, came to nobody within 100.
    found = followed(tmp_path / "rides", Cost(1.0, 1.0, 0, 0), Window(first=7, last=9, rate=0.1, seconds=100.0))
    assert (found.rows, found.commits, found.missing) == (3, 3, 1)
    assert found.median == pytest.approx(shown[1] - 80)
    assert shown[1] - 80 < found.late < shown[0] - 70
    waits = followed(tmp_path / "rides", Cost(1.0, 1.0, 0, 0), Window(first=9, last=9, rate=0.1, seconds=100.0))
    assert (waits.median, waits.late) == (10, 10)


@pytest.mark.at_scale(2)
def test_a_topic_is_caught_up_with_and_followed(tmp_path: Path) -> None:
    said: list[str] = []
    found = race_streams(tmp_path / "streams", 20_000, 6.0, said.append, ["local-streams"], warm=6.0)
    assert found.caught_up["local-streams"].rows == 20_000
    assert found.followed["local-streams"].commits >= 3
    assert 0 < found.followed["local-streams"].median <= found.followed["local-streams"].late
    text = markdown({"streams": {"machine": MACHINE} | streams_record(found)})
    assert text.count(f"| {ENTRIES['local-streams']} |") == 2


@pytest.mark.at_scale(2)
def test_an_hour_is_watched(tmp_path: Path) -> None:
    samples = measured_hour(tmp_path / "hour", 25.0, lambda _: None)
    assert len(samples) == 5
    assert samples[-1].memory > 1 << 26
    assert samples[-1].files > 0 < samples[-1].timeline


def test_the_report_tells_what_grew() -> None:
    samples = [Sample((100 + 5 * i) << 20, 40 + i % 3, 60 + i % 7) for i in range(40)]
    text = markdown({"hour": {"machine": MACHINE} | hour_record(200.0, samples)})
    assert "| memory | 172.5 | 272.5 | 1.58 | 1.10 | **no** |" in text
    assert "| data files | 42 | 42 | 1.00 | 1.10 | yes |" in text


def test_the_report_tells_who_is_late_and_who_is_slow() -> None:
    rates: Mapping[str, tuple[float, float, float]] = {
        "local-streams": (100_000.0, 1.0, 2.5),
        "spark-streams": (49_000.0, 3.0, 6.0),
        HUDI_STREAMS: (10_000.0, 4.0, 9.0),
    }
    found = Streams(
        {name: CaughtUp(10, 1.0, 1.0, 1 << 30, rate, rate) for name, (rate, *_) in rates.items()},
        5_000.0,
        {name: Followed(10, 3, 0, 1.0, 1 << 30, median, late) for name, (_, median, late) in rates.items()},
    )
    text = markdown({"streams": {"machine": MACHINE} | streams_record(found)})
    assert "| catch-up, rows a second beside Hudi's | ours, without a JVM | at least 5 × | 10.0 × | yes |" in text
    assert "| steady state, rows a second beside Hudi's | ours, Spark | at least 5 × | 4.9 × | **no** |" in text
    assert (
        "| ours, engine Spark, in its driver | at most 5 s, and below Hudi's median | 6.0 s, 4.0 s | **no** |" in text
    )
