"""Old slices of the metadata table's file groups, deleted; and which instants its logs still need
on the data table's timeline."""

from __future__ import annotations

from hudi_table.metadata.table import MetadataTable
from hudi_table.model.metadata_table import EMPTY_LOG_TOKEN, data_instant
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.rows.log_scan import rows_of
from hudi_table.table.store import retry
from hudi_table.table.view.file_system_view import FileSlice

SLICES_KEPT = 3
"""Base files of each group that stay: a reader that listed the table before a compaction or two
still finds its slice."""


def clean_metadata(table: MetadataTable) -> int:
    """Delete the slices before the newest ones of each group; idempotent. Returns how many files
    went.

    A log that lies there without a base file is one that its writer has written again, or one of a
    write that was given up.
    """
    done = 0
    for groups in table.groups.values():
        for group in groups:
            bases = [item for item in group.slices if item.base is not None]
            if len(bases) < SLICES_KEPT:
                continue
            oldest = comparable_time(bases[-SLICES_KEPT].instant)
            for item in group.slices:
                if comparable_time(item.instant) < oldest:
                    done += _delete(table, item)
    return done


def oldest_needed(table: MetadataTable) -> str:
    """The oldest instant of the data table that a log of a newest slice still needs on the
    timeline, '' if none does: Hudi takes no block of an instant that was archived (read in public
    source)."""
    found: set[str] = set()
    for groups in table.groups.values():
        for group in groups:
            for log in group.latest.logs:
                if log.name.token != EMPTY_LOG_TOKEN:
                    found |= {log.instant} if log.instant else rows_of(table.ctx.storage, log.path) or set()
    return min((data_instant(time) for time in found if time in table.counted), default="")


def _delete(table: MetadataTable, item: FileSlice) -> int:
    paths = [log.path for log in item.logs] + ([item.base.path] if item.base else [])
    for path in paths:
        retry.delete(table.ctx.storage, path)
    return len(paths)
