"""Tables with three rows, what is written on them and taken back again."""

from __future__ import annotations

import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TxnSettings
from tests.support.written import keys, new_table, rows

FIRST = [("a", "x", 1), ("b", "x", 2), ("c", "y", 3)]
KINDS = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])


def written(kind="CopyOnWrite", index="Simple"):
    table = new_table(type=kind, index=index)
    table.upsert(rows(*FIRST))
    return table


def newest(table):
    last = load_timeline(table.context).last_commit
    assert last is not None
    return last.time


def files(table):
    return {info.path for info in table.context.storage.list() if not info.path.startswith(".hoodie/")}


def actions(table):
    return [(i.action, i.state) for i in load_timeline(table.context).instants]


def aged(table):
    """The table as a process sees it for which no quarantine runs."""
    return HudiTable(open_context(table.context.storage, settings=TxnSettings(0.0, 900.0)))


WRITES = {
    "insert": lambda table: table.insert(rows(("d", "x", 4), ("e", "z", 5))),
    "upsert": lambda table: table.upsert(rows(("a", "x", 9), ("d", "y", 4))),
    "delete": lambda table: table.delete(keys(("a", "x"))),
    "insert_overwrite": lambda table: table.write(rows(("h", "x", 8)), operation="insert_overwrite"),
    "delete_partition": lambda table: table.write(None, operation="delete_partition", partitions=["x"]),
}
