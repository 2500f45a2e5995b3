"""The simple indexes find every key and only those."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvariantError
from hudi_table.index.base import Keys, Lookup, Routed, Slot
from hudi_table.index.key_hashes import key_hashes
from hudi_table.index.simple import SimpleIndex
from hudi_table.table.engine.local_engine import LocalEngine
from tests.support.written import contents, new_table, rows, slices

NO_PACKING = {"hoodie.parquet.small.file.limit": "0"}


@pytest.fixture(scope="module")
def table() -> HudiTable:
    """Partition x in two files (keys a, b and c, d), partition y in one (a, z), ordering values
    10."""
    made = new_table(ordering_fields="ts")
    made.insert(rows(("a", "x", 1, 10), ("b", "x", 2, 10)), options=NO_PACKING)
    made.insert(rows(("c", "x", 3, 10), ("d", "x", 4, 10)), options=NO_PACKING)
    made.insert(rows(("e", "y", 5, 10), ("z", "y", 6, 10)), options=NO_PACKING)
    return made


def route(
    table: HudiTable, *items: tuple[str, str, int], is_global: bool = False, ordering: str | None = None
) -> Routed:
    paths = tuple(dict.fromkeys(path for _, path, _ in items))
    codes = np.array([paths.index(path) for _, path, _ in items], dtype=np.int32)
    values = pa.array([value for _, _, value in items], pa.int64()) if ordering else None
    keys = Keys(pa.array([key for key, _, _ in items], pa.string()), paths, codes, values)
    lookup = Lookup(table.context.storage, slices(table), LocalEngine(2), ordering)
    return SimpleIndex(is_global=is_global).route(keys, lookup)


def holding(table: HudiTable, key: str) -> str:
    """The file id that holds a key."""
    found = table.scan(["_hoodie_file_name"], f"id = '{key}'").to_arrow().to_pylist()
    return str(found[0]["_hoodie_file_name"]).partition("_")[0]


def places(routed: Routed) -> list[Slot | None]:
    return [routed.slots[code] if code >= 0 else None for code in routed.codes]


def test_a_known_key_goes_to_its_file_and_a_new_one_to_its_partition(table: HudiTable) -> None:
    routed = route(table, ("d", "x", 1), ("a", "x", 1), ("new", "x", 1), ("z", "y", 1), ("q", "fresh", 1))
    assert places(routed) == [
        Slot("x", holding(table, "d")), Slot("x", holding(table, "a")), Slot("x"), Slot("y", holding(table, "z")), Slot("fresh"),
    ]  # fmt: skip
    assert len(routed.deletes) == 0


def test_a_key_of_another_partition_is_new_to_a_simple_index(table: HudiTable) -> None:
    assert places(route(table, ("a", "y", 1))) == [Slot("y")]


def test_a_global_index_sends_a_key_that_moves_to_its_new_partition_and_a_delete_to_the_old(table: HudiTable) -> None:
    routed = route(table, ("a", "y", 1), ("e", "y", 1), ("c", "fresh", 1), is_global=True)
    assert places(routed) == [Slot("y"), Slot("y", holding(table, "e")), Slot("fresh")]
    moved = {int(row): routed.slots[code] for row, code in zip(routed.deletes, routed.delete_codes, strict=True)}
    assert moved == {0: Slot("x", holding(table, "a")), 2: Slot("x", holding(table, "c"))}


def test_by_event_time_an_older_row_moves_nothing(table: HudiTable) -> None:
    routed = route(table, ("a", "y", 9), ("b", "y", 10), is_global=True, ordering="ts")
    assert places(routed) == [None, Slot("y")]
    assert routed.deletes.tolist() == [1]


def test_an_older_row_that_would_move_leaves_the_stored_one() -> None:
    table = new_table(index="GlobalSimple", ordering_fields="ts", merge_mode="EventTime")
    table.insert(rows(("a", "x", 1, 10), ("b", "x", 2, 10)))
    table.upsert(rows(("a", "y", 0, 9), ("b", "y", 3, 10)))
    assert contents(table) == [("a", "x", 1), ("b", "y", 3)]


def test_an_older_flagged_row_of_another_partition_deletes_nothing() -> None:
    table = new_table(index="GlobalSimple", ordering_fields="ts", merge_mode="EventTime")
    table.insert(rows(("a", "x", 1, 10), ("b", "x", 2, 10)))
    table.upsert(rows(("a", "y", 0, 9, True), ("b", "y", 0, 11, True)))
    assert contents(table) == [("a", "x", 1)]


def test_an_index_that_looks_keys_up_asks_for_a_snapshot() -> None:
    with pytest.raises(InvariantError):
        SimpleIndex().route(Keys(pa.array(["a"]), ("",), np.zeros(1, dtype=np.int32)))


def test_hashes_of_keys_are_equal_for_equal_keys_alone() -> None:
    names = pa.array([f"key-{i}" for i in range(20_000)] + ["Aa", "BB", "", "é中", "\U0001f600"])
    hashes = key_hashes(names)
    assert len(set(hashes.tolist())) == len(names)
    assert hashes.tolist() == key_hashes(names).tolist()


def test_an_update_reaches_every_file_that_holds_its_key() -> None:
    """Each of four keys lies in three of four files."""
    made, keys = new_table(), "abcd"
    for left_out in keys:
        made.insert(rows(*((key, "x", 0) for key in keys if key != left_out)), options=NO_PACKING)
    made.upsert(rows(*((key, "x", 9) for key in keys)))
    assert contents(made) == sorted(3 * [(key, "x", 9) for key in keys])
