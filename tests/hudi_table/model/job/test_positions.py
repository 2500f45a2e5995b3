"""Positions in Kafka: their text and Hudi Streamer's, round and round; what is lost, and what
waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.model.job.checkpoint_text import form_of
from hudi_table.model.job.positions import (
    AWAY_MAX,
    OFFSET_MAX,
    POSITIONS_FORMAT,
    Extent,
    Positions,
    Skipped,
    SkipReason,
    TopicExtent,
    TopicPositions,
    behind,
    commit_keys,
    lost,
    of_streamer,
    parse_streamer,
    streamer_text,
    words_of,
)
from hudi_table.model.names import STREAMER_KEY, STREAMER_KEY_V2
from hudi_table.model.table.layouts import layout_of

TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True)
OFFSETS = st.dictionaries(st.integers(0, 10_000), st.integers(0, OFFSET_MAX), min_size=1, max_size=5)
OF_TOPICS = st.dictionaries(TOPICS, st.builds(TopicPositions, st.text(max_size=10), OFFSETS), max_size=3)
POSITIONS = st.builds(
    Positions,
    st.text(max_size=10),
    OF_TOPICS,
    st.text(max_size=10),
    st.integers(-1, 2**60),
    st.integers(0, 9),
    st.text(max_size=9),
    st.lists(
        st.builds(Skipped, st.sampled_from(SkipReason), TOPICS, *[st.integers(-1, OFFSET_MAX)] * 3), max_size=3
    ).map(tuple),
    OF_TOPICS,
)


@given(POSITIONS)
def test_their_text_reads_back(positions: Positions) -> None:
    text = positions.to_text()
    assert Positions.from_text(text) == positions
    assert form_of(text) == POSITIONS_FORMAT


def test_of_many_topics_that_are_away_the_newest_are_kept() -> None:
    at = TopicPositions("i", {0: 1})
    away = {f"old-{number}": at for number in range(AWAY_MAX)}
    kept = Positions("c", {"here": at, "gone": at}, away=away).without(["here", "old-7"])
    assert len(kept) == AWAY_MAX
    assert (next(iter(kept)), list(kept)[-1], "old-7" in kept) == ("old-0", "gone", False)
    kept = Positions("c", {"here": at, "gone": at}, away=away).without(["here"])
    assert (len(kept), next(iter(kept)), list(kept)[-1]) == (AWAY_MAX, "old-1", "gone")


@given(TOPICS, OFFSETS)
def test_the_text_of_hudi_streamer_reads_back(topic: str, offsets: dict[int, int]) -> None:
    text = streamer_text(Positions("", {topic: TopicPositions("", offsets)}))
    assert text is not None
    assert parse_streamer(text) == (topic, offsets)
    assert of_streamer(text).topics[topic].offsets == offsets


def test_as_hudi_writes_it() -> None:
    positions = Positions("c", {"topic": TopicPositions("i", {1: 456, 0: 123})})
    assert streamer_text(positions) == "topic,0:123,1:456"
    assert STREAMER_KEY in commit_keys("k", positions, layout_of(6).streamer_key)
    assert commit_keys("k", positions, layout_of(8).streamer_key)[STREAMER_KEY_V2] == "topic,0:123,1:456"
    two = Positions("c", {**positions.topics, "other": TopicPositions("", {0: 1})})
    assert list(commit_keys("k", two, layout_of(6).streamer_key)) == ["k"]


@pytest.mark.parametrize(
    "text", ["", "topic", "topic,", "topic,0", "topic,0:x", "topic,0:1,0:2", "to pic,0:1", "topic,0:-1"]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"topic,partition:offset|names a partition twice"):
        parse_streamer(text)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format":3,"source":"Kafka"}', '{"format":1}', '{"format":3,"source":"Kafka","cluster":"","attempt":"","newest":0,"topics":{"t":{"id":"","offsets":{"0":-1}}}}'],
)  # fmt: skip
def test_a_damaged_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no checkpoint|holds -1|Expecting value"):
        Positions.from_text(text)


def extent(**topic: int | str) -> Extent:
    begin, end, high = (int(topic.get(name, default)) for name, default in (("begin", 0), ("end", 10), ("high", 10)))
    return Extent("c", {"t": TopicExtent(str(topic.get("id", "i")), {0: begin}, {0: end}, {0: high})})


def at(offset: int, cluster: str = "c", number: str = "i") -> Positions:
    return Positions(cluster, {"t": TopicPositions(number, {0: offset})})


@pytest.mark.parametrize(
    ("there", "positions", "said"),
    [
        (extent(begin=7), at(5), "at most 2 messages are lost: partition 0 of topic t begins at offset 7, and the ingest is at 5"),
        (extent(), at(50), "an unknown number of messages is lost: partition 0 of topic t ends at offset 10, and the ingest is at 50: it was cut back"),
        (extent(id="j"), at(5), "an unknown number of messages is lost: topic t was deleted and made again: its id was i and is j"),
        (extent(), at(5, "d"), "the checkpoint is of cluster d, and the brokers are of c"),
        (extent(), Positions("c", {"t": TopicPositions("i", {1: 0})}), "topic t has no partition 1 any more"),
    ],
)  # fmt: skip
def test_what_is_lost_is_told(there: Extent, positions: Positions, said: str) -> None:
    assert said in words_of(lost(there, positions))


def test_nothing_is_lost_where_everything_is_there_or_ids_are_not_known() -> None:
    assert lost(extent(begin=5), at(5)) == ()
    assert lost(extent(end=10, high=15), at(12)) == (), "what an open transaction has written is no end"
    assert lost(extent(), at(5, "", "")) == ()
    assert lost(extent(), None) == ()


def test_what_waits_is_counted_to_the_stable_end() -> None:
    assert behind(extent(end=10, high=15), at(4)) == 6
    assert behind(extent(), None) is None
    assert behind(extent(begin=7), at(4)) == 3, "only what is there"
    assert behind(extent(id="j"), at(4)) == 10, "a topic that was made again is all new"
