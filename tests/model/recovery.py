"""Recovery (section 2.2 of docs/explanation/commit-protocol.md): rolls forward or back any pending
instant that seems dead."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.engine import Env, Location, Step, create
from tests.model.rights import ChainProcess, Guards, expired, given_up, live, materialise, slot_of, unmaterialised
from tests.model.services import may_land
from tests.model.store import CLAIMS, Store, committed, decided, files_of, is_plan, tail, timeline


class Recovery(ChainProcess):
    """Locations: idle, scan, abort, relist, forward, delete, finish, leftover.

    `chain_max` bounds false suspicion, or a retrying writer draws for ever. `gives_up`: it aborts
    plans of clusterings too.
    """

    mortal = False

    def __init__(
        self,
        name: str = "B",
        without: Guards = frozenset(),
        *,
        strict: bool = False,
        timed: bool = False,
        chain_max: int = 0,
        gives_up: bool = False,
    ):
        super().__init__(name, without, strict=strict, timed=timed)
        self.chain_max, self.gives_up = chain_max, gives_up

    def begin(self) -> Location:
        return ("idle",)

    def may_publish(self, at: Location, store: Store) -> int:
        # From the listing that found the instant pending on, for H.
        if at[0] in ("scan", "abort"):
            return 0 if "abort needs fresh listing" in self.without else at[1]
        if at[0] == "ahead":
            return store.get(("h", at[2]), (0, 0))[1]
        return at[1] if at[0] == "forward" else 0

    def fresh_tail(self, at: Location) -> int | None:
        return at[2] if at[0] == "abort" else None

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        completed, pending = timeline(store)
        for instant in pending:
            bounded = self.chain_max and tail(store) >= self.chain_max and not env.solo
            if self._leaves(store, instant):
                continue
            if bounded and decided(store, instant) is None:
                continue
            if instant < completed[0] and not self._takes_late_claim_for_live(store, instant):
                yield Step(f"LIST: {instant} is older than the start: a late claim", ("leftover", instant))
            else:
                first = "delete" if "abort entry" in self.without else "scan"
                yield Step(f"LIST: {instant} seems dead", (first, instant))

    def _leaves(self, store: Store, instant: int) -> bool:
        """Whether a published plan is left to its executors: every one but a clustering's that is
        decided, or is to be given up."""
        if "plans never aborted" in self.without or not is_plan(store, instant):
            return False
        return ("p", instant) not in store or (not self.gives_up and decided(store, instant) is None)

    def _takes_late_claim_for_live(self, store: Store, instant: int) -> bool:
        entry = decided(store, instant)
        guard = "late claims never helped" if entry and entry[0] == "C" else "late claims never rolled back"
        return guard in self.without

    def at_scan(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        entry = None if "chain scan in recovery" in self.without else decided(store, instant)
        label = f"scan chain: {instant}"
        if self._leaves(store, instant):
            yield Step(f"{label} is a published plan", ("idle",))
        elif entry is None:
            yield Step(f"{label} undecided", ("abort", instant, tail(store)))
        elif entry[0] == "C" and ("p", instant) in store and "abort minds a commit" in self.without:
            yield Step(f"{label} committed", ("abort", instant, tail(store)))
        elif entry[0] == "C":
            yield Step(f"{label} committed", ("relist", instant))
        else:
            yield Step(f"{label} aborted", ("delete", instant))
        if "abort needs fresh listing" not in self.without:
            yield from expired(at, ("idle",))

    def at_abort(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        again = ("scan", instant)
        label, entry = f"PUT chain/{known + 1}=abort {instant}", ("A", instant)
        yield from create(store, ("h", known + 1), entry, label, ok=("delete", instant), refused=again, unknown=again)
        if "abort needs fresh listing" not in self.without:
            yield from expired(at, ("idle",))

    def at_relist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if given_up(store, at[1], self.without):
            yield Step(f"LIST: {at[1]} is aborted meanwhile", ("idle",))
        elif live(store, at[1]) or "late claims never helped" in self.without:
            before = unmaterialised(store, slot_of(store, ("publish", at[1])) - 1, self.without)
            if before and "recovery publishes in order" not in self.without:
                yield Step(f"LIST: entry {before} is not materialised", ("ahead", at[1], before))
            else:
                yield Step(f"LIST: {at[1]} is live and not published", ("forward", at[1]))
        else:
            yield Step(f"LIST: {at[1]} is published", ("idle",))

    def at_forward(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from materialise(store, committed(store, at[1]), self, f"{self.name} publishes {at[1]}", ("idle",), at)
        yield from expired(at, ("idle",))

    def at_ahead(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        entry, back = store.get(("h", at[2])), ("relist", at[1])
        yield from materialise(store, entry, self, f"{self.name} publishes entry {at[2]} first", back, at)
        yield from expired(at, ("idle",))

    def at_delete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        if self.strict and "delete sources" not in self.without:
            staged = tuple((k, None) for k in store if k[0] in "sb" and k[1] == instant)
            if staged:
                yield Step(f"DELETE staged sources of {instant}", at, staged)
                return
        for file in files_of(store, instant)[:1]:
            yield Step(f"DELETE {file}", at, ((file, None),))
            return
        # Nothing is ever written under a planner's claim: what its abort leaves is the claim.
        planner = ("q", instant) in store and ("r", instant) not in store and not is_plan(store, instant)
        if self.strict or "quarantine" in self.without or planner or self._quarantine_over(instant, env):
            yield Step(f"H since the abort of {instant}: nothing left", ("finish", instant))

    def at_finish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        if files_of(store, instant) and "quarantine" not in self.without:
            yield Step("list again: files appeared", ("delete", instant))
        else:
            gone = tuple(((kind, instant), None) for kind in CLAIMS)
            yield Step(f"DELETE {instant}.requested", ("idle",), gone)

    def at_leftover(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"DELETE late claim {at[1]}", ("idle",), tuple(((kind, at[1]), None) for kind in "rq"))

    def _quarantine_over(self, instant: int, env: Env) -> bool:
        """H after the abort: no proof older than it is left, and no data request that was sent
        under one."""
        for process, at in zip(env.processes, env.locations, strict=True):
            if process.may_write(at) == instant:
                return False
        return "requests in flight" in self.without or not may_land(instant, env, "dl")
