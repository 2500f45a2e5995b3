"""Savepoints that tests make: the file that Hudi would write, of the newest commit or an earlier
one; and tables that Hudi archived beyond them."""

from __future__ import annotations

from typing import Any

from hudi_table.api import HudiTable, open_table
from hudi_table.metadata.compaction import compact_metadata
from hudi_table.services.archiving.lsm import into_lsm
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.savepoints import Savepoint, savepoint_instant
from tests.support.written import INDEXES, new_table, rows

BEYOND = [("a", "x", 1), ("b", "y", 2), ("c", "z", 3), ("e", "x", 4), ("f", "x", 5)]
"""Rows of `beyond_savepoint`: each of a write of its own, of which the first is kept, and the next
two are archived."""


def keep(table: HudiTable) -> str:
    """Savepoint the newest commit; its instant."""
    timeline = load_timeline(table.context)
    newest = timeline.last_commit
    assert newest is not None
    files: dict[str, list[str]] = {}
    for item in FileSystemView(table.context, timeline).latest_slices():
        paths = [*([item.base.path] if item.base else []), *(log.path for log in item.logs)]
        files.setdefault(item.partition, []).extend(path.rpartition("/")[2] for path in paths)
    made = Savepoint(newest.time, "test", 0, "", {partition: tuple(names) for partition, names in files.items()})
    instant = savepoint_instant(newest.time)
    layout = table.context.layout
    table.context.storage.put(layout.timeline_path(layout.completed(instant).file_name), made.to_avro())
    return newest.time


def archived_beyond(table: HudiTable, kept: str) -> HudiTable:
    """The table with all writes but the kept and the two newest in its archive, as
    `hoodie.archive.beyond.savepoint` of Hudi leaves one."""
    context = table.context
    if load_timeline(context).has_metadata:
        compact_metadata(context, 1)
    timeline = load_timeline(context)
    leaving = [i for i in timeline.commits[:-2] if i.time != kept]
    states = timeline.states()
    for instants, _ in into_lsm(context, timeline, leaving, ArchivePolicy.parse({})):
        for instant in instants:
            for state in states[instant.time, instant.grouped_action]:
                context.storage.delete(context.layout.timeline_path(state.file_name))
    return open_table(table.base_path)


def beyond_savepoint(**more: Any) -> tuple[HudiTable, str]:
    """A table of version 9 with `BEYOND`, and the instant of its savepoint."""
    options = more.pop("options", {})
    table = new_table(**{"index": INDEXES["bucket"], "version": 9} | more)
    for number, row in enumerate(BEYOND):
        table.upsert(rows(row), options=options)
        if number == 0:
            kept = table.savepoint().instant
    return archived_beyond(table, kept), kept
