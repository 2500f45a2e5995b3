"""Writers, recovery and cleans of a table with a metadata table (section 2.8): the delta of a
commit, written before its decision; that of a clean, written before it completes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Step
from tests.model.listing import INFLIGHT, READY, cleaned_since, moves, place
from tests.model.recovery import Recovery
from tests.model.rights import expired, materialise, prove, unmaterialised
from tests.model.savepoints import CleanPlanner
from tests.model.store import Key, Store, tail
from tests.model.writer import Writer

TOLD = "mn"
"""Of the entry of a clean, whose file, the inflight one, is there already: its tombstones are
written."""


class ListedWriter(Writer):
    """A writer that tells the metadata table between its files and its decision, and again behind a
    plan that moves the file group.

    Locations between: mprove, mlist, mprops, mtime, mlog, mdrop, each with the items of `decide`;
    then the kind of the proof, and the place of the log.
    """

    def may_write(self, at: Location) -> int:
        return at[1] if at[0] in ("mlist", "mprops", "mtime", "mlog") and at[6] else super().may_write(at)

    def at_listing(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if cleaned_since(store, at[1]):
            yield Step(f"LIST: a clean is newer, drop {at[1]}", ("draw",), ((("r", at[1]), None),))
        else:
            yield from super().at_listing(at, store, env)

    def at_file(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_file(at, store, env):
            if step.to[0] == "decide" and "delta before decision" not in self.without:
                step.to = ("mprove", *step.to[1:])
            yield step

    def at_mprove(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        gone = self._lose("give up", at[1])
        yield from prove(store, at[1], at[2], self.without, held=("mlist", *at[1:]), lost=at, gone=gone)

    def at_mlist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found = place(store)
        yield Step(f"LIST metadata: logs go to {found}", ("mprops", *at[1:], found))
        yield from expired(at, ("mprove", *at[1:6]))

    def at_mprops(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        known = (READY,) if "deltas to what is built" in self.without else (READY, INFLIGHT)
        if at[7] is None or store.get(("mp",)) not in known:
            yield Step("GET properties: no metadata table", ("decide", *at[1:6]))
        else:
            yield Step("GET properties: there is a metadata table", ("mtime", *at[1:]))
        yield from expired(at, ("mprove", *at[1:6]))

    def at_mtime(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT metadata/{at[1]}.deltacommit", ("mlog", *at[1:]), ((("mt", at[1]), 1),))
        yield from expired(at, ("mprove", *at[1:6]))

    def at_mlog(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, _, files, _, _, _, base = at
        stale = self._stale(store, instant, base)
        to: Location = ("mdrop", *at[1:6], base) if stale else ("decide", *at[1:6])
        yield Step(f"PUT log of {instant} on {base}", to, ((("ml", base, instant), files),))
        yield from expired(at, ("mprove", *at[1:6]))

    def at_mdrop(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        stale = self._stale(store, at[1], at[6])
        yield Step(f"DELETE what {at[1]} wrote before the plan", ("decide", *at[1:6]), tuple((k, None) for k in stale))

    def at_look(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from self._behind(super().at_look(at, store, env), at, store)

    def at_walk(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from self._behind(super().at_walk(at, store, env), at, store)

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_decide(at, store, env):
            if step.to[0] == "publish" and "delta before decision" in self.without:
                step.to = ("late", *step.to[1:])
            yield step

    def at_late(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found = place(store)
        writes = () if found is None else ((("mt", at[1]), 1), (("ml", found, at[1]), at[3]))
        yield Step(f"PUT delta of {at[1]} behind its decision", ("publish", *at[1:]), writes)

    def _behind(self, steps: Iterator[Step], at: Location, store: Store) -> Iterator[Step]:
        """The walk goes on by way of the delta, where the entry that it has passed is a plan that
        moves the file group."""
        again = moves(store.get(("h", at[2] + 1))) and "deltas again behind a plan" not in self.without
        for step in steps:
            if again and step.to[0] == "decide" and "delta before decision" not in self.without:
                step.to = ("mprove", *step.to[1:])
            yield step

    def _stale(self, store: Store, instant: int, base: int) -> list[Key]:
        return sorted(k for k in store if k[0] == "ml" and k[2] == instant and k[1] != base)


class ListedCleaner(CleanPlanner):
    """A clean that tells what it has deleted, and enters the chain before it completes.

    Locations between: caught, mlist, mlog, mdrop, enter, each with the instant, the files and the
    known tail; then the place of the log.
    """

    shows = (*CleanPlanner.shows, "complete")

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return ("delete", instant, draft, 0, slot)

    def at_delete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, files, number, known = at
        if number < len(files):
            to = ("delete", instant, files, number + 1, known)
            yield Step(f"DELETE {files[number]}", to, ((files[number], None),))
        else:
            told = ("caught", instant, files, tail(store))
            yield Step(f"PUT {instant}.clean.inflight, LIST chain: tail {tail(store)}", told, (((TOLD, instant), 1),))

    def at_caught(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, files, known = at
        missing = unmaterialised(store, known, self.without)
        if missing and "a clean materialises predecessors" not in self.without:
            yield Step(f"LIST: entry {missing} is not materialised", ("help_first", *at[1:], missing))
        else:
            yield Step("LIST timeline", ("mlist", instant, files, known))

    def at_help_first(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        entry, back = store.get(("h", at[4])), ("caught", *at[1:4])
        yield from materialise(store, entry, self, f"{self.name} helps entry {at[4]}", back, at)

    def at_mlist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        found = place(store)
        yield Step(f"LIST metadata: logs go to {found}", ("mlog", *at[1:], found))

    def at_mlog(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, files, _, base = at
        writes = ((("mt", instant), 1), (("ml", base, instant), tuple(("gone", file) for file in files)))
        yield Step(f"PUT tombstones of {instant} on {base}", ("mdrop", *at[1:]), writes)

    def at_mdrop(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, _, _, base = at
        stale = [k for k in store if k[0] == "ml" and k[2] == instant and k[1] != base]
        to: Location = ("complete", instant) if "a clean enters the chain" in self.without else ("enter", *at[1:4])
        yield Step(f"DELETE what {instant} wrote before a plan: {len(stale)}", to, tuple((k, None) for k in stale))

    def at_enter(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, files, known = at
        entry, slot = store.get(("h", known + 1)), known + 1
        if entry is None:
            told = ("P", instant, (f"delta:{instant}",), 1, None, TOLD)
            yield Step(f"PUT chain/{slot}=tombstones of {instant}", ("complete", instant), ((("h", slot), told),))
        elif self.waits(store, entry):
            yield Step(f"GET chain/{slot}: not materialised", ("assist", *at[1:]))
        elif moves(entry) and "deltas again behind a plan" not in self.without:
            yield Step(f"GET chain/{slot}: a plan that moves the group", ("mlist", instant, files, slot))
        else:
            yield Step(f"GET chain/{slot}: another instant", ("enter", instant, files, slot))

    def at_assist(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield from self.help_in_order(at[3] + 1, store, ("enter", *at[1:]), at)

    def at_complete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        yield Step(f"PUT {at[1]}.clean", ("done", at[1]), ((("x", at[1]), None), (("xc", at[1]), 1)))


class ListedRecovery(Recovery):
    """A recovery that deletes deltas as it deletes data files: before the quarantine, and what
    appeared after it."""

    def at_delete(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        delta = _delta(store, at[1])
        if delta:
            yield Step(f"DELETE {delta[0]}", at, ((delta[0], None),))
        else:
            yield from super().at_delete(at, store, env)

    def at_finish(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        if _delta(store, at[1]):
            yield Step("list again: a delta appeared", ("delete", at[1]))
        else:
            yield from super().at_finish(at, store, env)


def _delta(store: Store, instant: int) -> list[Key]:
    """What an instant has written to the metadata table: logs before the timeline."""
    return [k for k in sorted(store, key=str) if (k[0] == "ml" and k[2] == instant) or k == ("mt", instant)]
