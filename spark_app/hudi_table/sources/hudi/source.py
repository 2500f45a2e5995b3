"""`Hudi`: what changes in another table, commit after commit, from the checkpoint that this table's
commits hold.

Without a checkpoint all rows are taken as they are at one moment; from then on the rows that
changed after it, in their latest state (an incremental query), and the rows that were deleted
meanwhile (from its changes), which come first: a key that was deleted and written again is there in
the end. The end of a range is a commit that nothing pending can come before, so nothing is passed
over.

A key that two commits of one range change comes once, as it is at the range's end.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import DataLossError, ExpiredError
from hudi_table.model.job.ranges import Range
from hudi_table.model.job.upstream import LOSS_REMEDY, Upstream, UpstreamExtent
from hudi_table.model.names import IS_DELETED
from hudi_table.model.table.cdc import BEFORE, DELETE, OP, Images
from hudi_table.model.timeline.instants import Instant, comparable_time
from hudi_table.model.timeline.rewrites import is_rewrite
from hudi_table.model.timeline.utc import utc_of
from hudi_table.read.changes.plan import ChangesRequest
from hudi_table.read.changes.query import Changes
from hudi_table.read.incremental import check_active, check_commit_times, stable_commits
from hudi_table.read.moments import Span
from hudi_table.read.plan import Request
from hudi_table.read.scan import Scan
from hudi_table.sources.base import Rows
from hudi_table.sources.hudi.settings import HudiSettings
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import has_archive
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView

RESTS_MAX = 10
"""So many commits that change no row are worth a commit of their own: that table archives what lies
far behind."""


@dataclass(frozen=True, slots=True)
class HudiBatch:
    """The rows of `scan`, behind those that `changes` deletes, if deletes are wanted and something
    was there before. `span`: from which moment to which; without a beginning it is all rows, or
    none if `is_start`."""

    span: Span
    scan: Scan
    changes: Changes | None
    checkpoint: Upstream
    commits: int
    marks: bool
    is_start: bool = False

    @property
    def name(self) -> str:
        """Of whatever begins at this checkpoint."""
        return self.checkpoint.batch

    @property
    def is_whole(self) -> bool:
        """Whether it is all rows, not what changed."""
        return not self.span.since and not self.is_start

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""
        if not self.marks:
            return self.scan.schema
        # A table that follows another one has such a column itself.
        fields = (field for field in self.scan.schema if field.name != IS_DELETED)
        return pa.schema([*fields, pa.field(IS_DELETED, pa.bool_())])

    def read(self, known: pa.Schema | None = None) -> Rows[Upstream]:  # noqa: ARG002 - as every batch is asked
        """The rows, those to be deleted first, marked by `_hoodie_is_deleted` if deletes are
        wanted. `known` does not matter: the rows have types."""
        schema = self.schema
        there = (_marked(each, schema, deleted=False) if self.marks else each for each in self.scan.to_batches())
        batches = itertools.chain(self._gone(schema), there)
        return Rows(schema, pa.RecordBatchReader.from_batches(schema, batches), self.checkpoint)

    def deletes(self) -> pa.RecordBatchReader:
        """Those to be deleted alone."""
        return pa.RecordBatchReader.from_batches(self.schema, self._gone(self.schema))

    def _gone(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self.changes.to_batches() if self.changes is not None else ():
            gone = batch.filter(pc.equal(batch.column(OP), DELETE))
            if len(gone):
                yield _marked(pa.RecordBatch.from_struct_array(gone.column(BEFORE)), schema, deleted=True)


@dataclass(frozen=True, slots=True)
class HudiSource:
    """Another table, as attempt `attempt` sees it."""

    context: TableContext
    settings: HudiSettings
    attempt: str

    def discover(self) -> Timeline:
        """Its timeline now. Raises InvalidOptionError for a table that does not tell when its rows
        changed."""
        check_commit_times(self.context)
        return load_timeline(self.context)

    def plan(self, found: Timeline, before: Upstream | None) -> HudiBatch | None:
        """The next commits. Raises DataLossError where what comes behind `before` can no longer be
        told, unless all rows are to be taken again then."""
        stable, before, lost = _within(self.context, found, self.settings.within, before)
        if not stable:
            return None
        if before is None and not lost:
            return self._batch(Span(until=stable[-1].moment), stable, before)
        waits = self._first(behind_of(stable, before)) if not lost else ()
        cause: ExpiredError | None = None
        if not lost and (not waits or (len(waits) < RESTS_MAX and not self._changes_rows(waits))):
            return None
        try:
            if not lost and before is not None:
                return self._batch(Span(before.moment, waits[-1].moment), waits, before)
        except ExpiredError as error:
            # Where nothing was taken before, nothing can have been lost.
            assert before is not None
            lost, cause = _no_longer(self.context, before), error
        if not self.settings.continues:
            raise DataLossError(f"{lost}; {LOSS_REMEDY}") from cause
        return self._batch(Span(until=stable[-1].moment), stable, before)

    def _batch(self, span: Span, commits: tuple[Instant, ...], before: Upstream | None) -> HudiBatch:
        """Raises ExpiredError where the changes can no longer be told."""
        ctx, last = self.context, commits[-1]
        is_start = before is None and self.settings.starts_latest
        scanned = Span(span.since, span.until, full_scan=not span.since)
        limit = 0 if is_start else None
        scan = Scan(ctx, Request(as_of=span.until, query="incremental", span=scanned, limit=limit))
        changes = None
        if self.settings.deletes and span.since:
            changes = Changes(ctx, ChangesRequest(span, Images.DATA_BEFORE))
            changes.plan  # noqa: B018 - what is gone is to be known before anything is written
        scan.plan  # noqa: B018
        name = hashlib.sha256((before.to_text() if before is not None else "begin").encode()).hexdigest()[:20]
        checkpoint = Upstream(name, self.attempt, ctx.config.name, last.time, last.moment)
        return HudiBatch(span, scan, changes, checkpoint, len(commits), self.settings.deletes, is_start)

    def _first(self, commits: tuple[Instant, ...]) -> tuple[Instant, ...]:
        """Those of one batch: of commits that change rows so many as are asked for at the most,
        with the rewrites between and behind them. Rewrites that were counted could fill a batch,
        and nothing would be taken any more."""
        writes = 0
        for number, each in enumerate(commits if self.settings.max_instants else ()):
            writes += not is_rewrite(commit_metadata(self.context, each))
            if writes > self.settings.max_instants:
                return commits[:number]
        return commits

    def _changes_rows(self, commits: tuple[Instant, ...]) -> bool:
        return any(not is_rewrite(commit_metadata(self.context, each)) for each in commits)


def _within(
    ctx: TableContext, timeline: Timeline, asked: Range | None, before: Upstream | None
) -> tuple[tuple[Instant, ...], Upstream | None, str]:
    """The commits that may be taken, of a range those before its end; the checkpoint, or where a
    range begins; and why what changed from there on can no longer be told, \"\" if it can."""
    stable = stable_commits(timeline)
    if asked is not None:
        end = comparable_time(asked.end)
        inside = tuple(each for each in stable if comparable_time(each.moment) < end)
        if before is None and asked.begin:
            begin = comparable_time(asked.begin)
            earlier = [each for each in stable if comparable_time(each.moment) < begin]
            if not earlier and has_archive(ctx):
                return inside, None, f"the timeline of the table at {ctx.base_path} begins behind {asked.begin}"
            last = earlier[-1] if earlier else None
            before = Upstream("", "", ctx.config.name, last.time, last.moment) if last is not None else None
        stable = inside
    return stable, before, why_lost(ctx, timeline, before) if before is not None else ""


def extent_of(ctx: TableContext, before: Upstream | None, asked: Range | None = None) -> UpstreamExtent:
    """What waits behind a checkpoint, of a range alone if one is asked for. Raises what the storage
    raises, CorruptTableError."""
    return with_relists(ctx, lambda: _extent(ctx, before, asked))


def _extent(ctx: TableContext, before: Upstream | None, asked: Range | None) -> UpstreamExtent:
    timeline = load_timeline(ctx)
    stable, before, lost = _within(ctx, timeline, asked, before)
    if not stable:
        return UpstreamExtent()
    waits = behind_of(stable, before)
    since = utc_of(waits[0].moment, ctx.config.timezone) if waits and before is not None and not lost else None
    if before is None or lost:
        slices = FileSystemView(ctx, timeline).latest_slices()
        size = sum(each.size for each in slices)
    else:
        writes = tuple(each for each in waits if not is_rewrite(commit_metadata(ctx, each)))
        waits = writes or (waits if len(waits) >= RESTS_MAX else ())
        size = sum(stat.file_size_in_bytes for each in waits for stat in commit_metadata(ctx, each).stats)
    oldest = utc_of(waits[0].moment, ctx.config.timezone) if waits else None
    return UpstreamExtent(stable[-1].time, len(waits), size, oldest, lost, since)


def behind_of(stable: tuple[Instant, ...], before: Upstream | None) -> tuple[Instant, ...]:
    """The commits behind a checkpoint, of those that nothing can come before any more."""
    after = comparable_time(before.moment) if before is not None else ""
    return tuple(each for each in stable if comparable_time(each.moment) > after)


def why_lost(ctx: TableContext, timeline: Timeline, before: Upstream) -> str:
    """Why the changes behind a checkpoint cannot be told by the timeline; '' if they can."""
    if any(each.time == before.instant for each in timeline.commits):
        return ""
    start = comparable_time(timeline.start or "")
    if not has_archive(ctx) or not start or comparable_time(before.instant) >= start:
        return (
            f"the table at {ctx.base_path} no longer knows its commit {before.instant}, the last one that was taken: it was made anew, "
            "or brought back to an earlier state"
        )
    try:
        check_active(ctx, timeline, Span(before.moment))
    except ExpiredError:
        return _no_longer(ctx, before)
    return ""


def _no_longer(ctx: TableContext, before: Upstream) -> str:
    return (
        f"the table at {ctx.base_path} can no longer tell what changed after its commit {before.instant}: cleaning or archiving took what "
        "tells it"
    )


def _marked(batch: pa.RecordBatch, schema: pa.Schema, *, deleted: bool) -> pa.RecordBatch:
    flags = pa.repeat(pa.scalar(deleted), len(batch))
    return pa.RecordBatch.from_arrays([*(batch.column(name) for name in schema.names[:-1]), flags], schema=schema)
