"""The debt of a table: plans that wait for their execution, and logs of which the trigger says that
it is time; and which files of a snapshot a plan may name.

Those are the files of decided commits. A log that a writer has put before its decision lies there
like any other, and goes when that writer gives up: a plan that named it would not find it any more.
Facts: a log's token names its writer only if it is ours: Hudi has tokens of its own, and 1.1.1
takes over that of the log before (measured), which may be one of ours. Where that is in doubt the
blocks tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from hudi_table.model.options.write_options import WriteOptions
from hudi_table.model.service.debt import CompactionDebt
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.compaction.lost_files import waits
from hudi_table.services.compaction.strategy import Candidate, candidates, strategy_of
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.table.commit.pending_plans import compactions_taken_back, given_up_log_compactions, held_groups
from hudi_table.table.rows.log_scan import VisibleInstants, rows_of
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import pending_compactions
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView, LogFile


def compaction_debt(view: FileSystemView, options: Mapping[str, str]) -> CompactionDebt:
    """Raises InvalidOptionError, and CorruptTableError for a plan that cannot be read."""
    ctx, timeline = view.ctx, view.timeline
    if ctx.config.type is not TableType.MERGE_ON_READ:
        return CompactionDebt()
    why = Trigger.parse(options).due(timeline, local_now(ctx))
    chosen = strategy_of(options, local_now(view.ctx).date())(free_candidates(view, options)) if why else []
    held = pending_compactions(ctx, timeline)
    sizes = [item.size for item in view.latest_slices() if (item.partition, item.file_id) in held] if held else []
    return CompactionDebt(
        tuple(pending_instants(ctx, timeline)),
        why if chosen else None,
        len(held) + len(chosen),
        sum(sizes) + sum(candidate.read_bytes for candidate in chosen),
    )


def pending_instants(ctx: TableContext, timeline: Timeline, action: Action = Action.COMPACTION) -> list[str]:
    """The instants of published plans that can be executed, oldest first: none that is given up or
    being taken back, and none whose commit was taken back, or whose files were given up, a moment
    ago."""
    found = [instant for instant in timeline.pending if instant.action is action]
    if action is Action.LOG_COMPACTION:
        gone = given_up_log_compactions(ctx, timeline)
        return [instant.time for instant in found if instant not in gone]
    held = compactions_taken_back(ctx, timeline)
    return [instant.time for instant in found if instant not in held and not waits(ctx, instant.time)]


def free_candidates(view: FileSystemView, options: Mapping[str, str]) -> list[Candidate]:
    """The slices with logs that no plan holds."""
    return candidates(free_slices(view), WriteOptions.parse(options).target_file_size)


def free_slices(view: FileSystemView) -> list[FileSlice]:
    """The slices that no plan holds, with those of their logs that a reader sees. One with a log of
    which a reader sees some rows, and others not yet, is left for later, and so is what the view
    leaves to others."""
    held = held_groups(view.ctx, view.timeline)
    free = (item for item in view.latest_slices() if (item.partition, item.file_id) not in held)
    leaves = view.leaves
    return [item for item, decided in counted_slices(view, free) if decided and (leaves is None or not leaves(item))]


class Seen(Enum):
    """What a reader sees of a log. `PARTLY`: a write that is under way adds to it; `GONE`: it was
    listed, and is not there."""

    WHOLLY = auto()
    NOTHING = auto()
    PARTLY = auto()
    GONE = auto()


class CountedLogs:
    """Tells the logs of a snapshot, or of its moment `as_of`, apart."""

    def __init__(self, storage: Storage, timeline: Timeline, as_of: str | None = None) -> None:
        self._storage = storage
        self._seen = VisibleInstants.of(timeline, as_of)
        self._writing = {i.time for i in timeline.pending if i.is_write}

    def of(self, logs: Sequence[LogFile]) -> list[tuple[LogFile, Seen]]:
        """Each log of one slice, and what a reader sees of it. Opens those of which the token is no
        proof."""
        tokens = Counter(log.name.token for log in logs)
        return [(log, self._visibility(log, alone=tokens[log.name.token] == 1)) for log in logs]

    def _visibility(self, log: LogFile, *, alone: bool) -> Seen:
        ours = log.instant is not None and log.instant in self._seen and alone
        # While nobody writes, a log of Hudi holds nothing that could still become visible.
        if ours or (log.instant is None and not self._writing):
            return Seen.WHOLLY
        rows = rows_of(self._storage, log.path)
        if rows is None:
            # A write of ours that nobody has seen took it away: there is nothing to look for again.
            return Seen.NOTHING if log.instant is not None and log.instant not in self._seen and alone else Seen.GONE
        hidden = {instant for instant in rows if instant not in self._seen}
        if hidden and hidden == rows:
            return Seen.NOTHING
        return Seen.PARTLY if hidden & self._writing else Seen.WHOLLY


def counted_slices(view: FileSystemView, slices: Iterable[FileSlice]) -> list[tuple[FileSlice, bool]]:
    """The slices with those of their files that a reader sees, none where that is nothing; and
    whether a plan may take them: not while one of their logs is partly another's that is still
    writing, or has just gone, so that the listing is old."""
    logs = CountedLogs(view.ctx.storage, view.timeline)
    found = []
    for item in slices:
        with_visibility = logs.of(item.logs)
        kept = tuple(log for log, seen in with_visibility if seen in (Seen.WHOLLY, Seen.PARTLY))
        if item.base is not None or kept:
            decided = all(seen in (Seen.WHOLLY, Seen.NOTHING) for _, seen in with_visibility)
            found.append((replace(item, logs=kept), decided))
    return found
