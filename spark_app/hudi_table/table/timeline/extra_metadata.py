"""The newest commit that holds a key in its extra metadata: where checkpoints stand, of ours and of others."""

from __future__ import annotations

from collections.abc import Collection

from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.archived import archived_entries, commit_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


def newest_with(ctx: TableContext, timeline: Timeline, keys: Collection[str]) -> tuple[str, dict[str, str]] | None:
    """(instant, those of `keys` that it holds) of the newest commit with one of them. The archive is read only if the timeline has none.

    Raises CorruptTableError.
    """
    for instant in reversed(timeline.commits):
        extra = commit_metadata(ctx, instant).extra_metadata
        held = {key: extra[key] for key in keys if key in extra}
        if held:
            return instant.time, held
    archived = archived_with(ctx, keys, enough=1)
    if not archived:
        return None
    time = max((time for time, _ in archived.values()), key=comparable_time)
    return time, {key: text for key, (at, text) in archived.items() if at == time}


def archived_with(ctx: TableContext, keys: Collection[str], *, enough: int | None = None) -> dict[str, tuple[str, str]]:
    """(instant, text) of the newest archived commit that holds each key. Read from the newest file on, until so many are found that are
    `enough`, else all."""
    found: dict[str, tuple[str, str]] = {}
    for entries in archived_entries(ctx):
        for entry in sorted(entries, key=lambda entry: comparable_time(entry["commitTime"]), reverse=True):
            extra = commit_of(entry).extra_metadata
            for key in keys:
                if key not in found and key in extra:
                    found[key] = (str(entry["commitTime"]), extra[key])
        if len(found) >= (len(keys) if enough is None else enough):
            break
    return found
