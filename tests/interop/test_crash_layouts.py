"""Apache Hudi reads what a crash of ours left, as we do: a sample of the points of `test_crash_points.py`."""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest

from hudi_table.errors import HudiError
from tests.support.crashes import LAYOUTS, OPERATIONS, SCHEMA, copied, dump, opened, prepared, read
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.scale import scaled

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", ["upsert", "insert_overwrite"])
def test_hudi_reads_the_old_or_the_new_rows_after_a_crash(hudis, tmp_path, name):
    start = prepared(LAYOUTS[0])
    counting = FaultPlan()
    OPERATIONS[name][0](opened(FaultyStorage(copied(start), counting)))
    calls = len(counting.calls)
    for share in range(scaled(3)):
        number = 1 + (share * 7 + calls // 2) % calls
        store = copied(start)
        with contextlib.suppress(Crash, HudiError):
            OPERATIONS[name][0](opened(FaultyStorage(store, FaultPlan(at=number, fault=Fault.CRASH_AFTER))))
        base = dump(store, tmp_path / f"{name}-{share}")
        for version, found in hudis.each(lambda oracle, base=base: oracle.read(base)).items():
            assert rows_of(found) == read(store), f"Hudi {version} after a crash at call {number}"


def rows_of(table: pa.Table) -> frozenset[tuple[object, ...]]:
    return frozenset(tuple(row.values()) for row in table.select(SCHEMA.names).to_pylist())
