"""How many buckets a table has, as of a timeline.

A resize is one replacecommit that names the numbers before and after. While it stands on the
timeline it decides; its entry in the properties decides once it is archived. So the number changes
with the commit, for every reader and writer, and back with its rollback.
`hoodie.bucket.index.num.buckets` itself follows: who writes or archives next puts it right if the
executor could not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hudi_table.model.digits import whole
from hudi_table.model.service.resizes import CHANGE, HISTORY, Resize, parse_change, parse_history, render_history
from hudi_table.model.table.index_properties import BUCKETS
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.properties import read_properties, replace_properties
from hudi_table.table.timeline.timeline import Timeline


def buckets_at(ctx: TableContext, timeline: Timeline) -> int | None:
    """The number of buckets of the snapshot that a timeline shows; None without a bucket index.

    Of a past moment give `timeline.until(…)`. What was archived is known as of the context's
    properties: see `refresh_buckets`.
    """
    index = ctx.config.index
    if index is None or not index.type.has_fixed_buckets:
        return None
    known = _resizes(ctx, timeline)
    count = known[0].before if known else index.buckets
    for item in known:
        count = item.after if _stands(item, timeline) else count
    return count


def refresh_buckets(ctx: TableContext, timeline: Timeline, stored: Mapping[str, str] | None = None) -> int | None:
    """The same after a reading of the properties, whose number another process may have changed;
    `ctx.config` has it then. `stored`: the properties, if they were read just now."""
    index = ctx.config.index
    if index is None or not index.type.has_fixed_buckets:
        return None
    stored = read_properties(ctx.storage, ctx.clock) if stored is None else stored
    extra = {key: value for key, value in ctx.config.extra.items() if key != HISTORY}
    if HISTORY in stored:
        extra[HISTORY] = stored[HISTORY]
    stored_number = whole(stored.get(BUCKETS, ""))
    number = index.buckets if stored_number is None else stored_number
    ctx.config = replace(ctx.config, index=replace(index, buckets=number), extra=extra)
    ctx.buckets_listed = timeline.listed_at
    count = buckets_at(ctx, timeline)
    if count != number:
        ctx.config = replace(ctx.config, index=replace(index, buckets=count))
    return count


def buckets_now(ctx: TableContext, timeline: Timeline) -> int | None:
    """`buckets_at` a timeline that was listed just now, also where a resize was archived since the
    properties were read: nothing is archived within H."""
    read, listed = ctx.buckets_listed, timeline.listed_at
    if read is None or listed is None or listed - read > ctx.settings.quarantine_seconds / 2:
        return refresh_buckets(ctx, timeline)
    return buckets_at(ctx, timeline)


def sync_bucket_properties(ctx: TableContext, timeline: Timeline, stored: Mapping[str, str] | None = None) -> None:
    """Put the properties right: the number of now, and the resizes that stand. Idempotent, by any
    writer, at any time. `stored` as of `refresh_buckets`."""
    count = refresh_buckets(ctx, timeline, stored)
    if count is None:
        return
    kept = [item for item in _resizes(ctx, timeline) if _stands(item, timeline)]
    archived = [item for item in kept if not _on_timeline(item, timeline)]
    history = render_history([*archived[-1:], *(item for item in kept if item not in archived)])
    if HISTORY in ctx.config.extra or history:
        replace_properties(ctx, {BUCKETS: str(count), HISTORY: history or None})


def _resizes(ctx: TableContext, timeline: Timeline) -> list[Resize]:
    """Those in the properties and those on the timeline, oldest first."""
    found = {item.instant: item for item in parse_history(ctx.config.extra.get(HISTORY))}
    for instant in timeline.replacements:
        resize = parse_change(instant.time, commit_metadata(ctx, instant).extra_metadata.get(CHANGE))
        if resize is not None:
            found[instant.time] = resize
    return [found[time] for time in sorted(found, key=comparable_time)]


def _stands(item: Resize, timeline: Timeline) -> bool:
    """Whether a resize is committed: on the timeline, or archived."""
    for instant in timeline.instants:
        if instant.time == item.instant:
            return instant.completed
    return timeline.start is not None and comparable_time(item.instant) < comparable_time(timeline.start)


def _on_timeline(item: Resize, timeline: Timeline) -> bool:
    return any(instant.time == item.instant for instant in timeline.instants)
