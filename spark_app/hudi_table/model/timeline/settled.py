"""What a listing of the timeline has shown of instants that have completed: a later one need not look at their files again."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter

from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant

Placed = tuple[tuple[str, str, int], Instant]
"""An instant behind its place on the timeline."""


@dataclass(frozen=True)
class Settled:
    """Their files with their ages, what groups their states, and they themselves in order."""

    files: dict[str, datetime] = field(default_factory=dict)
    keys: frozenset[tuple[str, Action]] = frozenset()
    placed: list[Placed] = field(default_factory=list)

    @functools.cached_property
    def completed(self) -> tuple[Instant, ...]:
        """The instants, oldest first."""
        return tuple(instant for _, instant in self.placed)

    @functools.cached_property
    def commits(self) -> tuple[Instant, ...]:
        """Those that are writes."""
        return tuple(instant for instant in self.completed if instant.action in WRITE_ACTIONS)

    def and_also(self, files: Mapping[str, datetime], places: Mapping[tuple[str, Action], Placed]) -> Settled:
        """With these that have completed since."""
        if not places:
            return self
        new = sorted(places.values(), key=itemgetter(0))
        return Settled({**self.files, **files}, self.keys | places.keys(), in_order(self.placed, new))


def in_order(first: list[Placed], second: list[Placed]) -> list[Placed]:
    """Both, each of which is in order; mostly the second comes behind the first."""
    both = [*first, *second]
    return both if not first or not second or first[-1][0] < second[0][0] else sorted(both, key=itemgetter(0))
