"""The consistent hashing index: rows go where the ring of their partition says, whatever the batch
holds; and what lies elsewhere is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.api import open_table
from hudi_table.codec.hashes.xxhash import ring_hashes
from hudi_table.errors import CorruptTableError
from hudi_table.index.base import Keys, Slot
from hudi_table.index.hashing.consistent import ConsistentIndex
from hudi_table.model.table.rings import HASH_MAX, Node, Ring
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.table.view.hash_rings import FixedRings, TableRings
from tests.support import golden
from tests.support.scale import scaled

RINGS = st.dictionaries(
    st.sampled_from(["", "a", "b", "c"]),
    st.lists(st.integers(0, HASH_MAX), min_size=1, max_size=5, unique=True).map(sorted),
    min_size=1,
)


def index_of(rings: dict[str, list[int]]) -> ConsistentIndex:
    found = {
        name: Ring(name, tuple(Node(value, f"{name}{value}") for value in values), 4) for name, values in rings.items()
    }
    return ConsistentIndex(FixedRings(4, found), ("id",), ("id",))


@settings(max_examples=scaled(200), deadline=None)
@given(RINGS, st.lists(st.tuples(st.text(max_size=20), st.integers(0, 10)), max_size=40))
def test_every_row_goes_to_the_node_of_its_hash_on_its_partitions_ring(
    rings: dict[str, list[int]], rows: list[tuple[str, int]]
) -> None:
    index, paths = index_of(rings), tuple(rings)
    keys = [key.replace(":", "") for key, _ in rows]
    partitions = np.array([number % len(paths) for _, number in rows], dtype=np.int32)
    routed = index.route(Keys(pa.array(keys, pa.string()), paths, partitions))
    places = ring_hashes(pa.array(keys, pa.string())).tolist()
    wanted = [
        Slot(paths[number], file_id=index.rings.ring(paths[number]).node_at(place).file_id)
        for number, place in zip(partitions, places, strict=True)
    ]
    assert [routed.slots[code] for code in routed.codes] == wanted
    assert set(routed.slots) == set(wanted)


# Apache Hudi 0.15.0 wrote these keys into these file groups of partition `sf`, which began with 4 nodes.
def test_rows_go_to_the_file_groups_that_hudi_gives_them() -> None:
    index = ConsistentIndex(FixedRings(4), ("id",), ("id",))
    keys = pa.array(["k000", "k001", "a"])
    routed = index.route(Keys(keys, ("sf",), np.zeros(3, dtype=np.int32)))
    assert [routed.slots[code].file_id for code in routed.codes] == [
        "e009af8c-59dd-37ea-8cd4-c40db9f59b70-0",
        "e45844a0-f593-3584-b330-d1a850d5d69e-0",
        "4c1755a8-ea8a-334c-800b-7ecc7763d480-0",
    ]
    assert index.slots_in("sf")[1] == routed.slots[routed.codes[0]]


def test_every_row_of_hudis_table_lies_where_its_stored_ring_says(tmp_path: Path) -> None:
    table = open_table(str(golden.unpack("bktcons", tmp_path).base))
    rings = TableRings(table.context, load_timeline(table.context), 4)
    assert rings.is_stored("sf")
    assert rings.ring("sf") == Ring.initial("sf", 4)
    rows = table.scan(meta=True).to_arrow()
    index = ConsistentIndex(rings, ("id",), ("id",))
    keys = rows["_hoodie_record_key"].combine_chunks()
    routed = index.route(Keys(keys, ("sf",), np.zeros(len(keys), dtype=np.int32)))
    assert [routed.slots[code].file_id for code in routed.codes] == rows["_hoodie_file_name"].to_pylist()
    assert len(keys) > 10


def test_a_group_that_is_no_node_is_named_and_those_of_other_partitions_are_not_asked() -> None:
    index = index_of({"a": [5], "b": [7]})
    slices = [FileSlice("a", "a5-0", "1", None), FileSlice("z", "any", "1", None)]
    assert index.groups(slices) == {Slot(item.partition, file_id=item.file_id): item for item in slices}
    with pytest.raises(CorruptTableError, match=r"group-0 in partition 'b'.*insert_overwrite"):
        index.groups([FileSlice("b", "group-0", "1", None)])
