"""What a clean leaves to readers that go on: what was superseded a moment ago, and what was current
while the retained commits were made, however late a write ended.

Matrix: {version 6, version 9} × {policies that retain least}. Another engine's clean leaves nothing
to readers; they find that.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError, WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.services.cleaning import plan, policy
from hudi_table.services.cleaning.policy import CleanOptions
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clean_plans import last_clean
from tests.support.aged import HOURS, AgedStorage
from tests.support.meanwhile import Sleeper
from tests.support.written import contents, new_table, rows

ONE = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
THREE = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS"}
COMMIT = {"hoodie.clean.commits.retained": "1"}
NEW_FILES = {"hoodie.parquet.small.file.limit": "0"}
Event = Callable[[HudiTable], object]


@pytest.fixture(params=[6, 9])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleans leave to readers what they leave outside of tests."""
    monkeypatch.setattr(policy, "READERS_SECONDS", 60.0)


def opened(store: Storage) -> HudiTable:
    return HudiTable(open_context(store))


def files(table: HudiTable) -> set[str]:
    return {i.path for i in table.context.storage.list() if i.path.endswith(".parquet")}


class BeforeData:
    """Something happens once, right before a folder of data, or the base folder, is listed."""

    def __init__(self, inner: Storage, happen: Callable[[], object]) -> None:
        self.inner = inner
        self.happen: Callable[[], object] | None = happen

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def list_dir(self, prefix: str = "") -> Any:
        if not prefix.startswith(".hoodie") and self.happen is not None:
            happen, self.happen = self.happen, None
            happen()
        return self.inner.list_dir(prefix)

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self


def overtaken(table: HudiTable, event: Event) -> HudiTable:
    """The table for a process that has listed the timeline, but no file, when the event happens."""
    store = table.context.storage
    found = opened(BeforeData(store, lambda: event(opened(store))))
    assert load_timeline(found.context).commits
    return found


def update_and_clean(options: dict[str, str], times: int = 1) -> Event:
    def event(table: HudiTable) -> None:
        for number in range(times):
            table.upsert(rows(("b", "x", 2 + number)), options=options | {"hoodie.clean.automatic": "true"})

    return event


def cluster_and_clean(table: HudiTable) -> None:
    table.cluster(force=True)
    table.clean(THREE, force=True)


EVENTS: dict[str, tuple[Event, int]] = {
    "one version": (update_and_clean(ONE), 2),
    "one commit": (update_and_clean(COMMIT, 2), 3),
    "three versions, a clustering": (cluster_and_clean, 1),
}
"""What happens, and the value of the row `b` after it."""


def two_files(version: int) -> HudiTable:
    table = new_table(version=version)
    for key in ("a", "b"):
        table.insert(rows((key, "x", 1)), options=NEW_FILES)
    return table


@pytest.mark.parametrize("event", EVENTS)
def test_a_reader_beside_a_clean_of_ours_has_the_rows_of_its_moment(version: int, event: str, leaving: None) -> None:
    table = two_files(version)
    assert contents(overtaken(table, EVENTS[event][0])) == [("a", "x", 1), ("b", "x", 1)]


@pytest.mark.parametrize("event", EVENTS)
def test_a_reader_beside_a_clean_that_leaves_nothing_reads_the_newer_state(version: int, event: str) -> None:
    """It had no rows, and no error."""
    table, (happens, value) = two_files(version), EVENTS[event]
    assert contents(overtaken(table, happens)) == [("a", "x", 1), ("b", "x", value)]


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("event", EVENTS)
def test_a_writer_beside_a_clean_doubles_no_key(
    version: int, event: str, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It did not find its key, and inserted it once more."""
    monkeypatch.setattr(policy, "READERS_SECONDS", 60.0 if leaves else 0.0)
    table, (happens, value) = two_files(version), EVENTS[event]
    expected = [("a", "x", 7), ("b", "x", value)]
    try:
        overtaken(table, happens).upsert(rows(("a", "x", 7)), options=NEW_FILES)
    except WriteConflictError:
        expected[0] = ("a", "x", 1)
    assert contents(table) == expected


def test_what_was_superseded_within_a_minute_stays_until_a_later_clean(version: int, leaving: None) -> None:
    table = new_table(version=version)
    for value in range(3):
        table.upsert(rows(("a", "x", value)))
    before = files(table)
    assert table.clean(ONE, force=True) == []
    assert files(table) == before
    (done,) = opened(AgedStorage(table.context.storage, HOURS)).clean(ONE, force=True)
    assert done.figures["filesDeleted"] == 2


def test_a_clean_that_leaves_something_to_readers_is_followed_by_one_without_another_commit(
    version: int, leaving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(version=version)
    for value in range(2):
        table.upsert(rows(("a", "x", value)))
    middle = datetime.now().astimezone()
    table.upsert(rows(("a", "x", 2)))
    monkeypatch.setattr(plan, "store_now", lambda _: middle + timedelta(seconds=60))
    (done,) = table.clean(ONE)
    assert done.figures["filesDeleted"] == 1
    record = last_clean(table.context, load_timeline(table.context))
    assert record is not None
    assert record.last_commit == load_timeline(table.context).commits[-2].time
    monkeypatch.setattr(plan, "store_now", lambda _: middle + timedelta(seconds=120))
    (done,) = table.clean(ONE)
    assert done.figures["filesDeleted"] == 1
    assert len(files(table)) == 1


def late(version: int, kind: str, commits: int) -> tuple[HudiTable, str]:
    """A table, and the plan of a compaction or clustering that is older than so many commits."""
    index: Any = {"type": "Bucket", "buckets": 1} if kind == "MergeOnRead" else "Simple"
    table = new_table(version=version, type=kind, index=index)
    table.upsert(rows(("0", "w", 1)), options=NEW_FILES)
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)), options=NEW_FILES)
    table.upsert(rows(("a", "x", 2), ("c", "x", 1)), options=NEW_FILES)
    service = table.services.compaction if kind == "MergeOnRead" else table.services.clustering
    planned = service(force=True).schedule()
    assert planned is not None
    for number in range(commits):
        table.upsert(rows((f"n{number}", "z", number)), options=NEW_FILES)
    return table, planned.instant


def carry_out(table: HudiTable, kind: str, instant: str) -> None:
    (table.run_compaction if kind == "MergeOnRead" else table.run_clustering)(instant)


def changed(table: HudiTable, since: str, until: str) -> list[tuple[Any, ...]]:
    found = opened(table.context.storage).scan(["id", "value"], since=since, until=until, query="incremental")
    return sorted(tuple(row.values()) for row in found.to_arrow().to_pylist())


def as_hudi_retains(timeline: Timeline, options: CleanOptions, _: Any) -> Any:
    """Which ends a write had is nothing to it."""
    return timeline.commits[-options.commits] if options.by_commits else None


KINDS = ["MergeOnRead", "CopyOnWrite"]
TWO = {"hoodie.clean.commits.retained": "2"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_late_write_superseded_stays_for_as_many_commits_as_any_other(version: int, kind: str) -> None:
    """It had been current until then, and went with the next clean."""
    table, instant = late(version, kind, 4)
    first, *_, last = load_timeline(table.context).commits
    before = changed(table, first.moment, last.moment)
    carry_out(table, kind, instant)
    table.clean(TWO, force=True)
    assert changed(table, first.moment, last.moment) == before
    stored = files(table)
    for number in range(3):
        table.upsert(rows((f"m{number}", "z", number)), options=NEW_FILES)
    table.clean(TWO, force=True)
    assert stored - files(table), "then it goes"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_hudi", [False, True])
def test_a_slow_reader_beside_a_late_write_and_a_clean_has_every_row(
    version: int, kind: str, by_hudi: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_hudi:
        monkeypatch.setattr(plan, "earliest_retained", as_hudi_retains)
    table, instant = late(version, kind, 4)
    before, clock = contents(table), Sleeper()

    def event(other: HudiTable) -> None:
        carry_out(other, kind, instant)
        assert bool(other.clean(TWO, force=True)) == by_hudi
        clock.slept = 60.0

    reader = overtaken(table, event)
    reader.context.clock = clock
    assert contents(reader) == before


@pytest.mark.parametrize("kind", KINDS)
def test_changes_up_to_a_moment_whose_files_a_clean_of_hudis_took_are_expired(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record says that it kept them; rows were missing without a word. Version 6 reads changes
    by instants, of which the late one is an old one."""
    monkeypatch.setattr(plan, "earliest_retained", as_hudi_retains)
    table, instant = late(9, kind, 4)
    first, *_, last = load_timeline(table.context).commits
    carry_out(table, kind, instant)
    assert table.clean(TWO, force=True)
    with pytest.raises(ExpiredError, match="deleted files that were current then"):
        changed(table, first.moment, last.moment)


class Later(SystemClock):
    """The clock of a process some hours on."""

    def __init__(self, hours: float) -> None:
        self.hours = hours

    def now(self) -> datetime:
        return super().now() + timedelta(hours=self.hours)


def test_by_hours_a_clustering_that_is_executed_later_than_these_is_cleaned_and_archived(version: int) -> None:
    """Cleans looked at what changed since the last one alone, and archiving waited for them for
    good."""
    table = two_files(version)
    plan_of_it = table.schedule_clustering(force=True)
    assert plan_of_it is not None
    hourly = {"hoodie.clean.hours.retained": "1"}

    def at_hour(hours: float) -> HudiTable:
        return HudiTable(open_context(AgedStorage(table.context.storage), Later(hours)))

    for number in range(4):
        at_hour(number + 1).upsert(rows(("n", "z", number)))
        at_hour(number + 1).clean(hourly, force=True)
    at_hour(4.5).run_clustering(plan_of_it.instant)
    for number in range(4):
        at_hour(number + 5).upsert(rows(("n", "z", number)))
        at_hour(number + 5).clean(hourly, force=True)
    assert len([path for path in files(table) if path.startswith("x/")]) == 1
    few = COMMIT | {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    assert at_hour(10).archive(few, force=True)
    assert plan_of_it.instant not in {i.time for i in load_timeline(table.context).commits}
