"""Which instants leave the active timeline: pure planning over one listing.

The rules are those of `docs/explanation/commit-protocol.md` section 2.3. Facts of Hudi 0.15.0's
archiver: beyond `most` completed writes the oldest leave until `least` are left; a savepoint, the
write before the oldest pending instant, what the trigger of compactions counts and a replacecommit
whose files are not cleaned hold back what comes after them; cleans and rollbacks leave by the same
two numbers. Savepoints never leave, nor do restores and indexing of version 6.

Of ours a rollback that took a completed write back stays until the writes around it leave: only by
it readers as of that write know that its rows are gone.

Of versions 8 and 9 nothing that stays may be older than what leaves. Hudi 1.1.1 takes an instant
for pending that is neither on the timeline nor older than all of it (measured), and merges its log
over a newer base file: rows come back that were deleted. So there the newest clean, restores and
indexing leave with the writes around them, and what may not leave holds later writes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Self

from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action, Instant, comparable_time
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

_COUNTED = (Action.CLEAN, Action.ROLLBACK)
_OTHERS = (*_COUNTED, Action.RESTORE, Action.INDEXING)
ReplacedGone = Callable[[Instant], bool]
Undone = Callable[[Sequence[Instant]], Collection[Instant]]


@dataclass(frozen=True, slots=True)
class Leaving:
    """`instants` leave, oldest first, `writes` of them completed writes. `due`: whether that is
    enough to begin.

    `held_by` says what holds back the next write that would leave too, '' if nothing does.
    """

    instants: tuple[Instant, ...]
    writes: int
    due: bool
    held_by: str


@dataclass(frozen=True, slots=True)
class Present:
    """What the planner knows beside the timeline: the store's present, `H` in seconds, whether the
    table has logs, the oldest instant that the metadata table needs, '' if none; and whether
    nothing that stays may be older than what leaves."""

    now: datetime
    quarantine_seconds: float
    logs: bool
    metadata: str = ""
    gapless: bool = False

    @classmethod
    def of(cls, ctx: TableContext, now: datetime, metadata: str = "") -> Self:
        """Of a table at the store's time `now`."""
        logs, gapless = ctx.config.type is TableType.MERGE_ON_READ, ctx.layout.tells_completions
        return cls(now, ctx.settings.quarantine_seconds, logs, metadata, gapless)

    def needs(self, instant: Instant) -> bool:
        """Whether the metadata table holds logs of this instant, or of an older one."""
        return bool(self.metadata) and comparable_time(instant.time) >= comparable_time(self.metadata)


def plan_archiving(
    timeline: Timeline,
    policy: ArchivePolicy,
    present: Present,
    *,
    gone: ReplacedGone,
    undone: Undone = lambda _: (),
    force: bool = False,
) -> Leaving:
    """What leaves. `gone` tells of a replacecommit whether the files that it replaced are deleted:
    asked oldest first, and only if nothing else holds it. `undone` tells which rollbacks took
    completed writes back: asked once, of those that would leave by their number. `force`: down to
    `policy.least` although `policy.most` is not reached, and however few.
    """
    writes = timeline.commits
    least, most = policy.limits(writes)
    wanted = len(writes) - least if force or len(writes) > most else 0
    leaving, held_by = _writes(timeline, policy, present, max(wanted, 0), gone)
    start = writes[len(leaving)].time if writes else ""
    others = _others(timeline, (least, most), present, start)
    early = [i for i in others if i.action is Action.ROLLBACK and not _is_before(i, start)]
    kept = {*undone(early)} if early else set()
    others = [i for i in others if i not in kept]
    found = tuple(sorted([*leaving, *others], key=lambda i: i.sort_key))
    # A few at a time would make an archive file of each few.
    due = bool(found) if force else max(len(leaving), len(others)) > most - least
    return Leaving(found, len(leaving), due, held_by)


def barriers(timeline: Timeline) -> list[tuple[str, str]]:
    """(time, name) of what has not completed, oldest first: nothing at or after the write before it
    may leave.

    A rollback without its plan is none: a late inflight file of one that was archived.
    """
    found = [(i.time, i.file_name) for i in timeline.pending if not timeline.is_leftover(i)]
    return sorted([*found, *((time, f"{time}.claim") for time in timeline.planner_claims)])


def _writes(
    timeline: Timeline, policy: ArchivePolicy, present: Present, wanted: int, gone: ReplacedGone
) -> tuple[list[Instant], str]:
    writes = timeline.commits
    pending = barriers(timeline)
    savepoint = min((i.time for i in timeline.instants if i.action is Action.SAVEPOINT), default="")
    counted = _oldest_counted(timeline, policy) if present.logs else ""
    staying = _oldest_staying(timeline, present) if present.gapless else ""
    leaving: list[Instant] = []
    for instant, following in pairwise(writes[: wanted + 1]):
        held = ""
        if savepoint and instant.time >= savepoint:
            held = f"the savepoint {savepoint}"
        elif pending and comparable_time(pending[0][0]) < comparable_time(following.time):
            held = f"{pending[0][1]}, which is pending"
        elif counted and instant.time >= counted:
            held = "the trigger of compactions, which counts deltacommits"
        elif present.needs(instant):
            held = "the metadata table, which holds logs of it that are not compacted"
        elif staying and comparable_time(instant.time) > comparable_time(staying):
            held = f"{staying}, which is younger than {present.quarantine_seconds:g} s"
        elif not _old(timeline, instant, present):
            held = f"its age, less than {present.quarantine_seconds:g} s"
        elif instant.action is Action.REPLACE_COMMIT and not gone(instant):
            held = "the files that it replaced, which are not cleaned yet"
        if held:
            return leaving, f"{instant.time} is held back by {held}"
        leaving.append(instant)
    return leaving, ""


def _others(timeline: Timeline, limits: tuple[int, int], present: Present, start: str) -> list[Instant]:
    """Completed cleans and rollbacks before the timeline's new start, and of too many the oldest;
    without gaps whatever else is before the start too. The newest clean, from which the next one
    goes on, stays where it can."""
    least, most = limits
    leaving = []
    for action in _OTHERS if present.gapless else _COUNTED:
        done = [i for i in timeline.completed if i.action is action]
        many = len(done) - least if action in _COUNTED and len(done) > most else 0
        for number, instant in enumerate(done):
            if present.needs(instant) or not _old(timeline, instant, present):
                break
            before = _is_before(instant, start)
            newest = action is Action.CLEAN and number == len(done) - 1
            if (before and present.gapless) or ((before or number < many) and not newest):
                leaving.append(instant)
    return leaving


def _is_before(instant: Instant, start: str) -> bool:
    return bool(start) and comparable_time(instant.time) < comparable_time(start)


def _oldest_staying(timeline: Timeline, present: Present) -> str:
    """The oldest instant, of those that are no writes, that may not leave yet."""
    done = (i for i in timeline.completed if i.action in _OTHERS)
    young = (i for i in done if present.needs(i) or not _old(timeline, i, present))
    return min((i.time for i in young), key=comparable_time, default="")


def _old(timeline: Timeline, instant: Instant, present: Present) -> bool:
    age = (present.now - timeline.files[instant.file_name]).total_seconds()
    return age > present.quarantine_seconds


def _oldest_counted(timeline: Timeline, policy: ArchivePolicy) -> str:
    """The oldest write that the trigger of compactions still has to find: the deltacommits since
    the last compaction, as many as make one due; with fewer, that compaction."""
    if not policy.delta_commits:
        return ""
    last = max((i.time for i in timeline.commits if i.action is Action.COMMIT), default="")
    deltas = [i.time for i in timeline.commits if i.action is Action.DELTA_COMMIT and i.time > last]
    if len(deltas) < policy.delta_commits:
        return last or (deltas[0] if deltas else "")
    return deltas[-policy.delta_commits]
