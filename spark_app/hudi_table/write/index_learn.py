"""After a commit: an index that keeps something beside the table takes in what the table holds now.

The commit stands, whatever comes of it. So a failure is logged and not raised, and an index must
give right answers without having learnt of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from hudi_table.errors import HudiError
from hudi_table.index.base import Index, Lookup, Slot, Written
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.keys.record_keys import keys_of_stored
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView
from hudi_table.write.checks.request import resolve_index
from hudi_table.write.workload import FileGroupTask, Mode

_log = logging.getLogger("hudi_table")
_FAULTS = (HudiError, pa.ArrowException, OSError, MemoryError)


@relists
def remember(ctx: TableContext, committed: str, options: Mapping[str, str]) -> None:
    """Tell the table's index of the commit at instant `committed`: in this process, on Spark too,
    since an index may hold a connection meanwhile."""
    if not committed:
        return
    try:
        index, _ = resolve_index(ctx.config, options)
        index.learn(lambda: snapshot(ctx, LocalEngine()))
    except _FAULTS as error:
        _log.warning("the write of %s is committed; its index did not take it in: %s", committed, error)


def tell_written(
    ctx: TableContext,
    index: Index,
    existing: Mapping[Slot, FileSlice],
    stats: Sequence[WriteStat],
    tasks: Sequence[tuple[FileGroupTask, Callable[[], Iterator[pa.RecordBatch]]]],
) -> None:
    """Tell an index of the rows that tasks of this process have written and that are committed."""
    files = {(stat.partition_path, stat.file_id): stat for stat in stats}
    ours = {(task.partition, task.file_id) for task, _ in tasks}
    rolled = {place[0] for place in files.keys() - ours}

    def written() -> Iterator[Written]:
        for task, rows in tasks:
            stat = files.get((task.partition, task.file_id))
            # What a task put into several files is read from them.
            if stat is None or (task.mode is Mode.CREATE and task.partition in rolled):
                continue
            before = existing.get(Slot(task.partition, file_id=task.file_id))
            file = f"{stat.path.rpartition('/')[2]} {stat.file_size_in_bytes}"
            to_log = task.log is not None
            yield Written(task.partition, task.file_id, before, file, to_log, rows(), task.instant)

    try:
        index.wrote(ctx.storage, written)
    except _FAULTS as error:
        _log.warning("a write of %s is committed; its index did not take it in: %s", ctx.base_path, error)


def snapshot(ctx: TableContext, engine: Engine) -> Lookup:
    """What a table holds now, as an index looks at it."""
    timeline = load_timeline(ctx)
    virtual = keys_of_stored(ctx.config)
    slices = FileSystemView(ctx, timeline).latest_slices()
    return Lookup(ctx.storage, slices, engine, None, virtual, VisibleInstants.of(timeline))
