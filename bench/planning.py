"""Planning beside the size of a table: an upsert that touches few partitions, as far as its plan,
on tables of up to 100,000 file groups.

What the tables are made of: `planning_table`. Sizes take their turns round by round, the cold round
apart, and a worker keeps one process for a table, as a writer would.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.planning_table import Shape, make_rows, make_table
from bench.process import Contender
from bench.race import Times

FULL_GROUPS = 100_000
TOUCHED = (10, 1_000)
SECONDS_MAX = 2.0
MEMORY_MAX = 500 << 20
FOLDER_STEPS = ("timeline", "plan", "give_up", "touched", "whole")
METADATA_STEPS = ("timeline", "plan", "give_up", "listed_touched", "listed_whole")


@dataclass(frozen=True, slots=True)
class PlanningEntry:
    """A table that is planned on: its file groups, whether it has a metadata table, and the
    partitions that rows go to."""

    groups: int
    metadata: bool
    touched: int

    @property
    def name(self) -> str:
        """A name for folders and the record."""
        return f"{self.groups}-{'metadata' if self.metadata else 'folders'}-{self.touched}"

    @property
    def steps(self) -> tuple[str, ...]:
        """What is asked of it, in this order."""
        return METADATA_STEPS if self.metadata else FOLDER_STEPS


PlanningResults = dict[PlanningEntry, dict[str, Times]]


def sizes(groups: int) -> list[int]:
    """The numbers of file groups that are measured: `groups`, and a tenth and a hundredth of
    them."""
    return [max(10, groups // part) for part in (100, 10, 1)]


def measured_planning(
    folder: Path, groups: int, rounds: int, say: Callable[[str], None], touched: Sequence[int] = TOUCHED
) -> PlanningResults:
    """One cold round and `rounds` warm ones for every table. Raises RuntimeError if a worker failed
    a check."""
    folder.mkdir()
    results: PlanningResults = {}
    for metadata in (False, True):
        for size in sizes(groups):
            base = folder / f"table-{size}"
            make_table(base, Shape(size), metadata=metadata)
            say(f"{size:,} file groups{' and their metadata table' if metadata else ''} made")
            for count in dict.fromkeys(min(number, Shape(size).partitions) for number in touched):
                entry = PlanningEntry(size, metadata, count)
                results[entry] = _measured(entry, base, folder / f"rows-{entry.name}", rounds)
                planned = results[entry]["plan"]
                say(f"{entry.name}: planned in {planned.middle(lambda cost: cost.wall):.2f} s")
            shutil.rmtree(base)
    return results


def _measured(entry: PlanningEntry, base: Path, rows: Path, rounds: int) -> dict[str, Times]:
    make_rows(rows, Shape(entry.groups), entry.touched)
    times = {step: Times() for step in entry.steps}
    with Contender("planning", bloom=False) as worker:
        for number in range(rounds + 1):
            for step in entry.steps:
                cost = worker.run(step, rows, base)
                if number == 0:
                    times[step].cold = cost
                else:
                    times[step].warm.append(cost)
    return times
