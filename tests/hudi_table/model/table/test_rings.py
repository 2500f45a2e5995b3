"""Hash rings: those that a partition begins with are Hudi's, every hash has one node, and a split
that is merged again is no change."""

from __future__ import annotations

import bisect
import itertools
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hudi_table.model.table.rings import DELETE, HASH_MAX, NORMAL, REPLACE, Node, Ring, nodes_text, parse_nodes
from tests.support.scale import scaled

# Printed by the classes in the jar of Apache Hudi 0.15.0.
FIRST = {
    ("sf", 4): {
        536870912: "b191fdb9-1561-3229-90af-667100004fe7",
        1073741824: "e009af8c-59dd-37ea-8cd4-c40db9f59b70",
        1610612736: "4c1755a8-ea8a-334c-800b-7ecc7763d480",
        2147483647: "e45844a0-f593-3584-b330-d1a850d5d69e",
    },
    ("p=1", 3): {
        715827883: "be05ac6d-4779-39ad-a227-2baecf323646",
        1431655766: "9f85771a-7fc6-347e-818f-da1c6a16931b",
        2147483647: "5a8ef414-4d2d-3b5b-b3d3-66028fa77e85",
    },
}
PLACES = st.integers(0, HASH_MAX)
VALUES = st.lists(PLACES, min_size=1, max_size=8, unique=True).map(sorted)
EDGES = [0, 1, HASH_MAX - 1, HASH_MAX]


def ring_of(values: list[int]) -> Ring:
    return Ring("p", tuple(Node(value, f"n{value}") for value in values), 4)


@pytest.mark.parametrize(("partition", "buckets"), FIRST)
def test_a_partition_begins_with_hudis_ring(partition: str, buckets: int) -> None:
    ring = Ring.initial(partition, buckets)
    assert {node.value: node.prefix for node in ring.nodes} == FIRST[partition, buckets]
    assert (ring.is_initial, ring.sequence, ring.buckets) == (True, 0, buckets)
    assert ring.nodes[0].file_id == f"{ring.nodes[0].prefix}-0"


def test_nodes_split_where_hudi_splits_them() -> None:
    # The clustering of Apache Hudi 0.15.0, and of 1.1.1, split the four nodes of `sf` at these values.
    ring = Ring.initial("sf", 4)
    split = [nodes[0].value for at in range(4) if (nodes := ring.split(at, ("low", "high"))) is not None]
    assert split == [268435455, 805306368, 1342177280, 1879048191]


@settings(max_examples=scaled(200), deadline=None)
@example(3000, [])
@given(st.integers(1, 200), st.lists(PLACES))
def test_every_hash_has_one_node_of_a_first_ring(buckets: int, places: list[int]) -> None:
    ring = Ring.initial("p", buckets)
    values = [node.value for node in ring.nodes]
    assert values == sorted(set(values))
    for place in [*places, *EDGES, *values]:
        assert ring.node_at(place).value == values[bisect.bisect_left(values, place) % len(values)]


@settings(max_examples=scaled(300), deadline=None)
@given(VALUES, st.data())
def test_a_split_moves_hashes_of_its_node_alone_and_merged_again_it_is_no_change(
    values: list[int], data: st.DataObject
) -> None:
    ring = ring_of(values)
    at = data.draw(st.integers(0, len(values) - 1))
    children = ring.split(at, ("low", "high"))
    before = values[at - 1]
    if children is None:
        assert (values[at] - before) % (HASH_MAX + 1) <= 1
        return
    split = ring.changed(children, "1")
    assert [node.tag for node in split.nodes] == [NORMAL] * (len(values) + 1)
    assert (split.instant, split.sequence, split.buckets) == ("1", 1, ring.buckets)
    for place in [*data.draw(st.lists(PLACES)), *EDGES, *values, children[0].value, children[0].value + 1 & HASH_MAX]:
        old, new = ring.node_at(place), split.node_at(place)
        assert new == old or (old.value == values[at] and new.prefix in ("low", "high"))
    sizes = [(children[0].value - before) % (HASH_MAX + 1), (values[at] - children[0].value) % (HASH_MAX + 1)]
    assert abs(sizes[0] - sizes[1]) <= 1 or len(values) == 1
    low = split.position("low-0")
    assert low is not None
    merged = split.changed(split.merge([low, (low + 1) % len(split.nodes)], ring.nodes[at].prefix or ""), "2")
    assert merged.nodes == ring.nodes


@settings(max_examples=scaled(200), deadline=None)
@given(VALUES, st.data())
def test_merged_neighbours_give_their_hashes_to_the_last(values: list[int], data: st.DataObject) -> None:
    ring = ring_of(values)
    first, count = data.draw(st.integers(0, len(values) - 1)), data.draw(st.integers(1, len(values)))
    run = [(first + step) % len(values) for step in range(count)]
    changes = ring.merge(run, "whole")
    assert [node.tag for node in changes] == [DELETE] * (count - 1) + [REPLACE]
    merged = ring.changed(changes, "1")
    gone = {ring.nodes[at].prefix for at in run}
    for place in [*data.draw(st.lists(PLACES)), *EDGES, *values]:
        old, new = ring.node_at(place), merged.node_at(place)
        assert new.prefix == ("whole" if old.prefix in gone else old.prefix)


@given(VALUES)
def test_a_ring_and_a_list_of_nodes_are_read_as_they_were_written(values: list[int]) -> None:
    ring = ring_of(values)
    assert Ring.from_json(ring.to_json()) == ring
    changes = (Node(values[0], None, DELETE), Node(values[-1], "x", REPLACE))
    assert parse_nodes(nodes_text(changes)) == changes


def test_a_ring_is_written_in_hudis_words() -> None:
    document = json.loads(Ring.initial("p=1", 1).to_json())
    assert document == {
        "version": 0,
        "partitionPath": "p=1",
        "instant": "00000000000000",
        "numBuckets": 1,
        "seqNo": 0,
        "nodes": [{"value": HASH_MAX, "fileIdPrefix": Ring.initial("p=1", 1).nodes[0].prefix, "tag": "NORMAL"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"partitionPath": "p", "numBuckets": 1, "seqNo": 0, "instant": "1", "nodes": []}',
        '{"partitionPath": "p", "numBuckets": 1, "seqNo": 0, "instant": "1", "nodes": [{"value": -1, "fileIdPrefix": "a", "tag": "NORMAL"}]}',
        '{"partitionPath": "p", "numBuckets": 1, "seqNo": 0, "instant": "1", "nodes": [{"value": 1, "fileIdPrefix": null, "tag": "NORMAL"}]}',
    ],
)
def test_what_is_no_ring_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Ring.from_json(text.encode())


def test_nothing_can_take_the_last_node_away() -> None:
    with pytest.raises(ValueError, match="one node"):
        ring_of([5]).changed([Node(5, None, DELETE)], "1")


def test_file_ids_of_first_rings_differ_between_partitions_and_numbers() -> None:
    rings = [Ring.initial(name, count) for name, count in itertools.product(("", "a", "b"), (1, 2, 3))]
    ids = [(ring.partition, node.value, node.prefix) for ring in rings for node in ring.nodes]
    assert len({prefix for *_, prefix in ids}) == len({(name, prefix) for name, _, prefix in ids})
