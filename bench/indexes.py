"""The race of indexes: a hundredth of the rows upserted by random keys, half known and half new,
beside Apache Hudi's same index and delta-rs's merge.

Every contender loads its table once; each round upserts into a copy of it, and its rows are checked
from outside.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.index_kinds import KINDS
from bench.index_rows import Batch
from bench.process import Contender, Cost
from bench.race import HUDI_PYTHON, Results, Target, Times, held_by
from bench.rows import Workload

STEP = "upsert"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A contender: who it is, and with which index."""

    who: str
    kind: str

    @property
    def worker(self) -> str:
        """The name of its worker."""
        return f"{self.who}-index-{self.kind}"

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{_WHO[self.who]}, {_KIND[self.kind]}"


_WHO = {"local": "ours, LocalEngine", "hudi": "Apache Hudi 1.1.1", "delta": "delta-rs"}
_KIND = {"bloom": "bloom", "global-simple": "global simple", "record": "record index"}

ENTRIES = tuple(IndexEntry(who, kind) for kind in KINDS for who in _WHO)
TARGETS = tuple(Target(STEP, f"local-index-{kind}", f"hudi-index-{kind}", 1 / 5) for kind in KINDS) + tuple(
    Target(STEP, f"local-index-{kind}", f"delta-index-{kind}", 1.0) for kind in KINDS
)


def race_indexes(
    load: Workload,
    batch: Batch,
    folder: Path,
    rounds: int,
    say: Callable[[str], None],
    entries: Sequence[IndexEntry] = ENTRIES,
) -> Results:
    """One cold round and `rounds` warm ones. Raises AssertionError if a table does not hold what it
    must."""
    folder.mkdir()
    entries = list(entries)
    results: Results = {entry.worker: {STEP: Times()} for entry in entries}
    with ExitStack() as sessions:
        running = {
            entry.worker: sessions.enter_context(
                Contender(entry.worker, bloom=False, python=HUDI_PYTHON if entry.who == "hudi" else None)
            )
            for entry in entries
        }
        for entry in entries:
            cost = running[entry.worker].run("load", load.base, _loaded(folder, entry))
            say(f"{entry.label}: loaded in {cost.wall:.1f} s")
        for number in range(rounds + 1):
            turn = number % len(entries)
            for entry in entries[turn:] + entries[:turn]:
                cost = _round(entry, running[entry.worker], batch, folder)
                times = results[entry.worker][STEP]
                if number == 0:
                    times.cold = cost
                else:
                    times.warm.append(cost)
                say(f"round {number or 'cold'}: {entry.label}: {STEP} {cost.wall:.1f} s (CPU {cost.cpu:.1f} s)")
    return results


def _loaded(folder: Path, entry: IndexEntry) -> Path:
    return folder / f"{entry.worker}-loaded"


def _round(entry: IndexEntry, contender: Contender, batch: Batch, folder: Path) -> Cost:
    base = folder / entry.worker
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(_loaded(folder, entry), base)
    cost = contender.run(STEP, batch.rows, base)
    held = held_by(entry.who, base)
    assert held == batch.after, f"{entry.label} holds {held}, must hold {batch.after}"
    shutil.rmtree(base)
    return cost
