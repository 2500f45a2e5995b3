"""One run: a script played from its beginning until nobody has anything to do, then the table
brought to rest and looked at whole."""

from __future__ import annotations

import contextlib
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from hudi_table.api import HudiTable
from hudi_table.metadata.validate import differences
from hudi_table.model.service.findings import Severity
from hudi_table.model.timeline.commits import TAKEN_BACK
from hudi_table.services.cleaning import policy
from hudi_table.table.timeline import active
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.version_change import noted_change
from hudi_table.write.checks.create_table import TableSpec, create
from tests.simulation.actors import SCHEMA, Actor, SimClock, city_of
from tests.simulation.checker import Checker, steps_of
from tests.simulation.earlier import PRESENT, code_of
from tests.simulation.faults import Requests, mixed
from tests.simulation.foreign import published_steps
from tests.simulation.history import History
from tests.simulation.scheduler import Scheduler, SimProcess
from tests.simulation.script import BRING_TO, FOREIGN, Cast, Operation, Script, clusters
from tests.simulation.sim_threads import simulated_threads
from tests.simulation.store import SimStorage, SimStore

PASSES_MAX = 12
REST_SECONDS = 2 * 3_600.0
STEPS_MAX = 2_000_000


@dataclass
class Outcome:
    """What came of a run. `digest`: of every request and of what every operation was told, in their
    order."""

    script: Script
    anomalies: list[str]
    counts: Counter[str]
    outcomes: Counter[str]
    digest: str
    operations: int
    seconds: float
    history: History = field(repr=False, default_factory=History)


class _Watched(SimStore):
    """The store, which remembers the completed files that came and that were deleted."""

    def __init__(self, scheduler: Scheduler, script: Script) -> None:
        super().__init__(scheduler, script.order, script.page)
        self.removed: list[tuple[float, str]] = []
        self.published: list[tuple[float, str]] = []

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        if (time := _completed(path)) and TAKEN_BACK.encode() not in data:
            self.published.append((self.scheduler.now, time))

    def delete(self, path: str) -> None:
        time = _completed(path)
        was_there = path in self.objects
        super().delete(path)
        # What is brought to another version is there under another name before it goes here.
        if time and was_there and time not in map(_completed, self.objects):
            self.removed.append((self.scheduler.now, time))


def _completed(path: str) -> str:
    """The instant whose completed write this file is, or ''."""
    folder, _, name = path.rpartition("/")
    if folder not in (".hoodie", ".hoodie/timeline") or not name.startswith("2"):
        return ""
    time, _, rest = name.partition(".")
    return time.partition("_")[0] if rest in ("commit", "deltacommit", "replacecommit") else ""


def play(script: Script, told: Callable[[str], None] | None = None) -> Outcome:
    """Play a script. The same script gives the same digest each time."""
    scheduler = Scheduler()
    store = _Watched(scheduler, script)
    store.told = told
    history, counts = History(), Counter[str]()
    # What is imported for the first time must draw nothing of the seed's chance.
    listing = [code_of(name).active for name in sorted({PRESENT, *(cast.code for cast in script.cast)} - {FOREIGN})]
    with (
        simulated_threads(scheduler),
        _seeded(script.seed),
        _paged(script.page, listing),
        # What the library warns of it does: an index that is not there is gone without.
        warnings.catch_warnings(action="ignore"),
        # A run is over in minutes: cleans delete at once, as Hudi's do.
        mock.patch.object(policy, "READERS_SECONDS", 0.0),
    ):
        _founded(script, store, counts)
        actors = [_actor(script, number, store, history, counts) for number in range(len(script.cast))]
        for actor in actors:
            actor.start()
        scheduler.run(until=lambda: scheduler.steps > STEPS_MAX)
        if scheduler.steps > STEPS_MAX:
            history.broken.append(f"no end after {STEPS_MAX} steps")
        history.broken += [f"{actor.cast.name} waits for ever" for actor in actors if not actor.is_over]
        counts["clock jump"] += sum(at <= scheduler.now for cast in script.cast for at, _ in cast.jumps)
        if not history.broken:
            _rest(script, store, history, counts)
        for actor in actors:
            if actor.requests.process is not None and actor.requests.process.tasks:
                actor.requests.process.kill()
    partitions = script.table["partitions"]
    steps = steps_of(store.decided, store.removed)
    if foreign := {
        event.instant: event.write for event in history.events if event.process == FOREIGN and event.instant
    }:
        steps = published_steps(store.published, store.removed, store.decided, foreign)
    checker = Checker(history, steps, lambda key: city_of(key, partitions))
    outcomes = Counter(f"{event.kind}: {event.outcome}" for event in history.events)
    return Outcome(
        script, checker.check(), counts, outcomes, store.digest.hexdigest(), len(history.events), scheduler.now, history
    )


def _actor(script: Script, number: int, store: SimStore, history: History, counts: Counter[str]) -> Actor:
    cast = script.cast[number]
    seed = mixed(script.seed, sum(cast.name.encode()))
    actor = Actor(cast, store, script.base, script.table["partitions"], history, counts, seed, script.changes)
    actor.is_non_blocking, actor.is_locked = (script.table.get(name, False) for name in ("non_blocking", "locked"))
    actor.options, actor.metadata = script.table.get("options", {}), script.table.get("metadata", [])
    actor.requests.spread = script.spread
    return actor


def _founded(script: Script, store: SimStore, counts: Counter[str]) -> None:
    table = script.table

    def found(storage: SimStorage) -> None:
        first = {"RecordIndex": "GlobalSimple", "PartitionedRecordIndex": "Simple"}
        index = table["index"] if isinstance(table["index"], dict) else first.get(table["index"], table["index"])
        spec = TableSpec(
            SCHEMA,
            record_key="id",
            partition_by="city",
            type=table["type"],
            index=index,
            version=table.get("version", 6),
            ordering_fields="ts" if table.get("ordered") else (),
            options={"hoodie.table.cdc.enabled": "true"} if table.get("cdc") else {},
        )
        opened = HudiTable(create(storage, spec, clock=SimClock(store.scheduler)))
        if "metadata" in table:
            opened.build_metadata(table["metadata"])
        if index != table["index"]:
            opened.use_index(table["index"])

    _alone(script, store, counts, found)


def _alone(script: Script, store: SimStore, counts: Counter[str], work: Callable[[SimStorage], object]) -> None:
    """Something that a process without faults does while nobody else does anything. Raises what it
    raises."""
    process = SimProcess(store.scheduler, "alone")
    requests = Requests(store, "alone", 0, {}, 0.0, counts, process)
    task = process.start(lambda: work(SimStorage(store, requests, script.base)))
    store.scheduler.run(until=lambda: task.is_over)
    if task.error is not None:
        raise task.error


def _rest(script: Script, store: SimStore, history: History, counts: Counter[str]) -> None:
    """The table once everything that waits is carried out or taken back, by nothing but its own
    calls; and a last look at all of it."""
    cast = Cast("last", [])
    actor = Actor(cast, store, script.base, script.table["partitions"], history, counts, script.seed)
    actor.is_locked, actor.metadata = script.table.get("locked", False), script.table.get("metadata", [])

    def rest(storage: SimStorage) -> None:
        actor.requests.process = storage.requests.process
        table = actor.opened()
        if noted_change(storage) is not None:
            store.scheduler.sleep(REST_SECONDS)
            actor.perform(table, Operation(f"{BRING_TO}{table.context.config.version}"))
        for _ in range(PASSES_MAX):
            store.scheduler.sleep(REST_SECONDS)
            _finish(script, actor, table)
            pending = load_timeline(table.context).pending
            if not pending:
                break
        else:
            history.broken.append(f"still pending after {PASSES_MAX} passes: {[i.file_name for i in pending]}")
        actor.perform(table, Operation("read"))
        found = table.doctor(keys=True)
        history.broken += [f"doctor: {finding}" for finding in found if finding.severity is Severity.ERROR]
        if load_timeline(table.context).has_metadata:
            history.broken += [f"metadata table: {each}" for each in differences(table.context)]

    try:
        _alone(script, store, counts, rest)
    except Exception as error:  # noqa: BLE001 - whatever it is, the run has found it
        history.broke("last", error)


def _finish(script: Script, actor: Actor, table: HudiTable) -> None:
    """Whoever writes takes back what is dead; whoever keeps carries out what is planned."""
    actor.done += 1
    kinds = ["delete", *(["compact logs", "compact"] if script.table["type"] == "MergeOnRead" else [])]
    kinds += ["cluster" if clusters(script.table) else "end resize"]
    kinds += ["build metadata"] if "metadata" in script.table else []
    for kind in [*kinds, "clean"]:
        event = actor.perform(table, Operation(kind, ["nobody"] if kind == "delete" else []))
        # By the clock of who is gone the lock may be held for hours.
        well = ("done", "WriteConflict", *(("Unavailable",) if actor.is_locked else ()))
        if event.outcome not in well:
            actor.history.broken.append(f"{kind} at rest: {event.outcome} {event.message}")


@contextlib.contextmanager
def _paged(page: int, listing: list[Any]) -> Iterator[None]:
    """The library takes what comes in one page for one moment: pages are smaller here, so that
    tables can be."""
    real = active.PAGE_NAMES, active.FOLDER_NAMES
    for module in listing:
        module.PAGE_NAMES = module.FOLDER_NAMES = page
    try:
        yield
    finally:
        for module in listing:
            module.PAGE_NAMES, module.FOLDER_NAMES = real


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """What the library draws follows from the seed."""
    chance = random.Random(seed)
    real, state = os.urandom, random.getstate()
    os.urandom = chance.randbytes
    random.seed(seed)
    try:
        yield
    finally:
        os.urandom = real
        random.setstate(state)
