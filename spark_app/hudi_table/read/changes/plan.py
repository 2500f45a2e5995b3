"""Which files tell what each commit changed: one step for each file group that a commit wrote to or
replaced.

Facts (measured on Hudi 0.15.0): its reader takes the `.cdc` logs that a write stat names, else
compares the file group before and after the commit; compactions and clusterings change nothing; a
group that a commit replaces is deleted row by row, even where the same keys come back in another
group. Hudi fails where an update logged no change data; here the file slices tell, as long as they
are there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import pyarrow as pa

from hudi_table.errors import ExpiredError, InvalidOptionError
from hudi_table.model.names import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY, join, parse_data_file, parse_other_format
from hudi_table.model.table.cdc import Images
from hudi_table.model.timeline.commits import CommitMetadata, WriteStat
from hudi_table.model.timeline.instants import Instant, comparable_time
from hudi_table.read.as_of import check_retained
from hudi_table.read.incremental import check_active, check_commit_times
from hudi_table.read.moments import Span
from hudi_table.read.plan import ScanPlan, unknown_column
from hudi_table.read.schema import META_FIELDS, schema_as_of
from hudi_table.read.support import check_readable
from hudi_table.table.rows.changes import change_schema
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.rows.slice_merge import SliceMerge
from hudi_table.table.store.ports import ObjectInfo
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import behind_savepoints
from hudi_table.table.timeline.column_history import load_column_history, stored_as
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.archived_times import archived_times
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView, LogFile, groups_of
from hudi_table.table.view.listing import list_data_files

IDENTITY = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)
"""Meta columns that tell one version of a row from all others, and whose it is."""
_SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA"})
_Group = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ChangesRequest:
    """What is asked: the commits of `span`, `images` of each change with `columns` (None: all), at
    most `limit` rows."""

    span: Span
    images: Images = Images.DATA_BEFORE_AFTER
    columns: tuple[str, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What one commit did to one file group: the slices before and after it, None where there is
    none.

    `moment`: when readers began to see the commit. `logs` are the log files by which it did it, if
    it was not by a base file; `cdc` the change data logs that tell all.
    """

    instant: str
    before: FileSlice | None
    after: FileSlice | None
    logs: tuple[LogFile, ...] = ()
    cdc: tuple[str, ...] = ()
    moment: str = ""


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """`schema` is the result's. `slice_plan` reads a slice once it is given one, with `IDENTITY`
    and the columns of the images."""

    schema: pa.Schema
    steps: tuple[Step, ...]
    slice_plan: ScanPlan
    visible: VisibleInstants


class _GoneError(Exception):
    """A file that tells a change has been cleaned away."""


@relists
def make_changes_plan(ctx: TableContext, request: ChangesRequest) -> ChangesPlan:
    """Load the timeline, list the table once, and choose the files.

    Raises InvalidOptionError for an unknown column; ExpiredError where commits of the span are
    archived or their files cleaned, naming the instant; UnsupportedTableError, CorruptTableError.
    """
    check_readable(ctx)
    check_commit_times(ctx)
    timeline = load_timeline(ctx)
    until = request.span.until
    schema = schema_as_of(ctx, *(timeline.at(until) if until else (timeline, None)))
    image = schema
    if request.columns is not None:
        for name in request.columns:
            if name not in schema.names:
                raise InvalidOptionError(unknown_column(name, schema.names), base_path=ctx.base_path)
        image = pa.schema([schema.field(name) for name in request.columns])
    slice_plan = _slice_plan(ctx, timeline, schema, image, request.span.until)
    steps = _steps(ctx, timeline, request, slice_plan)
    return ChangesPlan(change_schema(image, request.images.columns), steps, slice_plan, VisibleInstants.of(timeline))


def _slice_plan(ctx: TableContext, timeline: Timeline, schema: pa.Schema, image: pa.Schema, until: str) -> ScanPlan:
    everything = pa.schema([*META_FIELDS, *schema])
    reads = pa.schema([*(everything.field(name) for name in IDENTITY), *image])
    seen = timeline.at(until)[0].until(until) if until else timeline
    newest = seen.last_commit
    how = SliceMerge.of(ctx.config, everything, load_column_history(ctx, timeline, seen))
    return ScanPlan(
        schema=reads,
        reads=reads,
        bound=None,
        slices=(),
        instant=newest.time if newest else "",
        columns_total=len(schema),
        slices_total=0,
        partitions=0,
        partitions_total=0,
        merge=how,
        merging=pa.schema(how.needs(everything)),
        reached=timeline.reached(seen),
    )


def _steps(ctx: TableContext, timeline: Timeline, request: ChangesRequest, plan: ScanPlan) -> tuple[Step, ...]:
    """The steps of all commits of the span. With a full scan they begin at the first commit whose
    rows are known."""
    span = request.span
    known = check_active(ctx, timeline, span)
    # What follows a write that a savepoint keeps is not known if it is archived: the first one behind that has it all.
    first = comparable_time(timeline.start or "") if not known and behind_savepoints(ctx, timeline) else ""
    planner = _Planner(ctx, timeline, request.images, plan)
    steps: list[Step] | None = [] if known else None
    error: ExpiredError | None = None
    for instant in sorted(timeline.commits, key=lambda commit: comparable_time(commit.moment)):
        if instant.moment not in span or comparable_time(instant.time) < first:
            continue
        try:
            if steps is None:
                raise _GoneError("what was there before it is not known")
            steps += planner.steps(instant, commit_metadata(ctx, instant))
        except _GoneError as gone:
            error = ExpiredError(
                f"the changes of {instant.time} can no longer be determined: {gone}. Ask for changes since a later instant, or "
                "for a full scan (full_scan=True, --full-scan), which begins with all rows as inserts",
                base_path=ctx.base_path,
                instant=instant.time,
            )
            if not span.full_scan:
                raise error from gone
            steps = _all_rows(ctx, timeline, instant)
    if steps is None and error is not None:
        raise error
    return tuple(steps or ())


def _all_rows(ctx: TableContext, timeline: Timeline, instant: Instant) -> list[Step] | None:
    """Every row as of an instant, as if that commit had inserted them all; None if some of their
    files are gone."""
    view = FileSystemView(ctx, *timeline.at(instant.moment))
    try:
        check_retained(view)
    except ExpiredError:
        return None
    return [Step(instant.time, None, found, moment=instant.moment) for found in view.latest_slices()]


@dataclass(slots=True)
class _Planner:
    """Knows every listed file by its group."""

    ctx: TableContext
    timeline: Timeline
    images: Images
    plan: ScanPlan
    paths: set[str] = field(default_factory=set)
    files: dict[_Group, list[ObjectInfo]] = field(default_factory=dict)
    archived: Callable[[], Mapping[str, str]] = field(init=False)

    def __post_init__(self) -> None:
        for info in list_data_files(self.ctx.storage):
            partition, _, name = info.path.rpartition("/")
            parsed = parse_data_file(name) or parse_other_format(name)
            if parsed is not None:
                self.paths.add(info.path)
                self.files.setdefault((partition, parsed.file_id), []).append(info)
        self.archived = archived_times(self.ctx, self.timeline, chain.from_iterable(self.files.values()))

    def steps(self, instant: Instant, metadata: CommitMetadata) -> list[Step]:
        """What the commit did, replaced groups first. Raises _GoneError."""
        if metadata.compacted or metadata.operation_type in _SERVICES:
            return []
        stats: dict[_Group, list[WriteStat]] = {}
        for stat in metadata.stats:
            if stat.path:
                stats.setdefault((stat.partition_path, stat.file_id), []).append(stat)
        replaced = metadata.replaced_groups
        files = [info for group in {*stats, *replaced} for info in self.files.get(group, ())]
        before = self._slices(files, just_before(instant.moment))
        after = self._slices(files, instant.moment)
        self._check_replaced(instant.moment, set(replaced))
        steps = [self._replaced(instant.time, group, before.get(group)) for group in sorted(replaced)]
        written = sorted(stats.keys() - set(replaced))
        steps += [self._written(instant.time, stats[g], before.get(g), after.get(g)) for g in written]
        return [replace(step, moment=instant.moment) for step in steps]

    def _slices(self, files: list[ObjectInfo], moment: str) -> dict[_Group, FileSlice]:
        groups = groups_of(files, *self.timeline.at(moment), archived=self.archived)
        return {(group.partition, group.file_id): group.latest for found in groups.values() for group in found}

    def _replaced(self, time: str, group: _Group, before: FileSlice | None) -> Step:
        if before is None:
            raise _GoneError(f"the files of group {group[1]} in {group[0] or 'the table'} were cleaned")
        return Step(time, before, None)

    def _written(self, time: str, stats: list[WriteStat], before: FileSlice | None, after: FileSlice | None) -> Step:
        cdc = tuple(path for stat in stats for path in stat.cdc_files)
        lost = next((stat.path for stat in stats if stat.path not in self.paths), None)
        if cdc and self._holds_images(time) and self.paths.issuperset(cdc) and not (lost and self._needs_after):
            return Step(time, before, after, cdc=cdc)
        if lost or after is None:
            raise _GoneError(f"{lost or stats[0].path} was cleaned")
        logs = tuple(log for log in after.logs if any(log.path == stat.path for stat in stats))
        previous = stats[0].prev_commit
        if previous not in ("null", "", time) and (
            before is None or (not logs and comparable_time(before.instant) != comparable_time(previous))
        ):
            raise _GoneError(f"the file of {previous} in group {after.file_id} was cleaned")
        bases = {join(after.partition, stat.extra.get("baseFile") or "") for stat in stats} - {after.partition}
        if not bases <= self.paths:
            raise _GoneError(f"{min(bases)} was cleaned")
        return Step(time, before, after, logs if len(logs) == len(stats) else ())

    def _check_replaced(self, moment: str, groups: set[_Group]) -> None:
        """The newest file of each group before the commit is there: nothing in the commit itself
        names it."""
        timeline, as_of = self.timeline.at(just_before(moment))
        for instant in reversed(timeline.until(as_of).commits):
            if not groups:
                return
            for stat in commit_metadata(self.ctx, instant).stats:
                group = (stat.partition_path, stat.file_id)
                if group in groups and stat.path and stat.path not in self.paths:
                    raise _GoneError(f"{stat.path} was cleaned")
                groups.discard(group)

    def _holds_images(self, time: str) -> bool:
        """Whether change data logs of the table's mode hold what is asked for, under the names of
        today."""
        mode, wanted = self.ctx.config.cdc, self.images
        if mode is None or any(
            old != name for name, old in stored_as(self.plan.history, time, self.plan.schema.names).items()
        ):
            return False
        if wanted is Images.OP_KEY_ONLY:
            return mode is not Images.DATA_BEFORE_AFTER
        return mode is wanted or self._needs_after

    @property
    def _needs_after(self) -> bool:
        """Whether the logs hold images before and keys, so that the new base file has to tell the
        images after."""
        return self.images is Images.DATA_BEFORE_AFTER and self.ctx.config.cdc is Images.DATA_BEFORE


def just_before(time: str) -> str:
    """The greatest text that any instant before `time` may have, to compare with alone."""
    full = comparable_time(time)
    return str(int(full) - 1).zfill(len(full))
