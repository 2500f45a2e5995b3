"""Savepoints: which commits can be kept, what one holds, and what brings it and lets it go."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudi_table.api import HudiTable, create_table, open_table
from hudi_table.errors import CorruptTableError, ExpiredError, InvalidRequestError
from hudi_table.model.timeline.instants import Action, planner_claim
from hudi_table.services.planning import publish
from hudi_table.services.restoring.plan import rollback_choice
from hudi_table.table.commit.transaction import begin
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.view.savepoints import savepoint_instant
from tests.support.taken_back import aged
from tests.support.written import INDEXES, SCHEMA, contents, rows

KEEP = {"hoodie.clean.commits.retained": "1"}


def table_of(tmp_path: Path, **more: Any) -> HudiTable:
    more.setdefault("version", 6)
    table = create_table(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", index=INDEXES["bucket"], **more)
    for value in range(4):
        table.upsert(rows(("a", "x", value), ("b", "y", value)))
    return table


def commits(table: HudiTable) -> list[str]:
    return [i.time for i in load_timeline(table.context).commits]


def test_the_newest_commit_is_kept_unless_another_is_named(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    newest = table.savepoint(comment="before the migration")
    named = table.savepoint(commits(table)[2])
    assert newest.instant == commits(table)[-1]
    found = table.savepoints()
    assert [(item.instant, item.comment) for item in found] == [
        (named.instant, ""), (newest.instant, "before the migration"),
    ]  # fmt: skip
    assert {p: len(names) for p, names in found[0].files.items()} == {"x": 1, "y": 1}
    assert all(named.instant in name for names in found[0].files.values() for name in names)


def test_keeping_a_commit_twice_changes_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    first = table.savepoint(comment="first")
    before = {i.path for i in table.context.storage.list()}
    again = table.savepoint(first.instant, comment="again")
    assert again.replayed
    assert {i.path for i in table.context.storage.list()} == before
    assert [item.comment for item in table.savepoints()] == ["first"]


def test_a_kept_commit_reads_the_same_after_any_clean_until_it_is_let_go(tmp_path: Path) -> None:
    table = table_of(tmp_path, type="MergeOnRead")
    table.compact(force=True)
    table.upsert(rows(("a", "x", 9)))
    kept = table.savepoint()
    before = table.scan().to_arrow().sort_by("id")
    for value in range(3):
        table.upsert(rows(("a", "x", 10 + value), ("b", "y", 10 + value)))
        table.compact(force=True)
    table.clean(KEEP, force=True)
    assert open_table(table.base_path, as_of=kept.instant).scan().to_arrow().sort_by("id") == before
    table.delete_savepoint(kept.instant, writers_stopped=True)
    assert table.savepoints() == []
    table.clean(KEEP, force=True)
    with pytest.raises(ExpiredError):
        table.scan(as_of=kept.instant).to_arrow()


def test_logs_beside_a_pending_compaction_are_kept_with_the_slice_that_they_update(tmp_path: Path) -> None:
    table = table_of(tmp_path, type="MergeOnRead")
    table.schedule_compaction(force=True)
    table.upsert(rows(("a", "x", 9)))
    kept = table.savepoint()
    before = table.scan().to_arrow().sort_by("id")
    table.compact(force=True)
    for value in range(3):
        table.upsert(rows(("a", "x", 10 + value)))
        table.compact(force=True)
    table.clean(KEEP, force=True)
    (found,) = table.savepoints()
    listed = {info.path for info in table.context.storage.list()}
    assert {f"{p}/{name}" for p, names in found.files.items() for name in names} <= listed
    assert before.num_rows == 2
    assert kept.instant == found.instant


def test_what_a_clean_took_or_is_to_take_cannot_be_kept(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    plan = table.schedule_clean(KEEP)
    assert plan is not None
    for _ in range(2):
        with pytest.raises(ExpiredError, match=f"cannot be kept any more: .*{plan.instant}"):
            table.savepoint(commits(table)[1])
        table.run_clean(plan.instant)
    assert table.savepoints() == []


WHOLE = {"savepointedBy": "us", "savepointedAt": 1, "comments": "", "partitionMetadata": {}}


@pytest.mark.parametrize(
    "damage",
    [
        None,
        {name: value for name, value in WHOLE.items() if name != "comments"},
        WHOLE | {"partitionMetadata": None},
        WHOLE | {"partitionMetadata": {"x": None}},
        WHOLE | {"partitionMetadata": {"x": {"savepointDataFile": None}}},
    ],
)
def test_a_savepoint_that_cannot_be_read_is_named(damage: dict[str, Any] | None, tmp_path: Path) -> None:
    table = table_of(tmp_path)
    kept = table.savepoint()
    path = table.context.layout.timeline_path(savepoint_instant(kept.instant).file_name)
    table.context.storage.put(path, b"{" if damage is None else of_another_schema(damage))
    with pytest.raises(CorruptTableError, match=f"{kept.instant}.* is no savepoint"):
        open_table(str(tmp_path / "t")).savepoints()


def of_another_schema(record: dict[str, Any]) -> bytes:
    """A container of a record whose schema has no more than it needs."""
    files = {"type": "record", "name": "f", "fields": [{"name": "savepointDataFile", "type": "null"}]}
    types = {
        "savepointedBy": "string",
        "savepointedAt": "long",
        "comments": "string",
        "partitionMetadata": ["null", {"type": "map", "values": ["null", files]}],
    }
    fields = [{"name": name, "type": types[name]} for name in record]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "s", "fields": fields}, [record])
    return sink.getvalue()


@pytest.mark.parametrize("instant", ["20200101000000000", "x"])
def test_what_is_no_commit_is_refused(tmp_path: Path, instant: str) -> None:
    table = table_of(tmp_path)
    with pytest.raises(InvalidRequestError, match=f"no completed commit '{instant}'.*newest is {commits(table)[-1]}"):
        table.savepoint(instant)
    with pytest.raises(InvalidRequestError, match=f"no savepoint '{instant}'; the table has none"):
        table.delete_savepoint(instant)


def test_a_claim_that_its_maker_left_does_not_bring_a_deleted_savepoint_back(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    kept = table.savepoint()
    (entry,) = [entry for entry in table.context.entries.values() if entry.name == f"{kept.instant}.savepoint"]
    table.context.storage.put(f".hoodie/{planner_claim(entry.instant)}", b"")
    open_table(table.base_path).delete_savepoint(kept.instant, writers_stopped=True)
    open_table(table.base_path).upsert(rows(("a", "x", 9)))
    assert open_table(table.base_path).savepoints() == []


def test_as_a_service_it_keeps_the_commit_of_the_request(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    service = table.services.savepoint(commits(table)[2], comment="asked")
    plan = service.plan()
    assert plan is not None
    assert plan.details == (f"keep {commits(table)[2]}",)
    done = service.execute(plan)
    assert (done.instant, done.figures["filesKept"]) == (commits(table)[2], plan.files_before)
    assert service.plan() is None
    assert [item.comment for item in table.savepoints()] == ["asked"]


def test_a_young_savepoint_is_let_go_only_if_all_writers_are_said_to_be_gone(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    kept = table.savepoint()
    with pytest.raises(InvalidRequestError, match=r"wait another 3[56]\d\d s, or end all writers"):
        table.delete_savepoint(kept.instant)
    assert len(table.savepoints()) == 1
    aged(table).delete_savepoint(kept.instant)
    assert table.savepoints() == []


def test_a_commit_is_not_kept_beside_an_older_write_which_a_restore_would_leave(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    older = begin(open_table(table.base_path).context, Action.COMMIT)
    older.inflight()
    table.upsert(rows(("a", "x", 9)))
    with pytest.raises(InvalidRequestError, match=f"the commit {older.time} is pending and older than"):
        table.savepoint()
    assert table.savepoint(commits(table)[-2]).instant < older.time
    older.abort(confirmed_dead=False)
    assert older.time in {i.time for i in load_timeline(table.context).pending}
    assert table.savepoint().instant > older.time


@pytest.mark.parametrize("named", [False, True])
def test_a_commit_that_is_being_taken_back_is_not_kept_until_that_has_ended(tmp_path: Path, named: bool) -> None:
    table = table_of(tmp_path)
    *_, kept, taken = commits(table)
    ctx = table.context
    undo = publish(ctx, Action.ROLLBACK, rollback_choice(ctx, taken, writers_stopped=True))
    assert undo is not None
    refused = f"{taken} is being taken back by the rollback {undo.instant}, which has not ended: the next write ends it"
    with pytest.raises(InvalidRequestError, match=refused):
        table.savepoint(taken if named else "")
    assert contents(table) == [("a", "x", 3), ("b", "y", 3)], "readers see it until then"
    table.rollback(taken, writers_stopped=True)
    assert table.savepoint().instant == kept
