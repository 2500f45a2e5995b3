"""Archiver with chain trimming, cleaner, and a slow foreign reader. Options ending in `less` remove
a guard."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tests.model.engine import Env, Location, Process, Step
from tests.model.store import CLAIMS, Store, claimed, start_of, timeline, view


class Archiver(Process):
    """Archives the oldest completed instant, keeping one, or `keep`; trims the chain if asked to.

    `horizon`: waits until whoever may still create something of the instant no longer may
    (completed file older than H). Options: pending_ignored, replaced_ignored, completed_first,
    trim_at_once.
    """

    mortal = False
    archives = True

    def __init__(
        self, name: str = "A", *, horizon: bool = False, sources: bool = False, trim: bool = False, keep: int = 1,
        **options: bool,
    ):  # fmt: skip
        self.keep = keep
        self.name, self.horizon, self.sources, self.trims, self.options = name, horizon, sources, trim, options

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        oldest = self._oldest_to_archive(store, env)
        if oldest is not None:
            yield Step(f"archive {oldest}", ("first", oldest))
        if self.trims:
            yield from self._trim(at, store, env)

    def _oldest_to_archive(self, store: Store, env: Env) -> int | None:
        completed, pending = timeline(store)
        if len(completed) <= self.keep:
            return None
        oldest = completed[0]
        if not self.options.get("pending_ignored") and any(t < completed[1] for t in pending):
            return None
        if self.horizon and may_still_appear(oldest, env, store):
            return None
        replaced = store[("c", oldest)][1]
        if not self.options.get("replaced_ignored") and any(k[0] == "d" and k[1] in replaced for k in store):
            return None
        return oldest

    def at_first(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        oldest = at[1]
        if self.sources and ("b", oldest) in store:
            yield Step(f"DELETE staged body {oldest}", at, ((("b", oldest), None),))
        elif self.options.get("completed_first"):
            yield Step(f"DELETE archived {oldest}.commit", ("second", oldest), ((("c", oldest), None),))
        else:
            gone = tuple(((kind, oldest), None) for kind in CLAIMS)
            yield Step(f"DELETE archived {oldest}.requested", ("second", oldest), gone)

    def at_second(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        kind = "r" if self.options.get("completed_first") else "c"
        yield Step(f"DELETE archived {kind}{at[1]}", ("idle",), (((kind, at[1]), None),))

    def _trim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        numbers = sorted(k[1] for k in store if k[0] == "h")
        if len(numbers) > 1:
            instant = store[("h", numbers[0])][1]
            left = not claimed(store, instant) and ("c", instant) not in store
            if left and (self.options.get("trim_at_once") or not self._tail_in_use(numbers[0], env)):
                yield Step(f"DELETE chain/{numbers[0]}", at, ((("h", numbers[0]), None),))

    def _tail_in_use(self, number: int, env: Env) -> bool:
        """Whether a slot up to `number` may still be created from a listing younger than the trim
        age."""
        known = [p.fresh_tail(at) for p, at in zip(env.processes, env.locations, strict=True)]
        flying = (f.request[1] for f in env.flying if f.waited)
        return any(t is not None and t < number for t in known) or any(n[0] == "h" and n[1] <= number for n in flying)


def may_still_appear(instant: int, env: Env, store: Store) -> bool:
    """Whether somebody may still create a file of the instant: not once H has passed since it
    completed."""
    for process, at in zip(env.processes, env.locations, strict=True):
        if instant in {process.may_write(at), *process.publishes(at, store)}:
            return True
    return may_land(instant, env, ("d", "l", "c", "k", "ct"))


def may_land(instant: int, env: Env, kinds: Collection[str]) -> bool:
    """Whether a request in flight that was sent under a proof may still create a file of the
    instant."""
    for flight in env.flying:
        name = flight.request[1]
        on = {"d": 2, "l": 3}.get(name[0], 1)
        if flight.waited and name[0] in kinds and name[on] == instant:
            return True
    return False


class Cleaner(Process):
    """Deletes superseded and replaced files; with `retention` not while a reader is at work
    (A2)."""

    mortal = False

    def __init__(self, *, retention: bool = False):
        self.name, self.retention = "K", retention

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        completed, start = {k[1] for k in store if k[0] == "c"}, start_of(store)
        replaced = {group for k, v in store.items() if k[0] == "c" for group in v[1]}
        if self.retention and any(place[0] in ("timeline", "folder") for place in env.locations):
            return
        for key in sorted((k for k in store if k[0] == "d"), key=str):
            superseded = any(k[0] == "d" and k[1] == key[1] and k[2] > key[2] and k[2] in completed for k in store)
            if key[1] in replaced or ((key[2] in completed or key[2] < start) and superseded):
                yield Step(f"plan clean of {key[1]}@{key[2]}", ("del", key))

    def at_del(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE {at[1][1]}@{at[1][2]}", ("idle",), ((at[1], None),))


class SlowReader(Process):
    """A foreign listing reader: the timeline at one moment, the folder at a later one."""

    mortal = False
    name = "R"

    def begin(self) -> Location:
        return ("timeline",)

    def at_timeline(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        known = tuple(sorted((k, v) for k, v in store.items() if k[0] in "ck" and len(k) == 2))
        yield Step("reader lists timeline", ("folder", start_of(store), tuple(sorted(view(store).items())), known))

    def at_folder(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, start, expected, known = at
        files = {k: v for k, v in store.items() if k[0] in "dl"}
        rows = view(dict(known), {k[1] for k, _ in known if k[0] == "c"}, start, files)
        if tuple(sorted(rows.items())) == expected:
            yield Step("reader lists folder", ("done",))
        else:
            text = f"I6 slow reader: silently reads {rows}, its snapshot was {dict(expected)}"
            yield Step("reader lists folder: wrong rows", ("WRONG", text))
