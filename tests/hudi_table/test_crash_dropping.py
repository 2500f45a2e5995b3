"""A fault at every storage call of writes and services on a table of version 9 that has Hudi's
metadata table: while the properties name a partition, all its files are there and they say what the
table holds; and the next write needs no repair.

Matrix: {one that is kept, one with indexes of expressions, one of which those are dropped, one that
was lost to a drop that ended half-way} × {upsert, delete, insert_overwrite, compaction or
clustering} × each storage call × {crash before, crash after, torn write, lost reply}, on golden
tables of Hudi 1.1.1 in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_table.api import HudiTable
from hudi_table.arguments import OperationName
from hudi_table.metadata.definitions import DEFINITIONS
from hudi_table.metadata.table import read_partitions
from hudi_table.metadata.validate import differences
from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.table.config import TableType
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Storage
from tests.support import golden
from tests.support.crashes import copied, new_store, opened
from tests.support.fault_points import after_each_fault, check_outcome, on_table
from tests.support.later import STEP, index_options

pytestmark = pytest.mark.filterwarnings("ignore::hudi_table.metadata.lifecycle.MetadataDroppedWarning")

TABLES = {"kept": "v9_nbcc", "expressions": "v9_expr_stats", "partly kept": "v9_expr_stats", "lost": "v9_nbcc"}
STATISTICS = {"bloom_filters", "column_stats", "files", "partition_stats"}
EXPRESSIONS = {"expr_index_idx_bl", "expr_index_idx_dt"}
KEPT = {"kept": {"files"}, "expressions": STATISTICS | EXPRESSIONS, "partly kept": STATISTICS, "lost": set()}
STRIDE = 4
Rows = frozenset[Any]


def loaded(name: str, folder: Path) -> Storage:
    base, store = golden.unpack(name, folder).base, new_store()
    for path in base.rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(base)), path.read_bytes())
    return store


def of_two_columns(store: Storage) -> None:
    """The definitions of indexes of expressions name two columns, of which none is kept."""
    noted = json.loads(store.get(DEFINITIONS))
    for name in EXPRESSIONS:
        noted["indexDefinitions"][name]["sourceFields"] = ["name", "ts"]
    store.put(DEFINITIONS, json.dumps(noted).encode())


def rows_of(table: pa.Table) -> Rows:
    found = [tuple(row.values()) for row in table.to_pylist()]
    assert len(found) == len(set(found)), f"a row came twice: {found}"
    return frozenset(found)


def read(store: Storage) -> Rows:
    return rows_of(opened(store).scan().to_arrow())


def named(store: Storage) -> frozenset[str]:
    """The partitions of the metadata table by which readers go."""
    return frozenset(read_partitions(opened(store).context).ready)


def files(store: Storage) -> set[str]:
    return {info.path for info in store.list(METADATA_TABLE)}


def first(data: pa.Table) -> pa.Table:
    return data.sort_by("id").slice(0, 1)


def newer(data: pa.Table) -> pa.Table:
    """The rows written again, as the newest of their keys."""
    changed = data.set_column(data.schema.get_field_index("name"), "name", pa.array(["again"] * len(data)))
    ordering = data.schema.field("ts")
    raised = pc.add(data["ts"], STEP).cast(ordering.type)
    return changed.set_column(data.schema.get_field_index("ts"), ordering, raised)


def rewrite(table: HudiTable) -> None:
    """All file groups."""
    if table.context.config.type is TableType.MERGE_ON_READ:
        table.compact(force=True)
    else:
        table.cluster({}, force=True, engine=LocalEngine(1))


def operations(data: pa.Table, options: dict[str, str]) -> dict[str, tuple[Callable[[HudiTable], object], Rows]]:
    """What is done, and the rows after it."""
    all_rows, one, again = rows_of(data), first(data), newer(first(data))
    city = one["city"][0].as_py()
    others = rows_of(data.filter(pc.not_equal(data["city"], city)))

    def write(batch: pa.Table, operation: OperationName, table: HudiTable) -> None:
        table.write(batch, operation=operation, options=options)

    return {
        "upsert": (partial(write, again, "upsert"), all_rows - rows_of(one) | rows_of(again)),
        "delete": (partial(write, one, "delete"), all_rows - rows_of(one)),
        "insert_overwrite": (partial(write, again, "insert_overwrite"), others | rows_of(again)),
        "rewrite": (rewrite, all_rows),
    }


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("operation", ["upsert", "delete", "insert_overwrite", "rewrite"])
@pytest.mark.parametrize("metadata", TABLES)
@pytest.mark.parametrize("half", [0, 1], ids=["even", "odd"])
def test_a_fault_at_any_call_leaves_partitions_that_are_whole_and_agree(
    half: int, metadata: str, operation: str, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    name = TABLES[metadata]
    start, options = loaded(name, tmp_path), dict(index_options(name))
    if metadata == "lost":
        for path in files(start):
            start.delete(path)
    if metadata == "partly kept":
        of_two_columns(start)
    data = opened(start).scan().to_arrow()
    old, before = rows_of(data), files(start)
    assert named(start) >= KEPT[metadata]
    operate, new = operations(data, options)[operation]
    done = 0
    for point in after_each_fault(start, on_table(operate), stride=STRIDE, part=(half, 2)):
        store, where = point.store, point.where
        found = read(store)
        check_outcome(found, old, new, point.outcome, where)
        agrees(store, before, where)
        for suspect in point.suspects:
            check_goes_on(copied(store), (old, new), data, options, suspect, where)
        done += 1
    finished = copied(start)
    operate(opened(finished))
    assert named(finished) == KEPT[metadata]
    figure(done, "crash points of version 9")


def agrees(store: Storage, before: set[str], where: str) -> None:
    """Of each partition that is named all files are there that were, and they say what the table
    holds."""
    there = files(store)
    for partition in named(store):
        gone = {path for path in before if path.startswith(f"{METADATA_TABLE}/{partition}/")} - there
        assert not gone, f"{where}: {partition} is named, and of its files are gone {gone}"
    assert differences(opened(store).context) == [], where


def check_goes_on(
    store: Storage, states: tuple[Rows, Rows], data: pa.Table, options: dict[str, str], suspect: float, where: str
) -> None:
    """The next write finds the table as one of these states, and leaves what agrees."""
    extra = pa.Table.from_pylist([first(data).to_pylist()[0] | {"id": "next"}], schema=data.schema)
    opened(store, suspect=suspect).write(extra, operation="upsert", options=options)
    agrees(store, set(), where)
    assert read(store) in [state | rows_of(extra) for state in states], where
