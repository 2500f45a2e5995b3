"""Writes and every table service in random order, beside readers that are pinned to an instant.

Matrix: {bucket, simple} × {copy-on-write, merge-on-read} × {version 6, 9}, drawn per history. After
every step the table holds the rows of a dictionary, and each pinned reader its own, or it is told
that its moment has expired. A clean deletes nothing that a pending plan, a savepoint or a retained
moment needs. Time moves by hours, so that rollbacks and archiving come about.

Omitted: faults (test_crash_*.py), several writers (tests/hudi_table/write/test_conflicts.py).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError, InvalidRequestError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.service.findings import Severity
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.model.timeline.instants import PLANNED_ACTIONS
from hudi_table.services.base import ScheduledService
from hudi_table.services.doctor.run import examine
from hudi_table.table.commit.pending_plans import live_clusterings
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.opening import open_storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.compaction_plans import planned_slices
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.histories import run_histories
from tests.support.scale import scaled
from tests.support.simulated import SimulatedStorage
from tests.support.tables import TestClock

HISTORIES_LEAST = 40
STEPS = 20
ENGINE = LocalEngine(1)
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
RETAINED = 2
OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.cleaner.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
}
items = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("xy"), st.integers(0, 99)), min_size=1, max_size=4
)  # fmt: skip
planned = st.sampled_from(
    [ServiceType.COMPACTION, ServiceType.LOG_COMPACTION, ServiceType.CLUSTERING, ServiceType.CLEANING]
)
Rows = dict[tuple[str, str], int]
histories = 0
done: Counter[ServiceType] = Counter()
expired: set[tuple[int, str]] = set()


class ServedTable(RuleBasedStateMachine):
    """A table beside its model, its pinned readers and its savepoints."""

    buckets = False
    logs = False
    version = 6
    options = OPTIONS

    @initialize()
    def create(self) -> None:
        global histories
        histories += 1
        self._begin({"type": "Bucket", "buckets": 2} if self.buckets else "Simple")

    def _begin(self, index: str | dict[str, Any]) -> None:
        self.clock = TestClock()
        self.storage = SimulatedStorage(open_storage(f"memory://{uuid.uuid4().hex}/t"), self.clock)
        kind = "MergeOnRead" if self.logs else "CopyOnWrite"
        create(
            self.storage,
            TableSpec(SCHEMA, "id", partition_by=["city"], index=index, name="t", type=kind, version=self.version),
        )
        self.table = HudiTable(open_context(self.storage, self.clock))
        self.rows: Rows = {}
        self.pins: list[tuple[str, Rows]] = []
        self.saved: dict[str, Rows] = {}
        self.past: list[tuple[str, Rows]] = []
        # So that services have something to do from the first step on.
        for value in range(4):
            self.upsert([("a", "x", value), ("b", "x", value), ("c", "y", value)])

    # Writes

    @rule(batch=items)
    def upsert(self, batch: list[tuple[str, str, int]]) -> None:
        def write() -> str:
            return self.table.upsert(rows_of(batch), options=self.options, engine=ENGINE).instant

        if self._written(write):
            self.rows = self.rows | {(name, city): value for name, city, value in batch}
            self._remember()

    @rule(batch=items)
    def delete(self, batch: list[tuple[str, str, int]]) -> None:
        def write() -> str:
            return self.table.delete(rows_of(batch), options=self.options, engine=ENGINE).instant

        if self._written(write):
            gone = {(name, city) for name, city, _ in batch}
            self.rows = {key: value for key, value in self.rows.items() if key not in gone}
            self._remember()

    @rule(batch=items)
    def overwrite(self, batch: list[tuple[str, str, int]]) -> None:
        def write() -> str:
            return self.table.write(
                rows_of(batch), operation="insert_overwrite", options=self.options, engine=ENGINE
            ).instant

        if self._written(write):
            cities = {city for _, city, _ in batch}
            kept = {key: value for key, value in self.rows.items() if key[1] not in cities}
            self.rows = kept | {(name, city): value for name, city, value in batch}
            self._remember()

    # Services

    def _asked(self, kind: ServiceType, *, force: bool = False) -> ScheduledService:
        service = self.table.services.of_type(kind, ServiceRequest(self.options, force))
        assert isinstance(service, ScheduledService)
        return service

    @rule(service=planned)
    def plan(self, service: ServiceType) -> None:
        if self._takes(service):
            self._asked(service, force=True).schedule()

    @rule(service=planned)
    def execute(self, service: ServiceType) -> None:
        if not self._takes(service):
            return
        needed = self._needed()
        before = self._files()
        asked = self._asked(service)
        for instant in asked.pending():
            asked.execute(instant, engine=ENGINE)
            done[service] += 1
        lost = needed & (before - self._files())
        assert not lost, f"{service} deleted what is needed: {sorted(lost)}"

    @rule()
    def clean(self) -> None:
        self.plan(ServiceType.CLEANING)
        self.execute(ServiceType.CLEANING)

    @rule()
    def rewrite(self) -> None:
        if self.buckets and not self.logs:
            return
        service = ServiceType.COMPACTION if self.logs else ServiceType.CLUSTERING
        self.plan(service)
        self.execute(service)

    @rule()
    def archive(self) -> None:
        self.clock.advance(2 * 3600)
        done[ServiceType.ARCHIVING] += len(self.table.services.archiving(self.options).run(engine=ENGINE))

    @precondition(lambda self: self.past)
    @rule()
    def save(self) -> None:
        instant = load_timeline(self.table.context).commits[-1].time
        if instant not in self.saved:
            self.table.services.savepoint(instant, comment="kept").run()
            self.saved[instant] = dict(self.rows)

    @precondition(lambda self: self.saved)
    @rule(pick=st.integers(0, 9))
    def forget(self, pick: int) -> None:
        instant = sorted(self.saved)[pick % len(self.saved)]
        self.table.delete_savepoint(instant, writers_stopped=True)
        del self.saved[instant]

    @precondition(lambda self: self.saved)
    @rule(pick=st.integers(0, 9))
    def restore(self, pick: int) -> None:
        instant = sorted(self.saved)[pick % len(self.saved)]
        for newer in [time for time in self.saved if time > instant]:
            self.table.delete_savepoint(newer, writers_stopped=True)
        self.table.restore(instant, writers_stopped=True)
        done[ServiceType.RESTORE] += 1
        self.rows = dict(self.saved[instant])
        self.saved = {time: rows for time, rows in self.saved.items() if time <= instant}
        self.past = [(time, rows) for time, rows in self.past if time <= instant]

    @precondition(lambda self: len(self.past) > 1)
    @rule()
    def rollback(self) -> None:
        """The newest write goes, unless something stands on it."""
        newest = load_timeline(self.table.context).commits[-1].time
        if newest != self.past[-1][0] or newest in self.saved:
            return
        try:
            self.table.rollback(newest, writers_stopped=True)
        except InvalidRequestError:
            return
        done[ServiceType.ROLLBACK] += 1
        self.past.pop()
        self.rows = dict(self.past[-1][1])

    # Readers and time

    @precondition(lambda self: self.past)
    @rule(pick=st.integers(0, 99))
    def pin(self, pick: int) -> None:
        instant, rows = self.past[pick % len(self.past)]
        self.pins.append((instant, rows))

    @rule(hours=st.sampled_from([0.01, 2.0]))
    def wait(self, hours: float) -> None:
        self.clock.advance(hours * 3600)

    @invariant()
    def readers_agree(self) -> None:
        if not hasattr(self, "rows"):
            return
        assert read(self.table) == self.rows
        for instant, rows in self.pins:
            try:
                found = read(HudiTable(self.table.context, instant))
            except ExpiredError:
                expired.add((id(self), instant))
                continue
            assert found == rows, f"the reader of {instant} sees other rows"

    def teardown(self) -> None:
        if not hasattr(self, "rows"):
            return
        # However a history went, at its end every service finds something to do.
        self.rewrite()
        for value in range(RETAINED + 1):
            self.upsert([("a", "x", value), ("b", "x", value), ("c", "y", value)])
        self.clean()
        self.archive()
        self.readers_agree()
        errors = [f for f in examine(self.table.context, keys=True, max_memory=1 << 26) if f.severity is Severity.ERROR]
        assert not errors, errors

    def _written(self, write: Callable[[], str]) -> bool:
        """Whether the write went through; one to a group that a clustering holds does not."""
        self.clock.advance(1)
        try:
            write()
        except WriteConflictError as error:
            if "is being clustered" not in error.message:
                raise
            return False
        return True

    def _remember(self) -> None:
        commits = load_timeline(self.table.context).commits
        if commits:
            self.past.append((commits[-1].time, dict(self.rows)))

    def _takes(self, service: ServiceType) -> bool:
        if service in (ServiceType.COMPACTION, ServiceType.LOG_COMPACTION):
            return self.logs
        return service is not ServiceType.CLUSTERING or not self.buckets

    def _files(self) -> set[str]:
        return {info.path for info in list_data_files(self.table.context.storage)}

    def _needed(self) -> set[str]:
        """Files of pending plans, of savepoints, of the newest moment and of the retained ones."""
        ctx = self.table.context
        timeline = load_timeline(ctx)
        kept = [i for i in timeline.pending if i.action in PLANNED_ACTIONS]
        slices = [item for i in kept for item in planned_slices(ctx, i)]
        slices += [item for plan in live_clusterings(ctx, timeline).values() for item in plan.slices]
        found = {path for item in slices for path in (item.base_path, *item.log_paths) if path is not None}
        moments = [i.time for i in timeline.commits[-RETAINED:]] + list(self.saved)
        for moment in moments:
            for item in FileSystemView(ctx, timeline, as_of=moment).latest_slices():
                found.update(file.path for file in (item.base, *item.logs) if file is not None)
        return found


def rows_of(batch: list[tuple[str, str, int]]) -> pa.Table:
    newest = {(name, city): value for name, city, value in batch}
    return pa.Table.from_pylist(
        [{"id": name, "city": city, "value": value} for (name, city), value in newest.items()], schema=SCHEMA
    )


def read(table: HudiTable) -> Rows:
    found = table.scan().to_arrow().to_pylist()
    assert len(found) == len({(row["id"], row["city"]) for row in found}), "a key is there twice"
    return {(row["id"], row["city"]): row["value"] for row in found}


@pytest.mark.parametrize("logs", [False, True], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("buckets", [False, True], ids=["simple", "bucket"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.timeout(1800)
def test_readers_and_rows_survive_every_order_of_writes_and_services(
    version: int, buckets: bool, logs: bool, figure: Callable[[int, str], None]
) -> None:
    begun, done_before, expired_before = histories, done.copy(), len(expired)
    machine = type("Served", (ServedTable,), {"buckets": buckets, "logs": logs, "version": version})
    count = scaled(HISTORIES_LEAST, at_least=HISTORIES_LEAST) // (4 if version == 6 else 10)
    run_histories(machine, count, STEPS)
    figure(histories - begun, "histories of writes and services")
    figure(len(expired) - expired_before, "pinned readers that were told that their moment has expired")
    ran = done - done_before
    for service, number in sorted(ran.items()):
        figure(number, f"runs of {service} among them")
    rewrites = {ServiceType.COMPACTION} if logs else set() if buckets else {ServiceType.CLUSTERING}
    assert set(ran) >= {ServiceType.CLEANING, ServiceType.ARCHIVING, *rewrites}
