"""An index that is made here and nowhere else known writes and reads a table: its own answers and
the defaults of `Index` are all that the library asks. The lines below are what a new index needs,
but for its line in `index/kinds.py`.

Omitted: how each index of the library answers (`test_conformance.py`), indexes of other packages
(`test_custom.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import InvariantError
from hudi_table.index.base import Index, Keys, Lookup, Routed, Slot
from hudi_table.index.kinds import KINDS
from hudi_table.model.table.config import IndexType
from tests.support.written import contents, new_table, rows, slices

LETTERS = "abcdefgh"


@dataclass(frozen=True, slots=True)
class FirstLetter(Index):
    """A file group for each letter that keys begin with: nothing is looked up."""

    @property
    def reads_snapshot(self) -> bool:
        return False

    @property
    def is_global(self) -> bool:
        return False

    def slots_in(self, partition: str) -> list[Slot]:
        names = (f"{uuid.uuid5(uuid.NAMESPACE_URL, f'{partition}/{letter}')}-0" for letter in LETTERS)
        return [Slot(partition, file_id=name) for name in names]

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        slots = tuple(slot for path in keys.partition_paths for slot in self.slots_in(path))
        letters = pc.index_in(pc.utf8_slice_codeunits(keys.record_keys, 0, 1), value_set=pa.array(list(LETTERS)))
        return Routed(slots, (keys.partitions * len(LETTERS) + letters.to_numpy()).astype(np.int32))


@dataclass(frozen=True, slots=True)
class EveryKey(Index):
    """Keys are unique in the table, and looked up by reading them all. It writes down what it
    learns of commits."""

    learnt: list[int] = field(default_factory=list)

    @property
    def reads_snapshot(self) -> bool:
        return True

    @property
    def is_global(self) -> bool:
        return True

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        assert lookup is not None
        homes = tuple(Slot(path) for path in keys.partition_paths)
        slots = homes + tuple(Slot(item.partition, file_id=item.file_id) for item in lookup.slices)
        codes = keys.partitions.astype(np.int32)
        deletes = []
        for code, item in enumerate(lookup.slices, len(homes)):
            assert item.base is not None
            with lookup.storage.open_read(item.base.path) as source:
                stored = pq.read_table(source, columns=["_hoodie_record_key"]).column(0).to_pylist()
            for row in np.flatnonzero(np.isin(keys.record_keys.to_pylist(), stored)).tolist():
                if slots[keys.partitions[row]].partition == item.partition:
                    codes[row] = code
                else:
                    deletes.append((row, code))
        gone = np.array(deletes, dtype=np.int64).reshape(-1, 2)
        return Routed(slots, codes, gone[:, 0], gone[:, 1].astype(np.int32))

    def learn(self, snapshot: Callable[[], Lookup]) -> None:
        self.learnt.append(len(snapshot().slices))


@pytest.fixture
def table_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., HudiTable]:
    """Makes an empty table that has an index of this file."""

    def made(index: Index, kind: str = "CopyOnWrite") -> HudiTable:
        monkeypatch.setitem(KINDS, IndexType.CUSTOM, lambda config, spec, options: index)
        return new_table(index={"type": "Custom", "class": "made-here"}, type=kind)

    return made


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_an_index_that_places_rows_by_itself_keeps_their_keys_in_its_file_groups(
    table_of: Callable[..., HudiTable], kind: str
) -> None:
    table = table_of(FirstLetter(), kind)
    table.insert(rows(("a1", "x", 1), ("a2", "x", 2), ("b1", "x", 3), ("a1", "y", 4)))
    table.upsert(rows(("a1", "x", 10), ("c1", "x", 5), ("a1", "y", 40)))
    table.delete(rows(("b1", "x", 0), ("h9", "x", 0)))
    assert contents(table) == [("a1", "x", 10), ("a1", "y", 40), ("a2", "x", 2), ("c1", "x", 5)]
    known = {slot.file_id for path in "xy" for slot in FirstLetter().slots_in(path)}
    assert {item.file_id for item in slices(table)} <= known
    assert not table.doctor()
    table.write(rows(("d1", "x", 6)), operation="insert_overwrite")
    assert contents(table) == [("a1", "y", 40), ("d1", "x", 6)]


def test_two_writers_of_a_group_meet_before_it_exists_only_if_the_index_gives_it_its_name() -> None:
    new = {FirstLetter().conflict_key("x", "f-0", exists=known) for known in (False, True)}
    assert len(new) == 1
    assert None not in new
    assert EveryKey().conflict_key("x", "f-0", exists=True) in new
    assert EveryKey().conflict_key("x", "f-0", exists=False) is None


def test_an_index_that_looks_keys_up_moves_them_and_learns_of_each_commit(table_of: Callable[..., HudiTable]) -> None:
    index = EveryKey()
    table = table_of(index)
    table.upsert(rows(("a", "x", 1), ("b", "x", 2)))
    table.upsert(rows(("a", "y", 3), ("b", "x", 4), ("c", "z", 5)))
    table.delete(rows(("b", "anywhere", 0)))
    assert contents(table) == [("a", "y", 3), ("c", "z", 5)]
    assert index.learnt == [1, 3, 3]
    assert not table.doctor()


def test_an_index_that_looks_keys_up_has_no_places_of_its_own() -> None:
    with pytest.raises(InvariantError, match="asked for the places of partition 'x'"):
        EveryKey().slots_in("x")
