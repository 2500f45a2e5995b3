"""What a table owes: plans that wait for their execution, and logs of which the trigger says that it is time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hudi_table.model.debt import CompactionDebt
from hudi_table.model.instants import WRITE_ACTIONS
from hudi_table.model.options import WriteOptions
from hudi_table.model.table_config import TableType
from hudi_table.services.compaction.execute import pending_instants
from hudi_table.services.compaction.strategy import Candidate, candidates, strategy_of
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.table.compactions import pending_compactions
from hudi_table.table.held import held_groups
from hudi_table.table.instants import local_now
from hudi_table.table.log_scan import VisibleInstants, rows_of
from hudi_table.table.view import FileSlice, FileSystemView


def compaction_debt(view: FileSystemView, options: Mapping[str, str]) -> CompactionDebt:
    """Raises InvalidOptionError, and CorruptTableError for a plan that cannot be read."""
    ctx, timeline = view.ctx, view.timeline
    if ctx.config.type is not TableType.MERGE_ON_READ:
        return CompactionDebt()
    why = Trigger.parse(options).due(timeline, local_now(ctx))
    chosen = strategy_of(options)(free_candidates(view, options)) if why else []
    held = pending_compactions(ctx, timeline)
    sizes = [item.size for item in view.latest_slices() if (item.partition, item.file_id) in held] if held else []
    return CompactionDebt(
        tuple(pending_instants(timeline)),
        why if chosen else None,
        len(held) + len(chosen),
        sum(sizes) + sum(candidate.read_bytes for candidate in chosen),
    )


def free_candidates(view: FileSystemView, options: Mapping[str, str]) -> list[Candidate]:
    """The slices with logs that no plan holds."""
    return candidates(free_slices(view), WriteOptions.parse(options).target_file_size)


def free_slices(view: FileSystemView) -> list[FileSlice]:
    """The slices that no plan holds, with those of their logs that a reader sees.

    A log's token names its writer only if it is ours: Hudi has tokens of its own, and 1.1.1 takes over that of the log before
    (measured), which may be one of ours. Where that is in doubt the blocks tell. A slice with a log of which a reader sees
    some rows, and others not yet, is left for later.
    """
    held = held_groups(view.ctx, view.timeline)
    logs = _Logs(view)
    found = (item for item in view.latest_slices() if (item.partition, item.file_id) not in held)
    return [kept for item in found if (kept := logs.visible(item)) is not None]


class _Logs:
    def __init__(self, view: FileSystemView) -> None:
        self._storage = view.ctx.storage
        self._seen = VisibleInstants.of(view.timeline)
        self._writing = {i.time for i in view.timeline.pending if i.action in WRITE_ACTIONS}

    def visible(self, item: FileSlice) -> FileSlice | None:
        tokens = Counter(log.name.token for log in item.logs)
        kept = []
        for log in item.logs:
            ours = log.instant is not None and log.instant in self._seen and tokens[log.name.token] == 1
            # While nobody writes, a log of Hudi holds nothing that could still become visible.
            if not ours and (log.instant is not None or self._writing):
                rows = rows_of(self._storage, log.path)
                hidden = {instant for instant in rows if instant not in self._seen}
                if hidden and hidden == rows:
                    continue
                if hidden & self._writing:
                    return None
            kept.append(log)
        return replace(item, logs=tuple(kept))
