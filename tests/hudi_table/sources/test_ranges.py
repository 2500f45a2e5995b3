"""A batch of Kafka in ranges of offsets, and the columns of messages that were decoded apart."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.model.bounded import Bounded
from hudi_table.sources.formats.unions import united
from hudi_table.sources.kafka.consume import Messages
from hudi_table.sources.kafka.ranges import Bounds, Range, packed, ranges_of, reached_of, unpacked
from hudi_table.sources.kafka.where import Where

ROWS = 1_000_000


@pytest.mark.parametrize("seed", range(30))
def test_ranges_take_no_more_than_the_bound_and_no_offset_twice(seed: int) -> None:
    draw = random.Random(seed)
    start = {("t", part): draw.randrange(1000) for part in range(draw.randrange(1, 9))}
    stops = {place: at + draw.choice([0, 1, 50, 100_000]) for place, at in start.items()}
    most, row_bytes = draw.choice([1, 7, 30_000, ROWS]), draw.choice([0.0, 200.0])
    total = sum(stops.values()) - sum(start.values())
    found = ranges_of(start, stops, Bounds(most, 64 << 20, 4, row_bytes))
    taken = sum(each.stop - each.start for each in found)
    assert min(1, total) <= taken <= min(most, total)
    kept, at = reached_of(found, [each.stop for each in found])
    assert kept == list(range(len(found))), "each begins where the one before it ends"
    assert sum(at.values()) - sum(start[place] for place in at) == taken
    assert all(at[place] <= stops[place] for place in at)
    assert sum(each.bytes for each in found) <= (64 << 20) + len(found)


def test_a_partition_is_parted_once_it_is_known_how_large_messages_are() -> None:
    start, stops = {("t", 0): 0}, {("t", 0): 400_000}
    assert len(ranges_of(start, stops, Bounds(ROWS, 1 << 30, 4))) == 1
    assert [each.start for each in ranges_of(start, stops, Bounds(ROWS, 1 << 30, 4, 100.0))] == [
        0,
        100_000,
        200_000,
        300_000,
    ]
    assert len(ranges_of(start, stops, Bounds(ROWS, 1 << 30, 4, 100.0, whole=True))) == 1
    (few,) = ranges_of(start, stops, Bounds(ROWS, 1 << 20, 4, 100.0))
    assert few.stop == (1 << 20) // 100, "maxBytes bounds what is planned, and a small part is not parted"


def test_what_lies_behind_a_range_that_its_bytes_have_ended_is_left() -> None:
    ranges = [Range("t", 0, 0, 10, 5), Range("t", 0, 10, 20, 5), Range("t", 1, 0, 10, 5), Range("t", 1, 10, 20, 5)]
    assert reached_of(ranges, [7, 20, 10, 15]) == ([0, 2, 3], {("t", 0): 7, ("t", 1): 15})


def test_messages_cross_between_tasks_as_they_are() -> None:
    messages = Messages(
        [("t", 3)],
        [b"a", None, b"", b"x" * 100],
        [np.zeros(4, np.int32)],
        [np.array([1, 5, 6, 9])],
        [np.array([7, 8, -1, 9])],
        [b"k", None, b"", b"k"],
        [None, [("h", b"v"), ("h", None)], [], None],
        101,
    )
    again = unpacked(packed(messages), ("t", 3))
    assert (again.values, again.keys, again.headers) == (messages.values, messages.keys, messages.headers)
    order = np.arange(4)
    for name in ("topic", "partition", "offset", "timestamp", "key", "headers"):
        assert Where(again).column(name, order).equals(Where(messages).column(name, order))
    assert packed(Messages([("t", 3)])) == []


def test_columns_are_united_as_if_all_messages_had_been_read_at_once() -> None:
    whole, part = pa.int64(), pa.float64()
    first = pa.schema(
        [("a", whole), ("_kafka_offset", whole), ("s", pa.struct([("x", whole)])), ("l", pa.list_(pa.null()))]
    )
    second = pa.schema(
        [("a", part), ("s", pa.struct([("x", part), ("y", pa.string())])), ("l", pa.list_(whole)), ("b", whole)]
    )
    found = united([first, second], lambda name: name.startswith("_kafka_"))
    assert found.names == ["a", "s", "l", "b", "_kafka_offset"]
    assert found.field("a").type == part
    assert found.field("s").type == pa.struct([("x", part), ("y", pa.string())])
    assert found.field("l").type == pa.list_(whole)
    moment, text = pa.timestamp("s"), pa.string()
    assert united([pa.schema([("t", moment)]), pa.schema([("t", text)])], lambda _: False).field("t").type == text
    assert united([pa.schema([("t", whole)]), pa.schema([("t", text)])], lambda _: False).field("t").type == whole


def test_a_cache_begins_empty_in_another_process() -> None:
    cache: Bounded[str, int] = Bounded(3)
    cache["a"] = 1
    again = pickle.loads(pickle.dumps(cache))
    assert len(again) == 0
    again["b"] = 2
    assert again["b"] == 2
