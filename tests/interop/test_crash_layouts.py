"""Apache Hudi reads what a crash of ours left, as we do: a sample of the points of
`test_crash_points.py` and `test_crash_compaction.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import HudiError
from hudi_table.table.store.ports import Storage
from tests.support.crashes import (
    LAYOUTS,
    LOG_LAYOUTS,
    OPERATIONS,
    SCHEMA,
    copied,
    dump,
    opened,
    prepared,
    read,
    with_logs,
)
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.scale import scaled

pytestmark = pytest.mark.interop


def compact(table: HudiTable) -> None:
    table.compact(force=True)


CASES: dict[str, tuple[Callable[[], Storage], Callable[[HudiTable], object]]] = {
    "upsert": (partial(prepared, LAYOUTS[0]), OPERATIONS["upsert"][0]),
    "insert_overwrite": (partial(prepared, LAYOUTS[0]), OPERATIONS["insert_overwrite"][0]),
    "upsert to logs": (partial(with_logs, LOG_LAYOUTS[0]), OPERATIONS["upsert"][0]),
    "compaction": (partial(with_logs, LOG_LAYOUTS[0]), compact),
}


@pytest.mark.by_turns
@pytest.mark.parametrize("name", CASES)
def test_hudi_reads_the_old_or_the_new_rows_after_a_crash(hudis, tmp_path, name):
    prepare, operate = CASES[name]
    start = prepare()
    counting = FaultPlan()
    operate(opened(FaultyStorage(copied(start), counting)))
    calls = len(counting.calls)
    for share in range(scaled(3)):
        number = 1 + (share * 7 + calls // 2) % calls
        store = copied(start)
        with contextlib.suppress(Crash, HudiError):
            operate(opened(FaultyStorage(store, FaultPlan(at=number, fault=Fault.CRASH_AFTER))))
        base = dump(store, tmp_path / f"{name}-{share}")
        for version, found in hudis.each(lambda oracle, base=base: oracle.read(base)).items():
            assert rows_of(found) == read(store), f"Hudi {version} after a crash at call {number}"


def rows_of(table: pa.Table) -> frozenset[tuple[object, ...]]:
    return frozenset(tuple(row.values()) for row in table.select(SCHEMA.names).to_pylist())
