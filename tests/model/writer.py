"""Our writer (section 2.1 of docs/explanation/commit-protocol.md): copy-on-write, delta logs, or a
replacement of one group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Step, create
from tests.model.rights import (
    ChainProcess,
    Guards,
    expired,
    gap,
    live,
    materialise,
    prove,
    undo,
    unmaterialised,
)
from tests.model.store import (
    Key,
    Store,
    bases_in_view,
    chain_max,
    decided,
    meets,
    newest,
    pending_restore,
    restores,
    rollbacks,
    tail,
    timeline,
)


class Writer(ChainProcess):
    """Locations: draw, claim, listing, help, prove, file, decide, fresh, look, walk, relist,
    publish; strict: check, copy.

    `touches` conflict keys (default: the groups), `retry` draws anew after a lost attempt, `logs`
    writes log files, `replaces` = (source, target) makes a clustering, `skew` lists offsets of a
    free clock, or the values of a free one if `clock` is given; `allows`: it may write to groups of
    a pending clustering; `rival` is a group whose presence turns an insert into an update; `first`
    overrides the start.
    """

    def __init__(
        self, name: str, operation: int | None, groups: tuple[str, ...] = ("f",), without: Guards = frozenset(), *,
        touches: tuple[str, ...] = (), retry: bool = False, logs: bool = False, replaces: tuple[str, str] | None = None,
        skew: int = 1, clock: tuple[int, ...] = (), rival: str | None = None, first: Location = ("draw",),
        strict: bool = False, timed: bool = False, allows: bool = False,
    ):  # fmt: skip
        super().__init__(name, without, strict=strict, timed=timed)
        self.allows = allows
        self.operation, self.groups, self.retry, self.logs, self.replaces = operation, groups, retry, logs, replaces
        self.skew, self.clock, self.rival, self.first = skew, clock, rival, first
        self.touches = groups if "bucket as conflict key" in without or not touches else touches
        self.bit = 0 if operation is None else 1 << operation
        self.sources = (replaces[0],) if replaces else groups

    def begin(self) -> Location:
        return self.first

    # -- what the attempt writes -----------------------------------------------------------------------------------

    def files(self, instant: int, bases: tuple[tuple[int, int], ...]) -> tuple[Key, ...]:
        """Names of the attempt's files."""
        if self.replaces:
            return (("d", self.replaces[1], instant, 0),)
        if self.logs:
            return tuple(("l", g, b[0], instant) for g, b in zip(self.groups, bases, strict=True))
        return tuple(("d", g, instant, 0) for g in self.groups)

    def contents(self, bases: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
        """Masks of the attempt's files."""
        if self.logs:
            return tuple(self.bit for _ in self.groups)
        return (bases[0][1] | self.bit,) if self.replaces else tuple(mask | self.bit for _, mask in bases)

    def entry(self, instant: int, files: tuple[Key, ...]) -> Any:
        """The chain entry of the commit."""
        return ("C", instant, (files, (self.replaces[0],) if self.replaces else (), self.touches), self.touches)

    def committed(self, at: Location) -> Any:
        """The chain entry that was decided, of the location `publish`."""
        return self.entry(at[1], at[3])

    def newest_done(self, store: Store) -> int:
        """The newest instant that the snapshot shows completed: an attempt is newer, or begins
        again."""
        return max([*timeline(store)[0], *restores(store), *rollbacks(store)], default=0)

    def bases(self, store: Store) -> tuple[tuple[int, int], ...]:
        """What the attempt builds on: the visible base files, or the plan's slice for logs."""
        found = bases_in_view(store, self.sources)
        if not self.logs:
            return found
        completed = timeline(store)[0]
        plans = [(k[1], v) for k, v in store.items() if k[0] == "k" and k[1] not in completed]
        return tuple(
            (max([b[0], *(t for t, groups in plans if g in groups)]), 0)
            for g, b in zip(self.groups, found, strict=True)
        )

    # -- what others may rely on -----------------------------------------------------------------------------------

    def may_write(self, at: Location) -> int:
        return at[1] if at[0] == "file" and not self.strict and at[-1] else 0

    def may_publish(self, at: Location, store: Store) -> int:
        if at[0] == "publish":
            return 0 if "publishing expires" in self.without else at[1]
        slot = {"help": at[-1], "walk": at[2] + 1 if at[0] == "walk" else 0}.get(at[0])
        return store.get(("h", slot), (0, 0))[1] if slot else 0

    def fresh_tail(self, at: Location) -> int | None:
        if at[0] == "walk":
            return at[2] + 1
        if at[0] == "decide" and "fresh tail to decide" in self.without:
            return None
        return at[2] if at[0] in ("file", "decide") else None

    # -- steps 1 to 3 ----------------------------------------------------------------------------------------------

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        floor = at[1] if len(at) > 1 else 0
        chained = max(0 if "chained instants not reused" in self.without else chain_max(store), floor)
        above = max(newest(store), chained) + 1
        for instant in self.clock or range(above, above + self.skew):
            if instant > chained:
                yield Step(f"LIST chain: tail {tail(store)}; draw {instant}", ("claim", instant, tail(store)))

    def at_claim(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at
        label = f"PUT {instant}.requested"
        claimed: Location = ("listing", instant, known)
        if "chain before snapshot" in self.without:
            claimed = ("mutant_listing", instant)
        elif "tail before claim" in self.without:
            claimed = ("mutant_tail", instant)
        elif "claim is no proof" in self.without:
            claimed = ("listing", instant, known, "claimed")
        if "exclusive claim" in self.without:
            yield Step(f"{label} (overwrites)", claimed, ((("r", instant), self.name),))
        elif ("c", instant) in store:
            yield Step(f"{label} =412", ("draw",))
        else:
            unknown = ("draw", instant)
            yield from create(store, ("r", instant), self.name, label, ok=claimed, refused=("draw",), unknown=unknown)

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known = at[:3]
        completed, pending = timeline(store)
        done = self.newest_done(store)
        if done > instant and "freshness" not in self.without:
            yield Step(f"LIST: {done} is newer, drop {instant}", ("draw",), ((("r", instant), None),))
            return
        shared = any((kind, instant) in store for kind in (*"qkpxzu", "uc"))
        if "claims of both kinds seen" not in self.without and shared:
            yield Step(f"LIST: another has {instant} too, drop it", ("draw",), ((("r", instant), None),))
            return
        if ("r", instant) not in store and "redraw without claim" not in self.without:
            yield (
                Step("LIST: own claim is gone", ("draw",))
                if self.retry
                else self._fail("LIST: own claim is gone", instant)
            )
            return
        if "not waiting for others" in self.without and any(t != instant for t in pending):
            return
        restore = pending_restore(store)
        if restore and "restores carried out first" not in self.without:
            yield Step(f"LIST: restore {restore} is pending", ("undo", restore, 0, known, at))
            return
        missing = None if "materialise predecessors" in self.without else unmaterialised(store, known, self.without)
        if missing:
            yield Step(f"LIST: entry {missing} is not materialised", ("help", instant, known, missing))
            return
        present = {k[1] for k in store if k[0] == "d" and (k[2] in completed or k[2] < completed[0])}
        replaced = {g for t in completed for g in store[("c", t)][1]}
        if self.rival in present or replaced & set(self.sources):
            yield self._fail("LIST: the plan no longer fits; stop", instant)
            return
        if self._refused(store):
            yield self._fail("LIST: a pending clustering holds the group", instant)
            return
        # A commit is seen by its instant, a plan by its own name: who saw the plan has not seen the commit that executes it.
        # (A compaction's commit conflicts with nobody.)
        own = () if "a plan seen is no commit seen" in self.without else "pxz"
        found = sorted((k[1], k[0]) for k in store if k[0] in "kpxz" and k[1] not in completed)
        plans = [-instant if kind in own else instant for instant, kind in found]
        snapshot = (self.bases(store), (*completed, *plans), 0)
        if self.strict or "renewed right" in self.without:
            yield Step(f"LIST snapshot {completed}", ("file", instant, known, *snapshot, 0))
        elif at[3:]:
            kind = 1 if decided(store, instant) is None else 0
            yield Step(f"LIST snapshot {completed}, claim taken for a proof", ("file", instant, known, *snapshot, kind))
        else:
            yield Step(f"LIST snapshot {completed}", ("prove", instant, known, *snapshot))

    def at_undo(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from undo(store, at, self.without)

    def at_help(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, slot = at
        back = ("listing", instant, known)
        yield from materialise(store, store.get(("h", slot)), self, f"{self.name} helps entry {slot}", back, at)
        yield from expired(at, back)

    # -- step 4 ----------------------------------------------------------------------------------------------------

    def at_prove(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        gone = self._lose("give up", at[1])
        yield from prove(store, at[1], at[2], self.without, held=("file", *at[1:]), lost=at, gone=gone)

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, bases, completed, number, kind = at
        files, contents = self.files(instant, bases), self.contents(bases)
        if self.strict:
            following = "copy" if "chain read after staging" in self.without else "check"
            staged = tuple((("s", instant, j), c) for j, c in enumerate(contents))
            body = (("b", instant), self.entry(instant, files)[2])
            yield Step(
                f"STAGE files of {instant}", (following, instant, known, files, contents, completed, 0), (*staged, body)
            )
            return
        after: Location = ("decide", instant, known, files, completed, 0)
        if number + 1 < len(files):
            # The same proof serves; it ends at any moment, and with it the permission: `expired`.
            after = ("file", instant, known, bases, completed, number + 1, kind)
            if self.without & {"renewed right", "proof for each file"}:
                after = ("file", instant, known, bases, completed, number + 1, 0)
        elif "decision before publish" in self.without:
            after = ("early", instant, known, files, completed, 0)
        yield Step(f"PUT {files[number]}", after, ((files[number], contents[number]),))
        yield Step(f"PUT {files[number]} =?", at, lost=("put", files[number], contents[number]), waited=bool(kind))
        if "renewed right" not in self.without:
            yield from expired(at, ("prove", *at[1:-1]))

    # -- step 5 ----------------------------------------------------------------------------------------------------

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, files, completed, sent = at
        slot = tail(store) + 1 if "reading lost slots" in self.without else known + 1
        look = ("look", instant, known, files, completed)
        published, label = ("publish", instant, slot, files), f"PUT chain/{slot}=commit {instant}"
        yield from create(store, ("h", slot), self.entry(instant, files), label, ok=published,
                          refused=(*look, sent), unknown=(*look, 1))  # fmt: skip
        if "fresh tail to decide" not in self.without:
            yield from expired(at, ("fresh", *at[1:]), env.trims)

    def at_fresh(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if not gap(store, at[2]):
            yield Step("LIST chain: own tail is there", ("decide", *at[1:]))
        elif at[-1]:
            # An earlier request may have been the trimmed entry: neither success nor failure may be reported.
            yield Step("LIST chain: own tail was trimmed; report unknown", ("failed", at[1]))
        else:
            yield self._lose("LIST chain: own tail was trimmed", at[1])

    def at_look(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, files, completed, sent = at
        slot, entry = known + 1, store.get(("h", known + 1))
        label = f"GET chain/{slot}"
        if entry is None:
            again = "decide" if "fresh tail to decide" in self.without else "fresh"
            yield Step(f"{label}: absent", (again, *at[1:]))
        elif entry[1] == instant:
            if entry != self.entry(instant, files):
                yield self._lose(f"{label}: own instant aborted, or another's", instant)
            elif "read-back on 412" in self.without:
                yield self._fail(f"{label}: taken for refused", instant)
            else:
                yield Step(f"{label}: own commit", ("relist", instant, slot, files))
        elif self._conflicts(entry) and not self._seen(entry, completed):
            yield self._lose(f"{label}: conflict", instant)
        elif self.waits(store, entry):
            yield Step(f"{label}: not materialised", ("walk", *at[1:]))
        else:
            yield Step(f"{label}: no conflict", ("decide", instant, slot, files, completed, sent))

    def at_walk(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        slot = at[2] + 1
        yield from self.help_in_order(slot, store, ("decide", at[1], slot, *at[3:]), at)
        yield from expired(at, ("look", *at[1:]))

    # -- step 6 ----------------------------------------------------------------------------------------------------

    def at_relist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        if live(store, instant):
            yield Step(f"LIST: {instant} is live and not published", ("publish", *at[1:]))
        else:
            yield Step(f"LIST: {instant} is published", ("done", instant), ack=self.bit)

    def at_publish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        instant = at[1]
        label, done = f"{self.name} publishes {instant}", ("done", instant)
        for step in materialise(store, self.committed(at), self, label, done, at):
            if step.lost is None:
                step.ack = self.bit
            yield step
        if not self.strict and "publishing expires" not in self.without:
            yield from expired(at, ("relist", *at[1:]), env.archives)

    # -- mutants, strict mode, endings -------------------------------------------------------------------------------

    def at_early(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        body = self.entry(at[1], at[3])[2]
        yield Step(f"PUT {at[1]}.commit before the decision", ("decide", *at[1:]), ((("c", at[1]), body),))

    def at_mutant_tail(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"LIST chain after the claim: tail {tail(store)}", ("listing", at[1], tail(store)))

    def at_mutant_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step("LIST timeline first", ("mutant_chain", at[1], self.bases(store), tuple(timeline(store)[0])))

    def at_mutant_chain(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, bases, completed = at
        known = tail(store)
        yield Step(f"LIST chain afterwards: tail {known}", ("prove", instant, known, bases, completed, 0))

    def at_check(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if decided(store, at[1]) is None:
            yield Step("LIST chain: own instant undecided", ("copy", *at[1:]))
        else:
            yield self._fail("LIST chain: own instant aborted", at[1])

    def at_copy(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, files, contents, completed, number = at
        after: Location = ("decide", instant, known, files, completed, 0)
        if number + 1 < len(files):
            after = (*at[:-1], number + 1)
        source, label = ("s", instant, number), f"COPY staged to {files[number]}"
        if source in store:
            yield Step(label, after, ((files[number], contents[number]),))
            yield Step(f"{label} =?", at, lost=("copy", files[number], source))
        else:
            yield self._fail(f"{label}: source gone", instant)

    def _conflicts(self, entry: Any) -> bool:
        if "conflict check" in self.without:
            return False
        kind = entry[-1] if entry[0] == "P" else "p" if entry[0] == "C" and entry[2][1] else ""
        if kind == "z" and "writers conflict with a restore" in self.without:
            return False
        if kind == "p" and "writers see clusterings" in self.without:
            return False
        if kind == "p" and entry[0] == "P" and "rejected by the chain" in self.without:
            return False
        return meets(entry, self.touches)

    def _seen(self, entry: Any, snapshot: tuple[int, ...]) -> bool:
        return entry[1] in snapshot or (entry[0] == "P" and -entry[1] in snapshot)

    def _refused(self, store: Store) -> bool:
        """Whether the snapshot shows a clustering of a group of this write that does not allow
        it."""
        if self.allows or self.without & {"writers see clusterings", "rejected by the snapshot"}:
            return False
        held = {g for k, v in store.items() if k[0] == "p" and ("c", k[1]) not in store for g in v}
        return bool(held & set(self.sources))

    def _fail(self, why: str, instant: int) -> Step:
        return Step(f"{why}; report failure", ("failed", instant), fail=self.bit)

    def _lose(self, why: str, instant: int) -> Step:
        return Step(f"{why}; retry", ("draw",)) if self.retry else self._fail(why, instant)
