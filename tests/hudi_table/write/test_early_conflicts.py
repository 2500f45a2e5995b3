"""Conflicts that are found before rows are written, where the options ask for it: by the markers of
a write that began earlier and goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hudi_table.api import HudiTable, open_table
from hudi_table.errors import UnavailableError, WriteConflictError
from hudi_table.model.names import TEMP, MarkerType, parse_data_file
from hudi_table.table.commit.beside.early_conflicts import EarlyConflicts
from hudi_table.table.commit.markers import MarkedFile, markers_among
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.active import load_timeline
from tests.hudi_table.write.test_conflicts import LAYOUTS, Meanwhile
from tests.support.written import INDEXES, contents, new_table, rows

EARLY = {"hoodie.write.concurrency.early.conflict.detection.enable": "true"}
AHEAD = "goes on and has begun to change file group"


@pytest.fixture(params=LAYOUTS, ids="-".join)
def table(request: pytest.FixtureRequest) -> HudiTable:
    kind, index = request.param
    made = new_table(index=INDEXES[index], type=kind)
    made.upsert(rows(("a", "x", 1), ("b", "y", 2)))
    return made


def during(table: HudiTable, happen: Callable[[HudiTable], object]) -> None:
    """Let something happen while a write of the key `a` has its markers, and no file."""
    other = open_table(table.base_path)
    table.upsert(rows(("a", "x", 10)), engine=Meanwhile(lambda: happen(other)))


def data_files(storage: Storage) -> set[str]:
    paths = (info.path for info in storage.list())
    return {path for path in paths if not path.startswith(".hoodie/") and parse_data_file(path.rpartition("/")[2])}


def test_the_later_of_two_writes_of_one_file_group_ends_before_it_writes_a_row(table: HudiTable) -> None:
    def later(other: HudiTable) -> None:
        before = data_files(other.context.storage)
        with pytest.raises(WriteConflictError, match=AHEAD):
            other.upsert(rows(("a", "x", 20)), options=EARLY)
        assert data_files(other.context.storage) == before

    during(table, later)
    assert contents(table) == [("a", "x", 10), ("b", "y", 2)]


def test_it_is_tried_again_as_often_as_the_options_say_and_then_refused(table: HudiTable) -> None:
    def later(other: HudiTable) -> None:
        with pytest.raises(WriteConflictError, match=AHEAD):
            other.upsert(rows(("a", "x", 20)), options=EARLY | {"hoodie.write.num.retries.on.conflict.failures": "2"})

    during(table, later)
    table.upsert(rows(("a", "x", 20)), options=EARLY)
    assert contents(table) == [("a", "x", 20), ("b", "y", 2)]


def test_writes_of_other_file_groups_go_on(table: HudiTable) -> None:
    during(table, lambda other: other.upsert(rows(("b", "y", 20)), options=EARLY))
    assert contents(table) == [("a", "x", 10), ("b", "y", 20)]


def test_without_the_option_the_first_decision_stands(table: HudiTable) -> None:
    with pytest.raises(WriteConflictError, match="changed the same file groups"):
        during(table, lambda other: other.upsert(rows(("a", "x", 20))))
    assert contents(table) == [("a", "x", 20), ("b", "y", 2)]


def test_the_earlier_of_two_goes_on(table: HudiTable) -> None:
    """Else both would end: the later one has seen it, or the chain decides."""

    def later(other: HudiTable) -> None:
        with pytest.raises(WriteConflictError, match=AHEAD):
            other.upsert(rows(("a", "x", 20)), options=EARLY)

    other = open_table(table.base_path)
    table.upsert(rows(("a", "x", 10)), options=EARLY, engine=Meanwhile(lambda: later(other)))
    assert contents(table) == [("a", "x", 10), ("b", "y", 2)]


def test_a_write_without_a_sign_of_life_is_passed_over(table: HudiTable) -> None:
    def later(other: HudiTable) -> None:
        storage, folder = other.context.storage, other.context.layout.timeline_folder
        marked = next(iter(info.path for info in storage.list(TEMP) if "MARKERS0" in info.path))
        begun = marked.split("/")[2]
        files = _marked(storage, begun)
        EarlyConflicts(folder, 0.0).refuse(storage, "99991231235959999", files)
        EarlyConflicts(folder, 600.0).refuse(storage, begun, files)
        with pytest.raises(WriteConflictError, match=f"the write of {begun} {AHEAD}"):
            EarlyConflicts(folder, 600.0).refuse(storage, "99991231235959999", files)

    during(table, later)


def test_markers_that_were_left_behind_are_passed_over(table: HudiTable) -> None:
    def copied(other: HudiTable) -> None:
        storage = other.context.storage
        (folder,) = {info.path.rpartition("/")[0] for info in storage.list(TEMP) if "MARKERS0" in info.path}
        completed = other.timeline().to_pylist()[0]["instant"]
        for instant in ("20200101000000000", completed):
            for name in ("MARKERS.type", "MARKERS0"):
                storage.put(f"{TEMP}/{instant}/{name}", storage.get(f"{folder}/{name}"))

    during(table, copied)
    table.upsert(rows(("a", "x", 30)), options=EARLY)
    assert ("a", "x", 30) in contents(table)


def test_a_write_that_failed_and_waits_out_its_quarantine_is_passed_over(table: HudiTable) -> None:
    """Its claim and its markers are there until nothing of it can come any more."""

    def unanswered() -> None:
        raise UnavailableError("the store has gone")

    with pytest.raises(UnavailableError):
        table.upsert(rows(("a", "x", 10)), engine=Meanwhile(unanswered))
    storage = table.context.storage
    assert storage.list(TEMP)
    assert len(load_timeline(table.context).pending) == 2, "the write, and what takes it back"
    open_table(table.base_path).upsert(rows(("a", "x", 20)), options=EARLY)
    assert contents(table) == [("a", "x", 20), ("b", "y", 2)]


def test_who_executes_a_compaction_is_no_conflict() -> None:
    table = new_table(index=INDEXES["bucket"], type="MergeOnRead")
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2)))
    other = open_table(table.base_path)
    table.compact(force=True, engine=Meanwhile(lambda: other.upsert(rows(("a", "x", 20)), options=EARLY)))
    assert contents(table) == [("a", "x", 20)]


def _marked(storage: Storage, time: str) -> list[MarkedFile]:
    found = markers_among(storage, time, storage.list(f"{TEMP}/{time}")).files
    return [MarkedFile(*path.rpartition("/")[::2], MarkerType.MERGE) for path in found]
