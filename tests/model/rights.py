"""The right to write, and what chain processes share: walking the chain and materialising its
entries.

Guards are removed by name (see `mutants.py`): `without` is the set of removed ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.engine import Env, Location, Process, Step
from tests.model.store import CLAIMS, Store, claimed, decided, file_of, files_of, tail, timeline

Guards = frozenset[str]
UNDECIDED, LATE = 1, 0
"""Of a proof: taken while the instant was undecided, or (mutants only) after it was decided."""


class ChainProcess(Process):
    """A process of ours. `strict`: nothing relies on time, files and completed files appear by
    copy.

    Between its decision and its file it looks whether all that was decided before is published,
    and publishes what is not: locations before and catch. `shows` are the locations where the file
    is created.
    """

    shows: tuple[str, ...] = ("publish", "publish_plan")

    def __init__(self, name: str, without: Guards = frozenset(), *, strict: bool = False, timed: bool = False):
        self.name, self.without, self.strict, self.timed = name, without, strict, timed

    def steps(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().steps(at, store, env):
            if step.to[0] in self.shows and at[0] not in (*self.shows, "before") and self._missing(store, step.to):
                step.to = ("before", step.to)
            yield step

    def _missing(self, store: Store, shown: Location) -> int | None:
        """The first decision before the own one that is not published. What is published stays so:
        a look that would find nothing is left out."""
        upto = (slot_of(store, shown) or tail(store) + 1) - 1
        return None if "published in order" in self.without else unmaterialised(store, upto, self.without)

    def instant(self, at: Location) -> int:
        return super().instant(at[-1] if at[0] in ("before", "catch") else at)

    def publishes(self, at: Location, store: Store) -> set[int]:
        if at[0] not in ("before", "catch"):
            return super().publishes(at, store)
        caught = {store.get(("h", at[1]), (0, 0))[1]} if at[0] == "catch" else set()
        return {self.may_publish(at[-1], store), *caught}

    def at_before(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        missing = self._missing(store, at[1])
        if missing:
            yield Step(f"LIST: entry {missing} is not materialised", ("catch", missing, at[1]))
        else:
            yield Step("LIST: all before it is there", at[1])

    def at_catch(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        back: Location = ("before", at[2])
        yield from materialise(store, store.get(("h", at[1])), self, f"{self.name} helps entry {at[1]}", back, at)
        yield from expired(at, back)

    def waits(self, store: Store, entry: Any) -> bool:
        """Whether a walk publishes an entry before it goes on: a plan, or whatever it is where
        nothing is looked for behind the decision."""
        if "materialise predecessors" in self.without or (self.shows and entry[0] != "P"):
            return False
        return is_unmaterialised(store, entry, self.without)

    def help_in_order(self, slot: int, store: Store, after: Location, at: Location) -> Iterator[Step]:
        """Materialise a plan that the walk has come to, and before it what was decided before."""
        missing = slot if "published in order" in self.without else unmaterialised(store, slot, self.without)
        if missing is None:
            yield Step(f"HEAD: entry {slot} is there", after)
            return
        label, to = f"{self.name} helps entry {missing}", after if missing == slot else at
        yield from materialise(store, store.get(("h", missing)), self, label, to, at)


def gap(store: Store, known: int) -> bool:
    """Whether entries above the known tail may have been trimmed: the known one is gone, or the
    first ones are."""
    if known:
        return ("h", known) not in store
    lowest = min((k[1] for k in store if k[0] == "h"), default=1)
    return lowest > 1


def refusal(store: Store, instant: int, known: int, without: Guards, *, executes: bool = False) -> str | None:
    """Why a proof begun now fails, or None. `executes`: it is that of an executor, whose claim is
    the plan."""
    if "claim in proof" not in without and not claimed(store, instant):
        return "claim gone"
    if "chain in proof" not in without:
        kinds = "A" if "commit in proof" in without else "CA"
        for n in range(known + 1, tail(store) + 1):
            entry = store.get(("h", n))
            if entry and entry[1] == instant and entry[0] in kinds:
                return "decided"
            if executes and entry and entry[:2] == ("P", instant) and "a new plan ends the right" not in without:
                return "planned again"
    if "gap in proof" not in without and gap(store, known):
        return "gap in the chain"
    return None


def prove(
    store: Store, instant: int, known: int, without: Guards, *, held: Location, lost: Location, gone: Step,
    executes: bool = False,
) -> Iterator[Step]:  # fmt: skip
    """Renew the right: `held` follows with the kind of the proof appended; `lost` is where a lost
    reply leads."""
    kind = UNDECIDED if decided(store, instant) is None else LATE
    why = refusal(store, instant, known, without, executes=executes)
    if why is None:
        yield Step(f"prove right to {instant}", (*held, kind))
    else:
        gone.label = f"prove right to {instant}: {why}; {gone.label}"
        yield gone
    if "lost proof is none" in without:
        yield Step(f"prove right to {instant} =?, taken for proved", (*held, kind))
    else:
        yield Step(f"prove right to {instant} =?", lost)


def slot_of(store: Store, shown: Location) -> int:
    """The number of the decision whose file is created at a location; 0 if it was trimmed."""
    kind = "C" if shown[0] == "publish" else "P"
    return max((k[1] for k, v in store.items() if k[0] == "h" and v[:2] == (kind, shown[1])), default=0)


def unmaterialised(store: Store, upto: int, without: Guards) -> int | None:
    """First chain entry up to number `upto` whose timeline file is missing though its claim is
    live."""
    return next((n for n in range(1, upto + 1) if is_unmaterialised(store, store.get(("h", n)), without)), None)


def is_unmaterialised(store: Store, entry: Any, without: Guards) -> bool:
    """Whether a fresh listing shows that the entry's file must still be created."""
    if entry is None or entry[0] == "A" or not claimed(store, entry[1]) or ("c", entry[1]) in store:
        return False
    if entry[0] == "P" and ("q", entry[1]) not in store and "a plan appears under its own claim" not in without:
        return False
    if given_up(store, entry[1], without):
        return False
    if entry[1] < timeline(store)[0][0] and "late claims never helped" not in without:
        return False
    return file_of(entry)[0] not in store


def given_up(store: Store, instant: int, without: Guards) -> bool:
    """Whether the chain, read after the listing, aborts the instant: behind its plan, or behind its
    commit, which is taken back."""
    entry = decided(store, instant)
    return entry is not None and entry[0] == "A" and "aborted entries never helped" not in without


def materialise(
    store: Store, entry: Any, process: ChainProcess, label: str, to: Location, again: Location
) -> Iterator[Step]:
    """Create the timeline file of an entry; idempotent. `again` is where a lost reply leads."""
    if entry is None:
        yield Step(f"{label}: entry trimmed", to)
        return
    instant = entry[1]
    name, body = file_of(entry)
    if process.timed and entry[0] == "C":
        yield from _materialise_timed(store, entry, process, label, to, again)
    elif name in store:
        yield Step(f"{label} =412", to)
    elif process.strict and ("b", instant) not in store:
        yield Step(f"{label}: source gone", to)
    else:
        yield Step(f"{label} =ok", to, ((name, body),))
        lost = ("copy-absent", name, ("b", instant)) if process.strict else ("absent", name, body)
        yield Step(f"{label} =?", again, lost=lost)


def _materialise_timed(
    store: Store, entry: Any, process: ChainProcess, label: str, to: Location, again: Location
) -> Iterator[Step]:
    """The same where the file's name tells the completion time: only what the entry says makes it
    one name for all helpers."""
    instant, body = entry[1], entry[2]
    time = entry[4] + ("completion time in entry" in process.without) * ord(process.name[0])
    if ("ct", instant, time) in store:
        yield Step(f"{label} as {instant}_{time} =412", to)
        return
    yield Step(f"{label} as {instant}_{time} =ok", to, ((("c", instant), body), (("ct", instant, time), 1)))
    yield Step(f"{label} as {instant}_{time} =?", again, lost=("absent", ("ct", instant, time), body))


def live(store: Store, instant: int) -> bool:
    """Fresh listing before materialising: claim there, not completed, not older than the first
    completed instant."""
    return claimed(store, instant) and ("c", instant) not in store and instant >= timeline(store)[0][0]


def undo(store: Store, at: Location, without: Guards) -> Iterator[Step]:
    """Carry out a plan, of which `at` says the instant, the step and the known tail; its last item
    is where it ends.

    Every target's abort, then of each its claims before its completed file, then files, at last the
    completed restore.
    """
    _, instant, number, known, back = at
    targets, mask = store[("z", instant)]
    removals = ["completed", "claims"] if "claims before the completed file" in without else ["claims", "completed"]
    program = [] if "what is taken back is aborted" in without else [("abort", t) for t in targets]
    program += [(kind, t) for t in targets for kind in removals]
    program += [("files", t) for t in targets] + [("complete", instant)]
    if "files last" in without:
        program.sort(key=lambda item: item[0] != "files")
    kind, target = program[number]
    following = ("undo", instant, number + 1, known, back)
    if kind == "abort":
        entry = store.get(("h", known + 1))
        if entry is None:
            writes = ((("h", known + 1), ("A", target)),)
            yield Step(f"PUT chain/{known + 1}=abort {target}", following, writes)
        else:
            done = following if entry == ("A", target) else at
            yield Step(f"GET chain/{known + 1}", (*done[:3], known + 1, back))
    elif kind == "claims":
        yield Step(f"DELETE {target}.requested", following, tuple(((claim, target), None) for claim in CLAIMS))
    elif kind == "completed":
        yield Step(f"DELETE {target}.commit", following, ((("c", target), None),))
    elif kind == "files":
        files = files_of(store, target)
        yield Step(f"DELETE {files[0]}", at, ((files[0], None),)) if files else Step("LIST: no files left", following)
    else:
        yield Step(f"PUT {instant}.restore", back, ((("zc", instant), (targets, mask)),))


def expired(at: Location, to: Location, matters: bool = True) -> Iterator[Step]:
    """The process slept past its proof or listing: what this permitted is over."""
    if matters:
        yield Step(f"sleeps past its right in {at[0]}", to)


__all__ = [
    "LATE", "UNDECIDED", "ChainProcess", "Env", "Guards", "expired", "gap", "given_up", "is_unmaterialised", "live", "materialise",
    "prove", "refusal", "slot_of", "undo", "unmaterialised",
]  # fmt: skip
