"""A monitor that holds a recorded trace against the steps of `docs/explanation/commit-protocol.md`.

It maps each mutating call to the step that it must be and requires the step to be enabled by what
its process has seen and done before. Reads are always allowed, they are what enables steps. Chain
entries are immutable, so their content is taken from the store after the run. What the trace does
not show is not judged: ages, contents, and the order of simultaneous calls of one process's threads
(proofs and markers are counted, not paired).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hudi_table.model.names import (
    CHAIN,
    HEARTBEAT,
    HOODIE,
    METADATA_TABLE,
    PARTITION_METADATA,
    PROPERTIES,
    TEMP,
    TURNS,
    parse_base_file,
    parse_marker,
)
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path, sequence_of
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, State, parse_instant
from hudi_table.table.store.ports import Storage
from tests.support.recording import Step

DONE, EXISTS, UNKNOWN, MISSING = "ok", "ObjectExists", "OutcomeUnknown", "ObjectNotFound"


class ProtocolError(AssertionError):
    """A call that is no enabled step of the protocol."""


@dataclass
class Attempt:
    """What one process has done for one instant."""

    claim: str = ""
    tail_at_claim: int = 0
    listed: bool = False
    looked: bool = False
    inflight: bool = False
    claims_seen: int = 0
    proofs: int = 0
    markers: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    decided: bool = False
    published: bool = False
    cleared: bool = False


@dataclass
class Knowledge:
    """What one process knows: slots that it read or created, the tail that it saw, instants of
    which it knows more."""

    tail: int | None = None
    slots: set[int] = field(default_factory=set)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    spent: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    committed: set[str] = field(default_factory=set)
    rolling: dict[str, State] = field(default_factory=dict)
    completed: set[str] = field(default_factory=set)


def chain_entries(storage: Storage) -> dict[int, ChainEntry]:
    """All chain entries of a table, by number."""
    found = ((sequence_of(info.path), info.path) for info in storage.list(CHAIN))
    return {number: ChainEntry.from_json(storage.get(path)) for number, path in found if number is not None}


def check(steps: Iterable[Step], entries: Mapping[int, ChainEntry]) -> ProtocolMonitor:
    """Feed a whole trace. Raises ProtocolError at the first call that is no enabled step."""
    monitor = ProtocolMonitor(entries)
    for step in steps:
        monitor.feed(step)
    return monitor


class ProtocolMonitor:
    """The automaton of writers and recoveries. A process and its tasks (`name/task`) are one
    process."""

    def __init__(self, entries: Mapping[int, ChainEntry]) -> None:
        self.entries = dict(entries)
        self.processes: dict[str, Knowledge] = {}
        self.seen: set[str] = set()
        self.shown: set[str] = set()

    def feed(self, step: Step) -> None:
        """Judge one call and remember what it taught its process."""
        known = self.processes.setdefault(step.process.split("/")[0], Knowledge())
        if step.call in ("put", "write", "delete"):
            handler = self._handler(step.key)
            if handler is None:
                raise ProtocolError(f"no step of the protocol: {step}")
            self.seen.add(handler.__name__.removeprefix("_"))
            handler(known, step)
        elif step.result == DONE or (step.call == "head" and step.result == MISSING):
            self._learn(known, step)

    def finished(self, process: str, instant: str) -> bool:
        """Whether the process took an instant through all steps: claim to clearing."""
        attempt = self.processes[process].attempts.get(instant)
        return attempt is not None and attempt.decided and attempt.published and attempt.cleared

    # -- which step a call is ----------------------------------------------------------------------------------------

    def _handler(self, key: str) -> Callable[[Knowledge, Step], None] | None:
        folder, _, name = key.rpartition("/")
        if folder == CHAIN:
            return self._decision if sequence_of(key) is not None else _free
        if folder == HOODIE:
            if key.startswith(PROPERTIES):
                return _free
            instant = parse_instant(name)
            if instant is None:
                return None
            return self._rollback if instant.action is Action.ROLLBACK else self._timeline_handler(instant)
        if key.startswith(f"{TEMP}/"):
            return self._marker
        if key.startswith((f"{HEARTBEAT}/", f"{TURNS}/", f"{METADATA_TABLE}/")) or name == PARTITION_METADATA:
            return _free
        return self._file if parse_base_file(name) is not None else None

    def _timeline_handler(self, instant: Instant) -> Callable[[Knowledge, Step], None] | None:
        if instant.action not in WRITE_ACTIONS:
            return None
        handlers = {State.REQUESTED: self._claim, State.INFLIGHT: self._inflight, State.COMPLETED: self._publication}
        return handlers[instant.state]

    # -- what reads teach --------------------------------------------------------------------------------------------

    def _learn(self, known: Knowledge, step: Step) -> None:
        number = sequence_of(step.key)
        if step.call == "get" and step.key.startswith(CHAIN) and number is not None:
            self._read_slot(known, number)
        elif step.call == "list" and step.key == CHAIN:
            self._listed_chain(known, step)
        elif step.call == "list" and step.key == HOODIE:
            # What began lately, which is all that a writer asks for that has lost a slot.
            for attempt in known.attempts.values():
                attempt.looked = True
        elif step.call == "list_dir" and step.key == HOODIE:
            for attempt in known.attempts.values():
                attempt.listed = attempt.looked = True
                attempt.claims_seen += attempt.claim in step.keys
            instants = (parse_instant(path.rpartition("/")[2]) for path in step.keys)
            known.completed = {i.time for i in instants if i is not None and i.completed and i.action in WRITE_ACTIONS}
            self.shown |= known.completed
        elif step.call == "head" and step.result == DONE:
            for attempt in known.attempts.values():
                attempt.claims_seen += step.key == attempt.claim

    def _listed_chain(self, known: Knowledge, step: Step) -> None:
        numbers = [n for n in map(sequence_of, step.keys) if n is not None]
        known.tail = max([known.tail or 0, *numbers])
        for attempt in known.attempts.values():
            if attempt.claims_seen > attempt.proofs:
                attempt.proofs += 1

    def _read_slot(self, known: Knowledge, number: int) -> None:
        known.slots.add(number)
        entry = self.entries.get(number)
        if entry is not None and entry.kind is not Kind.PLAN:
            (known.aborted if entry.kind is Kind.ABORT else known.committed).add(entry.instant)

    # -- steps of a writer (section 2.1) -----------------------------------------------------------------------------

    def _claim(self, known: Knowledge, step: Step) -> None:
        instant = _instant(step)
        if step.call == "delete":
            dropped = instant in known.attempts and not known.attempts[instant].markers
            late = bool(known.completed) and instant < min(known.completed)
            _require(dropped or late or self._may_finish(known, instant), step, "the claim may not be deleted yet")
            known.attempts.pop(instant, None)
            return
        _require(step.condition == "absent", step, "a claim is created exclusively")
        _require(known.tail is not None, step, "the tail of the chain is read before the claim (step 1)")
        _require(instant not in known.spent, step, "an instant whose claim failed is never used again (step 2)")
        if step.result != DONE:
            known.spent.add(instant)
            return
        known.attempts[instant] = Attempt(claim=step.key, tail_at_claim=known.tail or 0)

    def _inflight(self, known: Knowledge, step: Step) -> None:
        instant = _instant(step)
        if step.call == "delete":
            late = bool(known.completed) and instant < min(known.completed)
            _require(late or self._may_finish(known, instant), step, "the inflight file may not be deleted yet")
            return
        attempt = self._own(known, instant, step)
        _require(attempt.listed, step, "the snapshot is listed after the claim (step 3)")
        attempt.inflight, attempt.looked = True, False

    def _marker(self, known: Knowledge, step: Step) -> None:
        instant, _, rest = step.key.removeprefix(f"{TEMP}/").partition("/")
        if step.call == "delete":
            attempt = known.attempts.get(instant)
            own = attempt is not None and attempt.published
            _require(own or instant in known.aborted, step, "markers go after publication or rollback (step 6)")
            if attempt is not None:
                attempt.cleared = True
            return
        attempt = self._own(known, instant, step)
        # The first line of the other file of a batch says in which form markers are.
        is_batch = rest.startswith("MARKERS")
        names = [line for line in step.keys if line != "TIMELINE_SERVER_BASED"] if is_batch else [rest]
        marked = [marker[0] for marker in map(parse_marker, names) if marker is not None]
        _require(len(marked) == len(names), step, "a marker names a data file")
        _require(attempt.inflight, step, "the inflight file comes before the first marker (step 4)")
        _require(not attempt.decided, step, "no file after the decision")
        _require(attempt.proofs > 0, step, "the right is proved before files (2.7)")
        attempt.markers += [path for path in marked if path not in attempt.markers]

    def _file(self, known: Knowledge, step: Step) -> None:
        name = parse_base_file(step.key.rpartition("/")[2])
        assert name is not None
        instant = name.instant
        if step.call == "delete":
            attempt = known.attempts.get(instant)
            reconciled = attempt is not None and not attempt.decided and not self._in_commit(instant, step.key)
            _require(reconciled or instant in known.aborted, step, "a file goes only after the abort of its instant")
            return
        attempt = self._own(known, instant, step)
        _require(step.key in attempt.markers, step, "the marker comes before the file (step 4)")
        _require(not attempt.decided, step, "no file after the decision")
        if step.result in (DONE, UNKNOWN):
            attempt.files.add(step.key)

    def _decision(self, known: Knowledge, step: Step) -> None:
        number = sequence_of(step.key)
        assert number is not None
        _require(step.call == "put" and step.condition == "absent", step, "a slot is created exclusively, for ever")
        _require(known.tail is not None, step, "the tail is read before a decision")
        entry = self.entries.get(number)
        mine = step.result in (DONE, UNKNOWN) and entry is not None
        attempt = known.attempts.get(entry.instant) if mine and entry is not None else None
        first = attempt.tail_at_claim + 1 if attempt is not None else (known.tail or 0)
        unread = [n for n in range(max(first, 1), number) if n not in known.slots]
        _require(not unread, step, f"slots {unread} were skipped unread (step 5)")
        if step.result == EXISTS:
            for other in known.attempts.values():
                other.looked = False
        if step.result != DONE:
            return
        if attempt is not None and entry is not None and entry.kind is Kind.COMMIT:
            _require(attempt.looked, step, "the timeline is listed again before a decision (step 5)")
            _require(attempt.inflight, step, "the files come before the decision (step 4)")
            missing = {path for path in self._paths(entry) if path not in attempt.files}
            _require(not missing, step, f"decided before {sorted(missing)} was written")
            attempt.decided = True
        self._read_slot(known, number)
        known.tail = max(known.tail or 0, number)

    def _publication(self, known: Knowledge, step: Step) -> None:
        instant = _instant(step)
        _require(step.call == "put" and step.condition == "absent", step, "a completed file is created exclusively")
        _require(instant in known.committed, step, "the decision comes before publication (step 6)")
        self._require_order(instant, step)
        if step.result in (DONE, EXISTS, UNKNOWN):
            self.shown.add(instant)
        attempt = known.attempts.get(instant)
        if attempt is not None and step.result in (DONE, EXISTS):
            attempt.decided = attempt.published = True
            attempt.cleared = not attempt.markers

    def _require_order(self, instant: str, step: Step) -> None:
        """All commits that were decided before are there, but those that an abort takes back."""
        aborted = {entry.instant for entry in self.entries.values() if entry.kind is Kind.ABORT}
        commits = [entry.instant for _, entry in sorted(self.entries.items()) if entry.kind is Kind.COMMIT]
        before = commits[: commits.index(instant)] if instant in commits else []
        missing = [time for time in before if time not in self.shown | aborted]
        _require(not missing, step, f"what was decided before, {missing}, is published before it (step 6)")

    # -- steps of a recovery (section 2.2) ---------------------------------------------------------------------------

    def _rollback(self, known: Knowledge, step: Step) -> None:
        instant = parse_instant(step.key.rpartition("/")[2])
        assert instant is not None
        _require(step.call == "put", step, "a rollback's own files stay")
        if instant.state is State.REQUESTED:
            _require(step.condition == "absent", step, "a rollback is claimed exclusively")
            _require(bool(known.aborted), step, "the abort entry comes before the rollback (step 2)")
        elif instant.state is State.COMPLETED:
            _require(instant.time in known.rolling, step, "a rollback is inflight before it completes")
        known.rolling[instant.time] = instant.state

    def _may_finish(self, known: Knowledge, instant: str) -> bool:
        return instant in known.aborted and State.INFLIGHT in known.rolling.values()

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _own(self, known: Knowledge, instant: str, step: Step) -> Attempt:
        attempt = known.attempts.get(instant)
        if attempt is None:
            raise ProtocolError(f"the process holds no claim of {instant} (step 2): {step}")
        return attempt

    def _in_commit(self, instant: str, path: str) -> bool:
        entry = next((e for e in self.entries.values() if e.instant == instant and e.kind is Kind.COMMIT), None)
        return entry is not None and path in self._paths(entry)

    @staticmethod
    def _paths(entry: ChainEntry) -> set[str]:
        return {stat.path for stat in CommitMetadata.from_json(entry.body.encode()).stats}


def _free(known: Knowledge, step: Step) -> None:
    """Allowed at any time: properties, heartbeats, partition metadata, the store's clock."""


def _instant(step: Step) -> str:
    instant = parse_instant(step.key.rpartition("/")[2])
    assert instant is not None
    return instant.time


def _require(condition: bool, step: Step, rule: str) -> None:
    if not condition:
        raise ProtocolError(f"{rule}: {step}")


__all__ = ["ProtocolError", "ProtocolMonitor", "chain_entries", "check", "entry_path"]
