"""The newest commit that holds something in its extra metadata: where checkpoints stand, of ours and of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.archived import archived_entries, commit_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

Holds = Callable[[Mapping[str, str]], str | None]
"""What is looked for in the extra metadata of a commit; None where it is not there."""


def newest_with(ctx: TableContext, timeline: Timeline, holds: Holds) -> tuple[str, str] | None:
    """(instant, what it holds) of the newest commit that holds it. The archive is read only if the timeline has none.

    Raises CorruptTableError.
    """
    for instant in reversed(timeline.commits):
        held = holds(commit_metadata(ctx, instant).extra_metadata)
        if held is not None:
            return instant.time, held
    return archived_with(ctx, {"": holds}).get("")


def archived_with(ctx: TableContext, wanted: Mapping[str, Holds]) -> dict[str, tuple[str, str]]:
    """Name → (instant, what it holds) of the newest archived commit with each of these. Read from the newest file on, until all are found."""
    found: dict[str, tuple[str, str]] = {}
    for entries in archived_entries(ctx):
        for entry in sorted(entries, key=lambda entry: comparable_time(entry["commitTime"]), reverse=True):
            extra = commit_of(entry).extra_metadata
            for name, holds in wanted.items():
                held = holds(extra) if name not in found else None
                if held is not None:
                    found[name] = (str(entry["commitTime"]), held)
        if len(found) == len(wanted):
            break
    return found


def under(key: str) -> Holds:
    """What stands under a key."""
    return lambda extra: extra.get(key)
