"""Planning: how many rows go where → one `FileGroupTask` per file group. Pure: no storage, no
clock.

The plan fixes every file id, so that any attempt of a task writes the same file group (the write
token alone tells attempts apart). New rows of a partition first fill its small files up to the
target size, then make new groups; how much a row takes is measured on earlier commits. In a
merge-on-read table rows of a group that exists go to a new log file of it; only a small file that
takes new rows is rewritten, and only one without logs.
"""

from __future__ import annotations

import itertools
import math
import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from hudi_table.index.base import Slot
from hudi_table.model.names import (
    BaseFileName,
    LogFileName,
    MarkerType,
    bucket_file_id,
    is_skeleton,
    log_write_token,
    new_file_id,
    shared_bucket_file_id,
)
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.commit.markers import MarkedFile
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.rows.parts import PARTS_MAX
from hudi_table.table.view.file_groups import BaseFile, FileSlice, next_log_version
from hudi_table.write.settings import WriteSettings

MEASURED_BYTES_LEAST = 1_000_000
"""Commits that wrote less say little about the size of a row: footers and short pages weigh too
much."""
ARROW_TO_PARQUET = 0.35
"""Parquet size of a row over its Arrow size, assumed until something was measured."""
SIZE_SLACK = 0.1
"""By how much of the target size a file may be larger, since the size of a row is an estimate."""
_ROLLOVERS_MAX = 1_000_000


class Mode(StrEnum):
    """What a task does with its rows."""

    CREATE = "create"
    """Write them to a new group."""
    APPEND = "append"
    """Copy the base file and put them behind it, duplicate keys included."""
    MERGE = "merge"
    """Merge them into the base file by key."""
    LOG = "log"
    """Write rows and deletes to a new log file."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where a task's log file goes: its version, the instant in its name, and what the slice has
    already. `prev_commit`: the instant that its write stat names; `marker`: that of the file."""

    version: int
    instant: str
    base_file: str
    known_logs: tuple[str, ...]
    prev_commit: str
    marker: MarkerType

    @classmethod
    def of_its_own(cls, instant: str, marker: MarkerType, told: FileSlice | None = None) -> LogPlace:
        """The place of the one log that an instant writes to a group, where logs are named by who
        writes them: it counts from 1. `told`: the slice that its write stat is to tell, without
        which a reader of changes does not find the rows of before."""
        if told is None:
            return cls(1, instant, "", (), instant, marker)
        base = "" if told.base is None else told.base.name
        return cls(1, instant, base, tuple(log.path.rpartition("/")[2] for log in told.logs), told.instant, marker)


@dataclass(frozen=True, slots=True)
class FileGroupTask:
    """One file group's work, picklable. `index` is the task's number in the plan: first part of
    write token and seqno.

    `base_path` is the base file to copy or merge (relative), None for a new group, `base_bytes` its
    size (0: not known); `prev_commit` its instant or "null". A new group that reaches the target
    size rolls over to the ids that `rolled_file_id` derives from `seed`. `parts`: in how many parts
    rows that have to be held are worked on. `log` belongs to Mode.LOG.
    """

    partition: str
    file_id: str
    instant: str
    index: int
    mode: Mode
    settings: WriteSettings
    seed: uuid.UUID
    base_path: str | None = None
    base_bytes: int = 0
    prev_commit: str = "null"
    rolls_over: bool = False
    log: LogPlace | None = None
    parts: int = 1
    stage: int = 0
    attempt: int = 0

    @property
    def write_token(self) -> str:
        """`<task>-<stage>-<attempt>`."""
        return f"{self.index}-{self.stage}-{self.attempt}"

    @property
    def first_files(self) -> list[MarkedFile]:
        """The files that this task begins with: its own, or the first of those that it rolls over
        to, and a log of changes."""
        if self.log is not None:
            token = log_write_token(self.instant, self.attempt)
            log = LogFileName(self.file_id, self.log.instant, self.log.version, token)
            return [MarkedFile(self.partition, str(log), self.log.marker)]
        kind = MarkerType.CREATE if self.base_path is None else MarkerType.MERGE
        found = [MarkedFile(self.partition, str(BaseFileName(self.file_id, self.write_token, self.instant)), kind)]
        if self.settings.cdc is not None and self.mode in (Mode.MERGE, Mode.APPEND):
            changes = LogFileName(self.file_id, self.instant, 1, self.write_token, cdc=True)
            found.append(MarkedFile(self.partition, str(changes), self.settings.log_marker))
        return found

    def rolled_file_id(self, number: int) -> str:
        """File id of the number-th file of this task; 0 is `file_id` itself."""
        return (
            self.file_id
            if number == 0
            else new_file_id(self.seed, self.partition, self.index + number * _ROLLOVERS_MAX)
        )


@dataclass(frozen=True, slots=True)
class Source:
    """Rows `start` to `stop` (exclusive) of one slot, by the slot's position in the plan's
    slots."""

    slot: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task and the rows that it gets."""

    task: FileGroupTask
    sources: tuple[Source, ...]

    @property
    def rows(self) -> int:
        """Incoming rows of this task."""
        return sum(source.stop - source.start for source in self.sources)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """Input of `plan_tasks`.

    `slots[i]` receives `rows[i]` rows. `existing` are the groups that the slots name (empty if
    everything is replaced). `merging`: rows meet stored ones by key; else they are put behind them.
    `row_size`: bytes in Parquet, `arrow_row_size` in memory. `to_logs`: the table is merge-on-read;
    `compactions`: the instant of the pending compaction of each (partition, file id); `held`: the
    groups of any pending plan, which take no new rows; `logs_tell_writers`: logs are named by the
    instant that writes them; `appends`: others append to the same buckets at once, so that a bucket
    begins with a log, in a group whose name all know, unless that is among those that are `hidden`,
    since they were replaced; `committed`: the instants whose logs count.
    """

    slots: Sequence[Slot]
    rows: Sequence[int]
    existing: Mapping[Slot, FileSlice]
    settings: WriteSettings
    instant: str
    seed: uuid.UUID
    merging: bool
    row_size: float
    small_file_limit: int
    pack_small_files: bool = True
    arrow_row_size: float = 0.0
    to_logs: bool = False
    compactions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    held: Container[tuple[str, str]] = frozenset()
    logs_tell_writers: bool = False
    appends: bool = False
    hidden: Container[tuple[str, str]] = frozenset()
    committed: VisibleInstants | frozenset[str] = frozenset()


def plan_tasks(request: PlanRequest) -> list[PlannedTask]:
    """One task per file group that rows go to, ordered by partition; deterministic for one
    request."""
    planner = _Planner(request)
    by_partition: dict[str, list[int]] = {}
    for position, slot in enumerate(request.slots):
        if request.rows[position] > 0:
            by_partition.setdefault(slot.partition, []).append(position)
    for partition in sorted(by_partition):
        planner.plan_partition(partition, by_partition[partition])
    return planner.tasks


class _Planner:
    def __init__(self, request: PlanRequest) -> None:
        self.request = request
        self.tasks: list[PlannedTask] = []
        self.small = _small_files(request)

    def plan_partition(self, partition: str, positions: list[int]) -> None:
        slots, rows = self.request.slots, self.request.rows
        placed: dict[str, list[Source]] = {}
        slices: dict[str, FileSlice] = {}
        loose: list[int] = []
        for position in positions:
            slot = slots[position]
            source = Source(position, 0, rows[position])
            found = self.request.existing.get(slot)
            if found is not None:
                placed.setdefault(found.file_id, []).append(source)
                slices[found.file_id] = found
            elif slot.bucket is not None and self._begins_shared(partition, slot.bucket):
                self._add(partition, shared_bucket_file_id(slot.bucket), (source,), logged=True)
            elif slot.bucket is not None:
                self._add(partition, bucket_file_id(self.request.seed, partition, slot.bucket), (source,))
            elif slot.file_id is not None:
                # The first rows of a ring's node, whose file group has its name before it exists.
                self._add(partition, slot.file_id, (source,))
            else:
                loose.append(position)
        for position in loose:
            start = self._fill_small_files(partition, position, placed, slices)
            self._new_groups(partition, position, start)
        filled = {file_id for file_id, sources in placed.items() if any(s.slot in loose for s in sources)}
        for file_id in sorted(placed):
            logged = self.request.to_logs and file_id not in filled
            self._add(partition, file_id, tuple(placed[file_id]), slices[file_id], logged=logged)

    def _begins_shared(self, partition: str, bucket: int) -> bool:
        """Whether a bucket begins in the group whose name all know. One that was replaced stays
        hidden, with whatever is written to it: then a bucket begins as beside nobody, and excludes
        others."""
        return self.request.appends and (partition, shared_bucket_file_id(bucket)) not in self.request.hidden

    def _fill_small_files(
        self, partition: str, position: int, placed: dict[str, list[Source]], slices: dict[str, FileSlice]
    ) -> int:
        """Give a slot's first rows to the partition's small files; returns how many were placed."""
        start, total = 0, self.request.rows[position]
        for item in self.small.get(partition, ()):
            room = self.request.settings.target_file_size - _size(item)
            count = min(total - start, int(room / self.request.row_size))
            if count > 0:
                placed.setdefault(item.file_id, []).append(Source(position, start, start + count))
                slices[item.file_id] = item
                start += count
        return start

    def _new_groups(self, partition: str, position: int, start: int) -> None:
        left = self.request.rows[position] - start
        if left <= 0:
            return
        per_group = max(1, int(self.request.settings.target_file_size / self.request.row_size))
        # Full files first and the rest in a small one, as Hudi does; a rest that fits into the slack of a full file stays there.
        groups = max(1, math.ceil(left / per_group - SIZE_SLACK))
        bounds = [*(start + per_group * number for number in range(groups)), start + left]
        for low, high in itertools.pairwise(bounds):
            file_id = new_file_id(self.request.seed, partition, len(self.tasks))
            self._add(partition, file_id, (Source(position, low, high),), rolls_over=True)

    def _add(
        self,
        partition: str,
        file_id: str,
        sources: tuple[Source, ...],
        base: FileSlice | None = None,
        *,
        rolls_over: bool = False,
        logged: bool = False,
    ) -> None:
        has_base = base is not None and base.base is not None
        held = sum(source.stop - source.start for source in sources) * self.request.arrow_row_size
        mode = Mode.CREATE if not has_base else Mode.MERGE if self.request.merging else Mode.APPEND
        log = self._log_place(base) if logged else None
        task = FileGroupTask(
            partition=partition,
            file_id=file_id,
            instant=self.request.instant,
            index=len(self.tasks),
            mode=mode if log is None else Mode.LOG,
            settings=self.request.settings,
            seed=self.request.seed,
            base_path=base.base.path if base is not None and base.base is not None else None,
            base_bytes=base.base.size if base is not None and base.base is not None else 0,
            prev_commit=log.prev_commit if log is not None else "null" if base is None else base.instant,
            rolls_over=rolls_over,
            log=log,
            parts=min(PARTS_MAX, max(1, math.ceil(held / self.request.settings.memory_bytes))),
        )
        self.tasks.append(PlannedTask(task, sources))

    def _log_place(self, item: FileSlice | None) -> LogPlace:
        """A log goes to the newest slice, and from the plan of a compaction on to the one that it
        will make: so its name tells, or its commit."""
        marker = self.request.settings.log_marker
        if item is None or self.request.logs_tell_writers:
            told = None if self.request.settings.cdc is None else item
            return LogPlace.of_its_own(self.request.instant, marker, told)
        base = item.base
        planned = self.request.compactions.get((item.partition, item.file_id))
        instant = planned or item.instant
        is_committed = self.request.committed.__contains__
        logs = [log for log in item.logs if log.name.base_instant == instant]
        version = next_log_version(logs, self.request.instant, is_committed)
        names = tuple(str(log.name) for log in logs if log.instant is None or is_committed(log.instant))
        name = base.name if base is not None and planned is None else ""
        return LogPlace(version, instant, name, names, instant, marker)


def measured_row_size(commits: Iterable[CommitMetadata]) -> float | None:
    """Bytes per row in Parquet, from the newest given commit that wrote enough; None if none
    did."""
    for metadata in commits:
        written = sum(stat.total_write_bytes for stat in metadata.stats)
        rows = sum(stat.num_writes for stat in metadata.stats)
        if rows > 0 and written >= MEASURED_BYTES_LEAST:
            return written / rows
    return None


def row_size(measured: float | None, arrow_bytes: int, rows: int, options: WriteOptions) -> float:
    """Bytes that a row takes in Parquet: measured, else as the options say, else estimated from its
    Arrow size."""
    if measured is not None:
        return max(measured, 1.0)
    if options.has_record_size:
        return float(options.record_size)
    if rows > 0 and arrow_bytes > 0:
        return max(arrow_bytes / rows * ARROW_TO_PARQUET, 1.0)
    return float(options.record_size)


def _small_files(request: PlanRequest) -> dict[str, list[FileSlice]]:
    """Per partition the slices below the limit, smallest first, so that few files are rewritten
    often."""
    found: dict[str, list[FileSlice]] = {}
    if request.pack_small_files:
        for item in request.existing.values():
            full = item.base is None or _size(item) >= request.small_file_limit
            # A rewrite of the base file alone would leave its logs behind; a plan owns its groups.
            # And a skeleton is small as its source is not.
            busy = (
                bool(item.logs)
                or (item.base is not None and is_skeleton(item.base.path))
                or (item.partition, item.file_id) in request.held
            )
            if not full and not busy:
                found.setdefault(item.partition, []).append(item)
    return {partition: sorted(items, key=lambda i: (_size(i), i.file_id)) for partition, items in found.items()}


def _size(item: FileSlice) -> int:
    base: BaseFile | None = item.base
    return 0 if base is None else base.size
