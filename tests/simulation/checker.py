"""What a history may look like: every write at one moment between its call and its return, every
read the table at one such moment.

The decision chain tells the order of the writes; that it is the order of a real table is not
believed but checked: a write that was acknowledged is in it once, behind whatever had been
acknowledged before it was asked, one that failed is not in it, one whose outcome is unknown may be.
A read shows exactly what the first so many decisions have written: all that had been acknowledged
when it began, or read before by anybody, and nothing that was decided after its end. A read pinned
to an instant shows the same of the instants up to that one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Set
from dataclasses import dataclass, field

from hudi_table.model.timeline.chain import ChainEntry, Kind
from tests.simulation.history import Event, History
from tests.simulation.script import DROP, READS

REPLACING = ("overwrite", DROP)
Change = tuple[str, str, str, str]
"""An operation, a key, the write of its row before and after."""
Rows = dict[str, tuple[str, str]]
"""Of each key the write that the row is of, and its instant."""


@dataclass(frozen=True)
class Step:
    """The table changes: a write is decided at its slot, or the file by which one had completed is
    deleted (`is_removal`). `tells_place`: it excludes who replaces its partition, or begins file
    groups in what it replaces."""

    moment: float
    instant: str
    write: str = ""
    is_removal: bool = False
    tells_place: bool = True


@dataclass
class Checker:
    """One history beside the steps of its table. `place`: the partition of a key, all of which an
    overwrite replaces."""

    history: History
    steps: list[Step]
    place: Callable[[str], str] = lambda _: ""
    anomalies: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._writes = {event.write: event for event in self.history.events if event.write}
        self._moments = [step.moment for step in self.steps]
        self._states: list[list[Step]] = [[]]
        for step in self.steps:
            last = self._states[-1]
            self._states.append(
                [other for other in last if other.instant != step.instant] if step.is_removal else [*last, step]
            )
        self._rows: dict[tuple[int, str | None], Rows] = {}
        self._void: set[tuple[str, str]] = set()
        self._applied: set[tuple[str, str]] = set()
        self._places = {step.instant: number for number, step in reversed([*enumerate(self.steps, 1)])}
        self._bounds: list[tuple[float, int]] = []
        self._seen: list[tuple[float, int]] = []

    def check(self) -> list[str]:
        """What is wrong; empty if nothing is."""
        self._check_writes()
        self._check_reads()
        for event in self.history.events:
            if event.outcome == "broken":
                self._say(event, event.message)
        self.anomalies += self.history.broken
        return self.anomalies

    def state(self, number: int, pin: str | None = None) -> Rows:
        """The rows after so many steps, as of an instant. The later of two writes of a key counts;
        a pinned read goes by instants."""
        known = self._rows.get((number, pin))
        if known is not None:
            return known
        rows: Rows = {}
        for step in self._counted(number, pin):
            self._apply(rows, step)
        self._rows[number, pin] = rows
        return rows

    def _apply(self, rows: Rows, step: Step) -> list[Change]:
        """What a step does to the rows, and what it changes."""
        event = self._writes.get(step.write)
        if event is None:
            return []
        changes: list[Change] = []
        if event.kind in REPLACING:
            replaced = {self.place(key) for key in event.keys}
            gone = [key for key in rows if self.place(key) in replaced and (event.write, key) not in self._void]
            changes += [("d", key, rows.pop(key)[0], "") for key in gone]
        for key in event.keys if event.kind != DROP else ():
            before = rows[key][0] if key in rows else ""
            if event.kind != "delete" and before and self._writes[before].ts > event.ts:
                continue
            if event.kind != "delete":
                changes.append(("u" if before else "i", key, before, step.write))
                rows[key] = (step.write, step.instant)
            elif before and (event.write, key) not in self._void:
                changes.append(("d", key, before, ""))
                del rows[key]
        return changes

    def _changes(self, event: Event, number: int) -> list[Change]:
        """What the first so many steps have changed since an instant."""
        rows: Rows = {}
        found: list[Change] = []
        for step in self._counted(number, None):
            changed = self._apply(rows, step)
            found += changed if self._is_since(event, step.instant) else []
        return sorted(found)

    def _is_since(self, event: Event, instant: str) -> bool:
        """Whether what an instant has written is among what has changed since the one of before, by
        the order of instants or of completions."""
        since = event.since or ""
        return self._places[instant] > self._places[since] if event.by_completion else instant > since

    def _counted(self, number: int, pin: str | None) -> list[Step]:
        steps = self._states[number]
        if pin is None:
            return steps
        return sorted((step for step in steps if step.instant <= pin), key=lambda step: step.instant)

    def _say(self, event: Event, what: str) -> None:
        self.anomalies.append(f"{event.process} {event.kind} {event.write} at {event.begun:.3f}: {what}")

    def _check_writes(self) -> None:
        places: dict[str, list[int]] = {}
        for number, step in enumerate(self.steps):
            if not step.is_removal and step.write:
                places.setdefault(step.write, []).append(number)
        for write, numbers in places.items():
            if write not in self._writes:
                self.anomalies.append(f"{write} is decided, and nobody asked for it")
                continue
            event, step = self._writes[write], self.steps[numbers[0]]
            if len(numbers) > 1:
                self._say(event, f"doubled: decided {len(numbers)} times")
            if not event.begun <= step.moment:
                self._say(event, "decided before it was asked")
            if event.outcome == "done" and (step.moment > event.ended or step.instant != event.instant):
                self._say(event, f"acknowledged as {event.instant} by {event.ended:.3f}, decided as {step.instant}")
            if event.outcome not in ("done", "unknown", "CommitStateUnknown", "broken"):
                self._say(event, f"failed ({event.outcome}: {event.message}) and is decided")
        for event in self._writes.values():
            if event.outcome == "done" and event.write not in places and (event.keys and event.instant):
                self._say(event, "acknowledged and not decided")

    def _check_reads(self) -> None:
        acknowledged = [
            (event.ended, self._place_of(event)) for event in self._writes.values() if event.outcome == "done"
        ]
        acknowledged += [(step.moment, number + 1) for number, step in enumerate(self.steps) if step.is_removal]
        for moment, place in sorted(acknowledged):
            self._bounds.append((moment, max(place, self._bounds[-1][1] if self._bounds else 0)))
        reads = [event for event in self.history.events if event.kind in READS]
        for event in sorted(reads, key=lambda event: event.ended):
            if event.outcome == "Unavailable" and not event.met:
                self._say(event, f"not readable, and no fault was there: {event.message}")
            if event.outcome != "done":
                continue
            least = self._acknowledged(event.begun) if event.pin else self._least(event.begun)
            most = max(least, bisect_right(self._moments, event.ended))
            found = self._matching(event, least, most)
            if found is None:
                self._say(event, self._difference(event, least, most))
            elif event.pin is None:
                self._seen.append((event.ended, found))

    def _acknowledged(self, begun: float) -> int:
        """How many steps count for certain of who begins at a moment: those of acknowledged writes,
        and what was decided before them."""
        at = bisect_right(self._bounds, (begun, len(self.steps) + 1))
        return self._bounds[at - 1][1] if at else 0

    def _least(self, begun: float) -> int:
        """The same with what a read had shown by then."""
        return max([self._acknowledged(begun), *(place for ended, place in self._seen if ended < begun)])

    def _place_of(self, event: Event) -> int:
        """How many steps a reader sees at the least once the write is acknowledged."""
        for number, step in enumerate(self.steps):
            if step.write == event.write:
                return number + 1
        return 0

    def _matching(self, event: Event, least: int, most: int) -> int | None:
        """The fewest steps that explain a read."""
        numbers = range(least, most + 1)
        if event.changes is not None:
            told = sorted(event.changes)
            # Which deletes met nothing is not worked out here.
            return next((n for n in numbers if self._changes(event, n) == told or self._open_deletes(n, None)), None)
        if event.rows is None:
            counts = ((number, self.state(number), self._open_deletes(number, None)) for number in numbers)
            return next(
                (n for n, rows, doubt in counts if len(rows) <= (event.count or 0) <= len(rows.keys() | doubt)), None
            )
        read = {key: (by, time) for key, by, time in event.rows}
        if len(read) != len(event.rows):
            return None
        sought = event.sought

        def shows(number: int) -> bool:
            state = self._asked(event, self.state(number, event.pin))
            return (state if sought is None else {k: row for k, row in state.items() if k == sought}) == read

        found = next((number for number in numbers if shows(number)), None)
        if found is None and sought is not None:
            # Of one key alone: a delete that may have met nothing explains any row of it.
            doubts = (self._open_deletes(number, event.pin) for number in numbers)
            return least if any(sought in doubt for doubt in doubts) else None
        if found is None:
            found = next((number for number in numbers if self._explained(number, event, read)), None)
        if found is not None and sought is None and event.since is None and event.of is None:
            # Where another number of steps may explain the read, too, a delete counts only if it is open after those as well.
            others = [self._open_deletes(number, event.pin).items() for number in numbers]
            self._applied.update(
                (write, key)
                for key, write in others[0]
                if key not in read and all((key, write) in each for each in others)
            )
        return found

    def _asked(self, event: Event, rows: Rows) -> Rows:
        """Of a state what the read asks for: all of it, or what one write has written, or what has
        changed since an instant."""
        if event.of is not None:
            return {key: row for key, row in rows.items() if row[0] == event.of}
        if event.since is None:
            return rows
        return {key: row for key, row in rows.items() if self._is_since(event, row[1])}

    def _explained(self, number: int, event: Event, read: Rows) -> bool:
        """Whether deletes and overwrites that met nothing explain what a read shows beyond the
        state. From then on they count as such.

        A delete reads which of its keys are there, and of those that are not it writes nothing:
        beside a first write of such a key, which it has not seen, it stands before that write,
        whatever the order of their decisions is. So does an overwrite beside a bulk insert, if one
        of both did not tell the other of its partition, as another engine's does not.
        """
        tried: set[tuple[str, str]] = set()
        pin = event.pin
        while True:
            # Of several that met nothing of a key the first explains it no more once it counts as such: the next has to.
            state = self.state(number, pin)
            beyond = {key for key, row in read.items() if state.get(key) != row}
            doubt = self._open_deletes(number, pin)
            new = {(doubt[key], key) for key in beyond if key in doubt} - self._applied
            if not new or len(new) < len(beyond):
                break
            tried |= new
            self._void |= new
            self._rows.clear()
            if self._asked(event, self.state(number, pin)) == read:
                return True
        self._void -= tried
        self._rows.clear()
        return False

    def _open_deletes(self, number: int, pin: str | None) -> dict[str, str]:
        """Of keys that are not there after so many steps the delete that took them, if all that
        did may not have seen the row, which was neither acknowledged nor shown when they began: of
        several the first. So of keys that were written again with a lower ordering value: where the
        delete has met nothing, the row of before it counts."""
        found: dict[str, str] = {}
        decided: dict[str, int] = {}

        def take(key: str, by: Event, *, sees: bool = False) -> None:
            if not sees and self._least(by.begun) < decided[key]:
                found.setdefault(key, by.write)
            else:
                # This one has seen the row, so it is gone whatever the others met.
                found.pop(key, None)
                del decided[key]

        for step in self._counted(number, pin):
            event = self._writes.get(step.write)
            if event is None:
                continue
            if event.kind in REPLACING:
                replaced = {self.place(key) for key in event.keys}
                for key in [
                    key for key in decided if self.place(key) in replaced and (step.write, key) not in self._void
                ]:
                    take(key, event, sees=step.tells_place and self.steps[decided[key] - 1].tells_place)
            for key in event.keys if event.kind != DROP else ():
                if event.kind != "delete":
                    if key in decided and self._writes[self.steps[decided[key] - 1].write].ts > event.ts:
                        continue
                    decided[key] = self._places[step.instant]
                    found.pop(key, None)
                elif (step.write, key) not in self._void and key in decided:
                    take(key, event)
        return found

    def _difference(self, event: Event, least: int, most: int) -> str:
        if event.changes is not None:
            expected = Counter(self._changes(event, most))
            told = Counter(event.changes)
            return f"changes since {event.since}, of {most} steps: lacks {expected - told}, tells {told - expected}"
        if event.rows is None:
            counts = sorted({len(self.state(number)) for number in range(least, most + 1)})
            return f"counted {event.count}, there were {counts}"
        doubled = sorted({key for key, _, _ in event.rows if sum(row[0] == key for row in event.rows) > 1})
        if doubled:
            return f"rows twice: {doubled} of {sorted(event.rows)}"
        read = {key: (by, time) for key, by, time in event.rows}
        place = min(
            range(least, most + 1), key=lambda number: len(self.state(number, event.pin).items() ^ read.items())
        )
        state = self._asked(event, self.state(place, event.pin))
        lacking, beyond = dict(state.items() - read.items()), dict(read.items() - state.items())
        pin = f" as of {event.pin}" if event.pin else f" since {event.since}" if event.since else ""
        pin += f" of {event.of}" if event.of else ""
        return f"after {least} to {most} steps{pin}: nearest is {place}, of which it lacks {lacking} and beyond which it shows {beyond}"


def steps_of(decided: list[tuple[float, int, bytes]], removed: list[tuple[float, str]]) -> list[Step]:
    """The steps of a table: its decided writes in the order of their slots, and the completed files
    of aborted ones that were deleted."""
    steps: list[Step] = []
    aborted: set[str] = set()
    last = 0.0
    for moment, _, data in sorted(decided, key=lambda item: item[1]):
        entry = ChainEntry.from_json(data)
        last = max(last, moment)
        if entry.kind is Kind.ABORT:
            aborted.add(entry.instant)
        elif entry.kind is Kind.COMMIT:
            steps.append(Step(last, entry.instant, entry.batch, tells_place=tells_place(entry.conflict_keys)))
    return with_removals(steps, removed, aborted)


def with_removals(steps: Collection[Step], removed: list[tuple[float, str]], aborted: Set[str]) -> list[Step]:
    """These steps, and the completed files of aborted ones that were deleted, by their moments."""
    known = {step.instant for step in steps}
    gone = [Step(moment, time, is_removal=True) for moment, time in removed if time in aborted & known]
    return sorted([*steps, *gone], key=lambda step: step.moment)


def tells_place(conflict_keys: tuple[str, ...]) -> bool:
    """Whether a decision of ours excludes who replaces the partitions that it begins file groups
    in, or who begins some in what it replaces."""
    kinds = {key.partition(":")[0] for key in conflict_keys}
    return "replace" in kinds if "partition" in kinds else not kinds <= {"batch", "instant"}
