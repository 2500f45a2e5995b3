"""What a listing of the timeline has shown of instants that have completed: a later one need not
look at their files again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter, itemgetter

from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant

Placed = tuple[tuple[str, str, int], Instant]
"""An instant behind its place on the timeline."""


@dataclass(frozen=True)
class Settled:
    """Their files with their ages, what groups their states, the last place, and they themselves:
    all that have `completed`, oldest first; of these the writes (`commits`), their times, and the
    replacecommits."""

    files: dict[str, datetime] = field(default_factory=dict)
    keys: frozenset[tuple[str, Action]] = frozenset()
    last: tuple[str, str, int] = ("", "", 0)
    completed: tuple[Instant, ...] = ()
    commits: tuple[Instant, ...] = ()
    commit_times: frozenset[str] = frozenset()
    replacements: tuple[Instant, ...] = ()

    def and_also(self, files: Mapping[str, datetime], places: Mapping[tuple[str, Action], Placed]) -> Settled:
        """With these that have completed since. What comes behind the others, as it mostly does,
        costs what it is itself."""
        if not places:
            return self
        new = sorted(places.values(), key=itemgetter(0))
        completed, commits, replacements = self.completed, self.commits, self.replacements
        instants = tuple(instant for _, instant in new)
        writes = tuple(instant for instant in instants if instant.action in WRITE_ACTIONS)
        replaced = tuple(instant for instant in writes if instant.action is Action.REPLACE_COMMIT)
        return Settled(
            {**self.files, **files},
            self.keys | places.keys(),
            max(self.last, new[-1][0]),
            self._behind(completed, instants, new),
            self._behind(commits, writes, new),
            self.commit_times | {instant.time for instant in writes},
            self._behind(replacements, replaced, new),
        )

    def with_pending(self, pending: list[Placed]) -> tuple[Instant, ...]:
        """All that have completed and these that have not, in order."""
        return self._behind(self.completed, tuple(instant for _, instant in pending), pending)

    def _behind(
        self, known: tuple[Instant, ...], more: tuple[Instant, ...], placed: list[Placed]
    ) -> tuple[Instant, ...]:
        both = (*known, *more)
        return both if not placed or self.last < placed[0][0] else tuple(sorted(both, key=attrgetter("sort_key")))
