"""Which slices of a file group a clean deletes. Pure: timeline and slices in, slices out.

Facts (Hudi 0.15.0, its classes read and its plans compared): under `KEEP_LATEST_COMMITS` everything
that was current at or after the earliest retained instant stays: of each group the newest slice,
the newest before that instant, and all from it on; that instant is the n-th newest completed write,
but not later than the newest before the first pending write or compaction. `KEEP_LATEST_BY_HOURS`
goes from the first completed write of the last n hours. Groups that were replaced before the
instant go whole. `KEEP_LATEST_FILE_VERSIONS` keeps n slices of each group and none of a replaced
one. A slice with a file that a savepoint names stays, and so do the slice that a pending compaction
reads and all after it; under the last policy these count as one of the n.

Beyond Hudi: what a pending clustering reads stays by the same rule, and files of a replaced group
stay if a pending plan reads them. By hours, too, the retained instant is not later than the newest
before the first pending write or plan. Nor is it later than the newest before a write that began
earlier and completed behind a retained one, as a compaction may: what it superseded was current
until it completed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hudi_table.model.counts import counted
from hudi_table.model.options.known import boolean_option, check_options, choice_option, whole_option
from hudi_table.model.options.retention import COMMITS, HOURS, POLICY, VERSIONS, CleanPolicy, with_policy
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Instant, comparable_time, earlier, format_instant_time
from hudi_table.services.cleaning.stored import StoredGroup, StoredSlice
from hudi_table.table.timeline.timeline import Timeline

TRIGGER = "hoodie.clean.trigger.max.commits"
INCREMENTAL = "hoodie.clean.incremental.enabled"
AUTOMATIC = "hoodie.clean.automatic"
READERS_SECONDS = 60.0
"""For so long after something was superseded it stays, whatever the policy says: a reader lists
files a while after the timeline, and would miss them without a word."""
READERS = "readers of the last minute"
"""What holds such a slice back, in words."""


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """What is retained, and after how many commits (`trigger`) since the last clean another is due.
    `incremental`: look only where something changed since then."""

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits: int = 10
    hours: int = 24
    versions: int = 3
    trigger: int = 1
    incremental: bool = True

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> CleanOptions:
        """From `hoodie.clean.*`, or `hoodie.cleaner.*` as Hudi 0.15.0 names them. Raises
        InvalidOptionError."""
        check_options(options)
        return cls(
            CleanPolicy(choice_option(with_policy(options), POLICY)),
            whole_option(options, COMMITS, least=1),
            whole_option(options, HOURS, least=1),
            whole_option(options, VERSIONS, least=1),
            whole_option(options, TRIGGER, least=1),
            boolean_option(options, INCREMENTAL),
        )

    @property
    def by_commits(self) -> bool:
        """Whether an instant says what is retained."""
        return self.policy is not CleanPolicy.KEEP_LATEST_FILE_VERSIONS

    def __str__(self) -> str:
        match self.policy:
            case CleanPolicy.KEEP_LATEST_COMMITS:
                return f"keep the newest {counted(self.commits, 'commit')}"
            case CleanPolicy.KEEP_LATEST_BY_HOURS:
                return f"keep the newest {counted(self.hours, 'hour')}"
            case _:
                return f"keep {counted(self.versions, 'version')} of each file group"


def earliest_retained(timeline: Timeline, options: CleanOptions, now: datetime) -> Instant | None:
    """The instant from which on everything stays; None if nothing is old enough, or the policy
    counts versions. `now` is naive, in the timeline's zone."""
    done = timeline.commits
    if options.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        since = format_instant_time(earlier(now, timedelta(hours=1), options.hours))
        found = next((i for i in done if comparable_time(i.time) >= since), None)
    else:
        enough = options.by_commits and len(done) > options.commits
        found = done[len(done) - options.commits] if enough else None
    if found is None:
        return None
    late = min(_ended_late(timeline, found), key=comparable_time, default=None)
    if late is None:
        return found
    before = [i for i in done if comparable_time(i.time) < comparable_time(late)]
    return before[-1] if before else None


def _ended_late(timeline: Timeline, retained: Instant) -> Iterator[str]:
    """The times of writes and plans that are older than the retained instant, and ended, or will
    end, later than the first of those that are retained. What they supersede was current then."""
    limit = comparable_time(retained.time)
    yield from (
        i.time for i in timeline.pending if i.grouped_action in WRITE_ACTIONS and comparable_time(i.time) < limit
    )
    ended = {i.time: _end_of(timeline, i) for i in timeline.commits}
    first = min(end for time, end in ended.items() if comparable_time(time) >= limit)
    yield from (time for time, end in ended.items() if comparable_time(time) < limit and end > first)


def _end_of(timeline: Timeline, done: Instant) -> str:
    """When a write completed, as texts that compare: by its name, else by the store's age of its
    file."""
    if timeline.layout.tells_completions:
        return comparable_time(done.moment)
    return f"{timeline.files[done.file_name].timestamp():020.6f}"


@dataclass(frozen=True, slots=True)
class Rule:
    """What one clean goes by. `retain`: the earliest retained instant, "" if `versions` counts
    instead. `savepoints`: file name → the savepoint that needs it. `plans`: (partition, file id) →
    the pending plan that reads a slice of the group. `recent`: the writes of which readers that go
    on may not know."""

    retain: str = ""
    versions: int = 0
    savepoints: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[tuple[str, str], str] = field(default_factory=dict)
    recent: frozenset[str] = frozenset()

    def outdated(self, group: StoredGroup) -> list[StoredSlice]:
        """The slices that are too old to be kept for readers, newest first, whether or not
        something else needs them."""
        retain = comparable_time(self.retain)
        if group.replaced:
            gone = not self.retain or comparable_time(group.replaced) < retain
            return list(group.slices) if gone else []
        if self.retain:
            older = [found for found in group.slices if comparable_time(found.instant) < retain]
            # The newest of these is what a reader of the retained instant sees, or the newest of all.
            return older[1:]
        planned = {found.instant for found in group.slices if self._planned(group, found)}
        rest = [found for found in group.slices if found.instant not in planned]
        return rest[self.versions - (1 if (group.partition, group.file_id) in self.plans else 0) :]

    def needed(self, group: StoredGroup, item: StoredSlice) -> str | None:
        """What else needs a slice, in words; None if nothing does."""
        savepoint = next((self.savepoints[name] for name in item.names if name in self.savepoints), None)
        if savepoint is not None:
            return f"savepoint {savepoint}"
        if self._planned(group, item):
            return f"the pending plan {self.plans[group.key]}"
        return READERS if self.recent and self._was_current(group, item) else None

    def _was_current(self, group: StoredGroup, item: StoredSlice) -> bool:
        """Whether only recent writes have superseded an outdated slice."""
        newer = [other.instant for other in group.slices[: group.slices.index(item)]]
        return self.recent.issuperset([*newer, group.replaced] if group.replaced else newer)

    def _planned(self, group: StoredGroup, item: StoredSlice) -> bool:
        plan = self.plans.get(group.key)
        if plan is None:
            return False
        older = (other.instant for other in group.slices if comparable_time(other.instant) < comparable_time(plan))
        return comparable_time(item.instant) >= comparable_time(next(older, ""))


def recent_writes(timeline: Timeline, now: datetime) -> frozenset[str]:
    """The times of the writes that readers who began `READERS_SECONDS` before `now`, a moment of
    the store, may not have seen completed."""
    done = (i.time for i in timeline.commits if (now - timeline.files[i.file_name]).total_seconds() < READERS_SECONDS)
    return frozenset(done) | {i.time for i in timeline.pending}


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outdated slice, and what holds it back, if anything does."""

    group: StoredGroup
    slice: StoredSlice
    held: str | None


def verdicts(groups: list[StoredGroup], rule: Rule) -> Iterator[Verdict]:
    """Every outdated slice of the groups."""
    for group in groups:
        for found in rule.outdated(group):
            yield Verdict(group, found, rule.needed(group, found))
