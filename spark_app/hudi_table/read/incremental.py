"""Incremental queries: the rows that changed after one instant and up to another, in their latest
state.

Facts (Hudi 0.15.0): the range is (since, until]; a row is selected by its `_hoodie_commit_time`,
which rewrites keep, compaction and clustering included; deleted rows do not appear. In table
versions 8 and 9 the range is of the moments at which instants completed, as in Hudi 1.1.1, and a
row counts by its instant (1.0.2 includes `since` itself, measured). Where the timeline of the range
was archived Hudi falls back to a full scan if
`hoodie.datasource.read.incr.fallback.fulltablescan.enable` says so, and fails otherwise.
"""

from __future__ import annotations

import pyarrow.compute as pc

from hudi_table.errors import ExpiredError, InvalidOptionError
from hudi_table.model.names import COMMIT_TIME
from hudi_table.model.timeline.instants import Instant, comparable_time
from hudi_table.read.filter.predicates import Bound
from hudi_table.read.moments import Span
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import (
    archived_completions,
    behind_savepoints,
    has_archive,
    latest_archived,
)
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.lsm import Asked
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice


def rows_of(ctx: TableContext, timeline: Timeline, span: Span) -> Bound:
    """The rows of a span."""
    if timeline.layout.tells_completions:
        asked = Asked(span.since, span.until)
        completed = (archived_completions(ctx, asked) if span.full_scan else {}) | timeline.completions
        times = [time for time, moment in completed.items() if moment in span]
        return Bound(pc.field(COMMIT_TIME).isin(times), (COMMIT_TIME,))
    expression = pc.scalar(True)
    if span.since:
        expression = pc.field(COMMIT_TIME) > span.since
    if span.until:
        upto = pc.field(COMMIT_TIME) <= span.until
        expression = expression & upto if span.since else upto
    return Bound(expression, (COMMIT_TIME,) if span.since or span.until else ())


def check_commit_times(ctx: TableContext) -> None:
    """Raise InvalidOptionError for a table whose rows do not tell when they changed."""
    if not ctx.config.populate_meta_fields:
        raise InvalidOptionError(
            "the table keeps no meta columns (hoodie.populate.meta.fields=false): when a row changed is not known",
            base_path=ctx.base_path,
        )


def check_active(ctx: TableContext, timeline: Timeline, span: Span) -> bool:
    """Whether the timeline holds every commit of the span. Raises ExpiredError if not, unless a
    full scan was asked for."""
    start = timeline.start or ""
    if timeline.layout.tells_completions:
        # An instant that was requested long ago may have completed late.
        start = latest_archived(ctx)
    if (span.since and comparable_time(span.since) >= comparable_time(start)) or not has_archive(ctx):
        return True
    if span.full_scan:
        _check_known(ctx, timeline, span)
        return False
    raise ExpiredError(
        f"the commits after {span.since or 'the first'} are partly archived, and which files they changed is no longer "
        f"known; the timeline starts at {start}: begin there, or ask for a full scan (full_scan=True, --full-scan)",
        base_path=ctx.base_path,
    )


def _check_known(ctx: TableContext, timeline: Timeline, span: Span) -> None:
    """Raise ExpiredError where a span ends behind a write that a savepoint keeps, and what follows
    it is archived: which of that was there then is not known."""
    then = timeline.at(span.until)[0] if span.until else timeline
    last = then.last_commit
    if last is None or comparable_time(last.time) >= comparable_time(then.start or ""):
        return
    archived = behind_savepoints(ctx, then)
    if archived:
        raise ExpiredError(
            f"the rows as of {span.until} are not known: {archived} is archived, and the savepoint {last.time} keeps an older write on the timeline; "
            f"let the range end at {then.start} or later",
            base_path=ctx.base_path,
            instant=archived,
        )


def stable_commits(timeline: Timeline) -> tuple[Instant, ...]:
    """The completed writes older than every pending one, oldest first: none that completes later
    can come before the last of them. Pending compactions hold nothing up, for rows keep their
    commit times in them. Where instants tell when they completed, all of them in the order of
    that."""
    if timeline.layout.tells_completions:
        return tuple(sorted(timeline.commits, key=lambda i: i.moment))
    pending = [comparable_time(i.time) for i in timeline.pending if i.is_write]
    return tuple(i for i in timeline.commits if not pending or comparable_time(i.time) < min(pending))


def last_stable(ctx: TableContext) -> str:
    """The time of the last of them now, or the moment at which it completed where ranges go by
    that; '' if there is none."""
    found = stable_commits(load_timeline(ctx))
    return found[-1].moment if found else ""


def changed_slices(ctx: TableContext, timeline: Timeline, slices: list[FileSlice], span: Span) -> list[FileSlice]:
    """Those of `slices` (as of `until`) that a commit of the span wrote to; all where the timeline
    does not reach back.

    Raises ExpiredError then, unless a full scan was asked for.
    """
    if not check_active(ctx, timeline, span):
        return slices
    changed = {
        (stat.partition_path, stat.file_id)
        for instant in timeline.commits
        if instant.moment in span
        for stat in commit_metadata(ctx, instant).stats
    }
    return [found for found in slices if (found.partition, found.file_id) in changed]
