"""Writes and services in random order on a table that is brought to other versions meanwhile, and
what it tells of its past.

Matrix: {simple or bloom, bucket} × {copy-on-write, merge-on-read} × {begun as version 6, as 9};
drawn per history: {without a metadata table, with one}. After each step the table holds the
rows of a dictionary; the changes since each of the newest writes lead to them, and an incremental
read gives what changed; a savepoint shows what was there when it was made.

Omitted: what the machine of services asks (`test_services_machine.py`), faults
(`test_crash_upgrading.py`), other engines (`tests/interop/test_version_pairs.py`).
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import initialize, invariant, rule

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError, InvalidRequestError
from hudi_table.metadata.port import open_context
from hudi_table.services.upgrading.run import bring_to
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.test_services_machine import ENGINE, OPTIONS, Rows, ServedTable, items, read, rows_of
from tests.support.histories import run_histories
from tests.support.scale import scaled

VERSIONS = (6, 8, 9)
STEPS = 20
BUCKETS = {"type": "Bucket", "buckets": 2}
seen: Counter[str] = Counter()


class MovedTable(ServedTable):
    """A table of any version, beside its model and its past."""

    @initialize(metadata=st.booleans(), index=st.sampled_from(["Simple", "Bloom"]))
    def create(self, metadata: bool, index: str) -> None:
        self.options = OPTIONS | ({"hoodie.metadata.enable": "true"} if metadata else {})
        self._begin(BUCKETS if self.buckets else index)

    @rule(to=st.sampled_from(VERSIONS))
    def move(self, to: int) -> None:
        if to == self.table.context.config.version:
            return
        try:
            with warnings.catch_warnings(action="ignore"):
                bring_to(self.table.context, to)
        except InvalidRequestError:
            # Something is pending, which it names.
            return
        seen[f"moves to version {to}"] += 1
        self.table = HudiTable(open_context(self.storage, self.clock))
        left = load_timeline(self.table.context).saved
        # Of logs version 6 holds the newest version of each file alone.
        assert left >= self.saved.keys() or (self.logs and to == 6)
        self.saved = {instant: rows for instant, rows in self.saved.items() if instant in left}

    @rule()
    def move_far(self) -> None:
        self.move(6 if self.table.context.config.version == 9 else 9)

    @rule(city=st.sampled_from("xy"))
    def drop_partition(self, city: str) -> None:
        def write() -> str:
            return self.table.write(
                None, operation="delete_partition", partitions=[city], options=self.options, engine=ENGINE
            ).instant

        left = {key: value for key, value in self.rows.items() if key[1] != city}
        try:
            written = self._written(write)
        except InvalidRequestError:
            # A clean has taken the last file of the partition.
            assert left == self.rows
            return
        if written:
            self.rows = left
            self._remember()

    @rule(batch=items)
    def overwrite_all(self, batch: list[tuple[str, str, int]]) -> None:
        def write() -> str:
            return self.table.write(
                rows_of(batch), operation="insert_overwrite_table", options=self.options, engine=ENGINE
            ).instant

        if self._written(write):
            self.rows = {(name, city): value for name, city, value in batch}
            self._remember()

    @invariant()
    def savepoints_show_what_they_keep(self) -> None:
        for instant, rows in getattr(self, "saved", {}).items():
            found = read(HudiTable(self.table.context, instant))
            assert found == rows, f"the savepoint {instant} shows other rows"

    @invariant()
    def the_past_leads_here(self) -> None:
        if not hasattr(self, "rows"):
            return
        moments = load_timeline(self.table.context).completions
        for instant, rows in self.past[-3:]:
            if instant in moments:
                self._assert_changes(moments, moments[instant], dict(rows))

    def _assert_changes(self, moments: dict[str, str], since: str, held: Rows) -> None:
        try:
            changes = self.table.changes(since=since).to_arrow().sort_by("ts_ms").to_pylist()
            changed = self.table.scan(query="incremental", since=since, meta=True).to_arrow().to_pylist()
        except ExpiredError:
            return
        for change in changes:
            before, after = change["before"], change["after"]
            image = before or after
            found = held.pop((image["id"], image["city"]), None)
            assert found == (before and before["value"]), f"a change since {since} tells {before}, there was {found}"
            if after is not None:
                held[after["id"], after["city"]] = after["value"]
        assert held == self.rows, f"changes since {since} lead elsewhere"
        snapshot = self.table.scan(meta=True).to_arrow().to_pylist()
        later = [row for row in snapshot if moments.get(row["_hoodie_commit_time"], "") > since]
        assert sorted(map(_shown, changed)) == sorted(map(_shown, later)), f"incremental since {since}"
        seen["looks back"] += 1


def _shown(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("id", "city", "value", "_hoodie_commit_time"))


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("logs", [False, True], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("buckets", [False, True], ids=["keys", "bucket"])
@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.timeout(1800)
def test_rows_savepoints_and_the_past_survive_moves_between_versions(
    version: int, buckets: bool, logs: bool, figure: Callable[[int, str], None]
) -> None:
    before = seen.copy()
    machine = type("Moved", (MovedTable,), {"version": version, "buckets": buckets, "logs": logs})
    run_histories(machine, scaled(10, quick=1), STEPS)
    for what, number in sorted((seen - before).items()):
        figure(number, f"{what} in random histories")
