"""`Timeline`: the instants of one listing as a value.

Facts: a file is visible if its instant completed or is older than the timeline's start. That is, in
table version 6, the first completed write or pending compaction. In versions 8 and 9 it is the
first write, completed or not, that no savepoint keeps, for what a savepoint keeps may stay while
newer instants are archived; where savepoints keep all of them it is the newest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from hudi_table.model.names import METADATA_TABLE
from hudi_table.model.table.layouts import LAYOUT_1, Layout
from hudi_table.model.timeline.instants import (
    PLANNED_ACTIONS,
    WRITE_ACTIONS,
    Action,
    Instant,
    State,
    comparable_time,
    parse_instant,
    planner_claim,
    planner_claim_time,
)
from hudi_table.model.timeline.settled import Settled


@dataclass(frozen=True)
class Timeline:
    """Instants of one listing, ordered by time. `files` maps each timeline file name to its store's
    age; `folders` are the names of those in `.hoodie/` that tell something; `listed_at` says when
    that was, in seconds since boot, or nothing. `started`: its start, of a timeline that was cut.
    `unsettled`: of the files at least those of instants that have not completed, and what belongs
    to none; nothing if nobody has told them apart."""

    instants: tuple[Instant, ...]
    files: dict[str, datetime] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    listed_at: float | None = None
    layout: Layout = LAYOUT_1
    started: str | None = None
    unsettled: frozenset[str] | None = None

    @property
    def has_metadata(self) -> bool:
        """Whether the folder of a metadata table is there."""
        return METADATA_TABLE.rpartition("/")[2] in self.folders

    @functools.cached_property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants of every action, oldest first."""
        return tuple(i for i in self.instants if i.completed)

    @functools.cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Completed commit, deltacommit and replacecommit instants, oldest first."""
        return tuple(i for i in self.instants if i.completed and i.action in WRITE_ACTIONS)

    @functools.cached_property
    def commit_times(self) -> frozenset[str]:
        """The times of `commits`."""
        return frozenset(i.time for i in self.commits)

    @functools.cached_property
    def replacements(self) -> tuple[Instant, ...]:
        """Completed replacecommits, oldest first."""
        return tuple(i for i in self.commits if i.action is Action.REPLACE_COMMIT)

    @functools.cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Instants that have not completed, in their highest state, oldest first."""
        return tuple(i for i in self.instants if not i.completed)

    @functools.cached_property
    def start(self) -> str | None:
        """The time before which everything counts as committed; None of a timeline without
        writes."""
        if self.started is not None:
            return self.started
        if not self.layout.tells_completions:
            return next((instant.time for instant in self.instants if _starts(instant)), None)
        writes = (instant.time for instant in self.instants if instant.grouped_action in WRITE_ACTIONS)
        newest = self.last_commit.time if self.last_commit else None
        return next((time for time in writes if time not in self.saved), newest)

    @functools.cached_property
    def completions(self) -> dict[str, str]:
        """When each completed write became visible, by its time."""
        return {instant.time: instant.moment for instant in self.commits}

    def at(self, moment: str) -> tuple[Timeline, str]:
        """The timeline without what completed after a moment, and the time as of which that is
        read."""
        if not self.layout.tells_completions:
            return self, moment
        limit = comparable_time(moment)
        kept = tuple(i for i in self.instants if not i.completed or comparable_time(i.moment) <= limit)
        then = replace(self, instants=kept, started=self.start)
        return then, then.last_commit.time if then.last_commit else moment

    def reached(self, shown: Timeline) -> str:
        """The newest moment up to which nothing completed that a part of this timeline does not
        show; '' for none."""
        unseen = (comparable_time(i.moment) for i in self.commits if i.time not in shown.completions)
        limit = min(unseen, default="")
        known = (moment for moment in shown.completions.values() if not limit or comparable_time(moment) < limit)
        return max(known, default="", key=comparable_time)

    @functools.cached_property
    def saved(self) -> frozenset[str]:
        """The times of the writes that savepoints keep."""
        return frozenset(i.time for i in self.instants if i.completed and i.action is Action.SAVEPOINT)

    @property
    def last_commit(self) -> Instant | None:
        """The newest completed write, if any."""
        return self.commits[-1] if self.commits else None

    @functools.cached_property
    def newest_time(self) -> str:
        """The greatest time that any file names, a planner's claim and completions too, or ''."""
        times = [*(i.time for i in self.instants[-1:]), *self.planner_claims, self._newest_moment]
        return max(times, default="", key=comparable_time)

    @functools.cached_property
    def newest_settled(self) -> str:
        """The time that an instant must be later than so that all that had ended when it was listed
        comes before it, or ''.

        The newest plan of a log compaction counts too: Hudi ends its scan at that one's log, which
        comes before those of who has seen the plan. Where slices go by completion that is what is
        compared, and with the plan of any compaction: a log of an instant before it would apply
        before the logs that it merges.
        """
        if not self.layout.tells_completions:
            done = self.completed[-1].time if self.completed else ""
            return max(
                [done, *(i.time for i in self.pending if i.action is Action.LOG_COMPACTION)], key=comparable_time
            )
        plans = (i.time for i in self.pending if i.action in PLANNED_ACTIONS)
        return max([self._newest_moment, *plans], key=comparable_time)

    @functools.cached_property
    def _newest_moment(self) -> str:
        """The newest completion that names tell."""
        if not self.layout.tells_completions:
            return ""
        return max((i.moment for i in self.completed), default="", key=comparable_time)

    def ended(self, instant: Instant) -> Instant | None:
        """The completed state of an instant, if its file is there, whoever made it."""
        return next(
            (i for _, i in self._at(instant.time) if i.completed and i.grouped_action is instant.grouped_action), None
        )

    @functools.cached_property
    def planner_claims(self) -> tuple[str, ...]:
        """Times that planners of table services claimed and whose plan is not there yet, or whose
        claim is left over."""
        return tuple(sorted(time for name in self._open_names if (time := planner_claim_time(name)) is not None))

    def knows(self, settled: Settled, pending: tuple[Instant, ...]) -> None:
        """Tell what follows from `instants`, for whoever has it at hand: of thousands it takes
        long."""
        vars(self).update(
            completed=settled.completed,
            commits=settled.commits,
            commit_times=settled.commit_times,
            replacements=settled.replacements,
            pending=pending,
        )

    @property
    def _open_names(self) -> Iterable[str]:
        return self.files if self.unsettled is None else self.unsettled

    def is_alone(self, time: str, name: str) -> bool:
        """Whether of the instants that have not completed the time has one file, of this name."""
        return [other for other in self._open_names if other.partition(".")[0] == time] == [name]

    def until(self, as_of: str) -> Timeline:
        """The timeline as of an instant: completed instants at or before it, and the pending
        ones."""
        limit = comparable_time(as_of)
        kept = tuple(i for i in self.instants if not i.completed or comparable_time(i.time) <= limit)
        return replace(self, instants=kept)

    def before(self, time: str) -> Timeline:
        """The timeline as it was before an instant: without it and what is later, pending ones and
        claims too."""
        limit = comparable_time(time)
        kept = tuple(i for i in self.instants if comparable_time(i.time) < limit)
        files = {name: age for name, age in self.files.items() if comparable_time(_time_of(name)) < limit}
        return Timeline(kept, files, self.folders, layout=self.layout)

    def states(self) -> dict[tuple[str, Action], list[Instant]]:
        """Every state that has a file, the earliest first, by the time and the grouped action of
        its instant."""
        found: dict[tuple[str, Action], list[Instant]] = {}
        for instant in sorted((i for i in map(parse_instant, self.files) if i), key=lambda i: i.sort_key):
            found.setdefault((instant.time, instant.grouped_action), []).append(instant)
        return found

    def is_leftover(self, instant: Instant) -> bool:
        """Whether a pending clean or rollback has no plan: a paused process put its inflight file
        back after it was archived."""
        requested = instant.with_state(State.REQUESTED).file_name
        return instant.action in (Action.CLEAN, Action.ROLLBACK) and requested not in self.files

    def is_completed(self, time: str) -> bool:
        """Whether a write of this time has its completed file, one that a pending restore takes
        back too."""
        return any(i.completed and i.action in WRITE_ACTIONS for _, i in self._at(time))

    def has_passed(self, time: str) -> bool:
        """Whether an instant is older than the oldest completed write: what is not on the timeline
        then may be archived, and what is arrived late. Nothing is while no write has completed.

        The oldest itself is not passed, although what archiving takes of it first may be gone.
        """
        return bool(self.commits) and time < self.commits[0].time

    def claim_names(self, time: str) -> list[str]:
        """Names of the requested and inflight files, and of a planner's claim, that carry this
        time, whoever owns them."""
        claims = [name for name, i in self._at(time) if not i.completed]
        return sorted([*claims, *(name for name in [planner_claim(time)] if name in self.files)])

    def own_names(self, instant: Instant) -> list[str]:
        """Names of all files of this instant, the completed one last: those of another action at
        its time, and a planner's claim, belong to others."""
        found = [(i.sort_key, name) for name, i in self._at(instant.time) if i.grouped_action is instant.grouped_action]
        return [name for _, name in sorted(found)]

    def shares(self, instant: Instant) -> bool:
        """Whether the time of this instant has files of another action, or a planner's claim."""
        others = any(i.grouped_action is not instant.grouped_action for _, i in self._at(instant.time))
        return others or planner_claim(instant.time) in self.files

    def _at(self, time: str) -> list[tuple[str, Instant]]:
        found = ((name, parse_instant(name)) for name in self.files if name.startswith(time))
        return [(name, instant) for name, instant in found if instant is not None and instant.time == time]


def _time_of(name: str) -> str:
    """The instant time of a timeline file's name, or '' of another file's."""
    instant = parse_instant(name)
    return instant.time if instant is not None else planner_claim_time(name) or ""


def _starts(instant: Instant) -> bool:
    if instant.completed:
        return instant.action in WRITE_ACTIONS
    return instant.action is Action.COMPACTION
