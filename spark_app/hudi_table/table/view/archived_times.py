"""When archived instants completed, as far as the slices of listed files depend on it.

Where logs are named by the instants that wrote them, a log of an archived one lies before or behind
a base file that began after it (`file_groups.py`). Of the archive only those files are read whose
footers may hold one of these instants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from hudi_table.model.names import parse_base_file, parse_log_file
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.archived import archived_completions
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.lsm import Asked
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_groups import StoredFile


def archived_times(
    ctx: TableContext, timeline: Timeline, files: Iterable[StoredFile]
) -> Callable[[], Mapping[str, str]]:
    """What `groups_of` asks of `files` as `archived`: completions by instant times. Nothing is read
    before it is called, and then once. Raises CorruptTableError, UnavailableError."""

    @cache
    def told() -> Mapping[str, str]:
        times = doubtful(timeline, files)
        return archived_completions(ctx, Asked.of(times)) if times else {}

    return told


def doubtful(timeline: Timeline, files: Iterable[StoredFile]) -> frozenset[str]:
    """The times of the instants from before the start of the timeline that wrote logs, and began
    before a base file of the same group did."""
    start = comparable_time(timeline.start or "")
    newest: dict[tuple[str, str], str] = {}
    logs: set[tuple[tuple[str, str], str]] = set()
    for info in files:
        partition, _, name = info.path.rpartition("/")
        if (log := parse_log_file(name)) and not log.cdc:
            logs.add(((partition, log.file_id), log.base_instant))
        elif base := parse_base_file(name):
            group = partition, base.file_id
            newest[group] = max(newest.get(group, ""), comparable_time(base.instant))
    older = (time for group, time in logs if comparable_time(time) < newest.get(group, ""))
    return frozenset(time for time in older if comparable_time(time) < start)
