"""The simulated processes: each does its operations, one after the other, by the library's own
calls, and is started again when it has died."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from hudi_table.api import HudiTable
from hudi_table.errors import (
    CommitStateUnknownError,
    ExpiredError,
    HudiError,
    InvalidRequestError,
    UnavailableError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_table.model.options.lock_settings import MODE, NON_BLOCKING
from hudi_table.model.options.write_options import FAILED_WRITES
from hudi_table.services.upgrading.run import bring_to
from hudi_table.table.commit.beside.locking import may_decide, section
from hudi_table.table.version_change import noted_change
from tests.simulation.earlier import EARLIER, PRESENT, code_of
from tests.simulation.faults import Requests
from tests.simulation.foreign import at_once
from tests.simulation.history import Event, History
from tests.simulation.scheduler import Killed, Scheduler, SimProcess
from tests.simulation.script import BRING_TO, DROP, FOREIGN, READS, WRITES, Cast, Operation
from tests.simulation.sim_lock import with_sim_lock
from tests.simulation.store import EPOCH, SimStorage, SimStore

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("by", pa.string()), ("ts", pa.int64())])
SERVICE_OPTIONS = {
    "hoodie.cleaner.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "7",
}
ALLOWED = (WriteConflictError, UnavailableError, CommitStateUnknownError)
"""What may come of an operation beside others and under faults."""
REFUSED = (DROP, "roll back", "restore", "savepoint", "delete savepoint", "resize")
"""What says no where what they are asked for is not there, or not old enough."""
_OPERATIONS = {"bulk insert": "bulk_insert", "overwrite": "insert_overwrite", DROP: "delete_partition"}
OTHER_VERSION = "when it was opened; open it again"
RESUMES_AFTER = 1_800.0
CHANGED_AGAIN_AFTER = (20.0, 20.0, 4_000.0, 4_000.0, None)
"""Seconds between the attempts at a change of version; a quarantine ends in the longer ones."""
COLUMNS = ["id", "by", "_hoodie_commit_time"]


@dataclass
class SimClock:
    """The clock of one process: its wall clock is off and jumps, its boot-time clock goes on while
    it is paused."""

    scheduler: Scheduler
    skew: float = 0.0
    jumps: list[tuple[float, float]] = field(default_factory=list)

    def now(self) -> datetime:
        moment = self.scheduler.now
        jumped = sum(by for at, by in self.jumps if at <= moment) if self.jumps else 0.0
        return EPOCH + timedelta(seconds=moment + self.skew + jumped)

    def boot_seconds(self) -> float:
        return 1_000.0 + self.scheduler.now

    def sleep(self, seconds: float) -> None:
        self.scheduler.sleep(seconds)


def rows_of(keys: list[str], by: str, partitions: int, ts: int = 0) -> pa.Table:
    """Rows of a write."""
    cities = [city_of(key, partitions) for key in keys]
    return pa.table({"id": keys, "city": cities, "by": [by] * len(keys), "ts": [ts] * len(keys)}, schema=SCHEMA)


def city_of(key: str, partitions: int) -> str:
    """The partition of a key, always the same."""
    return f"p{sum(key.encode()) % partitions}"


@dataclass
class Actor:
    """One process of the cast, over all its lives. `is_changed`: somebody brings the table to
    another version meanwhile, and whoever comes beside that is refused. `is_non_blocking`: its
    writes append to a bucket beside others; `is_locked`: it takes the lock that writers share."""

    cast: Cast
    store: SimStore
    base: str
    partitions: int
    history: History
    counts: Counter[str]
    seed: int
    is_changed: bool = False
    is_non_blocking: bool = False
    is_locked: bool = False
    options: dict[str, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    requests: Requests = field(init=False)
    done: int = 0
    is_over: bool = False
    pins: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    version: int = 0
    lives: int = 0

    def __post_init__(self) -> None:
        spread = 0.0
        self.requests = Requests(self.store, self.cast.name, self.seed, self.cast.faults, spread, self.counts)
        self.code = code_of(PRESENT if self.cast.code == FOREIGN else self.cast.code)
        self.clock = SimClock(self.store.scheduler, self.cast.skew, self.cast.jumps)
        if self.cast.skew:
            self.counts["clock skew"] += 1

    def start(self) -> None:
        """A new life."""
        self.lives += 1
        process = self.requests.process = SimProcess(self.store.scheduler, self.cast.name)
        process.start(self._live)

    def _live(self) -> None:
        try:
            self._operate()
        except Killed:
            self.counts["restart"] += 1
            self.store.scheduler.at(self.store.scheduler.now + self.cast.restart_after, self.start)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the run has found it
            self.history.broke(self.cast.name, error)
        self.is_over = True

    def _operate(self) -> None:
        table = self.opened()
        while self.done < len(self.cast.operations):
            operation = self.cast.operations[self.done]
            self.done += 1
            self.clock.sleep(operation.think)
            if self.perform(table, operation).outcome == "OtherVersion":
                table = self.opened()

    def opened(self) -> Any:
        """The table as a new process opens it."""
        storage = SimStorage(self.store, self.requests, self.base)
        while True:
            try:
                ctx = self.code.open_context(storage, self.clock)
                return self.code.table(with_sim_lock(ctx, storage) if self.is_locked else ctx)
            except UnavailableError:
                self.clock.sleep(5.0)

    def perform(self, table: HudiTable, operation: Operation) -> Event:
        """One operation, and what came of it, in the history."""
        kind = operation.kind
        event = self.history.begin(self.cast.name, kind, self.store.scheduler.now)
        met = self.requests.met
        allowed: tuple[type[HudiError], ...] = ALLOWED
        # Another engine is told of no building that has a chain entry alone.
        beside = (UnsupportedTableError,) if self.is_changed or self.cast.code == FOREIGN else ()
        if kind in REFUSED or kind.startswith(BRING_TO):
            allowed = (*ALLOWED, InvalidRequestError)
        try:
            if kind in (*WRITES, DROP):
                self._write(table, operation, event)
            elif kind in READS:
                allowed = (UnavailableError, ExpiredError)
                self._read(table, operation, event)
            else:
                self._serve(table, kind)
            event.outcome = "done"
            if self.cast.code == EARLIER:
                self.counts["earlier version"] += 1
        except (*allowed, *beside) as error:
            event.outcome = error.name()
            event.message = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run has found it
            event.outcome = "broken"
            event.message = "".join(traceback.format_exception(error))
        event.met = self.requests.met - met
        event.ended = self.store.scheduler.now
        self.store.trace(f"{event.ended:.6f} {self.cast.name} {kind} {event.write}: {event.outcome} {event.shown()}\n")
        if event.outcome == "WriteConflict":
            self.counts["conflict"] += 1
        if self.is_changed and OTHER_VERSION in event.message and event.outcome == "Unavailable":
            event.outcome = "OtherVersion"
        if event.outcome in ("UnsupportedTable", "OtherVersion") and not kind.startswith(BRING_TO):
            self.counts["refused beside a change"] += 1
        return event

    def _write(self, table: HudiTable, operation: Operation, event: Event) -> None:
        event.write = f"{self.cast.name}.{self.done}"
        if operation.kind in ("insert", "bulk insert"):
            operation.keys[:] = [f"{event.write}{key}" for key in operation.keys if len(key) == 1] or operation.keys
        elif self.is_non_blocking and operation.kind != DROP:
            # Which of two writes of one key counts goes by their instants there: no two lives share one.
            operation.keys[:] = [f"{self.cast.name}-{self.lives}{key[-1]}" for key in operation.keys]
        event.keys = list(operation.keys)
        if self.cast.code == FOREIGN:
            self._write_elsewhere(table, operation.kind, event)
            return
        event.ts = operation.ts
        rows = None if operation.kind == DROP else rows_of(event.keys, event.write, self.partitions, event.ts)
        more: dict[str, Any] = {} if rows else {"partitions": [city_of(key, self.partitions) for key in event.keys]}
        more["options"] = {**self.options, **({MODE: NON_BLOCKING} if self.is_non_blocking else {})}
        name = _OPERATIONS.get(operation.kind, operation.kind)
        more["engine"] = self.code.engine(self.cast.threads)
        result = table.write(rows, operation=name, batch=event.write, **more)  # type: ignore[arg-type]
        event.instant = result.instant
        if result.instant:
            self.pins.append(result.instant)

    def _write_elsewhere(self, table: HudiTable, kind: str, event: Event) -> None:
        """The same by another engine, once it has the lock."""
        rows = rows_of(event.keys, event.write, self.partitions)

        def write(copy: HudiTable) -> None:
            # What is dead it leaves to ours: our way to take it back needs the chain.
            options = {FAILED_WRITES: "NEVER"}
            result = copy.write(rows, operation=_OPERATIONS.get(kind, kind), options=options)  # type: ignore[arg-type]
            event.instant = result.instant

        with section(table.context):
            # To a table without a commit our first write adds one, and ends the claims before that: no way of another engine's.
            if may_decide(table.context) and table._timeline().commits:
                at_once(self.store, self.clock, write)
                self.counts["foreign write"] += 1

    def _read(self, table: HudiTable, operation: Operation, event: Event) -> None:
        kind, pin = operation.kind, None
        if kind == "look up":
            event.sought = operation.keys[0]
        if kind == "read pinned" and self.pins:
            pin = event.pin = self.pins[-1 - (self.done % min(4, len(self.pins)))]
        if kind == "read of" and self.writes:
            event.of = self.writes[-1 - (self.done % min(4, len(self.writes)))]
        if kind == "count":
            event.count = table.scan().count()
            return
        wanted = None if event.sought is None else [("id", "=", event.sought)]
        wanted = wanted if event.of is None else [("by", "=", event.of)]
        changed = self._since(table, event) if kind in ("read since", "read changes") and self.pins else {}
        if kind == "read changes" and changed:
            told = table.changes(changed["since"], columns=["id", "by"]).to_arrow().to_pylist()
            images = ((row["op"], row["before"] or {}, row["after"] or {}) for row in told)
            event.changes = [(op, (a or b)["id"], b.get("by", ""), a.get("by", "")) for op, b, a in images]
            return
        found = table.scan(columns=COLUMNS, as_of=pin, filter=wanted, **changed).to_arrow()
        event.rows = list(zip(*(found.column(name).to_pylist() for name in COLUMNS), strict=True))
        self.writes = sorted({*self.writes, *(row[1] for row in event.rows)})[-8:]
        self.pins.extend({row[2] for row in event.rows} - set(self.pins))
        self.pins.sort()
        if pin is not None:
            self.counts["pinned read"] += 1

    def _since(self, table: HudiTable, event: Event) -> dict[str, Any]:
        """What asks for the changes since an instant of before. Of later versions the range is one
        of moments at which instants completed, which the timeline tells until it is archived."""
        timeline = table._timeline()
        moments = {instant.time: instant.moment for instant in timeline.commits}
        times = [each for each in self.pins if each in moments]
        if not times:
            return {}
        event.since = times[-1 - (self.done % min(4, len(times)))]
        event.by_completion = timeline.layout.tells_completions
        return {"query": "incremental", "since": moments[event.since]}

    def _serve(self, table: HudiTable, kind: str) -> None:
        engine = self.code.engine(self.cast.threads)
        if kind == "roll back":
            newest = [instant.time for instant in table._timeline().commits][-1:]
            for time in newest:
                table.rollback(time)
        elif kind == "savepoint":
            table.savepoint()
        elif kind in ("restore", "delete savepoint"):
            call = table.restore if kind == "restore" else table.delete_savepoint
            for savepoint in table.savepoints()[-1:]:
                call(savepoint.instant)
        elif kind == "resize":
            table.resize_buckets(2 + self.done % 3, options=SERVICE_OPTIONS, engine=engine)
        elif kind == "end resize":
            for instant in table.services.resize.pending():
                table.services.resize.execute(instant, engine=engine)
        elif kind == "drop metadata":
            table.drop_metadata()
        elif kind == "archive":
            table.archive(SERVICE_OPTIONS, force=True)
        elif kind.startswith(BRING_TO):
            self._bring(table, int(kind.removeprefix(BRING_TO)))
        elif kind == "build metadata":
            table.build_metadata(self.metadata)
        else:
            calls: dict[str, Any] = {
                "clean": table.clean,
                "compact": table.compact,
                "compact logs": table.compact_logs,
                "cluster": table.cluster,
            }
            calls[kind]({**SERVICE_OPTIONS, **self.options}, force=True, engine=engine)

    def _bring(self, table: HudiTable, target: int) -> None:
        """Bring the table to another version, again where something is pending, writers come
        between or the store rests; and end what an earlier life of this process began."""
        self.version = self.version or table.context.config.version
        for pause in CHANGED_AGAIN_AFTER:
            try:
                begun = noted_change(table.context.storage)
                if begun is not None:
                    self.counts["resumed change"] += 1
                    # Whoever goes on says that the process before him has ended, what it has sent included.
                    self.clock.sleep(RESUMES_AFTER)
                bring_to(table.context, target, resume=begun is not None)
                break
            except (InvalidRequestError, WriteConflictError, UnavailableError) as error:
                if pause is None or OTHER_VERSION in str(error):
                    raise
                self.clock.sleep(pause)
        version = table.context.config.version
        if version != self.version:
            self.counts["upgrade" if version > self.version else "downgrade"] += 1
        self.version = version
