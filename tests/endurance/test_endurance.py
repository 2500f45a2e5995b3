"""Thousands of commits with every service on: what grows is bounded, what is not needed goes, and a
commit costs what it did.

A merge-on-read table in memory takes one commit a simulated minute for a week: upserts, inserts and
deletes. Services run as a person would set them up. `make test` runs a few hundred commits, `make
test-full` ten thousand, in parts: each takes up the table where the one before left it, in a
process of its own.
"""

from __future__ import annotations

import os
import pickle
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.model.names import HOODIE
from hudi_table.model.service.findings import Check
from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.services.base import ScheduledService
from hudi_table.services.doctor.run import examine
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import list_data_files
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.scale import scaled
from tests.support.simulated import SimulatedStorage
from tests.support.tables import TestClock, memory_storage

COMMITS_LEAST = 240
TIMELINE_FILES_MAX = 1_000
TIMES_SLOWER_MAX = 1.5
BYTES_OVER_NEEDED_MAX = 1.1
KEYS, ROWS = 400, 12
RETAINED = 10
WINDOW, SETTLED = 0.1, 80
"""Share of the commits at either end whose times are compared, and how many come before: until then
nothing is archived."""
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("value", pa.int64())])
ENGINE = LocalEngine(1)
OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.compact.inline.max.delta.commits": "5",
    "hoodie.clustering.async.max.commits": "20",
    "hoodie.cleaner.commits.retained": str(RETAINED),
    "hoodie.keep.min.commits": "20",
    "hoodie.keep.max.commits": "30",
}
STATE = Path(__file__).parents[2] / ".cache" / "test-full" / "endurance.pickle"
PART, PARTS = map(int, os.environ.get("HUDI_ENDURANCE_PART", "1/1").split("/"))
EVERY: dict[ServiceType, int] = {
    ServiceType.COMPACTION: 5,
    ServiceType.LOG_COMPACTION: 7,
    ServiceType.CLUSTERING: 20,
    ServiceType.CLEANING: 5,
    ServiceType.ARCHIVING: 5,
}
"""After how many commits each service looks whether it is due."""


@dataclass
class Life:
    """A table, its clock, and what every commit cost."""

    table: HudiTable
    clock: TestClock
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    cpu_seconds: list[float] = field(default_factory=list)
    files_most: int = 0

    def minute(self, number: int) -> None:
        """One commit, and the services that are to look then."""
        began = time.process_time()
        self._write(number)
        for service, every in EVERY.items():
            if number % every == 0:
                self._serve(service)
        self.cpu_seconds.append(time.process_time() - began)
        _, files = self.table.context.storage.list_dir(HOODIE)
        self.files_most = max(self.files_most, len(files))
        self.clock.advance(60)

    def _write(self, number: int) -> None:
        keys = np.unique(self.chance.integers(0, KEYS, ROWS))
        cities = [f"c{key % 3}" for key in keys]
        batch = pa.table(
            {"id": [f"k{key}" for key in keys], "city": cities, "value": [number] * len(keys)}, schema=SCHEMA
        )
        if number % 10 == 9:
            self.table.delete(batch, engine=ENGINE)
            for row in batch.to_pylist():
                self.rows.pop((row["id"], row["city"]), None)
            return
        self.table.upsert(batch, options=OPTIONS, engine=ENGINE)
        self.rows.update({(row["id"], row["city"]): row["value"] for row in batch.to_pylist()})

    def _serve(self, type_: ServiceType) -> None:
        service = self.table.services.of_type(type_, ServiceRequest(options=OPTIONS))
        if isinstance(service, ScheduledService):
            service.schedule()
            for instant in service.pending():
                service.execute(instant, engine=ENGINE)
        else:
            service.run(engine=ENGINE)

    def save(self) -> None:
        """The table, its clock and its model, for the part that follows."""
        storage = self.table.context.storage
        assert isinstance(storage, SimulatedStorage)
        objects = {info.path: storage.get(info.path) for info in storage.list()}
        known = {name: value for name, value in vars(self).items() if name != "table"}
        STATE.parent.mkdir(parents=True, exist_ok=True)
        STATE.write_bytes(pickle.dumps((objects, storage.infos, known)))

    def read(self) -> dict[tuple[str, str], int]:
        """What the table holds."""
        found = self.table.scan().to_arrow().to_pylist()
        return {(row["id"], row["city"]): row["value"] for row in found}


def begun() -> Life:
    """A new table."""
    clock = TestClock()
    storage = SimulatedStorage(memory_storage(), clock)
    spec = TableSpec(SCHEMA, "id", partition_by=["city"], index="Simple", name="t", type="MergeOnRead", version=6)
    create(storage, spec)
    return Life(HudiTable(open_context(storage, clock)), clock)


def taken_up() -> Life:
    """The table as the part before left it."""
    assert STATE.exists(), f"part {PART} of {PARTS} goes on from {STATE}: run the parts before it"
    objects, infos, known = pickle.loads(STATE.read_bytes())
    inner = memory_storage()
    for path, data in objects.items():
        inner.put(path, data)
    return Life(HudiTable(open_context(SimulatedStorage(inner, known["clock"], infos), known["clock"])), **known)


def orphans(life: Life) -> list[str]:
    """Files of no instant, as the doctor finds them."""
    found = examine(life.table.context, max_memory=1 << 28)
    return [finding.path for finding in found if finding.check is Check.ORPHAN_FILE]


def needed_and_stored(life: Life) -> tuple[int, int]:
    """Bytes of data files that a reader of the newest or of a retained moment needs, and of all
    that are there."""
    ctx = life.table.context
    timeline = load_timeline(ctx)
    needed: dict[str, int] = {}
    for instant in timeline.commits[-RETAINED:]:
        for item in FileSystemView(ctx, timeline, as_of=instant.time).latest_slices():
            needed |= {file.path: file.size for file in (item.base, *item.logs) if file is not None}
    return sum(needed.values()), sum(info.size for info in list_data_files(ctx.storage))


def mean_of(seconds: list[float], *, last: bool) -> float:
    """Of a window at either end that holds every service several times."""
    count = max(60, int(len(seconds) * WINDOW))
    # The first commits find nothing to archive yet.
    settled = seconds[SETTLED:]
    return statistics.fmean(settled[-count:] if last else settled[:count])


@pytest.mark.timeout(1800)
def test_a_table_that_is_served_stays_bounded_however_often_it_is_written(
    figure: Callable[[int, str], None],
) -> None:
    total = scaled(COMMITS_LEAST, at_least=COMMITS_LEAST)
    first, last = total * (PART - 1) // PARTS, total * PART // PARTS
    life = begun() if PART == 1 else taken_up()
    assert len(life.cpu_seconds) == first, (
        f"part {PART} of {PARTS} goes on after {first} commits: run the parts before it"
    )
    for number in range(first, last):
        life.minute(number)
    assert life.read() == life.rows
    figure(last - first, "commits with every service on")
    figure(life.files_most, "timeline files at the most")
    assert life.files_most < TIMELINE_FILES_MAX
    if PART < PARTS:
        life.save()
        return
    start = life
    if PARTS > 1:
        # Times compare within a process only.
        start = begun()
        for number in range(COMMITS_LEAST):
            start.minute(number)
    slower = mean_of(life.cpu_seconds, last=True) / mean_of(start.cpu_seconds, last=False)
    figure(round(100 * slower), "per cent of a commit's CPU time at the start, at the end")
    assert slower <= TIMES_SLOWER_MAX, "a commit costs more and more"
    for type_ in (ServiceType.COMPACTION, ServiceType.CLEANING, ServiceType.ARCHIVING):
        life._serve(type_)
    assert orphans(life) == []
    needed, stored = needed_and_stored(life)
    figure(round(100 * stored / needed), "per cent of what live and retained files take, stored")
    assert stored <= BYTES_OVER_NEEDED_MAX * needed
    assert life.read() == life.rows
