"""Savepoints that tests make: the file that Hudi would write, of the newest commit or an earlier
one."""

from __future__ import annotations

from hudi_table.api import HudiTable
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.savepoints import Savepoint, savepoint_instant


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
