"""Dropping the metadata table beside building one (section 2.8). ('mv', D): the note of a drop of
D.

That a note is older than H, and of a process whose requests have ended, is not modelled: who dies
leaves his note for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Process, Step
from tests.model.listing import DELETED, INFLIGHT, READY, building, dropping, newest_base
from tests.model.metadata_plans import MetadataBuilder
from tests.model.rights import Guards
from tests.model.store import Key, Store

FILES = ("mt", "ml", "mb", "mc", "mk")
PROPERTIES: Key = ("mo",)
"""Those of the metadata table itself: once they were deleted their deletion is noted, for instances
without drops have none."""


class Dropping(Process):
    """A note, the properties, what is listed behind the note, the note. `drop` is where it begins,
    with the location where it ends."""

    without: Guards = frozenset()

    def drop(self, end: Location) -> Location:
        """The first step."""
        return ("list", end) if "a drop puts a note" in self.without else ("note", end)

    def at_note(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata/dropping", ("off", at[1]), ((("mv", self.name), 1),))

    def at_off(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        to = ("delete", at[1], at[2]) if len(at) > 2 else ("list", at[1])
        yield Step("PUT properties: no metadata table", to, ((("mp",), None),))

    def at_list(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found: tuple[Key, ...] = (*sorted(k for k in store if k[0] in FILES), PROPERTIES)
        to = "off" if "a drop puts a note" in self.without else "delete"
        yield Step(f"LIST metadata: {len(found)} files", (to, at[1], found))

    def at_delete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, end, files = at
        if files:
            gone = DELETED if files[0] == PROPERTIES else None
            yield Step(f"DELETE {files[0]}", ("delete", end, files[1:]), ((files[0], gone),))
        else:
            yield Step("DELETE metadata/dropping", end, ((("mv", self.name), None),))


class Dropper(Dropping):
    """Drops the metadata table, once."""

    def __init__(self, name: str, without: Guards = frozenset()):
        self.name, self.without = name, without

    def begin(self) -> Location:
        return self.drop(("done",))


class BuilderBesideDrops(MetadataBuilder, Dropping):
    """A builder that looks for notes: in the snapshot of its plan, before its decision, before it
    names what it has built, and behind that."""

    def draft(self, store: Store, env: Env) -> Any:
        if store.get(("mp",)) == READY or building(store):
            return None
        return None if self._noted(store) else ()

    def at_skeleton(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata, an empty log", ("own", *at[1:]), ((("ml", at[1], 0), ()),))

    def at_own(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata/hoodie.properties", ("name", *at[1:]), ((PROPERTIES, 1),))

    def at_name(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT properties: inflight", ("begun", *at[1:]), ((("mp",), INFLIGHT),))

    def at_begun(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if self._as_begun(at[1], store):
            yield Step("LIST metadata: it is as it was begun", ("plan", *at[1:]))
        else:
            gone = ((("q", at[1]), None), (("ml", at[1], 0), None))
            yield Step("LIST metadata: it is dropped, give up", ("failed", at[1]), gone)

    def at_caught(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_caught(at, store, env):
            if step.to[0] == "fill" and not self._as_begun(at[1], store):
                step.to = ("end", at[1])
            yield step

    def at_ready(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if "looks before it names" in self.without or (store.get(("mp",)) == INFLIGHT and self._as_begun(at[1], store)):
            yield Step("LIST metadata, GET properties: it is as it was begun", ("put_ready", at[1]))
        else:
            yield Step("LIST metadata, GET properties: it was dropped", ("end", at[1]))

    def at_put_ready(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT properties: ready", ("behind", at[1]), ((("mp",), READY),))

    def at_behind(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if store.get(("mp",)) == READY and (dropping(store) or newest_base(store) is None):
            yield Step("LIST metadata: it was dropped", self.drop(("end", at[1])))
        else:
            yield Step("LIST metadata: it is there", ("end", at[1]))

    def _as_begun(self, instant: int, store: Store) -> bool:
        return not self._noted(store) and store.get(PROPERTIES) != DELETED and ("ml", instant, 0) in store

    def _noted(self, store: Store) -> bool:
        return "a builder looks for notes" not in self.without and any(k[0] == "mv" for k in store)
