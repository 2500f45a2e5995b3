"""Table versions 8 and 9 (section 2.4): completed files tell when their instant completed, and
slices go by that.

Names, beside those of `store.py`: ('ct', T, c) the completed file `T_c.action`, which is there
whenever ('c', T) is; ('at', T, c) the row of T in the archive. A log is ('l', group, 0, T): its
name tells no slice. A commit entry tells its completion time last: ('C', T, body, touches, c).
Instants and completion times share one line of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.compaction import Compactor
from tests.model.engine import Env, Location, Step, create
from tests.model.rights import Guards, live
from tests.model.services import Archiver
from tests.model.store import Key, Store, chain_max, newest, start_of, tail
from tests.model.writer import Writer

COMMIT_WITH_COMPLETION = 5


def completion(store: Store, instant: int) -> int:
    """When a counted instant completed: by its file's name, else by the archive; a legacy instant,
    of which neither tells it, at its own time."""
    told = (k[2] for kind in ("ct", "at") for k in store if k[0] == kind and k[1] == instant)
    return next(told, instant)


def completions(store: Store) -> list[int]:
    """Every completion time that a listing shows."""
    return [k[2] for k in store if k[0] == "ct"]


def chain_completions(store: Store, upto: int) -> list[int]:
    """Completion times of the entries up to number `upto`."""
    entries = (store.get(("h", n)) for n in range(1, upto + 1))
    return [entry[4] for entry in entries if entry and entry[0] == "C" and len(entry) == COMMIT_WITH_COMPLETION]


def newest_time(store: Store) -> int:
    """The newest instant or completion time of the timeline and of the chain: in the code one
    running maximum that each entry carries."""
    return max(newest(store), chain_max(store), *completions(store), *chain_completions(store, tail(store)))


def slices(store: Store) -> dict[str, tuple[int, list[Key]]]:
    """{group: (mask of the newest completed base file, the logs that a reader puts on it or on the
    slice of a pending compaction behind it)}."""
    known, first = {k[1] for k in store if k[0] == "c"}, start_of(store)
    if not known:
        return {}
    hidden = {group for k, v in store.items() if k[0] == "c" for group in v[1]}
    pending = [(k[1], v) for k, v in store.items() if k[0] == "k" and k[1] not in known]
    counted = {t for k in store if k[0] in "dl" for t in (k[2] if k[0] == "d" else k[3],) if t in known or t < first}
    counted -= {t for t, _ in pending}
    found: dict[str, tuple[int, list[Key]]] = {}
    for group in {k[1] for k in store if k[0] in "dl"} - hidden:
        bases = {k[2]: v for k, v in store.items() if k[0] == "d" and k[1] == group and k[2] in counted}
        begun = sorted([*bases, *(t for t, groups in pending if group in groups)])
        base = max(bases, default=0)
        logs = [k for k in store if k[0] == "l" and k[1] == group and k[3] in counted]
        on = [log for log in logs if max((s for s in begun if s <= completion(store, log[3])), default=0) >= base]
        found[group] = (bases.get(base, 0), sorted(on))
    return found


def view_by_completion(store: Store) -> dict[str, int]:
    """{group: mask} as a reader of versions 8 and 9 sees it."""
    result = {}
    for group, (mask, logs) in slices(store).items():
        for log in logs:
            mask |= store[log]
        if mask:
            result[group] = mask
    return result


def completions_violated(store: Store) -> str | None:
    """I10: completion times rise along the chain, the archive tells what the name told, and a plan
    takes what readers put before it; I3: no log counts twice."""
    chain = [entry for _, entry in sorted((k[1], v) for k, v in store.items() if k[0] == "h")]
    commits = [entry for entry in chain if len(entry) == COMMIT_WITH_COMPLETION and entry[0] == "C"]
    times = [entry[4] for entry in commits]
    if times != sorted(set(times)) or any(entry[4] <= entry[1] for entry in commits):
        return f"I10 completion times of the chain do not rise: {times}"
    for key in store:
        if key[0] == "at" and any(entry[1] == key[1] and entry[4] != key[2] for entry in commits):
            return f"I10 the archive has another completion time of {key[1]}"
    for plan in (entry for entry in chain if entry[0] == "P"):
        for commit in commits:
            for log in (file for file in commit[2][0] if file[0] == "l" and file[1] in plan[3]):
                taken = log in plan_logs(plan)
                if taken != (commit[4] < plan[1]):
                    return f"I10 the plan {plan[1]} {'has' if taken else 'lacks'} the log of {commit[1]}, completed at {commit[4]}"
    for group, (mask, logs) in slices(store).items():
        if any(store[log] & mask for log in logs):
            return f"I3 a log of {group} counts again on the base file that has it"
    return None


def plan_logs(entry: Any) -> tuple[Key, ...]:
    """The logs that a plan takes."""
    return tuple(log for log, _ in entry[4][1])


class TimedWriter(Writer):
    """A writer that decides its completion time with its commit. `ahead`: offsets of a free clock;
    `rewrites`: it merges its groups' logs into base files."""

    def __init__(self, *arguments: Any, ahead: tuple[int, ...] = (0,), rewrites: bool = False, **more: Any):
        super().__init__(*arguments, timed=True, **more)
        self.ahead, self.rewrites = ahead, rewrites

    def bases(self, store: Store) -> tuple[tuple[int, int], ...]:
        if self.logs:
            return tuple((0, 0) for _ in self.groups)
        if self.rewrites:
            return tuple((0, view_by_completion(store).get(group, 0)) for group in self.groups)
        return super().bases(store)

    def newest_done(self, store: Store) -> int:
        # An instant of the same number as a completion time is not newer: readers put the completed log on its base file.
        more = [] if "instants above completions" in self.without else [time + 1 for time in completions(store)]
        return max(super().newest_done(store), *more, 0)

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        plain = "instants above completions" in self.without
        above = max(newest(store), chain_max(store)) if plain else newest_time(store)
        floor = max(above, at[1] if len(at) > 1 else 0)
        for instant in range(floor + 1, floor + 1 + self.skew):
            yield Step(f"LIST chain: tail {tail(store)}; draw {instant}", ("claim", instant, tail(store)))

    def at_decide(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, files, completed, sent = at
        slot = known + 1
        floor = completion_floor(store, instant, known, self.without)
        for ahead in self.ahead:
            time = floor + 1 + ahead
            # A lost request may still create the slot: what was sent is no more than a guess until the slot is read.
            look = ("look", instant, known, files, completed)
            published, label = ("publish", instant, slot, files, time), f"PUT chain/{slot}=commit {instant} at {time}"
            entry = (*self.entry(instant, files), time)
            yield from create(store, ("h", slot), entry, label, ok=published,
                              refused=(*look, sent and time), unknown=(*look, time))  # fmt: skip

    def at_look(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        _, instant, known, files, _, sent = at
        entry = store.get(("h", known + 1))
        if entry is None or entry[:4] != self.entry(instant, files):
            yield from super().at_look(at, store, env)
            return
        time = sent if "completion time read back" in self.without else entry[4]
        yield Step(f"GET chain/{known + 1}: own commit", ("relist", instant, known + 1, files, time))

    def committed(self, at: Location) -> Any:
        return (*self.entry(at[1], at[3]), at[4])

    def _conflicts(self, entry: Any) -> bool:
        if entry[0] == "P" and "deltas conflict with compactions" in self.without:
            return False
        return super()._conflicts(entry)


class AppendingWriter(TimedWriter):
    """A writer of logs that excludes nobody who appends too, and that no plan of a compaction
    excludes."""

    def _conflicts(self, entry: Any) -> bool:
        return entry[0] != "P" and super()._conflicts(entry)


def completion_floor(store: Store, instant: int, known: int, without: Guards) -> int:
    """What a completion time decided behind entry `known` must exceed: every instant and completion
    time up to there, and the instant itself."""
    told = [] if "completions above completions" in without else chain_completions(store, known)
    entries = (store.get(("h", n), ("", 0)) for n in range(1, known + 1))
    plans = () if "completions above instants" in without else (entry[1] for entry in entries)
    return max(instant, 0, *told, *plans)


class TimedCompactor(Compactor):
    """Plans by completion time what completed before the plan's instant; its commit has a
    completion time as any other."""

    def __init__(self, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.timed = True

    def at_draw(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        plain = "instants above completions" in self.without
        instant = (max(newest(store), chain_max(store)) if plain else newest_time(store)) + 1
        yield Step(f"LIST chain: tail {tail(store)}; draw {instant}", ("claim", instant, tail(store)))

    def plan_entry(self, instant: int, draft: Any) -> Any:
        return super().plan_entry(instant, self._taken(instant, draft))

    def follows(self, instant: int, slot: int, draft: Any) -> Location:
        return super().follows(instant, slot, self._taken(instant, draft))

    def commit(self, store: Store, instant: int, known: int) -> Any:
        return (*super().commit(store, instant, known), completion_floor(store, instant, known, self.without) + 1)

    def _taken(self, instant: int, draft: Any) -> Any:
        everything = "a plan takes what completed before it" in self.without
        return draft[0], tuple(pair for pair in draft[1] if everything or pair[1] < instant)

    def _slice(self, store: Store) -> Any:
        mask, logs = slices(store).get(self.group, (0, []))
        return mask, tuple((log, completion(store, log[3])) for log in logs)

    def _base(self, store: Store, instant: int, logs: Any) -> tuple[Key, int]:
        return super()._base(store, instant, (logs[0], tuple(log for log, _ in logs[1])))


class TimedExecutor(TimedCompactor):
    """A second executor: resumes any published plan."""

    mortal = False

    def begin(self) -> Location:
        return ("idle",)

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for slot in range(1, tail(store) + 1):
            entry = store.get(("h", slot), ("", 0))
            if entry[0] == "P" and live(store, entry[1]):
                yield Step(f"resume plan {entry[1]}", ("publish_plan", entry[1], slot, entry[4]))


class TimedArchiver(Archiver):
    """Writes the archive's row, with the completion time, before it deletes anything."""

    def __init__(self, name: str, without: Guards, **more: Any):
        super().__init__(name, **more)
        self.without = without

    def at_idle(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_idle(at, store, env):
            if step.to[0] == "first":
                oldest = step.to[1]
                told = oldest if "archive tells completions" in self.without else completion(store, oldest)
                if "archive before deleting" not in self.without:
                    step.writes = ((("at", oldest, told), 1),)
            yield step

    def at_second(self, at: Location, store: Store, env: Env) -> Iterator[Step]:
        for step in super().at_second(at, store, env):
            timed = tuple((k, None) for k in store if k[0] == "ct" and k[1] == at[1])
            step.writes = (*step.writes, *timed)
            yield step
