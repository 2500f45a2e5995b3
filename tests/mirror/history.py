"""What the writers of a round asked and were told, and what a read of the table may show of it.

The rows of a write are all there or none. Those of a write that was acknowledged before a read
began are there; those of one that was asked after it ended are not. A row that every write updates
is of no older write than the newest that was acknowledged: larger numbers win in both engines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.mirror.workload import Write
from tests.mirror.writers import Answer, Came

SHOWN = 4


@dataclass(frozen=True, slots=True)
class Read:
    """A read: when it began and ended, and the keys with who wrote them, or what the reader said
    instead."""

    began: float
    ended: float
    found: list[tuple[str, int]] | str


@dataclass(slots=True)
class History:
    """The writes of a round, each with what came of it."""

    told: list[tuple[Write, Answer]] = field(default_factory=list)

    def wrong(self, read: Read) -> list[str]:
        """What is wrong with the rows of a read; empty if nothing is."""
        assert not isinstance(read.found, str)
        counts = Counter(key for key, _ in read.found)
        by = dict(read.found)
        wrong = [f"{key} is there {count} times" for key, count in counts.items() if count > 1]
        newest = 0
        for write, answer in self.told:
            seen = [key for key in write.new if key in by]
            promised = answer.came is Came.DONE and answer.ended <= read.began
            if seen and answer.asked > read.ended:
                wrong.append(f"write {write.number} is there before it was asked for")
            if promised and len(seen) < len(write.new):
                wrong.append(f"write {write.number} was acknowledged, {len(write.new) - len(seen)} rows are not there")
            elif seen and len(seen) < len(write.new):
                wrong.append(f"write {write.number} is there by half")
            if promised or len(seen) == len(write.new):
                newest = max(newest, write.number)
        wrong += self._shared(by, newest)
        return wrong[:SHOWN]

    def _shared(self, by: dict[str, int], newest: int) -> Iterable[str]:
        for key in self.told[0][0].shared:
            if by.get(key) != newest:
                yield f"{key} is of write {by.get(key)}, not of {newest}"
