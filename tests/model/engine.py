"""Breadth-first search over all interleavings of a few processes on one store.

Every step of a process is one storage call. Pausing is implicit: a process may be left unscheduled
for ever, so a crash and a zombie that wakes later are the same transition system. A request whose
reply is lost is parked in flight; it is applied at any later time or never. Time is modelled where
the protocol needs it: what a proof of the right to write permits is a state that the process may
lose at any moment (`expired`), and whoever counts `H` waits for exactly those states and requests
that began before his counting did.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.model.listing import listing_violated
from tests.model.store import Key, Store, apply_request, claimed, decided, start_of, taken_back, timeline, undone, view

Location = tuple[Any, ...]
State = tuple[Any, ...]
OVER = ("done", "failed", "dead")


@dataclass(frozen=True, slots=True)
class InFlight:
    """A request without a reply. `waited`: sent under a proof, so whoever counts H waits for it."""

    request: Key
    process: int
    waited: bool = True


@dataclass(slots=True)
class Step:
    """One storage call: where it leads, what it writes (None deletes), what it acknowledges or
    gives up (masks)."""

    label: str
    to: Location
    writes: tuple[tuple[Key, Any], ...] = ()
    ack: int = 0
    fail: int = 0
    lost: Key | None = None
    waited: bool = True


@dataclass(slots=True)
class Env:
    """What a time-based guard may look at beside the store.

    `archives`, `trims`: whether any process archives or trims. Where none does, sleeping past a
    listing cannot matter.
    """

    processes: list[Process]
    locations: tuple[Location, ...]
    flying: frozenset[InFlight]
    archives: bool
    trims: bool
    solo: bool = False


class Process:
    """A program: from a location and the store to the steps that it may take."""

    mortal = True
    archives = False
    trims = False
    name = ""

    def begin(self) -> Location:
        """The first location."""
        raise NotImplementedError

    def steps(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        """Enabled steps, the usual one first. By default the method named after the location."""
        yield from getattr(self, f"at_{at[0]}")(at, store, env)

    def at_done(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        """Nothing more."""
        return iter(())

    at_failed = at_dead = at_done

    def instant(self, at: Location) -> int:
        """The instant that this process works on, or 0."""
        return at[1] if len(at) > 1 and at[0] != "draw" else 0

    def may_write(self, at: Location) -> int:
        """The instant of which this process may still send data files, under a proof older than any
        decision of it."""
        return 0

    def may_publish(self, at: Location, store: Store) -> int:
        """The instant of which this process may still send a timeline file, or decide, under a
        fresh listing."""
        return 0

    def publishes(self, at: Location, store: Store) -> set[int]:
        """All such instants."""
        return {self.may_publish(at, store)}

    def in_window(self, at: Location) -> bool:
        """Whether it has looked for another engine, and what it does upon that is not to be seen
        yet: a moment that the instance leaves out."""
        return False

    def fresh_tail(self, at: Location) -> int | None:
        """The tail behind which this process may still send a chain entry, if its listing is
        younger than the trim age."""
        return None


def create(
    store: Store, name: Key, content: Any, label: str, *, ok: Location, refused: Location, unknown: Location | None
) -> Iterator[Step]:
    """Exclusive create with its three replies; `unknown` None leaves the lost reply out."""
    if name in store:
        yield Step(f"{label} =412", refused)
        return
    yield Step(f"{label} =ok", ok, ((name, content),))
    if unknown is not None:
        yield Step(f"{label} =?", unknown, lost=("absent", name, content))


def no_more(store: Store) -> None:
    """The rules of an instance that has none of its own."""


@dataclass(slots=True)
class Instance:
    """Processes on a first store, with the rows that each operation must show (`rows`: operation ->
    groups).

    `view`: what a reader sees of a store; `rules`: invariants beside those of every instance, as a
    text if one is violated.
    """

    name: str
    processes: list[Process]
    store: Store
    rows: dict[int, int]
    duplicates: tuple[tuple[int, int], ...] = ()
    lost_replies: int = 1
    deaths: bool = False
    states_max: int = 3_000_000
    acked: int = 1
    flying: tuple[InFlight, ...] = ()
    alone: tuple[int, ...] = ()
    view: Callable[[Store], dict[str, int]] = view
    rules: Callable[[Store], str | None] = no_more


@dataclass(slots=True)
class Result:
    """What a search found: `violations` kind -> (text, state), a `stuck` state of a liveness check,
    all states' parents."""

    states: int
    complete: bool
    violations: dict[str, tuple[str, State]]
    stuck: State | None
    seconds: float
    parents: dict[State, Any] = field(repr=False)
    instance: Instance = field(repr=False)

    @property
    def kinds(self) -> set[str]:
        """The invariants that are violated, I1 to I11, and L."""
        return {kind.split(" ")[0] for kind in self.violations} | ({"L"} if self.stuck else set())

    def trace(self) -> list[str]:
        """Steps of a shortest way to the first violation."""
        key = next((s for _, s in self.violations.values()), self.stuck)
        lines: list[str] = []
        while key is not None and self.parents[key] is not None:
            key, (process, label) = self.parents[key]
            lines.append(f"{'net' if process < 0 else self.instance.processes[process].name:4}{label}")
        return lines[::-1]


class Search:
    """One search of one instance. `stop` at the first violation, or collect one of each kind."""

    def __init__(self, instance: Instance, *, stop: bool = True) -> None:
        self.instance, self.stop = instance, stop
        self.parents: dict[State, Any] = {}
        self.queue: deque[State] = deque()
        self.violations: dict[str, tuple[str, State]] = {}
        self.structures: dict[frozenset[Any], tuple[str | None, str | None, int, int]] = {}
        self.archives = any(p.archives for p in instance.processes)
        self.trims = any(p.trims for p in instance.processes)

    def run(self) -> Result:
        """Search until all states are seen, a violation is found or `states_max` is passed."""
        with _without_collector():
            return self._run()

    def _run(self) -> Result:
        case, begun, stuck = self.instance, time.perf_counter(), None
        first = tuple(p.begin() for p in case.processes)
        state = (
            frozenset(case.store.items()),
            first,
            frozenset(case.flying),
            case.acked,
            0,
            case.acked,
            case.lost_replies,
        )
        self.parents[state] = None
        self.queue.append(state)
        while self.queue and len(self.parents) <= case.states_max:
            state = self.queue.popleft()
            self._expand(state)
            if self.violations and self.stop:
                break
            if case.alone and not self._all_finish_alone(state):
                stuck = state
                break
        complete = not self.queue and not stuck and not (self.violations and self.stop)
        return Result(
            len(self.parents), complete, self.violations, stuck, time.perf_counter() - begun, self.parents, case
        )

    def _expand(self, state: State) -> None:
        frozen, places, flying, acked, failed, seen, lost = state
        store, case = dict(frozen), self.instance
        env = Env(case.processes, places, flying, self.archives, self.trims)
        for number, process in enumerate(case.processes):
            at = places[number]
            steps = list(process.steps(at, store, env))
            if case.deaths and process.mortal and at[0] not in OVER:
                steps.append(Step("DIES", ("dead", process.instant(at))))
            for step in steps:
                if step.lost is not None and not lost:
                    continue
                after, after_frozen = store, frozen
                if step.writes:
                    after = dict(store)
                    write(after, step)
                    after_frozen = frozenset(after.items())
                moved = (*places[:number], step.to, *places[number + 1 :])
                out, left = flying, lost
                if step.lost is not None:
                    out, left = flying | {InFlight(step.lost, number, step.waited)}, lost - 1
                self._add(state, (number, step.label), after, (
                    after_frozen, moved, out, acked | step.ack, failed | step.fail, seen, left))  # fmt: skip
        for late in flying:
            after = dict(store)
            done = apply_request(after, late.request)
            self._add(state, (-1, f"LATE {late.request[1]} {'applied' if done else 'refused'}"), after, (
                frozenset(after.items()) if done else frozen, places, flying - {late}, acked, failed, seen, lost))  # fmt: skip

    def _add(self, parent: State, label: tuple[int, str], store: Store, state: State) -> None:
        frozen, places, flying, acked, failed, seen, lost = state
        bad, visible = self._violated(store, frozen, acked, failed, seen, places)
        key = (frozen, places, flying, acked, failed, seen | visible, lost)
        if key in self.parents:
            return
        self.parents[key] = (parent, label)
        if bad:
            self.violations.setdefault(bad.split(":")[0], (bad, key))
        else:
            self.queue.append(key)

    def _violated(
        self, store: Store, frozen: frozenset[Any], acked: int, failed: int, seen: int, places: tuple[Location, ...]
    ) -> tuple[str | None, int]:
        known = self.structures.get(frozen)
        if known is None:
            bad, seen_now = self._rows_violated(store)
            files = files_violated(store) or self.instance.rules(store)
            known = self.structures[frozen] = (bad, files, seen_now, undone(store))
        rows, files, visible, taken_back = known
        if acked & ~visible & ~taken_back:
            return f"I1 acknowledged write lost: {_bits(acked & ~visible & ~taken_back)}", visible
        if seen & ~visible & ~taken_back:
            return f"I1 visible write vanished: {_bits(seen & ~visible & ~taken_back)}", visible
        if failed & visible:
            return f"I2 failed or rolled-back write visible: {_bits(failed & visible)}", visible
        wrong = next((at[1] for at in places if at[0] == "WRONG"), None)
        return rows or files or wrong, visible

    def _rows_violated(self, store: Store) -> tuple[str | None, int]:
        """(I2 of a restore, I3, I4 or None, mask of visible operations)."""
        count: dict[int, int] = {}
        for mask in self.instance.view(store).values():
            for operation in self.instance.rows:
                if mask >> operation & 1:
                    count[operation] = count.get(operation, 0) + 1
        over = sum(1 << operation for operation in count) & undone(store, done=True)
        bad = f"I2 restored state shows what was taken back: {_bits(over)}" if over else None
        for operation, found in sorted(count.items()):
            expected = self.instance.rows[operation]
            if found != expected and bad is None:
                bad = (
                    f"I3 duplicate rows: {operation}" if found > expected else f"I4 half a commit visible: {operation}"
                )
        for one, other in self.instance.duplicates:
            if one in count and other in count:
                bad = bad or "I3 duplicate key"
        return bad, sum(1 << operation for operation in count)

    def _all_finish_alone(self, state: State) -> bool:
        return all(self._finishes_alone(number, state) for number in self.instance.alone)

    def _finishes_alone(self, number: int, state: State) -> bool:
        """Obstruction freedom: with every other process frozen for ever, this one reaches its
        end."""
        case, store, places = self.instance, dict(state[0]), state[1]
        process, at = case.processes[number], places[number]
        frozen = tuple(("dead", case.processes[j].instant(x)) for j, x in enumerate(places))
        for _ in range(80):
            if at[0] in ("done", "dead"):
                return True
            others = (*frozen[:number], at, *frozen[number + 1 :])
            env = Env(case.processes, others, frozenset(), self.archives, self.trims, solo=True)
            step = next((s for s in process.steps(at, store, env) if s.lost is None), None)
            if step is None:
                # A service with nothing left to do: no pending instant may remain but published plans.
                plans = {e[1] for k, e in store.items() if k[0] == "h" and e[0] == "P" and not decided(store, e[1])}
                return at[0] == "idle" and not [t for t in timeline(store)[1] if t not in plans]
            write(store, step)
            at = step.to
        return False


@contextmanager
def _without_collector() -> Iterator[None]:
    """States are tuples in tuples, of which no circle can be: looking for one takes a sixth of a
    search."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def write(store: Store, step: Step) -> None:
    """Apply the writes of a step to `store`."""
    for name, content in step.writes:
        if content is None:
            store.pop(name, None)
        else:
            store[name] = content


def files_violated(store: Store) -> str | None:
    """I5, I7, I8 and I9, which depend on names alone."""
    bad = None
    completed = [(k[1], v) for k, v in store.items() if k[0] == "c"]
    for instant, (files, _, _) in completed:
        for file in files:
            if file in store:
                continue
            group, on = file[1], file[2] if file[0] == "d" else file[3]
            superseded = any(k[0] == "d" and k[1] == group and k[2] > on and ("c", k[2]) in store for k in store)
            if not superseded and not any(group in replaced for _, (_, replaced, _) in completed):
                bad = f"I5 completed instant {instant} lacks its file"
    if bad is None:
        timed = [k[1] for k in store if k[0] == "ct"]
        if len(timed) != len(set(timed)):
            bad = "I8 two completed files for one instant"
        gap, start, back = False, start_of(store), taken_back(store)
        given_up = {v[1] for k, v in store.items() if k[0] == "h" and v[0] == "A"}
        for _, entry in sorted((k[1], v) for k, v in store.items() if k[0] == "h"):
            if entry[0] == "C" and ("c", entry[1]) in store:
                if gap:
                    bad = bad or "I7 completed files are no prefix of the chain"
            elif entry[0] == "C" and claimed(store, entry[1]) and entry[1] >= start and entry[1] not in back | given_up:
                gap = True
    for key, files in store.items():
        if bad is None and key[0] == "v" and any(file not in store for file in files):
            bad = f"I5 savepoint {key[1]} lacks its file"
    return bad or listing_violated(store)


def _bits(mask: int) -> str:
    return ",".join(str(i) for i in range(12) if mask >> i & 1)
