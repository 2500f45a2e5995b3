"""A day of looks at many tables: what the operator remembers of them does not grow with what
happened, and stays right.

The day is simulated. One table, whose ingest commits a file each minute and which is cleaned and
archived as it is due, lies at as many locations as there are tables, so that nothing but what is
remembered of them takes memory.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hudi_operator.api.resources import DesiredTable, desired_table
from hudi_operator.plan.observed import TableObservation
from hudi_operator.runtime import observe
from hudi_operator.runtime.observe import Observer
from hudi_table.api import HudiTable
from hudi_table.metadata.port import open_context
from hudi_table.model.job import checkpoint as model
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, advance, key_of, waiting
from hudi_table.sources.files.digests import store_digests
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.write.checks.create_table import TableSpec, create
from tests.support.manifests import ingest, manifest, stored
from tests.support.scale import scaled
from tests.support.simulated import SimulatedStorage
from tests.support.tables import TestClock, memory_storage

TABLES, HOURS, HOURS_MAX, COMMITS_AN_HOUR = 5, 3, 24, 30
MEMORY_GROWTH_MAX = 1.1
SCHEMA = pa.schema([("id", pa.string()), ("value", pa.int64())])
OPTIONS = {
    "hoodie.clean.commits.retained": "3",
    "hoodie.keep.min.commits": "5",
    "hoodie.keep.max.commits": "10",
}
ENGINE = LocalEngine(1)


class Life:
    """A table and the checkpoint of its ingest."""

    def __init__(self) -> None:
        self.clock = TestClock()
        self.storage = SimulatedStorage(memory_storage(), self.clock)
        create(self.storage, TableSpec(SCHEMA, "id", index="Simple", name="t"))
        self.table = HudiTable(open_context(self.storage, self.clock))
        self.files: list[SourceFile] = []
        self.held: Checkpoint | None = None

    def commit(self) -> None:
        """A file is taken, and the services that are due run."""
        number = len(self.files)
        self.files.append(SourceFile(f"{number}.parquet", 1, "v", self.clock.now()))
        found = advance(self.held, "feed", f"attempt-{number}", (self.files[-1],), self.files)
        self.held = store_digests(self.table.context, "feed", self.held, found)
        rows = pa.table({"id": [f"k{number % 7}"], "value": [number]}, schema=SCHEMA)
        text = {key_of("feed"): self.held.to_text()}
        self.table.upsert(rows, extra_metadata=text, options=OPTIONS, engine=ENGINE)
        if number % 5 == 4:
            self.table.services.cleaning(OPTIONS).run(engine=ENGINE)
            self.table.services.archiving(OPTIONS).run(engine=ENGINE)
        self.clock.advance(3600 / COMMITS_AN_HOUR)


def wanted(number: int) -> DesiredTable:
    document = manifest(location=f"s3://lake/{number}", recordKey=["id"], ingest=[ingest(), ingest(name="idle")])
    return desired_table(stored(document))


def resident_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.timeout(1200)
def test_a_day_of_looks_leaves_no_more_behind_than_an_hour(
    monkeypatch: pytest.MonkeyPatch, figure: Callable[[int, str], None]
) -> None:
    monkeypatch.setattr(model, "RECENT_MAX", 50)
    life = Life()
    monkeypatch.setattr(observe, "open_storage", lambda uri, options: life.storage)
    observer = Observer(life.clock)
    tables, hours = scaled(TABLES), min(HOURS_MAX, scaled(HOURS, at_least=HOURS))
    weights, bytes_ = [], []
    for _ in range(hours):
        for _ in range(COMMITS_AN_HOUR):
            life.commit()
        for number in range(tables):
            found = observer.table(wanted(number), {})
            assert isinstance(found, TableObservation), found
            held = found.files_held("feed")
            assert held is not None
            assert len(held.consumed) == len(life.files)
            assert not waiting(life.files, held)
        caches = (observer._tables, observer._footers, observer._entries, observer._bodies)
        weights.append([cache.total for cache in caches])
        bytes_.append(resident_bytes())
        life.table.context.bodies.clear()
    figure(tables, "tables looked at every hour")
    figure(hours, "hours")
    figure(bytes_[-1] - bytes_[hours // 2], "bytes more at the end than at half time")
    facts, footers, entries, bodies = zip(*weights, strict=True)
    assert max(facts) <= tables * 60, "facts of commits that left the timeline, or of files that are gone"
    assert footers[-1] <= max(footers[: hours // 2 + 1]) + tables * 2
    assert (max(entries) <= observe.ENTRIES_MAX, max(bodies) <= observe.BODIES_BYTES_MAX) == (True, True)
    if hours == HOURS_MAX:
        assert bytes_[-1] < MEMORY_GROWTH_MAX * bytes_[hours // 2]
