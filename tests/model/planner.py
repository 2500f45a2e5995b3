"""Planners of table services (section 2.3): a claim of their own, and a plan that is an entry of
the chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Step
from tests.model.rights import ChainProcess, expired, gap, live, materialise, undo, unmaterialised
from tests.model.store import (
    TABLE,
    Store,
    chain_max,
    decided,
    file_of,
    meets,
    newest,
    pending_restore,
    restores,
    rollbacks,
    tail,
    timeline,
)

STALE = "a listing behind which another has published is no snapshot"


class Planner(ChainProcess):
    """Tail, claim, snapshot, plan. Subclasses say what is planned (`draft`), its entry, and what
    `follows` it."""

    touches: tuple[str, ...] = ()

    def begin(self) -> Location:
        return ("draw",)

    def draft(self, store: Store, env: Env) -> Any:
        """What the snapshot asks for, None if nothing."""
        raise NotImplementedError

    def plan_entry(self, instant: int, draft: Any) -> Any:
        """The chain entry of a draft."""
        raise NotImplementedError

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        """Where the process goes on once its plan is published and its claim deleted."""
        return ("done", instant)

    def may_publish(self, at: Location, store: Store) -> int:
        if at[0] == "help":
            return store.get(("h", at[3]), (0, 0))[1]
        if at[0] in ("walk", "assist_plan"):
            return store.get(("h", at[2] + 1), (0, 0))[1]
        return at[1] if at[0] in ("publish_plan", "publish") else 0

    def fresh_tail(self, at: Location) -> int | None:
        if at[0] in ("walk", "assist_plan"):
            return at[2] + 1
        return at[2] if at[0] in ("plan", "file", "decide") else None

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = max(newest(store), chain_max(store)) + 1
        yield Step(f"LIST chain: tail {tail(store)}; draw {instant}", ("claim", instant, tail(store)))

    def at_claim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        if ("q", instant) in store:
            yield Step(f"PUT {instant}.claim =412", ("draw",))
        else:
            yield Step(f"PUT {instant}.claim", ("listing", instant, known), ((("q", instant), self.name),))

    def at_relisting(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        to: Location = ("listing", at[1], tail(store)) if decided(store, at[1]) is None else ("failed", at[1])
        yield Step(f"LIST chain again: tail {tail(store)}", to)

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        drop = ((("q", instant), None),)
        taken = any((kind, instant) in store for kind in (*"rckpxzu", "uc"))
        if (
            max([*timeline(store)[0], *restores(store), *rollbacks(store)]) > instant
            and "freshness" not in self.without
        ):
            yield Step(f"LIST: newer instant, drop {instant}", ("draw",), drop)
        elif "claims of both kinds seen" not in self.without and taken:
            yield Step(f"LIST: another has {instant} too, drop it", ("draw",), drop)
        elif ("q", instant) not in store:
            yield Step("LIST: own claim is gone", ("failed", instant))
        elif gap(store, known):
            yield Step("LIST chain: own tail was trimmed", ("failed", instant))
        else:
            missing = None if "materialise predecessors" in self.without else unmaterialised(store, known, self.without)
            if missing:
                stale = self.draft(store, env) if STALE in self.without else None
                yield Step(f"LIST: entry {missing} is not materialised", ("help", instant, known, missing, stale))
                return
            restore = pending_restore(store)
            if restore and "restores carried out first" not in self.without:
                yield Step(f"LIST: restore {restore} is pending", ("undo", restore, 0, known, at))
                return
            draft = self.draft(store, env)
            if draft is None:
                yield Step("LIST: nothing to do, drop the claim", ("done", instant), drop)
            else:
                yield Step("LIST: there is something to do", ("plan", instant, known, draft))

    def at_undo(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from undo(store, at, self.without)

    def at_help(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        back: Location = ("listing", at[1], at[2])
        if at[4] is not None and file_of(store[("h", at[3])])[0] in store:
            yield Step(f"HEAD: entry {at[3]} was published meanwhile", ("plan", at[1], at[2], at[4]))
            return
        yield from materialise(store, store.get(("h", at[3])), self, f"{self.name} helps entry {at[3]}", back, at)
        yield from expired(at, back)

    def at_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, draft = at
        entry, slot = store.get(("h", known + 1)), known + 1
        if entry is None:
            plan = self.plan_entry(instant, draft)
            to = ("publish_plan", instant, slot, draft)
            yield Step(f"PUT chain/{slot}=plan {instant}", to, ((("h", slot), plan),))
            yield from expired(at, ("relisting", instant))
        elif entry[1] == instant:
            yield Step("PUT plan =412: aborted, or another's", ("failed", instant))
        elif self._moved(entry):
            yield Step("PUT plan =412: it moved, plan again", ("relisting", instant))
        elif self.waits(store, entry):
            yield Step(f"PUT plan =412: entry {slot} is not materialised", ("assist_plan", *at[1:]))
        else:
            yield Step("PUT plan =412", ("plan", instant, slot, draft))

    def at_assist_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, draft = at
        yield from self.help_in_order(known + 1, store, ("plan", instant, known + 1, draft), at)
        yield from expired(at, ("plan", *at[1:]))

    def _moved(self, entry: Any) -> bool:
        if "planners conflict with a restore" in self.without and entry[0] == "P" and entry[-1] == "z":
            return False
        if "restores conflict with cleans" in self.without and TABLE in self.touches and entry[-1] == "x":
            return False
        return "planner's conflict check" not in self.without and meets(entry, self.touches)

    def at_publish_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, slot, draft = at
        name, content = file_of(self.plan_entry(instant, draft))
        writes = () if name in store else ((name, content),)
        yield Step(f"{self.name} publishes plan {instant}", ("unclaim", instant, slot, draft), writes)
        yield from expired(at, ("relist_plan", *at[1:]), env.archives)

    def at_unclaim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE {at[1]}.claim", self.follows(*at[1:]), ((("q", at[1]), None),))

    def at_relist_plan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if live(store, at[1]):
            yield Step(f"LIST: {at[1]} is live", ("publish_plan", *at[1:]))
        else:
            yield Step(f"LIST: {at[1]} is completed", ("done", at[1]))
