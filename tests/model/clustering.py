"""Clustering of one group by a plan (section 2.3): executors that give the plan up if the group has
moved since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Step, create
from tests.model.planner import Planner
from tests.model.rights import Guards, expired, gap, live, materialise, prove, unmaterialised
from tests.model.store import Store, bases_in_view, claimed, committed, decided, meets, tail, timeline


class Clusterer(Planner):
    """Plans that `group` becomes `outputs`, then executes it. A plan says which slice it takes, and
    what each output holds.

    `rejects`: all writers reject groups of a pending clustering, so that no plan may ever be lost
    to one. `parts` are the masks of the operations that go to each output.
    """

    def __init__(
        self, name: str = "C", without: Guards = frozenset(), *, group: str = "f", outputs: tuple[str, ...] = ("g",),
        parts: tuple[int, ...] = (-1,), rejects: bool = False,
    ):  # fmt: skip
        super().__init__(name, without)
        self.group, self.outputs, self.parts, self.rejects = group, outputs, parts, rejects
        self.touches = (group,)

    def draft(self, store: Store, env: Env) -> Any:
        held = {g for k, v in store.items() if k[0] in "kp" and ("c", k[1]) not in store for g in v}
        return None if self.group in held else self._slice(store)

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return ("P", instant, self.touches, (self.group,), draft, "p")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("resume", instant)

    def may_write(self, at: Location) -> int:
        return at[1] if at[0] == "file" and at[-1] else 0

    def may_publish(self, at: Location, store: Store) -> int:
        if at[0] == "help_resume":
            return store.get(("h", at[3]), (0, 0))[1]
        if at[0] == "put_abort":
            return at[1]
        return super().may_publish(at, store)

    def fresh_tail(self, at: Location) -> int | None:
        return at[2] if at[0] == "put_abort" else super().fresh_tail(at)

    # -- resuming the plan -----------------------------------------------------------------------------------------

    def at_resume(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"resume {at[1]}, LIST chain: tail {tail(store)}", ("resuming", at[1], tail(store)))

    def at_resuming(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        missing = unmaterialised(store, known, self.without)
        aborted = decided(store, instant, known) is not None and ("c", instant) not in store
        plan = self._plan(store, instant)
        if missing:
            yield Step(f"LIST: entry {missing} is not materialised", ("help_resume", instant, known, missing))
        elif ("c", instant) in store:
            yield Step(f"LIST: {instant} is committed", ("done", instant))
        elif ("p", instant) not in store or plan is None:
            yield Step(f"LIST: no plan {instant}", ("failed", instant))
        elif aborted and "resume looks for an abort" not in self.without:
            yield Step(f"chain: the plan {instant} was given up", ("failed", instant))
        elif "plan compared when resuming" not in self.without and not self._still(store, plan):
            yield self._gives_up(f"LIST: {self.group} has moved since the plan", instant)
        else:
            seen = tuple(timeline(store)[0])
            yield Step(f"LIST: {self.group} is as planned", ("prove", instant, known, plan, seen, 0))

    def at_help_resume(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        back = ("resuming", at[1], at[2])
        yield from materialise(store, store.get(("h", at[3])), self, f"{self.name} helps entry {at[3]}", back, at)
        yield from expired(at, back)

    # -- files and decision ----------------------------------------------------------------------------------------

    def at_prove(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        gone = Step("look at the decision", ("relist", at[1]))
        yield from prove(store, at[1], at[2], self.without, held=("file", *at[1:]), lost=at, gone=gone)

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, plan, seen, number, kind = at
        after: Location = ("decide", instant, known, seen)
        if number + 1 < len(self.outputs):
            after = ("file", instant, known, plan, seen, number + 1, kind)
        file = ("d", self.outputs[number], instant, 0)
        yield Step(f"PUT {file}", after, ((file, plan[1] & self.parts[number]),))
        yield from expired(at, ("prove", *at[1:-1]))

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, seen = at
        slot, entry = known + 1, store.get(("h", known + 1))
        touches = () if "clustering touches its groups" in self.without else (self.group, *self.outputs)
        if entry is None:
            files = tuple(("d", output, instant, 0) for output in self.outputs)
            commit = ("C", instant, (files, (self.group,), touches), touches)
            yield Step(f"PUT chain/{slot}=commit {instant}", ("publish", instant), ((("h", slot), commit),))
            yield from expired(at, ("fresh", *at[1:]), env.trims)
        elif entry[1] == instant:
            to = "failed" if entry[0] == "A" else "relist"
            yield Step(f"GET chain/{slot}: decided, {entry[0]}", (to, instant))
        elif self._excluded(entry, seen):
            yield self._gives_up(f"GET chain/{slot}: {self.group} was written", instant)
        elif self.waits(store, entry):
            yield Step(f"GET chain/{slot}: not materialised", ("walk", *at[1:]))
        else:
            yield Step(f"GET chain/{slot}: no conflict", ("decide", instant, slot, seen))

    def at_walk(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from self.help_in_order(at[2] + 1, store, ("decide", at[1], at[2] + 1, at[3]), at)
        yield from expired(at, ("decide", *at[1:]))

    def at_fresh(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        to: Location = ("relist", at[1]) if gap(store, at[2]) else ("decide", *at[1:])
        yield Step("LIST chain again", to)

    def at_relist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        entry = decided(store, at[1])
        done = entry is not None and entry[0] == "C"
        if done and live(store, at[1]):
            yield Step(f"LIST: {at[1]} is decided, not published", ("publish", at[1]))
        else:
            yield Step(f"LIST: {at[1]} is over", ("done" if done else "failed", at[1]))

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from materialise(
            store, committed(store, at[1]), self, f"{self.name} publishes {at[1]}", ("done", at[1]), at
        )
        yield from expired(at, ("relist", at[1]), env.archives)

    # -- giving the plan up ----------------------------------------------------------------------------------------

    def at_give_up(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        entry = decided(store, instant)
        if not claimed(store, instant):
            yield Step(f"LIST: {instant} is gone", ("failed", instant))
        elif entry is None or (entry[0] == "C" and "abort minds a commit" in self.without):
            yield Step(f"LIST: {instant} is undecided", ("put_abort", instant, tail(store)))
        else:
            yield Step(f"LIST: {instant} is decided, {entry[0]}", ("relist" if entry[0] == "C" else "failed", instant))

    def at_put_abort(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        label, again = f"PUT chain/{known + 1}=abort {instant}", ("give_up", instant)
        yield from create(store, ("h", known + 1), ("A", instant), label, ok=("failed", instant), refused=again,
                          unknown=again)  # fmt: skip
        yield from expired(at, again)

    def _gives_up(self, why: str, instant: int) -> Step:
        if self.rejects:
            return Step(why, ("WRONG", "L a clustering is lost to a writer that it rejects"))
        return Step(f"{why}; give the plan up", ("give_up", instant))

    def _excluded(self, entry: Any, seen: tuple[int, ...]) -> bool:
        if entry[0] != "C":
            return meets(entry, self.touches)
        if entry[1] in seen or "walked commits conflict" in self.without:
            return False
        if "executors go by file groups" in self.without:
            return meets(entry, self.touches)
        # A large insert touches the whole partition, and is no reason to give up unless it wrote to the group.
        files, replaced, _ = entry[2]
        return self.group in replaced or any(file[1] == self.group for file in files)

    def _still(self, store: Store, plan: Any) -> bool:
        return bool(self._slice(store) == plan)

    def _slice(self, store: Store) -> tuple[int, int] | None:
        replaced = {g for k, v in store.items() if k[0] == "c" for g in v[1]}
        (found,) = bases_in_view(store, (self.group,))
        if self.group in replaced and "a replaced group has moved" not in self.without:
            return None
        return found if found[0] else None

    def _plan(self, store: Store, instant: int) -> Any:
        entries = (v for k, v in store.items() if k[0] == "h" and v[:2] == ("P", instant))
        return next((entry[4] for entry in entries), None)


class ClusteringExecutor(Clusterer):
    """Another executor: of any pending clustering. `parts` of its own: it does not write what the
    plan says."""

    mortal = False

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for instant in sorted(k[1] for k in store if k[0] == "p" and ("c", k[1]) not in store):
            yield Step(f"there is a plan {instant}", ("resume", instant))
