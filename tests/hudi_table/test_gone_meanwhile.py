"""What a reader, a writer or a service has listed goes away before it is opened: given up,
rewritten and cleaned, archived.

Whoever asks for the newest state goes on by themselves. The past is told to be gone only where it
is; nothing is called damaged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import duckdb
import pytest
from datafusion import SessionContext

from hudi_table.api import HudiTable
from hudi_table.errors import ExpiredError, WriteConflictError
from hudi_table.model.service.findings import Severity
from hudi_table.model.table.config import IndexType, TableType
from hudi_table.read.files import may_name
from hudi_table.table.commit import recovery
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from tests.support.aged import HOURS, AgedStorage
from tests.support.crashes import Layout, Rows, copied, opened, read, rows, with_logs
from tests.support.meanwhile import AtCall, BeforeGet, Sleeper, SlowListing
from tests.support.scale import scaled

ONE_GROUP = Layout(IndexType.SIMPLE, False, TableType.MERGE_ON_READ)
GROUPS = Layout(IndexType.BUCKET, True, TableType.MERGE_ON_READ)
PLAIN = Layout(IndexType.SIMPLE, True)
LAYOUTS = [ONE_GROUP, GROUPS, PLAIN]
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
NEW = ("z", "x", 7)
INTERLEAVINGS = 3
"""Of one operation with one event, in `make test` fewer; calls in between are passed over."""


class Killed(BaseException):
    """The process is no more."""


def with_undecided(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """A table, and the files of a write that nothing has decided yet."""
    store = with_logs(layout)
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", _killed)
        with pytest.raises(Killed):
            opened(store).write(rows(("a", "x", 99), ("c", "y", 99)), operation="upsert")
    return store


def _killed(*_: object) -> None:
    raise Killed


def given_up(store: Storage) -> None:
    """The undecided write, which is older than whatever else is pending, is taken back."""
    ctx = opened(store).context
    for instant in load_timeline(ctx).pending[:1]:
        recovery.abort_and_roll_back(ctx, instant, confirmed_dead=True)


def rewritten(store: Storage) -> None:
    """The same, and all that is there is rewritten; what was there before is cleaned and archived
    at once."""
    given_up(store)
    table = opened(AgedStorage(store))
    if table.context.config.type is TableType.MERGE_ON_READ:
        table.compact(force=True)
    for _ in range(3):
        table.write(rows(NEW), operation="upsert")
        if table.context.config.type is TableType.MERGE_ON_READ:
            table.compact(force=True)
    table.clean(KEEP, force=True)
    table.archive(KEEP, force=True)


EVENTS: dict[str, Callable[[Storage], None]] = {"given up": given_up, "rewritten": rewritten}
LASTS: dict[Callable[[Storage], None], float] = {given_up: 60.0, rewritten: HOURS}
"""Seconds that an event takes by the clock of who sleeps through it."""


def _tuples(found: Any) -> Rows:
    return frozenset((row["id"], row["city"], row["value"]) for row in found)


def _changed(table: HudiTable) -> Rows:
    """The newest image of every key, by the changes of all commits."""
    state: dict[str, tuple[str, str, int]] = {}
    for row in table.changes().to_arrow().to_pylist():
        image = row["after"] or row["before"]
        state.pop(image["id"], None)
        if row["after"]:
            state[image["id"]] = (image["id"], image["city"], image["value"])
    return frozenset(state.values())


def _by_duckdb(table: HudiTable) -> Rows:
    try:
        return frozenset(table.scan().to_duckdb().fetchall())
    except duckdb.Error as error:
        # DuckDB passes on the text of an error alone.
        if "hudi_table.errors.ExpiredError" not in str(error):
            raise
        raise ExpiredError(str(error)) from error


def _by_datafusion(table: HudiTable) -> Rows:
    try:
        return _tuples(table.scan().to_datafusion(SessionContext()).to_pylist())
    except Exception as error:
        # Nor does DataFusion, which has one class for all.
        if "ExpiredError" not in str(error):
            raise
        raise ExpiredError(str(error)) from error


def _examined(table: HudiTable) -> None:
    found = [f for f in table.doctor() if f.severity is Severity.ERROR]
    assert not found, found


READS: dict[str, Callable[[HudiTable], object]] = {
    "arrow": lambda t: _tuples(t.scan().to_arrow().to_pylist()),
    "filtered": lambda t: _tuples(t.scan(filter="value > -1").to_arrow().to_pylist()),
    "polars": lambda t: _tuples(t.scan().to_polars().collect().to_dicts()),
    "duckdb": _by_duckdb,
    "datafusion": _by_datafusion,
    "count": lambda t: t.scan().count(),
    "changes": _changed,
}
STREAMS = ("polars", "duckdb", "datafusion")
LOOKS: dict[str, Callable[[HudiTable], object]] = {
    "schema": lambda t: t.schema(),
    "timeline": lambda t: t.timeline(archived=True),
    "history": lambda t: t.history(archived=True),
    "files": lambda t: t.files(),
    "doctor": _examined,
}
WORKS: dict[str, Callable[[HudiTable], object]] = {
    "upsert": lambda t: t.write(rows(("b", "x", 5)), operation="upsert"),
    "delete": lambda t: t.write(rows(("a", "x", 5)), operation="delete"),
    "clean": lambda t: t.clean(KEEP, force=True),
    "archive": lambda t: t.archive(KEEP, force=True),
    "savepoint": lambda t: t.savepoint(),
}
EVERY = READS | LOOKS | WORKS
WRITTEN: dict[str, Callable[[Rows], Rows]] = {
    "upsert": lambda rows: frozenset(row for row in rows if row[0] != "b") | {("b", "x", 5)},
    "delete": lambda rows: frozenset(row for row in rows if row[0] != "a"),
}
"""What rows become of those that were there."""


def interleaved(
    start: Storage, operation: Callable[[HudiTable], object], event: Callable[[Storage], None]
) -> list[tuple[int, Storage, HudiTable]]:
    """The operation's table at each of some of its calls, before which the event happens."""
    counting = AtCall(copied(start), 0, lambda: None)
    operation(opened(counting))
    step = max(1, counting.calls // scaled(INTERLEAVINGS, quick=2))
    found = []
    for number in range(1, counting.calls + 1, step):
        store = copied(start)
        table = opened(AtCall(store, number, partial(_slept_through, clock := Sleeper(), event, store)))
        table.context.clock = clock
        found.append((number, store, table))
    return found


def _slept_through(clock: Sleeper, event: Callable[[Storage], None], store: Storage) -> None:
    event(store)
    clock.slept += LASTS[event]


CASES = [
    (layout, name)
    for layout in LAYOUTS
    for name in (*READS, *WORKS, *LOOKS)
    if name not in LOOKS or layout is not ONE_GROUP
]


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(("layout", "operation"), CASES, ids=str)
def test_who_asks_for_the_newest_state_goes_on_by_itself(
    layout: Layout, operation: str, event: str, monkeypatch: pytest.MonkeyPatch, figure: Callable[[int, str], None]
) -> None:
    start = with_undecided(layout, monkeypatch)
    before, work = read(start), EVERY[operation]
    after = before | ({NEW} if event == "rewritten" else set())
    found = interleaved(start, work, EVENTS[event])
    for number, store, table in found:
        where = f"{event} before call {number}"
        try:
            given = work(table)
        except ExpiredError:
            # What commits changed is of the past. A stream of several groups may have given some rows already.
            assert (operation in (*STREAMS, "changes"), event) == (True, "rewritten"), where
            assert operation == "changes" or layout is not ONE_GROUP, where
        except WriteConflictError:
            assert (operation in WORKS, event) == (True, "rewritten"), where
        else:
            if operation in READS:
                assert given in ({len(before), len(after)} if operation == "count" else {before, after}), where
            elif operation in WORKS:
                assert read(store) == WRITTEN.get(operation, lambda rows: rows)(after), where
    figure(len(found), "interleavings with what is gone")


class BeforeFooter(BeforeGet):
    """The same, before a file with this ending is opened."""

    def open_read(self, path: str) -> Any:
        if self.armed and path.startswith("x/") and path.endswith(self.ending):
            self.armed = False
            self.happen()
        return self.inner.open_read(path)


def test_planned_files_whose_footers_go_before_they_are_read_are_planned_again() -> None:
    store, clock = with_logs(PLAIN), Sleeper()
    before = read(store)
    hooked = BeforeFooter(store, ".parquet", partial(_slept_through, clock, rewritten, store))
    table = opened(hooked)
    table.context.clock = clock
    hooked.armed = True
    found = table.scan().plan_files(statistics=True)
    assert sum(found["rows"].to_pylist()) == len(read(store)) == len(before) + 1


def test_plans_that_are_archived_while_an_approved_one_is_looked_for_among_them_end_no_service() -> None:
    store = with_logs(PLAIN)
    hooked = BeforeGet(store, ".requested", partial(rewritten, store))
    table = opened(hooked)
    opened(store).write(rows(("a", "x", 3)), operation="upsert")
    planned = table.services.cleaning(KEEP, force=True).plan()
    assert planned is not None
    hooked.armed = True
    with pytest.raises(WriteConflictError, match="cannot be made again"):
        table.services.cleaning(KEEP, force=True, plan=planned.digest).execute(planned)
    assert not hooked.armed


def test_an_upgrade_is_planned_anew_when_what_it_looks_at_is_cleaned_before_it_is_listed() -> None:
    store, clock = with_logs(ONE_GROUP), Sleeper()
    torn = SlowListing(store, 0, partial(_slept_through, clock, rewritten, store), folder="")
    table = opened(torn)
    table.context.clock = clock
    assert table.services.upgrade(9).plan() is not None
    assert torn.happen is None


def test_planned_files_that_a_clean_took_after_rows_were_given_are_expired() -> None:
    store = with_logs(PLAIN)
    scan = opened(store).scan()
    scan.to_arrow()
    rewritten(store)
    with pytest.raises(ExpiredError, match="was cleaned by the clean"):
        scan.plan_files(statistics=True)


def test_the_clean_that_took_a_planned_file_may_be_archived_while_it_is_looked_for() -> None:
    store = with_logs(PLAIN)

    def archived() -> None:
        table = opened(AgedStorage(store))
        for _ in range(6):
            table.write(rows(NEW), operation="upsert")
            table.clean(KEEP, force=True)
        assert table.archive(KEEP, force=True)

    hooked = BeforeGet(store, ".clean", archived)
    scan = opened(hooked).scan()
    scan.to_arrow()
    rewritten(store)
    hooked.armed = True
    with pytest.raises(ExpiredError, match="while it was read: begin the read anew"):
        scan.plan_files(statistics=True)
    assert not hooked.armed


def test_commits_that_are_archived_while_a_log_that_was_given_up_is_looked_for_end_no_read(monkeypatch):
    """Each slice that misses such a log asks the commits of a new listing, which may be archived
    before they are read. Rows of other slices have been given then, so no newer plan can take the
    place of the first."""
    many = [(f"k{city}", f"m{city}", 1) for city in range(16)]
    store = with_logs(GROUPS)
    for _ in range(3):
        opened(store).write(rows(*many), operation="upsert")
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit", _killed)
        with pytest.raises(Killed):
            opened(store).write(rows(*((key, city, 99) for key, city, _ in many)), operation="upsert")
    wanted, gone = read(store), threading.Event()

    def archived() -> None:
        assert gone.wait(60)
        opened(AgedStorage(store)).compact(force=True)
        assert opened(AgedStorage(store)).archive(KEEP, force=True)

    hooked = BeforeGet(store, ".deltacommit", archived)
    batches = opened(hooked).scan().to_batches()
    found = [next(batches)]
    hooked.armed = True  # before a log is gone: other slices are read meanwhile, and what they ask is remembered
    given_up(store)
    gone.set()
    found += batches
    assert not hooked.armed
    assert frozenset(chain.from_iterable(_tuples(batch.to_pylist()) for batch in found)) == wanted


def test_a_commit_that_has_left_the_timeline_is_asked_in_the_archive_and_one_that_is_nowhere_counts_as_any():
    """A log of Hudi 1.1.1 has the token of the log before it: its name does not tell whether a
    commit wrote it."""
    store = with_logs(GROUPS)
    for value in range(4):
        opened(store).write(rows(("a", "x", value)), operation="upsert")
    ctx = opened(store).context
    commits = load_timeline(ctx).commits
    first = next(instant for instant in commits if commit_metadata(ctx, instant).paths)
    path = min(commit_metadata(ctx, first).paths)
    opened(AgedStorage(store)).compact(force=True)
    opened(AgedStorage(store)).archive(KEEP, force=True)
    ctx = opened(store).context
    assert first not in load_timeline(ctx).commits
    times = frozenset(instant.time for instant in commits)
    assert may_name(ctx, times, path)
    assert not may_name(ctx, times, "x/another")
    assert may_name(ctx, times | {"20200101000000000"}, "x/another")
