"""Another table version (section 2.9): a note that writers see, a decision that touches everything,
copies beside the old timeline, one put that makes them count.

Names, beside those of `store.py`: ('note',) a change has begun, ('y', T) its decision on the
timeline, ('new',) the properties tell the new version -> the completed instants that were copied.
From that put on a reader sees these alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Instance, Location, Step
from tests.model.parts import FIRST, ROWS, Maker, Parts
from tests.model.planner import Planner
from tests.model.store import TABLE, Store, timeline, view
from tests.model.writer import Writer

NOTE, NEW = ("note",), ("new",)


def view_of_version(store: Store) -> dict[str, int]:
    """As a reader sees the table that opens it now."""
    return view(store, completed=store[NEW]) if NEW in store else view(store)


class Upgrader(Planner):
    """Notes, decides on a snapshot that shows nothing pending, copies what a listing after the
    decision shows, puts the properties, drops the note."""

    touches = (TABLE,)

    def begin(self) -> Location:
        return ("draw",) if "a note comes first" in self.without else ("note",)

    def at_note(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT note", ("draw",), ((NOTE, 1),))

    def draft(self, store: Store, env: Env) -> Any:
        own = 1
        waits = len(timeline(store)[1]) > own and "nothing is pending" not in self.without
        return None if waits else ()

    def plan_entry(self, instant: int, draft: Any) -> Any:
        touched = () if "the decision touches everything" in self.without else self.touches
        return ("P", instant, touched, (), None, "y")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("copy", instant)

    def at_copy(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"LIST, and copy {timeline(store)[0]}", ("switch", at[1], tuple(timeline(store)[0])))

    def at_switch(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT properties: {at[2]} count", ("forget", at[1]), ((NEW, at[2]),))

    def at_forget(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("DELETE note", ("done", at[1]), ((NOTE, None),))


class OldWriter(Writer):
    """A writer that opened the table before: its snapshot shows the note, or that the table has
    another version now."""

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        noted = NOTE in store and "writers see the note" not in self.without
        moved = NEW in store and "writers see the version" not in self.without
        if noted or moved:
            step = self._fail("LIST: the table is brought to another version, drop the claim", at[1])
            step.writes = ((("r", at[1]), None),)
            yield step
        else:
            yield from super().at_listing(at, store, env)


def v5(p: Parts) -> Instance:
    """An upgrade beside two writers, one of which tries again."""
    return Instance("an upgrade, two upserts of one group, recovery",
                    [Upgrader("U", p.without), OldWriter("W1", 1, without=p.without), OldWriter("W2", 2, without=p.without),
                     p.recovery(chain_max=2)],
                    FIRST, ROWS, lost_replies=0, view=view_of_version)  # fmt: skip


UPGRADES: dict[str, Maker] = {"V5": v5}
