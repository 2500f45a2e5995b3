"""Our writers beside a writer of another engine, without a lock (section 2.6): it publishes
completed files and knows no chain.

Two windows are left out, in which neither sees the other: from our last listing until our completed
file is there, and from the other engine's check until its completed file is. Two guards are these
windows themselves: without them an update is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Instance, Location, Step
from tests.model.naive import NaiveWriter
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.rights import Guards
from tests.model.store import Store, committed
from tests.model.writer import Writer


class WriterBeside(Writer):
    """Lists the timeline once more before each attempt at a slot; a completed instant that the
    chain does not know is a conflict."""

    def in_window(self, at: Location) -> bool:
        return "window of our decision" not in self.without and at[0] in (
            "sure",
            "look",
            "before",
            "catch",
            "publish",
            "relist",
        )

    def fresh_tail(self, at: Location) -> int | None:
        return at[2] if at[0] == "sure" else super().fresh_tail(at)

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, _, _, completed, _ = at
        new = [k[1] for k in store if k[0] == "c" and k[1] not in completed and committed(store, k[1]) is None]
        meeting = [t for t in new if set(store[("c", t)][2]) & set(self.touches)]
        if meeting and "other engines looked for" not in self.without:
            yield self._lose(f"LIST: {meeting[0]} is another engine's", instant)
        else:
            yield Step("LIST: nothing of another engine", ("sure", *at[1:]))

    def at_sure(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from super().at_decide(at, store, env)


class OtherEngine(NaiveWriter):
    """Checks against completed instants and publishes, in one step as its window is left out. Its
    instant is the newest of its snapshot."""

    def __init__(self, name: str, operation: int, without: Guards, **options: Any):
        super().__init__(name, operation, exclusive=True, fresh=True, **options)
        self.without = without

    def at_check(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if "window of the other engine" in self.without:
            yield from super().at_check(at, store, env)
            return
        for step in super().at_check(at, store, env):
            if step.to[0] == "publish":
                yield from self.at_publish(step.to, store, env)
            else:
                yield step

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        pairs = zip(env.processes, env.locations, strict=True)
        if not any(process.in_window(place) for process, place in pairs):
            yield from super().at_publish(at, store, env)


def f1(p: Parts) -> Instance:
    ours = [WriterBeside("W1", 1, without=p.without), WriterBeside("W2", 2, ("g",), p.without)]
    store = {**FIRST, ("d", "g", 1, 0): 0, ("c", 1): ((("d", "f", 1, 0), ("d", "g", 1, 0)), (), ("f", "g"))}
    return Instance("upserts of two groups beside another engine's of both",
                    [*ours, OtherEngine("F", 3, p.without, groups=("f", "g"))], store, {**ROWS, 3: 2}, lost_replies=0)  # fmt: skip


def f2(p: Parts) -> Instance:
    """The other engine writes twice."""
    others = [OtherEngine("F", 2, p.without), OtherEngine("G", 3, p.without)]
    return Instance("an upsert that tries again beside two of another engine",
                    [WriterBeside("W1", 1, without=p.without, retry=True), *others], FIRST, {**ROWS, 3: 1}, lost_replies=0)  # fmt: skip


FOREIGN: dict[str, Maker] = {"F1": f1, "F2": f2}
