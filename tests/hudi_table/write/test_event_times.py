"""Event times of the rows of a commit, recorded as Hudi records them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable, create_table
from hudi_table.errors import InvalidOptionError
from hudi_table.model.timeline.commits import MAX_EVENT_TIME, MIN_EVENT_TIME
from hudi_table.table.timeline.active import load_timeline
from tests.support.written import last_commit

TRACK = {"hoodie.write.track.event.time.watermark": "true"}
DAY = datetime(2026, 1, 1, tzinfo=UTC)
MILLIS = 1767225600000


def table_of(kind: pa.DataType, **more: Any) -> HudiTable:
    schema = pa.schema([("id", pa.string()), ("ts", kind), ("_hoodie_is_deleted", pa.bool_())])
    return create_table(f"memory://{uuid.uuid4().hex}/t", schema, record_key="id", **more)


def rows(table: HudiTable, *items: tuple[Any, ...]) -> pa.Table:
    schema = table.schema()
    padded = [(*item, None)[:3] for item in items]
    return pa.Table.from_pylist([dict(zip(schema.names, item, strict=True)) for item in padded], schema=schema)


@pytest.mark.parametrize("type_", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("index", ["Simple", {"type": "Bucket", "buckets": 2}])
def test_a_commit_records_the_smallest_and_the_largest_of_its_rows(type_: str, index: Any) -> None:
    table = table_of(pa.int64(), type=type_, index=index)
    first = table.upsert(rows(table, ("a", MILLIS), ("b", MILLIS + 5)), options=TRACK)
    assert first.event_times == (MILLIS, MILLIS + 5)
    # Rows that delete, and those that another of their key replaces, are not written.
    again = table.upsert(rows(table, ("a", MILLIS + 9), ("b", MILLIS + 99, True), ("c", MILLIS + 7)), options=TRACK)
    assert again.event_times == (MILLIS + 7, MILLIS + 9)
    assert last_commit(table).event_times == again.event_times
    assert {stat.extra[MIN_EVENT_TIME] for stat in last_commit(table).stats} <= {MILLIS + 7, MILLIS + 9, None}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [MILLIS // 1000, MILLIS + 1, 5]),
        (pa.string(), [str(MILLIS // 1000), str(MILLIS + 1), "soon"]),
        (pa.timestamp("us", "UTC"), [DAY, datetime(2026, 1, 1, 0, 0, 0, 1000, tzinfo=UTC), None]),
    ],
)
def test_seconds_milliseconds_and_timestamps_are_times_and_nothing_else(kind: pa.DataType, values: list[Any]) -> None:
    table = table_of(kind)
    done = table.insert(rows(table, *((str(n), value) for n, value in enumerate(values))), options=TRACK)
    assert done.event_times == (MILLIS, MILLIS + 1)


def test_the_column_is_that_of_the_option_and_nothing_is_recorded_unasked() -> None:
    table = table_of(pa.int64())
    assert table.insert(rows(table, ("a", MILLIS))).event_times is None
    assert last_commit(table).stats[0].extra[MAX_EVENT_TIME] is None
    assert table.delete(rows(table, ("a", MILLIS)), options=TRACK).event_times is None
    with pytest.raises(InvalidOptionError, match="names 'when', which is no column; there are id, ts"):
        table.upsert(rows(table, ("a", 1)), options=TRACK | {"hoodie.payload.event.time.field": "when"})
    with pytest.raises(InvalidOptionError, match="whose type bool is no time"):
        table.upsert(rows(table, ("a", 1)), options=TRACK | {"hoodie.payload.event.time.field": "_hoodie_is_deleted"})


@pytest.mark.parametrize("more", [{}, {"hoodie.write.track.event.time.watermark": "false"}])
def test_a_column_that_nobody_tracks_is_refused_before_anything_is_written(more: dict[str, str]) -> None:
    table = table_of(pa.int64())
    with pytest.raises(
        InvalidOptionError, match=r"does nothing alone: give hoodie\.write\.track\.event\.time\.watermark=true"
    ):
        table.upsert(rows(table, ("a", MILLIS)), options={"hoodie.payload.event.time.field": "id"} | more)
    assert load_timeline(table.context).commits == ()
    # Its default asks for nothing.
    table.upsert(rows(table, ("a", MILLIS)), options={"hoodie.payload.event.time.field": "ts"} | more)
