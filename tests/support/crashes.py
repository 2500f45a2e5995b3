"""Tables and operations for the tests of crash points: small, in memory, with their rows before and
after."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_table.api import CommitResult, HudiTable, ServiceResult
from hudi_table.metadata.port import open_context
from hudi_table.model.table.cdc import CDC_ENABLED
from hudi_table.model.table.config import IndexSpec, IndexType, TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.table.commit.transaction import begin
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.opening import open_storage
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TxnSettings
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.tables import write_file

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
Rows = frozenset[tuple[str, str, int]]


@dataclass(frozen=True)
class Layout:
    """Index, partitioning and type of a scenario's table."""

    index: IndexType
    partitioned: bool
    type: TableType = TableType.COPY_ON_WRITE
    logs_changes: bool = False
    version: int = 6
    stores_keys: bool = True

    def __str__(self) -> str:
        logs = "-logs" if self.type is TableType.MERGE_ON_READ else ""
        changes = "-changes" if self.logs_changes else ""
        changes += "" if self.stores_keys else "-made keys"
        later = f"-version {self.version}" if self.version > 6 else ""
        return f"{self.index.value}-{'partitioned' if self.partitioned else 'flat'}{logs}{changes}{later}"


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
RING_LAYOUT = Layout(IndexType.CONSISTENT_BUCKET, True, TableType.MERGE_ON_READ)
"""A table whose file groups are nodes of hash rings."""
INDEXES = (IndexType.BUCKET, IndexType.SIMPLE, IndexType.GLOBAL_SIMPLE)
LAYOUTS = [Layout(index, flag) for index in INDEXES for flag in (True, False)]
LOG_LAYOUTS = [
    Layout(IndexType.BUCKET, True, TableType.MERGE_ON_READ),
    Layout(IndexType.SIMPLE, False, TableType.MERGE_ON_READ),
]
"""Tables whose updates go to logs."""

CHANGE_LAYOUTS = [Layout(IndexType.BUCKET, True, logs_changes=True), Layout(IndexType.SIMPLE, False, logs_changes=True)]
"""Tables whose rewrites log their changes."""

LATER = Layout(IndexType.BUCKET, True, version=9)
LATER_LOGS = Layout(IndexType.SIMPLE, True, TableType.MERGE_ON_READ, version=9)
"""Tables of version 9, whose completed files are named by the decision, and whose logs by their
writes."""
MADE_KEYS = Layout(IndexType.SIMPLE, True, TableType.MERGE_ON_READ, stores_keys=False)
"""A table that stores no meta columns: keys of rows in files and logs are made of their fields."""


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

    def run_compaction(self, instant: str, **more: Any) -> ServiceResult:
        return super().run_compaction(instant, engine=LocalEngine(1), **more)

    def compact(self, *args: Any, **more: Any) -> list[ServiceResult]:
        return super().compact(*args, **{"engine": LocalEngine(1), **more})


def opened(store: Any, *, suspect: float = 900.0) -> HudiTable:
    return OneThread(open_context(store, settings=TxnSettings(3600.0, suspect)))


def spec(layout: Layout) -> TableSpec:
    index = IndexSpec(layout.index, 2 if layout.index.hashes else None)
    return TableSpec(
        SCHEMA, "id", partition_by=["city"] if layout.partitioned else [], index=index, name="t", type=layout.type.value,
        options={CDC_ENABLED: "true"} if layout.logs_changes else {}, version=layout.version,
        populate_meta_fields=None if layout.stores_keys else False,
    )  # fmt: skip


def prepared(layout: Layout) -> Storage:
    """A table with three rows in two commits."""
    store = new_store()
    create(store, spec(layout))
    table = opened(store)
    table.write(rows(*FIRST[:2]), operation="upsert")
    table.write(rows(FIRST[2]), operation="upsert")
    return store


def with_logs(layout: Layout) -> Storage:
    """The table with an update, an insert and a delete in later commits: in logs, where rows of a
    group go there."""
    store = prepared(layout)
    table = opened(store)
    table.write(rows(("a", "x", 9), ("n", "x", 1)), operation="upsert")
    table.write(rows(("b", "x", 0)), operation="delete")
    return store


def read(store: Storage) -> Rows:
    found = opened(store).scan().to_arrow()
    listed = [tuple(row[name] for name in SCHEMA.names) for row in found.to_pylist()]
    assert len(listed) == len(set(listed)), f"a row came twice: {sorted(listed)}"
    return frozenset(listed)


def replayed(store: Storage) -> Rows:
    """The rows that all changes of the table make, one after the other."""
    state: dict[str, tuple[str, str, int]] = {}
    for change in opened(store).changes().to_arrow().to_pylist():
        if change["before"] is not None:
            assert state.pop(change["before"]["id"]) == tuple(change["before"].values()), f"{change} of another row"
        if change["after"] is not None:
            assert change["after"]["id"] not in state, f"{change} of a row that is there"
            state[change["after"]["id"]] = tuple(change["after"].values())
    return frozenset(state.values())


def with_a_failed_write(store: Storage) -> Storage:
    """The table with a write of another process that died after its first file."""
    txn = begin(open_context(store), Action.COMMIT)
    txn.inflight()
    write_file(txn, 0, "x", b"half of a Parquet file")
    return store


def dump(store: Storage, folder: Path) -> Path:
    """The table on local disk, where foreign readers find it."""
    for info in store.list():
        target = folder / info.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(store.get(info.path))
    return folder


def shape_of(store: Storage) -> tuple[str, ...]:
    """What lies where, with instants and file ids by their rank: tables of one shape read alike."""
    paths = [info.path for info in store.list()]
    instants = sorted({found for path in paths for found in re.findall(r"\d{17}", path)})
    ids = sorted({found for path in paths for found in re.findall(r"[0-9a-f-]{30,40}-0(?=_)", path)})
    names = {
        text: f"<{kind}{rank}>" for kind, group in (("t", instants), ("f", ids)) for rank, text in enumerate(group)
    }
    shown = []
    for path in paths:
        for text, name in names.items():
            path = path.replace(text, name)
        shown.append(path)
    return tuple(sorted(shown))
