"""The rows of the partitions that an attempt changes: before it, and as if it had committed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.commits import WriteStat
from hudi_table.read.plan import ScanPlan
from hudi_table.read.schema import NAMED_FIELDS
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.timeline.column_history import load_column_history
from hudi_table.table.view.file_groups import BaseFile, FileSlice, LogFile
from hudi_table.write.attempt import Attempt

_LAST = "9" * 17
"""When the attempt completes, for whoever goes by that: behind all others."""


def before_and_after(attempt: Attempt, stats: Sequence[WriteStat]) -> tuple[ScanPlan, ScanPlan]:
    """Plans of both states, with the columns that the table will have."""
    partitions = sorted({stat.partition_path for stat in stats} | set(attempt.replaced or ()))
    slices, seen = tuple(attempt.view.latest_slices(partitions)), attempt.visible
    changed = _changed(attempt, slices, stats)
    visible = replace(
        seen,
        latest=max(seen.latest, attempt.instant),
        completed=seen.completed | {attempt.instant},
        inflight=seen.inflight - {attempt.instant},
        completions={**seen.completions, attempt.instant: _LAST} if seen.completions else {},
    )
    plan = _plan(attempt, changed, logs=any(each.logs for each in (*slices, *changed)))
    after = replace(plan, visible=visible)
    return replace(after, slices=slices, slices_total=len(slices), visible=seen), after


def _changed(attempt: Attempt, slices: Sequence[FileSlice], stats: Sequence[WriteStat]) -> tuple[FileSlice, ...]:
    hidden = {(partition, each) for partition, ids in (attempt.replaced or {}).items() for each in ids}
    found = {(each.partition, each.file_id): each for each in slices if (each.partition, each.file_id) not in hidden}
    for stat in stats:
        name, key = stat.path.rpartition("/")[2], (stat.partition_path, stat.file_id)
        log = parse_log_file(name)
        if log is None:
            base = parse_base_file(name)
            assert base is not None
            file = BaseFile(stat.path, stat.partition_path, stat.file_id, base.instant, stat.file_size_in_bytes)
            found[key] = FileSlice(stat.partition_path, stat.file_id, base.instant, file)
        else:
            old = found.get(key) or FileSlice(stat.partition_path, stat.file_id, log.base_instant, None)
            file_of_log = LogFile(stat.path, stat.file_size_in_bytes, log)
            found[key] = replace(old, logs=(*old.logs, file_of_log))
    return tuple(found[key] for key in sorted(found))


def _plan(attempt: Attempt, slices: tuple[FileSlice, ...], *, logs: bool) -> ScanPlan:
    ctx, schema = attempt.ctx, attempt.prepared.schema
    everything = pa.schema([*NAMED_FIELDS, *schema]) if ctx.config.populate_meta_fields else schema
    how = SliceMerge.of(ctx.config, everything, load_column_history(ctx, attempt.timeline))
    return ScanPlan(
        schema=everything,
        reads=everything,
        bound=None,
        slices=slices,
        instant=attempt.instant,
        columns_total=len(schema),
        slices_total=len(slices),
        partitions=0,
        partitions_total=0,
        merge=how,
        merging=pa.schema(how.needs(everything) if logs else []),
    )
