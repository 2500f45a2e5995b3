"""Restore to a savepoint: what was written after it is gone, and what would lose rows is refused.

Aspects: both table types; what is pending; dry runs and their approval; metadata; the verbs.
"""

from __future__ import annotations

import pytest

from hudi_table.cli import main
from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.port import open_context
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Action, Instant, State
from hudi_table.services.restoring.plan import restore_choice
from hudi_table.table.commit.transaction import begin, begin_plan
from hudi_table.table.timeline.active import load_timeline, records_of
from hudi_table.table.view.file_system_view import FileSystemView
from tests.support.savepoints import keep
from tests.support.taken_back import FIRST, KINDS, WRITES, actions, aged, files, newest, written
from tests.support.written import contents, new_table, rows


@KINDS
def test_a_restore_takes_everything_after_the_savepoint_back(kind):
    table = written(kind)
    saved = keep(table)
    before, timeline = files(table), actions(table)
    for name in ("upsert", "insert", "delete", "insert_overwrite"):
        WRITES[name](table)
    if kind == "MergeOnRead":
        table.compact(force=True)
        table.upsert(rows(("a", "x", 10)))
        table.schedule_compaction(force=True)
    aged(table).rollback(newest(table)) if kind == "CopyOnWrite" else None
    failed = begin(open_context(table.context.storage), Action.DELTA_COMMIT if kind == "MergeOnRead" else Action.COMMIT)
    failed.inflight()
    done = table.restore(saved, writers_stopped=True)
    assert contents(table) == FIRST
    assert {path for path in files(table) - before if not path.endswith(".hoodie_partition_metadata")} == set()
    assert before <= files(table)
    assert actions(table) == [*timeline, (Action.RESTORE, State.COMPLETED)]
    assert done.figures["instants"] >= 3
    assert table.restore(saved).replayed
    table.upsert(rows(("a", "x", 7)))
    assert ("a", "x", 7) in contents(table)
    assert table.doctor(keys=True) == ()


def test_a_restore_without_confirmation_waits_for_the_quarantine_and_for_what_is_pending():
    table = written("MergeOnRead")
    saved = keep(table)
    table.upsert(rows(("a", "x", 9)))
    with pytest.raises(InvalidRequestError, match="could still publish it again"):
        table.restore(saved)
    plan = table.schedule_compaction(force=True)
    with pytest.raises(InvalidRequestError, match=f"compaction {plan.instant} is pending after the savepoint"):
        aged(table).restore(saved)
    table.run_compaction(plan.instant)
    aged(table).restore(saved)
    assert contents(table) == FIRST


def test_a_restore_to_what_is_no_savepoint_or_an_older_one_or_a_broken_one_is_refused():
    table = written()
    with pytest.raises(InvalidRequestError, match="there is no savepoint '1'; the table has none"):
        table.restore("1")
    first = keep(table)
    path = next(path for path in files(table) if path.endswith(".parquet"))
    table.upsert(rows(("a", "x", 9), ("c", "y", 9)))
    second = keep(table)
    with pytest.raises(InvalidRequestError, match=f"savepoint {second} is newer"):
        table.restore(first)
    table.context.storage.delete(f".hoodie/{second}.savepoint")
    table.context.storage.delete(path)
    with pytest.raises(InvalidRequestError, match="is gone, so it cannot be restored"):
        table.restore(first)


def test_writers_finish_a_restore_that_was_decided_before_they_begin():
    table = written()
    saved = keep(table)
    table.upsert(rows(("a", "x", 9)))
    choose = restore_choice(table.context, saved, writers_stopped=True)
    draft = choose(FileSystemView(table.context, load_timeline(table.context)))
    assert draft is not None
    txn = begin_plan(open_context(table.context.storage), Action.RESTORE)
    txn.plan(draft.body, ["table"])
    assert contents(table) == FIRST
    assert any("_0-0-0_" in path and saved not in path for path in files(table))
    assert table.doctor() == ()
    table.upsert(rows(("b", "x", 9)))
    assert contents(table) == [("a", "x", 1), ("b", "x", 9), ("c", "y", 3)]
    assert (Action.RESTORE, State.COMPLETED) in actions(table)


def test_an_approved_restore_that_would_take_more_back_than_was_approved_is_refused():
    table = written()
    saved = keep(table)
    table.upsert(rows(("a", "x", 9)))
    plan = table.services.restore(saved).plan()
    assert plan is not None
    table.upsert(rows(("b", "x", 9)))
    approved = table.services.restore(saved, writers_stopped=True, plan=plan.digest)
    with pytest.raises(InvalidRequestError, match="the table has changed since plan"):
        approved.run()
    assert ("b", "x", 9) in contents(table)
    assert not load_timeline(table.context).pending


def test_the_metadata_names_what_was_taken_back():
    table = written("MergeOnRead")
    saved = keep(table)
    taken = [table.upsert(rows(("a", "x", value))).instant for value in (8, 9)]
    done = table.restore(saved, writers_stopped=True)
    (record,) = records_of(table.context, Instant(done.instant, Action.RESTORE, State.COMPLETED))
    assert record["instantsToRollback"] == taken[::-1]
    (first,) = record["hoodieRestoreMetadata"][taken[0]]
    (path,) = first["partitionMetadata"]["x"]["successDeleteFiles"]
    assert ".log." in path
    assert {i.action for i in load_timeline(table.context).instants} - WRITE_ACTIONS == {
        Action.SAVEPOINT,
        Action.RESTORE,
    }


def test_the_verbs_say_what_would_go_and_take_it_back_on_yes(tmp_path, capsys):
    base = str(tmp_path / "t")
    table = new_table(base)
    table.upsert(rows(*FIRST))
    saved = keep(table)
    table.upsert(rows(("a", "x", 9)))
    assert main(["rollback", base, newest(table)]) == 0
    assert f"commit {newest(table)}: upsert, 0 rows inserted, 1 updated, 0 deleted, 1 file" in capsys.readouterr().out
    assert ("a", "x", 9) in contents(table)
    assert main(["rollback", base, newest(table), "--yes"]) == 1
    assert "--writers-stopped" in capsys.readouterr().err
    assert main(["rollback", base, newest(table)]) == 0
    assert "less than 3,600 s ago it also needs --writers-stopped" in capsys.readouterr().err
    taken = newest(table)
    assert main(["rollback", base, taken, "--yes", "--writers-stopped"]) == 0
    printed = capsys.readouterr().out
    assert f"commit {taken}: upsert, 0 rows inserted, 1 updated, 0 deleted, 1 file" in printed
    assert "Freed      -" not in printed
    assert contents(table) == FIRST
    table.upsert(rows(("a", "x", 8)))
    assert main(["restore", base, saved]) == 0
    assert main(["restore", base, saved, "--yes", "--writers-stopped", "-o", "json"]) == 0
    assert '"done": "took back' in capsys.readouterr().out
    assert contents(table) == FIRST
