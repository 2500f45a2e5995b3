"""Archiving on real tables: no row changes, the history stays, nothing goes unarchived."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastavro
import pytest

from hudi_table.api import HudiTable
from hudi_table.codec.archive_entries import encode_entries
from hudi_table.errors import CorruptTableError, HudiError, InvalidOptionError
from hudi_table.model.job.checkpoint import advance, key_of
from hudi_table.model.service.services import ServicePlan, ServiceResult
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action, Instant, State
from hudi_table.sources.checkpoints import current_checkpoint
from hudi_table.table.commit.recovery import recover
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.archived import archive_files, archive_path, archived_entries
from tests.support.aged import AgedStorage
from tests.support.crashes import (
    LATER,
    LATER_LOGS,
    LAYOUTS,
    LOG_LAYOUTS,
    Layout,
    new_store,
    opened,
    prepared,
    read,
    rows,
    with_logs,
)
from tests.support.recording import RecordingStorage, Trace

KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "4"}
COW, FLAT = LAYOUTS[0], LAYOUTS[3]


def store_of(layout: Layout = COW, writes: int = 5) -> Storage:
    """A table with a founding commit, two writes that its rows are from, and `writes` updates."""
    store = with_logs(layout) if layout.type is TableType.MERGE_ON_READ else prepared(layout)
    table = opened(store)
    for number in range(writes):
        table.write(rows(("a", "x", 100 + number)), operation="upsert")
    return store


def aged(store: Storage, seconds: float | None = None) -> HudiTable:
    return opened(AgedStorage(store) if seconds is None else AgedStorage(store, seconds))


def archive(table: HudiTable, **options: str) -> ServiceResult:
    done = table.archive(KEEP | options)
    assert isinstance(done, ServiceResult)
    return done


def completed(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).commits]


def instants(table: HudiTable) -> list[tuple[str, str]]:
    found = table.timeline(archived=True)
    return list(zip(found["instant"].to_pylist(), found["action"].to_pylist(), strict=True))


@pytest.mark.parametrize("layout", [COW, *LOG_LAYOUTS, LATER, LATER_LOGS, replace(LATER_LOGS, version=8)], ids=str)
def test_archiving_changes_no_row_and_no_history(layout: Layout) -> None:
    store = store_of(layout)
    if layout.type is TableType.MERGE_ON_READ:
        opened(store).compact(force=True)
    before, history, names = read(store), opened(store).history(), instants(opened(store))
    result = archive(aged(store), **{"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"})
    assert result.figures["instants"] >= 5
    assert read(store) == before
    table = opened(store)
    assert len(completed(table)) == 2
    assert instants(table) == names
    assert table.history(archived=True).equals(history)
    assert table.history(3, archived=True).equals(history.slice(0, 3))
    table.write(rows(("z", "x", 1)), operation="upsert")
    assert read(store) == before | {("z", "x", 1)}


def test_all_states_of_an_instant_are_archived_with_what_they_held() -> None:
    store = store_of(LOG_LAYOUTS[0])
    opened(store).compact(force=True)
    table = aged(store)
    files = load_timeline(table.context).files
    archive(table, **{"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"})
    gone = files.keys() - load_timeline(table.context).files.keys()
    entries = [entry for some in archived_entries(table.context) for entry in some]
    assert len(entries) == len(gone)
    assert {(e["actionType"], e["actionState"]) for e in entries} == {
        ("deltacommit", "REQUESTED"),
        ("deltacommit", "INFLIGHT"),
        ("deltacommit", "COMPLETED"),
    }
    done = [e for e in entries if e["actionState"] == "COMPLETED"]
    assert all(e["hoodieCommitMetadata"]["extraMetadata"]["ROLLING_STAT"] == "" for e in done)
    assert done[-1]["hoodieCommitMetadata"]["partitionToWriteStats"]


def test_nothing_young_leaves_and_a_dry_run_says_why() -> None:
    table = opened(store_of())
    assert table.archive(KEEP) is None
    assert table.archive(KEEP, force=True) is None
    assert aged(table.context.storage).archive({}) is None


def test_a_dry_run_writes_nothing_and_says_what_would_leave() -> None:
    store = store_of()
    before = [(info.path, info.size) for info in store.list()]
    plan = aged(store).archive(KEEP, dry_run=True)
    assert isinstance(plan, ServicePlan)
    assert [(info.path, info.size) for info in store.list()] == before
    assert plan.files_before - plan.files_after == 3 * len(plan.details)
    archive(aged(store))
    assert plan.files_after == len(load_timeline(opened(store).context).files)
    assert aged(store).archive(KEEP, dry_run=True) is None


@pytest.mark.parametrize(("least", "most", "left"), [("2", "7", 2), ("3", "7", 3), ("2", "8", 8)])
def test_the_timeline_keeps_the_least_once_it_has_more_than_the_most(least: str, most: str, left: int) -> None:
    table = aged(store_of())
    table.archive(
        {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": least, "hoodie.keep.max.commits": most}
    )
    assert len(completed(table)) == left


def test_contradicting_settings_are_refused_before_anything_is_written() -> None:
    store = store_of()
    before = [info.path for info in store.list()]
    for options in ({"hoodie.keep.min.commits": "5"}, {"hoodie.keep.max.commits": "15"}):
        with pytest.raises(InvalidOptionError):
            aged(store).archive(options)
        with pytest.raises(InvalidOptionError):
            opened(store).write(
                rows(("b", "x", 1)), options=options | {"hoodie.archive.automatic": "true"}, operation="upsert"
            )
    assert [info.path for info in store.list()] == before


def test_a_writer_archives_after_its_commit_only_if_it_is_told_to() -> None:
    store = store_of()
    count = len(completed(opened(store)))
    aged(store).write(rows(("b", "x", 1)), operation="upsert", options=KEEP)
    assert len(completed(opened(store))) == count + 1
    aged(store).write(rows(("b", "x", 2)), operation="upsert", options=KEEP | {"hoodie.archive.automatic": "true"})
    assert len(completed(opened(store))) == 2


def test_archiving_is_a_table_service() -> None:
    service = aged(store_of()).services.archiving(KEEP)
    plan = service.plan()
    assert plan is not None
    (done,) = service.run()
    assert done.figures["instants"] == len(plan.details)
    assert service.run() == []


def test_replaced_files_hold_the_write_that_replaced_them_until_they_are_gone() -> None:
    store = prepared(COW)
    table = opened(store)
    table.write(rows(("a", "x", 5)), operation="insert_overwrite")
    (replacing,) = [i.time for i in load_timeline(table.context).commits if i.action is Action.REPLACE_COMMIT]
    replaced = [f.path for f in store.list("x") if f.path.endswith(".parquet") and replacing not in f.path]
    for number in range(5):
        table.write(rows(("a", "x", number)), operation="upsert")
    before = read(store)
    aged(store).archive(KEEP, force=True)
    assert completed(opened(store))[0] == replacing
    assert aged(store).archive(KEEP, force=True) is None
    assert read(store) == before
    for path in replaced:
        store.delete(path)
    archive(aged(store))
    assert completed(opened(store))[0] > replacing
    assert read(store) == before


class Interposed(AgedStorage):
    """Lets something happen just before the first call of `method` on a path that holds `part`."""

    def __init__(self, inner: Storage, method: str, part: str, happen: Callable[[], object]) -> None:
        super().__init__(inner)
        self.wanted = (method, part)
        self.happen: Callable[[], object] | None = happen

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        method, part = self.wanted

        def call(path: str, *rest: Any) -> Any:
            if part in path and self.happen is not None:
                happen, self.happen = self.happen, None
                happen()
            return found(path, *rest)

        return call if name == method else found


def test_a_savepoint_that_comes_while_the_archive_is_written_keeps_its_write() -> None:
    store = store_of()
    held = completed(opened(store))[2]

    def save() -> None:
        store.put(f".hoodie/{held}.savepoint", b"")

    beside = opened(Interposed(store, "put_if_absent", ".archive.", save))
    archive(beside)
    assert held == completed(opened(store))[0]


@pytest.mark.parametrize(
    ("method", "part"), [("put_if_absent", ".archive."), ("delete", ".hoodie/"), ("get", ".commit")]
)
def test_of_two_archivers_at_once_each_leaves_a_whole_archive(method: str, part: str) -> None:
    store = store_of()
    names, before = instants(opened(store)), read(store)
    other: list[ServiceResult] = []
    opened(Interposed(store, method, part, lambda: other.append(archive(aged(store))))).archive(KEEP)
    assert other, "nothing happened beside it: the test shows nothing"
    assert instants(opened(store)) == names
    assert read(store) == before
    assert len(completed(opened(store))) == 2


def test_an_archive_file_that_does_not_read_back_stops_before_anything_is_deleted() -> None:
    store = store_of()

    class Broken(AgedStorage):
        def put_if_absent(self, path: str, data: bytes) -> None:
            self.inner.put_if_absent(path, data[:-1] if ".archive." in path else data)

    before = completed(opened(store))
    with pytest.raises(CorruptTableError, match="nothing was deleted"):
        opened(Broken(store)).archive(KEEP)
    assert completed(opened(store)) == before


def test_a_timeline_file_that_cannot_be_read_stops_archiving_by_name() -> None:
    store = store_of()
    name = Instant(completed(opened(store))[0], Action.COMMIT, State.COMPLETED).file_name
    store.put(f".hoodie/{name}", b"{torn")
    with pytest.raises(CorruptTableError, match=re.escape(name)):
        aged(store).archive(KEEP)


def container(plan: dict[str, Any]) -> bytes:
    """A merge plan as Hudi 0.15.0 writes it."""
    fields = [
        {"name": "candidate", "type": ["null", {"type": "array", "items": "string"}]},
        {"name": "mergedArchiveFileName", "type": ["null", "string"]},
    ]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "HoodieMergeArchiveFilePlan", "fields": fields}, [plan])
    return sink.getvalue()


def test_a_name_that_an_unfinished_merge_of_hudi_will_delete_is_not_used() -> None:
    store = store_of()
    table = aged(store)
    folder = archive_path(table.context, 1).rpartition("/")[0]
    plan = {"candidate": [], "mergedArchiveFileName": archive_path(table.context, 1).rpartition("/")[2]}
    store.put(f"{folder}/mergeArchivePlan", container(plan))
    store.put(archive_path(table.context, 1), b"torn")
    archive(table)
    assert [file.number for file in archive_files(table.context)] == [1, 2]
    assert len(opened(store).timeline(archived=True)) > 5
    store.delete(f"{folder}/mergeArchivePlan")
    with pytest.raises(CorruptTableError, match=re.escape(archive_path(table.context, 1))):
        opened(store).timeline(archived=True)


def test_small_archive_files_are_merged_and_none_of_their_instants_is_lost() -> None:
    store = store_of(writes=2)
    for number in range(6):
        for value in range(3):
            opened(store).write(rows(("a", "x", 10 * number + value)), operation="upsert")
        names = instants(opened(store))
        done = archive(aged(store), **{"hoodie.archive.merge.files.batch.size": "3"})
        assert instants(opened(store)) == names
        assert len(archive_files(opened(store).context)) < 3
        assert bool(done.figures["archiveFilesMerged"]) == (number >= 2 and number % 2 == 0)
    for number in range(2):
        for value in range(3):
            opened(store).write(rows(("a", "x", 10 * number + value)), operation="upsert")
        archive(aged(store), **{"hoodie.archive.merge.enable": "false"})
    assert len(archive_files(opened(store).context)) >= 3


@pytest.mark.parametrize(("limit", "files"), [("1", 3), ("20971520", 1)])
def test_archive_files_of_the_limit_or_more_are_not_merged(limit: str, files: int) -> None:
    store = store_of(writes=2)
    for number in range(3):
        for value in range(3):
            opened(store).write(rows(("a", "x", 10 * number + value)), operation="upsert")
        more = {"hoodie.archive.merge.files.batch.size": "3", "hoodie.archive.merge.small.file.limit.bytes": limit}
        archive(aged(store), **more)
    assert len(archive_files(opened(store).context)) == files


def test_large_archives_go_to_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    from hudi_table.services.archiving import bodies, logs

    monkeypatch.setattr(logs, "FILE_BYTES", 1)
    monkeypatch.setattr(bodies, "BODIES_AHEAD", 2)
    store = store_of()
    names = instants(opened(store))
    archive(aged(store), **{"hoodie.commits.archival.batch": "3", "hoodie.archive.merge.enable": "false"})
    assert len(archive_files(opened(store).context)) == 3
    assert instants(opened(store)) == names


def test_the_checkpoint_of_an_ingest_is_found_in_the_archive() -> None:
    store = prepared(COW)
    table = opened(store)
    held, newer = advance(None, "feed", "one", (), ()), advance(None, "feed", "two", (), ())
    table.write(rows(("a", "x", 1)), operation="upsert", extra_metadata={key_of("feed"): held.to_text()})
    table.write(rows(("a", "x", 2)), operation="upsert", extra_metadata={key_of("feed"): newer.to_text()})
    for number in range(5):
        table.write(rows(("a", "x", number)), operation="upsert")
    archive(aged(store))
    assert current_checkpoint(opened(store).context, "feed") == newer
    assert current_checkpoint(opened(store).context, "other") is None


def test_the_archived_past_is_refused_to_readers() -> None:
    store = store_of()
    first = completed(opened(store))[1]
    archive(aged(store))
    with pytest.raises(HudiError, match="archived"):
        opened(store).scan(as_of=first).to_arrow()


def test_late_files_of_archived_instants_are_dropped_and_hold_nothing() -> None:
    """A paused process puts back a claim, or the inflight file of a rollback, that went to the
    archive long ago."""
    store = store_of()
    first, second = completed(opened(store))[:2]
    archive(aged(store))
    before = read(store)
    late = [f"{first}.commit.requested", f"{second}.rollback.inflight", f"{second}.clean.inflight"]
    for name in late:
        store.put(f".hoodie/{name}", b"")
    assert read(store) == before
    recover(opened(store).context, load_timeline(opened(store).context), eager=True)
    assert not set(late) & set(load_timeline(opened(store).context).files)
    assert read(store) == before


def test_the_calls_of_an_archiving_come_in_the_order_of_the_protocol() -> None:
    """The archive is written and read back, the timeline listed again, and then each instant goes,
    its completed file last."""
    store = store_of()
    leaving = completed(opened(store))[:-2]
    trace = Trace()
    opened(RecordingStorage(AgedStorage(store), trace)).archive(KEEP)
    steps = [(step.call, step.key) for step in trace.steps]
    created = next(at for at, (call, key) in enumerate(steps) if call == "put" and "/archived/" in key)
    assert steps[created + 1] == ("get", steps[created][1])
    assert steps[created + 2] == ("list_dir", ".hoodie")
    names = [f"{time}{part}" for time in leaving for part in (".commit.requested", ".inflight", ".commit")]
    deleted = [(at, key) for at, (call, key) in enumerate(steps) if call == "delete"]
    assert [key for _, key in deleted] == [f".hoodie/{name}" for name in names]
    assert deleted[0][0] > created + 2


def test_an_archive_that_another_release_wrote_more_into_is_read_by_its_own_schema() -> None:
    store = new_store()
    entry = {"commitTime": "20260101000000000", "actionType": "commit", "actionState": "COMPLETED"}
    table = opened(store_of())
    data = encode_entries([entry, entry | {"actionType": "unknown to us"}])
    table.context.storage.put(archive_path(table.context, 3), data + data)
    found = table.timeline(archived=True)
    assert found["instant"].to_pylist().count("20260101000000000") == 1
    assert not store.list()
