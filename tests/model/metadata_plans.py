"""Plans that move the metadata table's file group (section 2.8): its compaction, and its
building."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.deltas import TOLD
from tests.model.engine import Env, Location, Step
from tests.model.listing import (
    INFLIGHT,
    READY,
    building,
    cleaned_since,
    committed_files,
    compacting,
    counted,
    going,
    merged,
    newest_base,
    placed,
)
from tests.model.planner import Planner
from tests.model.rights import expired, materialise, unmaterialised
from tests.model.store import Store, meets

FILES, METADATA = "files-0000", "metadata"


class MetadataCompactor(Planner):
    """Plans the logs of all that has completed, executes the plan, ends."""

    touches = (FILES, METADATA)

    def draft(self, store: Store, env: Env) -> Any:
        if going(store) and "compaction waits for cleans" not in self.without:
            return None
        return tuple(sorted(counted(store)))

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, (FILES,), draft, draft, "mk")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("merge", instant, draft)

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if cleaned_since(store, at[1]):
            yield Step(f"LIST: a clean is newer, drop {at[1]}", ("draw",), ((("q", at[1]), None),))
            return
        for step in super().at_listing(at, store, env):
            if step.to[0] == "plan":
                step.to = ("load", *step.to[1:])
            yield step

    def at_load(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, completed = at
        base, store = newest_base(store), placed(store)
        counts = {k[2] for k in store if k[0] == "ml"} if "plan of completed deltas" in self.without else set(completed)
        logs = tuple(sorted(k for k in store if k[0] == "ml" and k[1] == base and k[2] in counts))
        if store.get(("mp",)) != READY or building(store) or compacting(store) or not logs:
            yield Step("LIST metadata: nothing to plan, drop the claim", ("done", instant), ((("q", instant), None),))
        else:
            yield Step(f"LIST metadata: logs of {[k[2] for k in logs]}", ("plan", instant, known, (base, logs)))

    def at_merge(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, (base, logs) = at
        files = tuple(sorted(merged(placed(store), base, logs)))
        yield Step(f"PUT metadata base {instant}", ("complete", instant), ((("mb", instant), files),))

    def at_complete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT metadata/{at[1]}.commit", ("done", at[1]), ((("mc", at[1]), 1),))

    def _moved(self, entry: Any) -> bool:
        if entry[0] == "C" or entry[-1] == TOLD:
            return "commits make it plan again" not in self.without
        return meets(entry, self.touches)


class MetadataExecutor(MetadataCompactor):
    """Executes any plan of a compaction that is published."""

    mortal = False

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = compacting(store)
        if instant:
            yield Step(f"resume metadata plan {instant}", ("merge", instant, store[("mk", instant)]))


class MetadataBuilder(Planner):
    """Names the partition as inflight, plans, fills it with what had been decided before the plan,
    names it as ready."""

    touches = (METADATA,)

    def draft(self, store: Store, env: Env) -> Any:
        return ()

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, self.touches, draft, draft, "mi")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("caught", instant, slot)

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_listing(at, store, env):
            if step.to[0] == "plan":
                step.to = ("skeleton", *step.to[1:])
            yield step

    def at_skeleton(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT metadata, an empty log", ("name", *at[1:]), ((("ml", at[1], 0), ()),))

    def at_name(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        to: Location = ("plan", *at[1:])
        if "a building is a plan" in self.without:
            to = ("caught", at[1], at[2])
        yield Step("PUT properties: inflight", to, ((("mp",), INFLIGHT),))

    def at_caught(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        caught_up = "caught up before it is filled" not in self.without
        missing = unmaterialised(store, at[2], self.without) if caught_up else None
        if missing:
            yield Step(f"LIST: entry {missing} is not materialised", ("assist", *at[1:], missing))
        else:
            files = tuple(sorted(committed_files(store)))
            yield Step(f"LIST: {len(files)} committed files", ("fill", at[1], files))

    def at_assist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        back = ("caught", *at[1:3])
        yield from materialise(store, store.get(("h", at[3])), self, f"{self.name} helps entry {at[3]}", back, at)
        yield from expired(at, back)

    def at_fill(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT metadata base {at[1]}", ("publish_base", at[1]), ((("mb", at[1]), at[2]),))

    def at_publish_base(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT metadata/{at[1]}.deltacommit", ("ready", at[1]), ((("mc", at[1]), 1),))

    def at_ready(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("PUT properties: ready", ("end", at[1]), ((("mp",), READY),))

    def at_end(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT {at[1]}.indexing", ("done", at[1]), ((("md", at[1]), 1),))


class BuildingExecutor(MetadataBuilder):
    """Finishes any building that is planned."""

    mortal = False

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = building(store)
        slot = next((k[1] for k, v in store.items() if k[0] == "h" and v[0] == "P" and v[1] == instant), 0)
        if instant:
            yield Step(f"resume building {instant}", ("caught", instant, slot))
