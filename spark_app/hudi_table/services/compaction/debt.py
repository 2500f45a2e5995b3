"""What a table owes: plans that wait for their execution, and logs of which the trigger says that it is time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hudi_table.model.debt import CompactionDebt
from hudi_table.model.options import WriteOptions
from hudi_table.model.table_config import TableType
from hudi_table.services.compaction.execute import pending_instants
from hudi_table.services.compaction.strategy import Candidate, candidates, strategy_of
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.table.compactions import pending_compactions
from hudi_table.table.held import held_groups
from hudi_table.table.instants import local_now
from hudi_table.table.log_scan import VisibleInstants
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
    """The slices that no plan holds, with those of their logs that a reader sees."""
    held = held_groups(view.ctx, view.timeline)
    visible = VisibleInstants.of(view.timeline)
    found = (item for item in view.latest_slices() if (item.partition, item.file_id) not in held)
    return [_with_visible_logs(item, visible) for item in found]


def _with_visible_logs(item: FileSlice, visible: VisibleInstants) -> FileSlice:
    logs = tuple(log for log in item.logs if log.instant is None or log.instant in visible)
    return replace(item, logs=logs)
