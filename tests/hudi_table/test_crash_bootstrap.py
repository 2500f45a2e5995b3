"""A bootstrap with a fault at every storage call: there is no table, or the whole; the source is as
it was; and the same bootstrap again makes the whole.

Matrix: {all partitions as they are, one of them copied} × {versions 6, 8, 9; copy-on-write, and on
9 merge-on-read} × each storage call × {crash before, crash after, torn write, lost reply}, in
memory.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table.model.names import PROPERTIES
from hudi_table.services.bootstrapping.run import BootstrapRequest, bootstrap_folder
from hudi_table.sources.imports.parquet import ParquetFolder
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from hudi_table.write.checks.create_table import TableSpec
from tests.support.crashes import new_store, opened
from tests.support.fault_points import after_each_fault

ROWS = {"x": [("a", 1), ("b", 2)], "y": [("c", 3)], "z": [("d", 4), ("e", 5), ("f", 6)]}
WHOLE = sorted((key, value, city) for city, found in ROWS.items() for key, value in found)


@pytest.fixture
def source() -> Storage:
    store = new_store()
    for city, found in ROWS.items():
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [key for key, _ in found], "value": [value for _, value in found]}), sink)
        store.put(f"city={city}/rows.parquet", sink.getvalue().to_pybytes())
    return store


def contents(store: Storage) -> dict[str, bytes]:
    return {info.path: store.get(info.path) for info in store.list()}


def rows_of(store: Storage) -> list[tuple[str, int, str]]:
    return sorted(tuple(row.values()) for row in opened(store).scan(["id", "value", "city"]).to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("version", "kind"), [(6, "CopyOnWrite"), (8, "CopyOnWrite"), (9, "CopyOnWrite"), (9, "MergeOnRead")]
)
@pytest.mark.parametrize("pattern", [None, "city=[xy]"])
def test_there_is_no_table_or_the_whole(source: Storage, pattern: str | None, version: int, kind: str) -> None:
    before = contents(source)
    folder = ParquetFolder.open(source)
    spec = TableSpec(folder.schema, record_key="id", name="t", version=version, type=kind)
    request = BootstrapRequest(spec, pattern=pattern)

    def operate(store: Storage) -> object:
        return bootstrap_folder(store, ParquetFolder.open(source), request, LocalEngine(1))

    begun = 0
    for faulted in after_each_fault(new_store(), operate):
        there = PROPERTIES in contents(faulted.store)
        begun += not there
        if there:
            assert rows_of(faulted.store) == WHOLE, faulted.where
        else:
            assert faulted.outcome != "succeeded", faulted.where
        operate(faulted.store)
        assert rows_of(faulted.store) == WHOLE, faulted.where
        made = opened(faulted.store).timeline()["state"].to_pylist()
        assert made == ["completed"] * (1 if pattern is None else 2), faulted.where
        table = opened(faulted.store)
        table.upsert(pa.table({"id": ["a"], "value": pa.array([9], pa.int64()), "city": ["x"]}))
        assert rows_of(faulted.store) == [("a", 9, "x"), *WHOLE[1:]], faulted.where
        assert table.doctor(keys=True, data=True) == (), faulted.where
    assert begun > 3
    assert contents(source) == before
