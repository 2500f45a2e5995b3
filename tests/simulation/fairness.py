"""Writers that meet again and again: after how many attempts each write commits, in simulated
hours.

A long write beside ingests that come more often than it takes loses every attempt, unless they let
it go first.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hudi_table.api import HudiTable
from hudi_table.errors import WriteConflictError
from hudi_table.metadata.port import open_context
from tests.simulation.actors import SimClock, rows_of
from tests.simulation.faults import Requests, mixed
from tests.simulation.run import _alone, _founded, _seeded
from tests.simulation.scheduler import Scheduler, SimProcess
from tests.simulation.script import HOUR, Script
from tests.simulation.sim_threads import simulated_threads
from tests.simulation.store import SimStorage, SimStore

T = TypeVar("T")
R = TypeVar("R")
TABLE = {"type": "CopyOnWrite", "index": {"type": "Bucket", "buckets": 1}, "partitions": 1}
"""All keys are in one bucket, so any two writes exclude each other."""


@dataclass
class Part:
    """What one process does: `writes` of an `operation` on one key, each `seconds` long, with
    pauses of `every` seconds in the middle. `dies_at`: the attempt, from 1, at whose
    beginning it is killed."""

    name: str
    operation: str
    key: str
    seconds: float
    writes: int = 1
    every: float = 0.0
    retries: int = 50
    dies_at: int = 0


@dataclass
class Written:
    """One write: its process, its attempts, when it began and ended, and whether it committed."""

    name: str
    attempts: int
    begun: float
    ended: float
    committed: bool


@dataclass
class _Work:
    """An engine whose tasks take their time, once in an attempt."""

    scheduler: Scheduler
    part: Part
    process: SimProcess
    parallelism: int = 1
    runs: int = 0

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        self.runs += 1
        if self.runs == self.part.dies_at:
            self.process.kill()
        self.scheduler.sleep(self.part.seconds)
        return [function(item) for item in items]

    def imap(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        # What is taken in belongs to no attempt.
        return map(function, items)


@dataclass
class Race:
    """Parts beside each other on one table."""

    seed: int
    parts: list[Part]
    done: list[Written] = field(default_factory=list)

    def run(self) -> list[Written]:
        """Every write, in the order of their ends."""
        scheduler = Scheduler()
        script = Script(self.seed, TABLE, [])
        store = SimStore(scheduler, script.order, script.page)
        with simulated_threads(scheduler), _seeded(self.seed):
            _founded(script, store, Counter())
            keys = sorted({part.key for part in self.parts})
            _alone(
                script, store, Counter(), lambda storage: self._opened(storage, scheduler).upsert(rows_of(keys, "0", 1))
            )
            for part in self.parts:
                self._start(part, store, script.base)
            scheduler.run()
        return self.done

    def of(self, name: str) -> list[Written]:
        """Those of one process."""
        return [each for each in self.done if each.name == name]

    def _opened(self, storage: SimStorage, scheduler: Scheduler) -> HudiTable:
        return HudiTable(open_context(storage, SimClock(scheduler)))

    def _start(self, part: Part, store: SimStore, base: str) -> None:
        scheduler, process = store.scheduler, SimProcess(store.scheduler, part.name)
        chance = random.Random(mixed(self.seed, sum(part.name.encode())))
        requests = Requests(store, part.name, self.seed, {}, 0.05, Counter(), process)

        def live() -> None:
            table = self._opened(SimStorage(store, requests, base), scheduler)
            engine = _Work(scheduler, part, process)
            for number in range(part.writes):
                scheduler.sleep(part.every * chance.uniform(0.9, 1.1))
                self._write(table, part, engine, f"{part.name}.{number}", scheduler)

        process.start(live)

    def _write(self, table: HudiTable, part: Part, engine: _Work, by: str, scheduler: Scheduler) -> None:
        begun, runs, committed = scheduler.now, engine.runs, True
        options = {"hoodie.write.num.retries.on.conflict.failures": str(part.retries)}
        try:
            table.write(rows_of([part.key], by, 1), operation=part.operation, options=options, engine=engine)  # type: ignore[arg-type]
        except WriteConflictError:
            committed = False
        self.done.append(Written(part.name, engine.runs - runs, begun, scheduler.now, committed))


def long_delete(seed: int, *, ingests: int = 1, retries: int = 50, dies_at: int = 0) -> Race:
    """A delete over two simulated hours beside ingests of a minute that come every half hour."""
    parts = [
        Part(f"ingest{number}", "upsert", "a", 60.0, writes=24, every=HOUR / 2, retries=50) for number in range(ingests)
    ]
    return Race(seed, [Part("delete", "delete", "b", 2 * HOUR, retries=retries, dies_at=dies_at), *parts])
