"""What the simulator has found in the library, each as the few steps that it takes: before its mend
the test fails."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.arguments import OperationName
from hudi_table.errors import WriteConflictError
from hudi_table.metadata.port import open_context
from hudi_table.model.table.layouts import layout_of
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.services.upgrading.run import bring_to
from hudi_table.table.commit.transaction import begin
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Names, Objects, Storage
from hudi_table.table.timeline import active
from hudi_table.table.timeline.active import load_timeline
from hudi_table.write.checks.create_table import create
from tests.support.aged import HOURS, AgedStorage
from tests.support.crashes import FIRST, LAYOUTS, Layout, copied, new_store, opened, prepared, read, rows, spec
from tests.support.meanwhile import AfterCreate, AfterPut, AtCall

SIMPLE = next(layout for layout in LAYOUTS if layout.index.value == "Simple" and not layout.partitioned)
KEEP = {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


class Killed(BaseException):
    """The process is no more."""


class Behind(SystemClock):
    """The wall clock of a machine that is years behind: instants follow from those that are
    there."""

    def now(self) -> datetime:
        return datetime(2020, 1, 1, tzinfo=UTC)


def behind(store: Storage) -> HudiTable:
    return HudiTable(open_context(store, Behind()))


def with_a_savepoint_of_another(store: Storage) -> tuple[HudiTable, str]:
    """A writer that knows the chain's end from its last commit, and the instant that it will draw:
    another process has drawn it for the claim of a savepoint, which is gone."""
    writer = behind(store)
    writer.write(rows(FIRST[0]), operation="upsert")
    drawn: list[str] = []

    class Drawing:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.endswith(".claim"):
                drawn.append(path.rpartition("/")[2].partition(".")[0])
            store.put_if_absent(path, data)

    behind(Drawing()).savepoint()
    return writer, drawn[-1]


def test_a_writer_may_draw_the_instant_that_a_savepoint_was_planned_under() -> None:
    store = prepared(SIMPLE)
    writer, drawn = with_a_savepoint_of_another(store)
    assert writer.write(rows(("a", "x", 9)), operation="upsert").instant == drawn
    assert ("a", "x", 9) in read(store)


def test_a_write_that_died_under_the_instant_of_a_savepoint_is_taken_back() -> None:
    """Its instant stayed pending for ever, and archiving behind it."""
    store = prepared(SIMPLE)
    writer, drawn = with_a_savepoint_of_another(store)
    dead = begin(writer.context, Action.COMMIT)
    dead.inflight()
    assert dead.time == drawn
    for _ in range(2):
        opened(AgedStorage(store, HOURS)).clean(KEEP, force=True)
    assert not load_timeline(opened(store).context).pending


def test_a_write_under_the_instant_of_a_change_of_version_is_taken_back() -> None:
    """It stayed pending for ever: the entry of the change, whose file is gone, counted as a plan of
    the write's instant."""
    store = new_store()
    HudiTable(create(store, replace(spec(SIMPLE), version=9)))
    writer = behind(store)
    writer.write(rows(FIRST[0]), operation="upsert")
    bring_to(behind(store).context, 8)
    with pytest.raises(WriteConflictError):
        writer.write(rows(("a", "x", 9)), operation="upsert")
    for _ in range(2):
        opened(AgedStorage(store, HOURS)).clean(KEEP, force=True)
    assert not load_timeline(opened(store).context).pending


def with_the_claim_of_a_dead_writer(version: int, action: Action, until: str) -> tuple[Storage, str]:
    """A table whose planner of a clustering, and perhaps its executor, has ended (`until`), and the
    claim of a writer who had drawn the same instant, and died once he saw the planner's."""
    store = new_store()
    HudiTable(create(store, replace(spec(SIMPLE), version=version)))
    for row in FIRST[:2]:
        opened(store).write(rows(row), operation="bulk_insert")
    claims: list[str] = []

    def claimed() -> None:
        (time,) = load_timeline(opened(store).context).planner_claims
        claims.append(time)
        store.put(layout_of(version).timeline_path(Instant(time, action, State.REQUESTED).file_name), b"")

    # Between its listing, which would show the claim, and the publication of its plan.
    table = opened(AfterCreate(store, "/.txn/", claimed))
    assert table.schedule_clustering(force=True)
    if until == "completed":
        opened(store).cluster(force=True)
    return store, claims[0]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("until", ["planned", "completed"])
def test_a_dead_writers_claim_at_the_instant_of_a_clustering_goes_alone(version: int, until: str) -> None:
    """It stayed pending for ever, and archiving behind it."""
    store, time = with_the_claim_of_a_dead_writer(version, Action.COMMIT, until)
    opened(AgedStorage(store, HOURS)).clean(KEEP, force=True)
    waiting = [
        instant.grouped_action for instant in load_timeline(opened(store).context).pending if instant.time == time
    ]
    assert waiting == ([Action.REPLACE_COMMIT] if until == "planned" else [])
    opened(store).cluster(force=True)
    assert not load_timeline(opened(store).context).pending
    assert read(store) == set(FIRST[:2])


@pytest.mark.parametrize("version", [6, 9])
def test_a_clustering_that_a_dead_overwrites_claim_at_its_instant_hides_is_given_up(version: int) -> None:
    """It stayed pending for ever: its plan could not be read, and counted as decided."""
    store, _ = with_the_claim_of_a_dead_writer(version, Action.REPLACE_COMMIT, "planned")
    for _ in range(2):
        opened(AgedStorage(store, HOURS)).clean(KEEP, force=True)
    opened(store).cluster(force=True)
    assert not load_timeline(opened(store).context).pending
    assert read(store) == set(FIRST[:2])


class Slow(SystemClock):
    """The clock of a process between any two of whose looks at it ten seconds go by."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def boot_seconds(self) -> float:
        self._seconds += 10.0
        return self._seconds


def test_a_slow_reader_reads_behind_a_clean_that_kept_the_newest_files_alone() -> None:
    """It took the clean for one that had come while it listed, however often it listed again."""
    store = prepared(SIMPLE)
    opened(store).write(rows(("a", "x", 9)), operation="upsert")
    newest = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert opened(store).clean(newest, force=True) is not None
    assert HudiTable(open_context(store, Slow())).scan().count() == len(FIRST)


@dataclass
class InPages:
    """A store whose listings of the timeline come in two pages, of which `happen` comes between:
    once."""

    inner: Storage
    last_of_first_page: str
    happen: Callable[[], object] | None = None
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def list_dir(self, prefix: str = "") -> tuple[Names, Objects]:
        folders, first = self.inner.list_dir(prefix)
        if prefix != ".hoodie" or self.happen is None:
            return folders, first
        happen, self.happen = self.happen, None
        happen()
        folders, second = self.inner.list_dir(prefix)
        end = f".hoodie/{self.last_of_first_page}"
        return folders, [*(i for i in first if i.path <= end), *(i for i in second if i.path > end)]

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self


def test_a_slow_rollback_behind_a_clean_is_carried_out() -> None:
    """It took the clean, which had seen the commit that goes, for one that had come while it
    listed, and called the table damaged."""
    store = prepared(SIMPLE)
    for number in range(3):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    assert opened(store).clean(KEEP, force=True)
    slow = HudiTable(open_context(store, Slow()))
    slow.rollback(load_timeline(slow.context).commits[-1].time, writers_stopped=True)
    assert ("a", "x", 1) in read(store)


def test_a_reader_of_a_timeline_of_several_pages_sees_no_later_commit_without_an_earlier_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clustering completes behind the page that its name is on, and then a write to its new group
    on the next page: without the clustering the groups that it replaced count, too, and every row
    comes twice."""
    monkeypatch.setattr(active, "FOLDER_NAMES", 3)
    store = prepared(SIMPLE)
    planned = opened(store).schedule_clustering(force=True)
    assert planned is not None

    def clustered_and_written() -> None:
        opened(store).run_clustering(planned.instant)
        opened(store).write(rows(("d", "x", 4)), operation="upsert")

    found = opened(InPages(store, f"{planned.instant}.z", clustered_and_written)).scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == ["a", "b", "c", "d"]


@dataclass
class AfterListing:
    """A store in which something happens right behind the first listing of a folder."""

    inner: Storage
    folder: str
    happen: Callable[[], object] | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def list(self, prefix: str = "", **more: Any) -> Objects:
        found = self.inner.list(prefix, **more)
        if prefix == self.folder and self.happen is not None:
            happen, self.happen = self.happen, None
            happen()
        return found

    def reopen(self) -> Callable[[], Storage]:
        return lambda: self


def test_a_metadata_table_that_became_ready_behind_its_listing_is_listed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its base file, which came later, it listed no file at all: the table was empty for
    that reader."""
    store = prepared(SIMPLE)
    put = type(store).put

    def killed_at_the_base_file(self: Storage, path: str, data: bytes) -> None:
        if path.endswith(".hfile"):
            raise Killed
        put(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "put", killed_at_the_base_file)
        with pytest.raises(Killed):
            opened(store).build_metadata()

    def built() -> None:
        opened(store).build_metadata()
        assert opened(store).context.config.metadata_partitions

    assert opened(AfterListing(store, ".hoodie/metadata", built)).scan().to_arrow().num_rows == len(FIRST)


def _cleaned_and_written_on() -> Storage:
    """A table whose next clean looks at what has changed since the last one."""
    store = prepared(SIMPLE)
    for number in range(3):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    opened(store).clean(KEEP, force=True)
    for number in range(3, 6):
        opened(store).write(rows(("a", "x", number)), operation="upsert")
    return store


def test_a_clean_whose_commits_are_archived_while_it_looks_at_them_looks_again() -> None:
    """At whichever of its requests that happens."""

    def archived(store: Storage) -> None:
        assert opened(AgedStorage(store, HOURS)).archive(KEEP, force=True)

    first = _cleaned_and_written_on()
    counting = AtCall(copied(first), 0, lambda: None)
    opened(counting).clean(KEEP, force=True)
    for at in range(1, counting.calls + 1):
        store = copied(first)
        opened(AtCall(store, at, lambda store=store: archived(store))).clean(KEEP, force=True)  # type: ignore[misc]
        assert read(store) == read(first)


def test_a_late_inflight_file_of_a_withdrawn_rollback_goes_with_the_next_recovery() -> None:
    """Of two rollbacks of one instant, which recoveries claimed at one moment, one is withdrawn;
    its owner, who slept, puts its inflight file. It stayed until everything older was archived, and
    looked like a rollback that nobody ends."""
    store = prepared(SIMPLE)
    newest = load_timeline(opened(store).context).newest_time
    late = f".hoodie/{int(newest) + 1}.rollback.inflight"
    store.put(late, b"")
    opened(store).write(rows(("a", "x", 9)), operation="upsert")
    assert not load_timeline(opened(store).context).pending


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("operation", ["insert_overwrite", "upsert"])
@pytest.mark.parametrize("other", ["insert_overwrite", "upsert"])
def test_overwrites_of_a_new_partition_exclude_whatever_else_begins_it(
    layout: Layout, operation: OperationName, other: OperationName
) -> None:
    """They named the partitions in which they replaced something: with nothing there yet both
    stood, and a key was there twice."""
    store = new_store()
    create(store, spec(layout))
    opened(store).write(rows(FIRST[2]), operation="upsert")

    def written() -> None:
        opened(store).write(rows(("a", "x", 2)), operation=other)

    with pytest.raises(WriteConflictError):
        opened(AfterPut(store, ".inflight", written)).write(rows(("a", "x", 1)), operation=operation)
    assert ("a", "x", 2) in read(store)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("operation", "other", "excluded"),
    [("insert_overwrite", "bulk_insert", True), ("bulk_insert", "insert_overwrite", True), ("bulk_insert", "bulk_insert", False)],
)  # fmt: skip
def test_a_bulk_insert_excludes_who_replaces_its_partition_and_no_other_one(
    layout: Layout, operation: OperationName, other: OperationName, *, excluded: bool
) -> None:
    """It touched nothing: its rows stood behind an overwrite that was decided after it."""
    store = prepared(layout)

    def written() -> None:
        opened(store).write(rows(("o", "x", 2)), operation=other)

    with pytest.raises(WriteConflictError) if excluded or layout.index.hashes else nullcontext():
        opened(AfterPut(store, ".inflight", written)).write(rows(("m", "x", 1)), operation=operation)
    assert (("m", "x", 1) in read(store)) is (not excluded and not layout.index.hashes)
    assert ("o", "x", 2) in read(store)
