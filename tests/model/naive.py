"""Simpler protocols, section 6 of docs/explanation/commit-protocol.md: Hudi 0.15's own shape,
leases, and decisions per instant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Process, Step, create
from tests.model.store import Store, bases_in_view, files_of, timeline


class NaiveWriter(Process):
    """Checks for conflicts against completed instants, then publishes.

    Options: clock (values that a clock may show, else above the listing), exclusive (create instead
    of overwrite), lock ('lease': may be stolen at any time, 'resolve': the thief first decides the
    holder's instant), decision (one object an instant), fresh (the own instant must be the newest
    of the snapshot), unmarked (files without markers).
    """

    def __init__(self, name: str, operation: int, groups: tuple[str, ...] = ("f",), **options: Any):
        self.name, self.groups, self.options, self.bit = name, groups, options, 1 << operation

    def begin(self) -> Location:
        return ("draw",)

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        completed, pending = timeline(store)
        for instant in self.options.get("clock") or (max(completed + pending) + 1,):
            yield Step(f"draw {instant}", ("claim", instant))

    def at_claim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        snapshot, label = ("snapshot", at[1]), f"PUT {at[1]}.requested"
        if self.options.get("exclusive"):
            yield from create(store, ("r", at[1]), self.name, label, ok=snapshot, refused=("draw",), unknown=None)
        else:
            yield Step(f"{label} (overwrites)", snapshot, ((("r", at[1]), self.name),))

    def at_snapshot(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        completed, _ = timeline(store)
        if self.options.get("fresh") and completed[-1] > at[1]:
            yield Step(f"LIST: {completed[-1]} is newer, drop own", ("draw",), ((("r", at[1]), None),))
        else:
            bases = bases_in_view(store, self.groups)
            yield Step(f"LIST snapshot {completed}", ("file", at[1], tuple(completed), bases, 0))

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, completed, bases, number = at
        group = self.groups[number]
        writes: tuple[tuple[Any, Any], ...] = ((("d", group, instant, 0), bases[number][1] | self.bit),)
        if not self.options.get("unmarked"):
            writes = ((("m", instant, group), 1), *writes)
        after: Location = ("lock" if self.options.get("lock") else "check", instant, completed)
        if number + 1 < len(self.groups):
            after = (*at[:-1], number + 1)
        yield Step(f"PUT {group}@{instant}", after, writes)

    def at_lock(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, completed = at
        holder, mine = store.get(("lock",)), ((("lock",), (self.name, instant)),)
        if holder is None:
            yield Step("LOCK", ("check", instant, completed), mine)
        elif self.options["lock"] == "lease":
            yield Step(f"STEAL the expired lock of {holder[0]}", ("check", instant, completed), mine)
        else:
            yield Step(f"see the expired lock of {holder[0]}/{holder[1]}", ("resolve", instant, completed, holder))

    def at_resolve(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        victim, steal = at[3][1], ("steal", *at[1:])
        decision = store.get(("de", victim))
        if decision is None:
            yield Step(f"PUT decision({victim})=abort", steal, ((("de", victim), ("A",)),))
        elif decision[0] == "C" and ("c", victim) not in store:
            yield Step(f"roll {victim} forward", steal, ((("c", victim), decision[1]),))
        else:
            yield Step("the holder's instant is decided", steal)

    def at_steal(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, completed, holder = at
        if store.get(("lock",)) == holder:
            yield Step(f"SWAP lock of {holder[0]}", ("check", instant, completed), ((("lock",), (self.name, instant)),))
        else:
            yield Step("SWAP lock =412", ("lock", instant, completed))

    def at_check(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, completed = at
        newer = [v for k, v in store.items() if k[0] == "c" and k[1] not in completed and k[1] != instant]
        if any(set(body[2]) & set(self.groups) for body in newer):
            yield Step("conflict", ("unlock", instant, 0))
        else:
            yield Step("no conflict", ("decide" if self.options.get("decision") else "publish", instant))

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        look, decision = ("look", at[1]), ("C", self._body(at[1]))
        label = f"PUT decision({at[1]})=commit"
        yield from create(store, ("de", at[1]), decision, label, ok=("publish", at[1]), refused=look, unknown=look)

    def at_look(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found = store.get(("de", at[1]))
        to: Location = ("decide", at[1])
        if found is not None:
            to = ("publish", at[1]) if found[0] == "C" else ("unlock", at[1], 0)
        yield Step("GET decision", to)

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        name, label, done = ("c", at[1]), f"PUT {at[1]}.commit", ("unlock", at[1], 1)
        if self.options.get("exclusive"):
            look = ("relook", at[1])
            yield from create(store, name, self._body(at[1]), label, ok=done, refused=look, unknown=look)
        else:
            yield Step(f"{label} (overwrites)", done, ((name, self._body(at[1])),))

    def at_relook(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found = store.get(("c", at[1]))
        to: Location = ("publish", at[1]) if found is None else ("unlock", at[1], 1 if found[0] else 0)
        yield Step(f"GET {at[1]}.commit", to)

    def at_unlock(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, won = at
        writes = ((("lock",), None),) if store.get(("lock",)) == (self.name, instant) else ()
        to: Location = ("done" if won else "failed", instant)
        yield Step("UNLOCK", to, writes, ack=self.bit if won else 0, fail=0 if won else self.bit)

    def _body(self, instant: int) -> Any:
        return tuple(("d", g, instant, 0) for g in self.groups), (), self.groups


class NaiveRollback(Process):
    """Lazy rollback of an instant whose heartbeat expired, perhaps wrongly; deletes what markers
    name.

    Options: fence ('poison' at the completed name, 'decision'), recheck (reload under the lock),
    poison_last, only_forward.
    """

    mortal = False

    def __init__(self, name: str = "B", **options: Any):
        self.name, self.options = name, options

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        first = {"poison": "poison", "decision": "abort"}.get(self.options.get("fence", ""), "delete")
        if self.options.get("poison_last"):
            first = "delete"
        if self.options.get("recheck"):
            first = "reload"
        for instant in timeline(store)[1]:
            yield Step(f"LIST: the heartbeat of {instant} expired", (first, instant))

    def at_reload(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("reload the timeline", ("idle",) if ("c", at[1]) in store else ("delete", at[1]))

    def at_poison(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        last = self.options.get("poison_last")
        to: Location = ("finish" if last else "delete", at[1])
        refused = to if last else ("idle",)
        yield from create(
            store, ("c", at[1]), ((), (), ()), f"PUT {at[1]}.commit=poison", ok=to, refused=refused, unknown=None
        )

    def at_abort(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant, decision = at[1], store.get(("de", at[1]))
        if decision is None and self.options.get("only_forward"):
            yield Step("leave it", ("idle",))
        elif decision is None:
            yield Step(f"PUT decision({instant})=abort", ("delete", instant), ((("de", instant), ("A",)),))
        elif decision[0] == "A":
            yield Step("aborted already", ("delete", instant))
        else:
            writes = () if ("c", instant) in store else ((("c", instant), decision[1]),)
            yield Step(f"roll {instant} forward", ("idle",), writes)

    def at_delete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        for file in (f for f in files_of(store, instant) if ("m", instant, f[1]) in store):
            yield Step(f"DELETE {file[1]}@{instant}, which a marker names", at, ((file, None),))
            return
        yield Step("files are gone", ("poison" if self.options.get("poison_last") else "finish", instant))

    def at_finish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE {at[1]}.requested", ("idle",), ((("r", at[1]), None),))
