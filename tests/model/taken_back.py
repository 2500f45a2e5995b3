"""Another engine takes a live write of ours back, without a lock (section 2.6): its rollback
deletes the files that it has listed, the markers and the claim, while the writer goes on under a
proof of before.

What the writer puts there after that has no claim, so no recovery finds it, and counts once the
timeline has passed its instant. Two deletions keep that from happening: the writer's, when it
learns of it, and that of archiving, by what the markers name. Left out is what is between them: a
file whose marker the other engine has deleted, of a writer that dies before it learns, or that
itself does not know whether it comes. That, too, is a guard, without which the search finds the
file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.beside import WriterBeside
from tests.model.engine import OVER, Env, Instance, Location, Process, Step
from tests.model.parts import ROWS, TWO_GROUPS, Maker, Parts
from tests.model.rights import Guards, expired
from tests.model.services import Archiver, may_land
from tests.model.store import Key, Store, claimed, decided, files_of, newest, open_rollback, timeline

LIVE = 2
"""The instant of the write that is taken back."""
BIT = 1 << 1
UNANSWERED = -9
"""Beside the instants of a snapshot: the reply to one of the writer's requests was lost."""


def is_taken_back(store: Store, instant: int) -> bool:
    """Whether a rollback on the timeline names it."""
    return any(k[0] in ("u", "uc") and v == instant for k, v in store.items())


def markers_of(store: Store, instant: int) -> list[Key]:
    """The markers of one instant."""
    return sorted(k for k in store if k[0] == "m" and k[1] == instant)


def gone(keys: list[Key]) -> tuple[tuple[Key, None], ...]:
    """Deletions."""
    return tuple((key, None) for key in keys)


class LiveWriter(WriterBeside):
    """Puts a marker before each file. Who fails deletes what it wrote, whether its claim is there
    or not.

    Locations beside those of a writer: mark, ending, deleting.
    """

    def steps(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().steps(at, store, env):
            if step.to[0] == "ending":
                step.to = ("ending", at[1], UNANSWERED in at[4])
            yield step

    def may_write(self, at: Location) -> int:
        return at[1] if at[0] == "mark" and at[-1] else super().may_write(at)

    def at_prove(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_prove(at, store, env):
            yield self._marks(step) if step.to[0] == "file" else step

    def at_mark(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        marker, file = ("m", at[1], at[5]), self.files(at[1], at[3])[at[5]]
        yield Step(f"PUT marker of {file}", ("file", *at[1:]), ((marker, file),))
        yield from expired(at, ("prove", *at[1:-1]))

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_file(at, store, env):
            if step.lost is not None:
                step.to = (*at[:4], (*at[4], UNANSWERED), *at[5:])
            yield self._marks(step) if step.to[0] == "file" and step.to[5] != at[5] else step

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if not claimed(store, at[1]) or is_taken_back(store, at[1]):
            yield self._lose(f"LIST: {at[1]} is taken back", at[1])
        else:
            yield from super().at_decide(at, store, env)

    def at_ending(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        is_past = instant < timeline(store)[0][0]
        if is_past or "who fails deletes its files" in self.without:
            yield Step("leaves what it wrote", ("failed", *at[1:]), fail=self.bit)
        else:
            yield Step("LIST: undecided, and not passed", ("deleting", *at[1:]))

    def at_deleting(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        for file in files_of(store, instant)[:1]:
            yield Step(f"DELETE {file}", at, ((file, None),))
            return
        if claimed(store, instant) and decided(store, instant) is None:
            slot = max((k[1] for k in store if k[0] == "h"), default=0) + 1
            yield Step(f"PUT chain/{slot}=abort {instant}", at, ((("h", slot), ("A", instant)),))
            return
        # What has not been answered may come yet: then the markers stay, and the claim for the quarantine.
        left = [] if at[2] else [*markers_of(store, instant), ("r", instant)]
        yield Step("DELETE its markers and its claim", ("failed", *at[1:]), gone(left), fail=self.bit)

    def _fail(self, why: str, instant: int) -> Step:
        return Step(why, ("ending", instant))

    def _marks(self, step: Step) -> Step:
        step.to = ("mark", *step.to[1:])
        return step


class ForeignRollback(Process):
    """Takes the live write for dead. It plans by one listing of files, outside of the window of our
    decision, and may die anywhere."""

    def __init__(self, name: str, without: Guards):
        self.name, self.without = name, without

    def begin(self) -> Location:
        return ("idle",)

    def instant(self, at: Location) -> int:
        return at[1] if len(at) > 1 else 0

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        pairs = zip(env.processes, env.locations, strict=True)
        is_open = any(process.in_window(place) for process, place in pairs)
        if LIVE not in timeline(store)[1] or is_open:
            return
        drawn = newest(store) + 1
        files = tuple(files_of(store, LIVE))
        yield Step(f"PUT {drawn}.rollback.requested of {LIVE}", ("files", drawn, files), ((("u", drawn), LIVE),))

    def at_files(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("DELETE the files of its plan", ("markers", at[1]), gone(list(at[2])))

    def at_markers(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        markers = markers_of(store, LIVE)
        noted = tuple((("mx", LIVE, store[marker]), 1) for marker in markers)
        yield Step("DELETE the markers", ("claim", at[1]), (*gone(markers), *noted))

    def at_claim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        # From now on the write is rolled back, and must not be seen.
        yield Step(f"DELETE {LIVE}.requested", ("complete", at[1]), ((("r", LIVE), None),), fail=BIT)

    def at_complete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT {at[1]}.rollback", ("done", at[1]), ((("uc", at[1]), LIVE),))


class Finisher(Process):
    """Recovery of a rollback that another engine has left open, whose instant has no claim: it
    deletes the files, and leaves the markers."""

    mortal = False

    def __init__(self, name: str, without: Guards):
        self.name, self.without = name, without

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        left = open_rollback(store, LIVE)
        if left and not claimed(store, LIVE) and timeline(store)[0][0] < LIVE:
            yield Step(f"LIST: rollback {left} is open, {LIVE} has no claim", ("files", left))

    def at_files(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for file in files_of(store, LIVE)[:1]:
            yield Step(f"DELETE {file}", at, ((file, None),))
            return
        swept = markers_of(store, LIVE) if "markers stay behind another's rollback" in self.without else []
        yield Step(f"PUT {at[1]}.rollback", ("done", at[1]), (*gone(swept), (("uc", at[1]), LIVE)))


class CarefulArchiver(Archiver):
    """Before the timeline passes an instant that a rollback names it deletes what its markers name,
    once H has passed since that rollback."""

    def __init__(self, without: Guards, **options: Any):
        super().__init__("A", horizon=True, **options)
        self.without = without

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_idle(at, store, env):
            if self._passes(store):
                yield from self._careful(step, store, env)
            else:
                yield step

    def _passes(self, store: Store) -> bool:
        completed = timeline(store)[0]
        return completed[0] < LIVE < completed[1] and is_taken_back(store, LIVE)

    def _careful(self, step: Step, store: Store, env: Env) -> Iterator[Step]:
        if "H before it is passed" not in self.without and (open_rollback(store, LIVE) or may_come(env)):
            return
        if self._lives_to_learn(store, env):
            return
        if not markers_of(store, LIVE) or "markers are read" in self.without:
            yield step
            return
        step.to = ("give_up", step.to[1])
        yield step

    def at_give_up(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        markers = markers_of(store, LIVE)
        named = [store[marker] for marker in markers if store[marker] in store]
        for file in named[:1]:
            yield Step(f"DELETE {file}, which a marker names", at, ((file, None),))
            return
        yield Step("DELETE its markers", ("first", at[1]), gone(markers))

    def _lives_to_learn(self, store: Store, env: Env) -> bool:
        """Whether the other engine has deleted the marker of a file that is there or comes, and its
        writer goes on, or has ended with a request that was not answered."""
        if "the writer lives to learn of it" in self.without:
            return False
        unmarked = {k[2] for k in store if k[0] == "mx"} - {store[marker] for marker in markers_of(store, LIVE)}
        for process, place in zip(env.processes, env.locations, strict=True):
            if isinstance(process, LiveWriter) and (place[0] not in OVER or place[-1] is True):
                coming = process.files(LIVE, place[3])[place[5]] if place[0] == "file" else None
                return bool(unmarked & {*files_of(store, LIVE), coming})
        return False


def may_come(env: Env) -> bool:
    """Whether somebody still has a right to write for the instant, or has sent something under
    one: not once H has passed since its claim went."""
    pairs = zip(env.processes, env.locations, strict=True)
    return any(p.may_write(place) == LIVE for p, place in pairs) or may_land(LIVE, env, "d")


BEGUN: Store = {
    **TWO_GROUPS,
    ("r", LIVE): "W1",
    ("r", 3): "old",
    ("c", 3): ((("d", "h", 3, 0),), (), ("h",)),
    ("d", "h", 3, 0): 0b100,
    ("h", 1): ("C", 3, ((("d", "h", 3, 0),), (), ("h",)), ("h",)),
}
"""A write of two groups has begun and proved its right; behind it another has committed."""
PROVED = ("mark", LIVE, 0, ((1, 1), (1, 0)), (1,), 0, 1)


def f3(p: Parts) -> Instance:
    writer = LiveWriter("W1", 1, ("f", "g"), p.without, first=PROVED)
    others = [ForeignRollback("F", p.without), Finisher("B", p.without), CarefulArchiver(p.without)]
    return Instance("an upsert of two groups that another engine takes back while it goes on, recovery, archiver",
                    [writer, *others], BEGUN, {**ROWS, 1: 2}, acked=0b101)  # fmt: skip


TAKEN_BACK: dict[str, Maker] = {"F3": f3}
