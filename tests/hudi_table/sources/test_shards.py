"""Positions in the shards of a stream: as texts, ours and Hudi Streamer's; what may be read next,
and what is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudi_table.model.job.shards import (
    ShardExtent,
    ShardPosition,
    ShardPositions,
    StreamExtent,
    begun,
    commit_keys,
    losses,
    of_streamer_shards,
    streamer_shards,
    words_of,
)
from hudi_table.model.table.layouts import layout_of

A, B, C, D = (f"shardId-{number:012d}" for number in range(4))
DAY = 24 * 3_600_000
HELD = ShardPositions(
    "orders", "arn of now", {A: ShardPosition("7", -1, 5, "9"), B: ShardPosition("12", time=6), C: ShardPosition(start=3)}, "one", 6, 2,
)  # fmt: skip


def extent(**shards: ShardExtent) -> StreamExtent:
    return StreamExtent("orders", "arn of now", DAY, shards)


def test_positions_are_read_as_they_were_written() -> None:
    assert ShardPositions.from_text(HELD.to_text()) == HELD
    assert HELD.batch == ShardPositions.from_text(HELD.to_text()).batch


def test_hudi_streamer_is_told_what_it_can_hold() -> None:
    text = f"orders,{A}:9|9,{B}:12@6"
    assert streamer_shards(HELD) == text
    assert list(commit_keys("k", HELD, layout_of(6).streamer_key)) == ["k", "deltastreamer.checkpoint.key"]
    assert commit_keys("k", HELD, layout_of(9).streamer_key)["streamer.checkpoint.key.v2"] == text
    assert streamer_shards(ShardPositions("orders", "", {A: ShardPosition()})) is None


def test_hudi_streamers_text_is_read() -> None:
    found = of_streamer_shards(f"orders,{A}:9|9,{B}:12@6,{C}:3|8,{D}:4")
    assert (found.stream, found.id) == ("orders", "")
    assert found.shards == {
        A: ShardPosition("9", ended="9"), B: ShardPosition("12", time=6), C: ShardPosition("3"), D: ShardPosition("4"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "orders", "orders,0:120", f"orders,{A}", f"orders,{A}:x", f"orders,{A}:", f"a b,{A}:1", f"orders,{A}:1,"],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give stream,shard:sequence"):
        of_streamer_shards(text)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format":"kinesis-1"}', '{"format":"kinesis-1","shards":{"a":1}}'])
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no checkpoint of positions in Kinesis"):
        ShardPositions.from_text(text)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no position in a shard"):
        ShardPositions.from_text(HELD.to_text().replace('"after":"12"', '"after":"twelve"'))


def test_a_shard_waits_for_those_that_it_came_from_if_they_are_there() -> None:
    parent, child = ShardExtent(end="9"), ShardExtent((A, B))
    at = {A: ShardPosition("1"), B: ShardPosition("1", ended="9"), C: ShardPosition()}
    assert extent(**{A: parent, B: parent, C: child}).readable(at) == [A]
    assert extent(**{B: parent, C: child}).readable(at) == [C]
    assert extent(**{A: parent, B: parent, C: child}).readable({**at, A: ShardPosition("9", ended="9")}) == [C]


def test_it_begins_in_each_shard_where_it_is_told_to() -> None:
    found = extent(**{A: ShardExtent(end="9"), B: ShardExtent()})
    first = begun(found, None, moment=5, latest=True, attempt="one")
    assert first.shards == {A: ShardPosition(start=5, ended="9"), B: ShardPosition(start=5)}
    again = begun(extent(**{B: ShardExtent(), C: ShardExtent()}), first, moment=9, latest=True, attempt="two")
    known = replace(first, shards={A: ShardPosition("7", ended="0")})
    assert begun(found, known, moment=-1, latest=False, attempt="").shards[A].ended == "9"
    assert (again.shards, again.attempt) == ({B: ShardPosition(start=5), C: ShardPosition()}, "two")


def test_what_may_be_lost_is_told() -> None:
    there = {A: ShardExtent(end="9"), B: ShardExtent(), C: ShardExtent()}
    assert not losses(extent(**there), HELD, DAY)
    (late,) = losses(extent(**there), HELD, DAY + 7)
    assert late == f"shard {B} was read up to 24.0 hours ago, and the stream keeps 24 hours"
    (gone,) = losses(extent(**{A: there[A], C: there[C]}), HELD, 0)
    assert gone == f"shard {B} is gone, and was not read to its end"
    assert not losses(extent(**{B: there[B], C: there[C]}), HELD, 0), "the first one was drained"
    (anew,) = losses(StreamExtent("orders", "arn of then", DAY, there), HELD, 0)
    assert "was deleted and made again" in anew
    assert words_of([late] * 5).endswith("and 2 more")
