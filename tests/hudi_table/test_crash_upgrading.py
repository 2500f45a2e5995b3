"""A fault at every storage call of an upgrade and of a downgrade, and a writer beside them at any.

Readers see the same rows, in the old or in the new version; no instant is lost; a write is either
refused by name or counts; and the next run of the upgrade, which needs no repair before it, brings
the table where it was to come.

Matrix: {copy-on-write, merge-on-read, archived, with a metadata table, with indexes that have a
name, with a compaction that waits and rows behind it} × {6 → 8, 6 → 9, 8 → 9, 9 → 8, 8 → 6, 9 → 6}
× each storage call × {crash before, crash after, torn write, lost reply}, in memory; hudi-rs reads
each distinct layout. In `make test` one or two changes of each of the latter kinds, at few calls.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_table.api import HudiTable
from hudi_table.errors import (
    HudiError,
    InvalidRequestError,
    UnavailableError,
    UnsupportedTableError,
    WriteConflictError,
)
from hudi_table.metadata.definitions import defined_by_users
from hudi_table.metadata.validate import differences
from hudi_table.model.table.config import TableType
from hudi_table.services.upgrading.run import bring_to
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from tests.support.aged import AgedStorage
from tests.support.crashes import LAYOUTS, LOG_LAYOUTS, copied, opened, prepared, read, rows, with_logs
from tests.support.fault_points import ForeignReader, after_each_fault
from tests.support.faults import FaultPlan, FaultyStorage
from tests.support.meanwhile import AtCall
from tests.support.scale import scale

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
TIME_ELAPSED = {"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}
NEXT = ("next", "x", 100)
CASES = [(6, 8), (6, 9), (8, 9), (9, 8), (8, 6), (9, 6)]
COW, LOGS = LAYOUTS[0], LOG_LAYOUTS[1]
NAMED = {"secondary_index_by_city": "city", "expr_index_upper": "upper(id)"}
OTHERS = [case for case in CASES if case != (8, 6)]
QUICK = {
    "copy-on-write": CASES, "logs": OTHERS, "archived": OTHERS,
    "metadata": [(6, 9), (8, 6)], "indexes": [(8, 9), (9, 6)], "compaction": [(6, 8), (9, 6)],
}  # fmt: skip
"""The changes of each kind that `make test` tries."""
ONLY_LATER = ("indexes",)
STRIDES = dict.fromkeys(QUICK, 2) | {"metadata": 9, "indexes": 12, "compaction": 9}
Instants = frozenset[tuple[str, str]]


def table_of(kind: str, version: int) -> Storage:
    layout = replace(LOGS if kind in ("logs", "compaction") else COW, version=version)
    store = with_logs(layout) if layout.type is TableType.MERGE_ON_READ else prepared(layout)
    if kind == "metadata":
        opened(store).build_metadata(["column_stats"])
    if kind == "indexes":
        opened(store).build_metadata(["record_index", *(f"{name}={of}" for name, of in NAMED.items())])
    if kind == "compaction":
        assert opened(store).schedule_compaction(force=True)
    opened(store).write(rows(("a", "x", 9)), operation="upsert")
    if kind == "archived":
        opened(store).write(rows(("c", "y", 8)), operation="upsert")
        opened(AgedStorage(store)).archive(KEEP | TIME_ELAPSED, force=True)
    return store


def upgrade(target: int) -> Callable[[Storage], object]:
    return lambda store: bring_to(opened(store).context, target)


def instants(store: Storage) -> Instants:
    """Of all writes that have completed."""
    found = opened(store).timeline(archived=True)
    pairs = zip(found["instant"].to_pylist(), found["action"].to_pylist(), strict=True)
    return frozenset((time, action) for time, action in pairs if action.endswith("commit"))


def is_whole(table: HudiTable) -> None:
    timeline = load_timeline(table.context)
    times = [i.time for i in timeline.completed]
    assert len(times) == len(set(times))
    assert not timeline.pending


def goes_on(store: Storage, target: int, where: str) -> None:
    """The next run ends it; then the table is written, and has nothing of the other version
    left."""
    if store.list(".hoodie/.upgrade"):
        with pytest.raises(InvalidRequestError, match=f"to {target}; if the process that began it has ended"):
            bring_to(opened(store).context, target)
    bring_to(opened(store).context, target, resume=True)
    table = opened(store)
    assert table.context.config.version == target, where
    table.write(rows(NEXT), operation="upsert")
    assert NEXT in read(store), where
    is_whole(opened(store))
    left = {info.path.rpartition("/")[0] for info in store.list(".hoodie") if ".upgrade" in info.path}
    assert not left, where
    other = ".hoodie/timeline" if target == 6 else ".hoodie"
    files = store.list(other) if target == 6 else store.list_dir(other)[1]
    assert not [info.path for info in files if info.path.rpartition("/")[2][:2] == "20"], where


def tells_the_table(store: Storage, where: str) -> None:
    """Whatever the properties name of a metadata table says what the table holds."""
    context = opened(store).context
    assert not context.config.metadata_partitions or differences(context) == [], where


def built_again(store: Storage, target: int) -> None:
    """Indexes that have a name are built by their definitions with the next record index; of
    version 6 there are none."""
    upgrade(target)(store)
    opened(store).build_metadata(["record_index"])
    opened(store).write(rows(NEXT), operation="upsert")
    kept = set(NAMED) if target != 6 else set()
    assert set(opened(store).context.config.metadata_partitions) == {"files", "record_index", *kept}
    tells_the_table(store, "built again")


PARAMETERS = [
    pytest.param(kind, *case, marks=() if case in quick else pytest.mark.at_scale(2))
    for kind, quick in QUICK.items()
    for case in CASES
    if kind not in ONLY_LATER or case[0] != 6
]


@pytest.mark.thinned("pairs")
@pytest.mark.parametrize(("kind", "source", "target"), PARAMETERS)
def test_a_fault_at_any_storage_call_leaves_the_table_whole_and_the_next_run_ends_it(
    kind: str, source: int, target: int, tmp_path: Path, figure: Callable[[int, str], None]
) -> None:
    start = table_of(kind, source)
    before, known = read(start), instants(start)
    counting = FaultPlan()
    upgrade(target)(FaultyStorage(copied(start), counting))
    assert "put_if_absent .hoodie/.upgrade" in {f"{call.method} {Path(call.path).parent}" for call in counting.calls}
    foreign = ForeignReader(tmp_path)
    done = 0
    for point in after_each_fault(start, upgrade(target), stride=STRIDES[kind]):
        store, where = point.store, point.where
        version = opened(store).context.config.version
        assert version in (source, target), where
        assert read(store) == before, where
        assert known <= instants(store), f"{where}: an instant is lost"
        tells_the_table(store, where)
        foreign.check(store, before, where)
        goes_on(store, target, where)
        assert read(store) == before | {NEXT}, where
        assert known <= instants(store), f"{where}: an instant is lost"
        tells_the_table(store, where)
        if kind == "indexes":
            assert defined_by_users(opened(store).context) == (set(NAMED) if target != 6 else set()), where
        done += 1
    if kind == "indexes":
        built_again(copied(start), target)
    figure(done, "crash points")
    figure(len(foreign), "layouts read by hudi-rs")


@pytest.mark.thinned("values")
@pytest.mark.parametrize(("source", "target"), [(6, 9), (9, 6)])
@pytest.mark.parametrize("kind", ["copy-on-write", "logs"])
def test_a_write_between_any_two_calls_is_refused_by_name_or_counts(
    kind: str, source: int, target: int, figure: Callable[[int, str], None]
) -> None:
    """By a table that was opened before, and by one that is opened then."""
    start = table_of(kind, source)
    before = read(start)
    counting = AtCall(copied(start), 0, lambda: None)
    upgrade(target)(counting)
    counted = refused = 0
    for number in range(1, counting.calls + 1, 1 if scale() > 1 else 3):
        store = copied(start)
        written: set[tuple[str, str, int]] = set()
        early = opened(store)

        def write(
            store: Storage = store, written: set[tuple[str, str, int]] = written, early: HudiTable = early
        ) -> None:
            for table, row in ((early, ("early", "x", 1)), (None, NEXT)):
                with suppress(UnsupportedTableError, UnavailableError):
                    (table or opened(store)).write(rows(row), operation="upsert")
                    written.add(row)

        with suppress(WriteConflictError):
            upgrade(target)(AtCall(store, number, write))
        where = f"a write before call {number}: {written}"
        assert read(store) == before | written, where
        goes_on(store, target, where)
        assert read(store) == before | written | {NEXT}, where
        counted, refused = counted + len(written), refused + 2 - len(written)
    assert counted
    assert refused
    figure(counted, "writes that count")
    figure(refused, "writes that are refused")


@pytest.mark.parametrize(("source", "target"), [(6, 8), (8, 6)])
def test_a_table_that_was_opened_before_says_that_it_is_to_be_opened_again(source: int, target: int) -> None:
    store = table_of("copy-on-write", source)
    early = opened(store)
    early.scan().to_arrow()
    upgrade(target)(store)
    for ask in (
        lambda: early.scan().to_arrow(),
        lambda: early.write(rows(NEXT), operation="upsert"),
        lambda: early.timeline(),
    ):
        with pytest.raises(UnavailableError, match=f"has version {target} now, and had {source} when it was opened"):
            ask()
    assert opened(store).write(rows(NEXT), operation="upsert").instant


@pytest.mark.parametrize(("source", "target"), [(6, 8), (9, 6)])
def test_a_write_that_has_not_ended_keeps_the_table_from_being_upgraded(source: int, target: int) -> None:
    from hudi_table.model.timeline.instants import Action
    from hudi_table.table.commit.transaction import begin

    store = table_of("copy-on-write", source)
    before = read(store)
    writer = begin(opened(store).context, Action.COMMIT)
    with pytest.raises(InvalidRequestError, match=rf"{writer.time}.commit.requested is pending: stop all writers"):
        upgrade(target)(store)
    assert read(store) == before
    assert not store.list(".hoodie/.upgrade")
    writer.abort()
    upgrade(target)(store)
    goes_on(store, target, "")


def test_a_run_that_slept_does_nothing_more_once_another_has_gone_on(figure: Callable[[int, str], None]) -> None:
    """What lies where it was writing is the table by then, or will be: it looks at the note before
    it writes or deletes."""
    start = table_of("archived", 6)
    counting = AtCall(copied(start), 0, lambda: None)
    upgrade(9)(counting)
    slept = 0
    for number in range(2, counting.calls, 1 if scale() > 1 else 4):
        store = copied(start)
        ctx = opened(AtCall(store, number, lambda: None)).context
        clock = ctx.clock

        def sleep(store: Storage = store, ctx: TableContext = ctx, clock: Clock = clock) -> None:
            bring_to(opened(store).context, 9, resume=True)
            opened(store).write(rows(NEXT), operation="upsert")
            ctx.clock = Later(clock, 2 * ctx.settings.quarantine_seconds)

        storage = AtCall(store, number, sleep)
        ctx.storage = storage
        try:
            bring_to(ctx, 9)
        except HudiError:
            slept += 1
        if storage.calls < number:
            # The count holds the calls by which the table was opened, too.
            break
        # The request on whose way it slept is sent, as A1 allows; none after it.
        where = f"asleep before call {number}"
        assert NEXT in read(store), where
        assert opened(store).context.config.version == 9, where
    assert slept
    figure(slept, "runs that gave way")


class Later:
    """A clock that is ahead by some seconds."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def boot_seconds(self) -> float:
        return self._clock.boot_seconds() + self._seconds


def test_errors_are_no_success() -> None:
    with pytest.raises(HudiError):
        upgrade(7)(table_of("copy-on-write", 6))
