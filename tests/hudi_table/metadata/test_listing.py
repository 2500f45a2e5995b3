"""Views whose files the metadata table lists are those that a listing of the folders makes, and
where it cannot be asked they are one.

Histories of writes and services beside this: `test_services_machine.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hudi_table.api import HudiTable
from hudi_table.metadata import prefetch
from hudi_table.metadata.files_listing import metadata_files
from hudi_table.metadata.indexing import build_metadata
from hudi_table.metadata.port import open_context
from hudi_table.metadata.validate import differences
from hudi_table.model.names import HOODIE, METADATA_TABLE, PROPERTIES, join, log_write_token
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.metadata.upkeep import keep_metadata
from hudi_table.table.commit.transaction import begin
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view import file_system_view
from hudi_table.table.view.file_system_view import FileGroup, FileSystemView
from tests.hudi_table.metadata.test_keeping import ONE_VERSION, with_metadata
from tests.support.crashes import LATER, LATER_LOGS, LAYOUTS, LOG_LAYOUTS, opened, read, rows, with_a_failed_write
from tests.support.meanwhile import AfterPut
from tests.support.recording import RecordingStorage, Trace
from tests.support.tables import write_file
from tests.support.unsealed import without_check_sums

KINDS = [LAYOUTS[0], LAYOUTS[3], *LOG_LAYOUTS, LATER, LATER_LOGS]
kinds = pytest.mark.parametrize("layout", KINDS, ids=str)


@pytest.fixture(autouse=True)
def few_partitions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few partitions are looked up in it, as many are."""
    monkeypatch.setattr(file_system_view, "LISTED_AT_ONCE", 0)


def both(ctx: TableContext, as_of: str | None = None) -> tuple[list[FileGroup], list[FileGroup]]:
    """The groups by the metadata table, whole and then partition by partition, and by the
    folders."""
    timeline = load_timeline(ctx)
    assert metadata_files(ctx, timeline) is not None
    whole = FileSystemView(ctx, timeline, as_of)
    alone = FileSystemView(ctx, timeline, as_of)
    folders = FileSystemView(ctx, Timeline(timeline.instants, timeline.files, layout=timeline.layout), as_of)
    names = folders.partitions()
    assert [group for name in names for group in alone.groups(name)] == whole.groups()
    assert set(whole.partitions()) <= set(names)
    return whole.groups(), folders.groups()


def many_writes(store: Storage) -> HudiTable:
    """Writes, a replacement, what compacts and cleans, and a moment in between."""
    table = opened(store)
    for number in range(3):
        table.write(rows(("a", "x", number), (f"m{number}", "z", 1)), operation="upsert")
    table.write(rows(("h", "x", 8)), operation="insert_overwrite")
    table.write(rows(("h", "x", 9)), operation="upsert")
    return table


@kinds
def test_the_same_groups_at_every_moment_through_writes_compaction_and_cleaning(layout):
    store = with_metadata(layout)
    table = many_writes(store)
    if layout.type is TableType.MERGE_ON_READ:
        planned = table.schedule_compaction(force=True)
        table.write(rows(("a", "x", 7), ("n", "y", 1)), operation="upsert")
        assert both(table.context)[0] == both(table.context)[1]
        assert planned is not None
        table.run_compaction(planned.instant)
    for moment in [None, *(i.time for i in load_timeline(table.context).commits)]:
        by_metadata, by_folders = both(table.context, moment)
        assert by_metadata == by_folders
    assert table.clean(ONE_VERSION, force=True) is not None
    keep_metadata(table.context, 1)
    table.write(rows(("q", "x", 1)), operation="upsert")
    by_metadata, by_folders = both(table.context)
    assert by_metadata == by_folders


@kinds
def test_files_of_writes_that_failed_or_are_under_way_are_in_no_group_of_either(layout):
    store = with_a_failed_write(with_metadata(layout))
    table = many_writes(store)
    txn = begin(open_context(store), Action.DELTA_COMMIT if layout.type is TableType.MERGE_ON_READ else Action.COMMIT)
    txn.inflight()
    write_file(txn, 0, "x", b"half of a Parquet file")
    by_metadata, by_folders = both(table.context)
    assert by_metadata == by_folders


@pytest.mark.parametrize("layout", LOG_LAYOUTS, ids=str)
def test_a_log_of_a_write_that_is_under_way_is_in_the_folder_s_slice_alone_and_read_by_neither(layout):
    store = with_metadata(layout)
    many_writes(store)
    expected = read(store)
    ctx = opened(store).context
    log = next(log for group in both(ctx)[1] for log in group.latest.logs)
    txn = begin(open_context(store), Action.DELTA_COMMIT)
    txn.inflight()
    name = replace(log.name, version=log.name.version + 1, token=log_write_token(txn.time, 0))
    blocks = without_check_sums(store.get(log.path)).replace(str(log.instant).encode(), txn.time.encode())
    store.put(join(log.path.rpartition("/")[0], str(name)), blocks)
    by_metadata, by_folders = both(ctx)
    assert by_metadata != by_folders
    shown = [item.logs for group in by_folders for item in group.slices]
    kept = [tuple(log for log in logs if log.instant != txn.time) for logs in shown]
    assert [item.logs for group in by_metadata for item in group.slices] == kept
    assert read(store) == expected


def test_a_rollback_that_cancels_blocks_in_a_log_of_others_ends_it():
    """Hudi may append to a log that is there. The log that cancels its blocks is in no commit, so
    that `files` would miss it."""
    store = with_metadata(LOG_LAYOUTS[0])
    many_writes(store)
    expected = read(store)
    log = next(log for group in both(opened(store).context)[1] for log in group.latest.logs)
    txn = begin(open_context(store), Action.DELTA_COMMIT)
    txn.inflight()
    data = store.get(log.path)
    store.put(log.path, data + without_check_sums(data).replace(str(log.instant).encode(), txn.time.encode()))
    store.put(f"{HOODIE}/.temp/{txn.time}/{log.path}.marker.APPEND", b"")
    opened(store, suspect=0.0).write(rows(("r", "z", 1)), operation="upsert")
    assert store.list(METADATA_TABLE) == []
    assert read(store) == {*expected, ("r", "z", 1)}


def test_a_scan_and_a_write_to_many_partitions_list_no_folder_of_data():
    recorded = RecordingStorage(with_metadata(KINDS[0]), Trace())
    table = opened(recorded)
    table.write(rows(("a", "x", 9), ("f", "y", 6)), operation="upsert")
    assert read(recorded) == {("a", "x", 9), ("b", "x", 2), ("c", "y", 3), ("f", "y", 6)}
    listed = {step.key.partition("/")[0] for step in recorded.trace.steps if step.call in ("list", "list_dir")}
    assert listed == {HOODIE}


def test_the_folders_of_few_partitions_are_listed_all_the_same(monkeypatch):
    monkeypatch.setattr(file_system_view, "LISTED_AT_ONCE", 1)
    recorded = RecordingStorage(with_metadata(KINDS[0]), Trace())
    opened(recorded).write(rows(("a", "x", 9)), operation="upsert")
    listed = {step.key for step in recorded.trace.steps if step.call in ("list", "list_dir")}
    assert {key for key in listed if not key.startswith(HOODIE)} == {"x"}


def test_a_partition_without_a_visible_group_is_asked_for_by_its_folder():
    """Its metadata file may have gone with its last file, and then a write has to put it back."""
    store = with_metadata(KINDS[0])
    table = opened(store)
    table.write(None, operation="delete_partition", partitions=["x"])
    found = FileSystemView(table.context, load_timeline(table.context))
    assert found.existing(["x", "y", "nowhere"]) == {"x", "y"}
    table.clean(ONE_VERSION, force=True)
    found = FileSystemView(table.context, load_timeline(table.context))
    assert found.existing(["x", "y", "nowhere"]) == {"y"}
    table.write(rows(("a", "x", 9)), operation="upsert")
    assert store.head("x/.hoodie_partition_metadata").size > 0
    assert both(table.context)[0] == both(table.context)[1]


def damaged(store: Storage) -> None:
    (base,) = (i.path for i in store.list(join(METADATA_TABLE, "files")) if i.path.endswith(".hfile"))
    store.put(base, b"no HFile")


def not_ready(store: Storage) -> None:
    replace_properties(opened(store).context, {"hoodie.table.metadata.partitions": ""})


def of_another_version(store: Storage) -> None:
    path = join(METADATA_TABLE, PROPERTIES)
    store.put(path, store.get(path).replace(b"hoodie.table.version=6", b"hoodie.table.version=8"))


def being_cleaned(store: Storage) -> None:
    table = opened(store)
    table.write(rows(("a", "x", 9)), operation="upsert")
    assert table.schedule_clean(ONE_VERSION, force=True) is not None


def dropped(store: Storage) -> None:
    drop_metadata_table(opened(store).context, "")


@pytest.mark.parametrize("spoil", [not_ready, damaged, of_another_version, being_cleaned, dropped])
def test_folders_are_listed_where_it_cannot_be_asked(spoil: Callable[[Storage], None]):
    store = with_metadata(KINDS[0])
    expected = read(store)
    spoil(store)
    ctx = opened(store).context
    assert metadata_files(ctx, load_timeline(ctx)) is None
    assert len(read(store)) == len(expected)


def test_a_clean_that_died_between_its_deletes_and_its_end_hides_nothing_and_shows_nothing():
    """Of replaced groups the folder knows that they are gone, and `files` not yet."""
    store = with_metadata(KINDS[0])
    table = many_writes(store)
    expected = read(store)
    planned = table.schedule_clean(ONE_VERSION, force=True)

    class DeadError(Exception):
        pass

    def die() -> None:
        raise DeadError

    assert planned is not None
    with pytest.raises(DeadError):
        opened(AfterPut(store, f"{METADATA_TABLE}/{HOODIE}/{planned.instant}", die)).run_clean(planned.instant)
    timeline = load_timeline(table.context)
    assert metadata_files(table.context, timeline) is None
    assert read(store) == expected
    table.run_clean(planned.instant)
    by_metadata, by_folders = both(table.context)
    assert by_metadata == by_folders
    assert read(store) == expected


def test_one_that_was_built_anew_while_it_was_listed_is_not_believed():
    """What a listing shows of the old one may be half of it."""
    store = with_metadata(KINDS[0])

    class Late:
        """Between the listing of the metadata table and the reading of its files another one takes
        its place."""

        def __init__(self) -> None:
            self.done = False

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def list(self, prefix: str = "", **more: object) -> object:
            found = store.list(prefix, **more)  # type: ignore[arg-type]
            if prefix == METADATA_TABLE and not self.done:
                self.done = True
                drop_metadata_table(opened(store).context, "")
                build_metadata(opened(store).context)
                kept = [info for info in found if info.path.endswith(PROPERTIES)]
                assert kept
                return kept
            return found

    late = Late()
    ctx = opened(late).context
    assert metadata_files(ctx, load_timeline(ctx)) is None
    assert late.done
    ctx = opened(store).context
    assert differences(ctx) == []
    assert both(ctx)[0] == both(ctx)[1] != []


class Far(RecordingStorage):
    """A storage behind a network, by its path."""

    @property
    def base_path(self) -> str:
        return "s3://far/t"


def test_over_a_network_the_small_files_of_the_listing_are_fetched_at_once_and_not_opened():
    store = with_metadata(KINDS[0], deltas=3)
    near, far = opened(store).context, Far(store, Trace())
    ctx = replace(near, storage=far)
    timeline = load_timeline(ctx)
    assert metadata_files(ctx, timeline) == metadata_files(near, timeline) is not None
    files = {info.path for info in store.list(join(METADATA_TABLE, "files")) if "files-0000" in info.path}
    assert {step.key for step in far.trace.steps if step.call == "get"} >= files
    assert not [step for step in far.trace.steps if step.call == "open_read"]


def test_over_a_network_a_large_file_of_the_listing_is_opened(monkeypatch):
    monkeypatch.setattr(prefetch, "WHOLE_MAX", 0)
    store = with_metadata(KINDS[0])
    near, far = opened(store).context, Far(store, Trace())
    ctx = replace(near, storage=far)
    timeline = load_timeline(ctx)
    assert metadata_files(ctx, timeline, ["x"]) == metadata_files(near, timeline, ["x"]) is not None
    assert [step for step in far.trace.steps if step.call == "open_read"]


@kinds
def test_one_that_was_not_told_of_the_newest_commit_is_not_asked(layout) -> None:
    """As Hudi 0.15.0 leaves it out, which shows no row of that commit then."""
    store = with_metadata(layout)
    opened(store).upsert(rows(("a", "x", 7), ("new", "y", 8)))
    ctx = opened(store).context
    newest = load_timeline(ctx).last_commit
    assert newest is not None
    expected = read(store)
    assert metadata_files(ctx, load_timeline(ctx)) is not None
    ctx.metadata.forget(ctx, newest.time)
    assert load_timeline(ctx).has_metadata
    assert metadata_files(ctx, load_timeline(ctx)) is None
    assert read(store) == expected
