"""A fault at every storage call of every operation: readers see the old or the new rows, never anything else.

Matrix: {bucket, simple index} × {partitioned, not} × each operation × each storage call × {crash before, crash after,
torn write, lost reply}, on an in-memory store. After the fault a reader that knows nothing reads; then the next write
runs with no repair, with a young failed write left alone and with one taken for dead at once; then it is read again.
An operation that reported success must be there; one that reported failure without a doubt must not.

Omitted: several processes at work at once (their races are another test), faults of the local disk.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from hudi_table.api import CommitResult, HudiTable
from hudi_table.errors import CommitStateUnknownError, HudiError
from hudi_table.model.table_config import IndexSpec, IndexType
from hudi_table.table.context import TxnSettings
from hudi_table.table.engine import LocalEngine
from hudi_table.table.ports import Storage
from hudi_table.table.properties import open_context
from hudi_table.table.storage import open_storage
from hudi_table.write.create import TableSpec, create
from tests.support.faults import Crash, Fault, FaultPlan, FaultyStorage
from tests.support.scale import scale

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.TORN, Fault.LOST_REPLY)
Rows = frozenset[tuple[str, str, int]]


@dataclass(frozen=True)
class Layout:
    """Index and partitioning of a scenario."""

    index: IndexType
    partitioned: bool

    def __str__(self) -> str:
        return f"{self.index.value}-{'partitioned' if self.partitioned else 'flat'}"


def rows(*items: tuple[str, str, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, item, strict=True)) for item in items], schema=SCHEMA)


FIRST = (("a", "x", 1), ("b", "x", 2), ("c", "y", 3))
OPERATIONS: dict[str, tuple[Callable[[HudiTable], object], Callable[[Layout], set[tuple[str, str, int]]]]] = {
    "insert": (
        lambda t: t.write(rows(("d", "x", 4), ("e", "z", 5)), operation="insert"),
        lambda _: {*FIRST, ("d", "x", 4), ("e", "z", 5)},
    ),
    "upsert": (
        lambda t: t.write(rows(("a", "x", 9), ("f", "y", 6)), operation="upsert"),
        lambda _: {("a", "x", 9), *FIRST[1:], ("f", "y", 6)},
    ),
    "delete": (lambda t: t.write(rows(("b", "x", 0)), operation="delete"), lambda _: {FIRST[0], FIRST[2]}),
    "bulk_insert": (
        lambda t: t.write(rows(("g", "z", 7)), operation="bulk_insert"),
        lambda _: {*FIRST, ("g", "z", 7)},
    ),
    "insert_overwrite": (
        lambda t: t.write(rows(("h", "x", 8)), operation="insert_overwrite"),
        lambda layout: {("h", "x", 8), FIRST[2]} if layout.partitioned else {("h", "x", 8)},
    ),
    "insert_overwrite_table": (
        lambda t: t.write(rows(("i", "y", 1)), operation="insert_overwrite_table"),
        lambda _: {("i", "y", 1)},
    ),
    "delete_partition": (
        lambda t: t.write(
            None, operation="delete_partition", partitions=["x" if t.context.config.partition_by else ""]
        ),
        lambda layout: {FIRST[2]} if layout.partitioned else set(),
    ),
}
LAYOUTS = [Layout(index, flag) for index in (IndexType.BUCKET, IndexType.SIMPLE) for flag in (True, False)]


def new_store() -> Storage:
    return open_storage(f"memory://{uuid.uuid4().hex}/t")


def copied(store: Storage) -> Storage:
    twin = new_store()
    for info in store.list():
        twin.put(info.path, store.get(info.path))
    return twin


class OneThread(HudiTable):
    """A table whose calls come in one order, so that call number k is always the same one."""

    def write(self, data: Any, **more: Any) -> CommitResult:
        return super().write(data, engine=LocalEngine(1), **more)


def opened(store: Any, *, suspect: float = 900.0) -> HudiTable:
    return OneThread(open_context(store, settings=TxnSettings(3600.0, suspect)))


def spec(layout: Layout) -> TableSpec:
    index = IndexSpec(layout.index, 2 if layout.index is IndexType.BUCKET else None)
    return TableSpec(SCHEMA, "id", partition_by=["city"] if layout.partitioned else [], index=index, name="t")


def prepared(layout: Layout) -> Storage:
    """A table with three rows in two commits."""
    store = new_store()
    create(store, spec(layout))
    table = opened(store)
    table.write(rows(*FIRST[:2]), operation="upsert")
    table.write(rows(FIRST[2]), operation="upsert")
    return store


def read(store: Storage) -> Rows:
    found = opened(store).scan().to_arrow()
    listed = [tuple(row[name] for name in SCHEMA.names) for row in found.to_pylist()]
    assert len(listed) == len(set(listed)), f"a row came twice: {sorted(listed)}"
    return frozenset(listed)


def calls_of(store: Storage, operation: Callable[[HudiTable], object]) -> int:
    plan = FaultPlan()
    operation(opened(FaultyStorage(copied(store), plan)))
    return len(plan.calls)


def points(count: int) -> Iterator[tuple[int, Fault]]:
    """All points in `test-full`; in `make test` every call once, with the faults in turn."""
    if scale() > 1:
        yield from itertools.product(range(1, count + 1), FAULTS)
    else:
        for number in range(1, count + 1):
            yield number, FAULTS[number % len(FAULTS)]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_fault_at_any_storage_call_leaves_the_old_or_the_new_table(layout, name, figure):
    operation, expected = OPERATIONS[name]
    start = prepared(layout)
    old, new = read(start), frozenset(expected(layout))
    assert old == frozenset(FIRST)
    ran = 0
    for number, fault in points(calls_of(start, operation)):
        store = copied(start)
        plan = FaultPlan(at=number, fault=fault)
        outcome = attempt(store, plan, operation)
        where = f"{fault} at call {number} ({plan.fired[0] if plan.fired else 'not reached'}), {outcome}"
        check_outcome(read(store), old, new, outcome, where)
        for suspect in (900.0, 0.0):
            check_next_write(copied(store), old, new, suspect, where)
        ran += 1
    figure(ran, "crash points")


def attempt(store: Storage, plan: FaultPlan, operation: Callable[[HudiTable], object]) -> str:
    """Run the operation to its end or its fault; says how it ended."""
    try:
        operation(opened(FaultyStorage(store, plan)))
    except Crash:
        return "crashed"
    except CommitStateUnknownError:
        return "unknown"
    except HudiError:
        return "failed"
    return "succeeded"


def check_outcome(found: Rows, old: Rows, new: Rows, outcome: str, where: str) -> None:
    assert found in (old, new), f"{where}: neither old nor new but {sorted(found)}"
    if outcome == "succeeded":
        assert found == new, f"{where}: reported and not there"
    if outcome == "failed":
        assert found == old, f"{where}: reported as failed and there"


def check_next_write(store: Storage, old: Rows, new: Rows, suspect: float, where: str) -> None:
    """The next writer needs no repair: its row is there beside the old or the new ones."""
    extra = ("next", "x", 100)
    opened(store, suspect=suspect).write(rows(extra), operation="upsert")
    found = read(store)
    assert found in (old | {extra}, new | {extra}), f"{where}: the next write left {sorted(found)}"


def test_the_creation_of_a_table_is_whole_or_not_at_all():
    layout = LAYOUTS[0]
    counting = FaultPlan()
    create(FaultyStorage(new_store(), counting), spec(layout))
    for number, fault in itertools.product(range(1, len(counting.calls) + 1), FAULTS):
        store = new_store()
        with contextlib.suppress(Crash, HudiError):
            create(FaultyStorage(store, FaultPlan(at=number, fault=fault)), spec(layout))
        create(store, spec(layout), if_exists="open")
        opened(store).write(rows(*FIRST), operation="upsert")
        assert read(store) == frozenset(FIRST)
