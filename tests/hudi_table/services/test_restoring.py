"""Rollback of the newest write and restore to a savepoint: the earlier rows are back, and what must not be taken back is refused.

Aspects: both table types, each kind of write; late helpers; writers, planners and executors beside it; dry runs; failed writes;
retries; what the chain still says of instants that are gone.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hudi_table.api import HudiTable
from hudi_table.cli import main
from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteAbortedError, WriteConflictError
from hudi_table.model.chain import Kind
from hudi_table.model.commits import CommitMetadata
from hudi_table.model.instants import WRITE_ACTIONS, Action, Instant, State
from hudi_table.model.options import FailedWrites
from hudi_table.model.services import ServiceRequest
from hudi_table.model.touches import file_touch
from hudi_table.services.restoring.failed import recover_failed_writes
from hudi_table.services.restoring.service import RESTORE_SERVICE, ROLLBACK_SERVICE
from hudi_table.table import chain, recovery
from hudi_table.table.context import TxnSettings
from hudi_table.table.engine import LocalEngine
from hudi_table.table.materialise import materialise
from hudi_table.table.properties import open_context
from hudi_table.table.rollback import records_of
from hudi_table.table.timeline import load_timeline
from hudi_table.table.transaction import begin, begin_plan, resume
from tests.support.savepoints import keep
from tests.support.tables import write_file
from tests.support.written import contents, keys, new_table, rows, slices

FIRST = [("a", "x", 1), ("b", "x", 2), ("c", "y", 3)]
KINDS = pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])


def written(kind="CopyOnWrite", index="Simple"):
    table = new_table(type=kind, index=index)
    table.upsert(rows(*FIRST))
    return table


def newest(table):
    last = load_timeline(table.context).last_commit
    assert last is not None
    return last.time


def files(table):
    return {info.path for info in table.context.storage.list() if not info.path.startswith(".hoodie/")}


def actions(table):
    return [(i.action, i.state) for i in load_timeline(table.context).instants]


def aged(table):
    """The table as a process sees it for which no quarantine runs."""
    return HudiTable(open_context(table.context.storage, settings=TxnSettings(0.0, 900.0)))


WRITES = {
    "insert": lambda table: table.insert(rows(("d", "x", 4), ("e", "z", 5))),
    "upsert": lambda table: table.upsert(rows(("a", "x", 9), ("d", "y", 4))),
    "delete": lambda table: table.delete(keys(("a", "x"))),
    "insert_overwrite": lambda table: table.write(rows(("h", "x", 8)), operation="insert_overwrite"),
    "delete_partition": lambda table: table.write(None, operation="delete_partition", partitions=["x"]),
}


@KINDS
@pytest.mark.parametrize("name", WRITES)
def test_a_rollback_brings_the_rows_and_files_of_before_back(kind, name):
    table = written(kind)
    before, timeline = files(table), actions(table)
    WRITES[name](table)
    assert contents(table) != FIRST
    done = aged(table).rollback(newest(table))
    assert contents(table) == FIRST
    new = {path for path in files(table) - before if not path.endswith(".hoodie_partition_metadata")}
    assert new == set()
    assert actions(table) == [*timeline, (Action.ROLLBACK, State.COMPLETED)]
    assert done.figures["instants"] == 1
    assert not done.replayed
    table.upsert(rows(("a", "x", 7)))
    assert ("a", "x", 7) in contents(table)
    assert table.doctor(keys=True) == ()


def test_a_rolled_back_compaction_leaves_the_logs_and_no_plan():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    before = files(table)
    table.compact(force=True)
    aged(table).rollback(newest(table))
    assert files(table) == before
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]
    assert not load_timeline(table.context).pending
    table.compact(force=True)
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]


def test_writes_are_rolled_back_one_after_the_other_newest_first():
    table = written()
    for value in range(10, 13):
        table.upsert(rows(("a", "x", value)))
    for value in (11, 10):
        aged(table).rollback(newest(table))
        assert ("a", "x", value) in contents(table)


def test_only_the_newest_write_is_rolled_back():
    table = written()
    first = newest(table)
    table.upsert(rows(("a", "x", 9)))
    with pytest.raises(InvalidRequestError, match=f"{first} is not the newest write, {newest(table)} is"):
        aged(table).rollback(first)
    with pytest.raises(InvalidRequestError, match="'20200101000000000' is no write on the timeline"):
        aged(table).rollback("20200101000000000")
    assert not load_timeline(table.context).pending


def test_a_young_write_is_rolled_back_only_if_all_writers_are_said_to_be_gone():
    table = written()
    before = sorted(info.path for info in table.context.storage.list() if ".txn" not in info.path)
    with pytest.raises(InvalidRequestError, match="could still publish it again"):
        table.rollback(newest(table))
    assert sorted(info.path for info in table.context.storage.list() if ".txn" not in info.path) == before
    table.upsert(rows(("a", "x", 9)))
    table.rollback(newest(table), writers_stopped=True)
    assert contents(table) == FIRST


def test_a_savepoint_is_not_rolled_back():
    table = written()
    keep(table)
    with pytest.raises(InvalidRequestError, match="is a savepoint"):
        aged(table).rollback(newest(table))


def test_a_write_whose_files_a_plan_is_to_rewrite_is_not_rolled_back():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    plan = table.schedule_compaction(force=True)
    assert plan is not None
    with pytest.raises(InvalidRequestError, match=f"the plan {plan.instant}"):
        aged(table).rollback(newest(table))


def test_a_write_before_which_files_were_cleaned_is_not_rolled_back():
    table = written()
    old = {item.base.path for item in slices(table) if item.base}
    table.upsert(rows(("a", "x", 9), ("c", "y", 9)))
    for path in old:
        table.context.storage.delete(path)
    with pytest.raises(InvalidRequestError, match="has been cleaned"):
        aged(table).rollback(newest(table))


def test_an_overwrite_whose_replaced_groups_were_cleaned_is_not_rolled_back():
    table = written()
    old = [item.base.path for item in slices(table) if item.base and item.partition == "x"]
    table.write(rows(("h", "x", 8)), operation="insert_overwrite")
    table.context.storage.delete(old[0])
    with pytest.raises(InvalidRequestError, match="has been cleaned"):
        aged(table).rollback(newest(table))


def test_a_pending_clean_holds_a_rollback():
    table = written()
    table.context.storage.put(".hoodie/20990101000000000.clean.requested", b"")
    with pytest.raises(InvalidRequestError, match="a clean is pending"):
        aged(table).rollback(newest(table))


def test_a_rollback_asked_for_again_is_found_done():
    table = written()
    table.upsert(rows(("a", "x", 9)))
    time = newest(table)
    first = aged(table).rollback(time)
    again = aged(table).rollback(time)
    assert again.replayed
    assert again.instant == first.instant


def test_what_the_chain_says_of_an_instant_that_was_taken_back_is_published_by_nobody():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)), batch="b1")
    taken = [newest(table)]
    aged(table).rollback(taken[0])
    table.upsert(rows(("a", "x", 8)))
    plan = table.schedule_compaction(force=True)
    table.run_compaction(plan.instant)
    taken.append(newest(table))
    aged(table).rollback(plan.instant)
    for time in taken:
        fresh = open_context(table.context.storage)
        tail = chain.read_tail(fresh)
        decision = chain.find_decision(fresh, time, tail.sequence)
        assert decision is not None
        assert decision[1].kind is Kind.COMMIT
        assert not materialise(fresh, decision[1])
        recovery.recover(fresh, load_timeline(fresh), eager=True)
        begin(fresh, Action.DELTA_COMMIT).withdraw()
        begin_plan(fresh, Action.COMPACTION).withdraw()
        assert time not in {i.time for i in load_timeline(fresh).instants}
    with pytest.raises(InvalidRequestError, match="no pending compaction"):
        resume(table.context, Instant(plan.instant, Action.COMPACTION, State.REQUESTED))
    assert contents(table) == [("a", "x", 8), *FIRST[1:]]
    replay = table.upsert(rows(("a", "x", 9)), batch="b1")
    assert not replay.replayed
    assert ("a", "x", 9) in contents(table)


def test_a_write_that_began_before_a_rollback_conflicts_with_it_and_succeeds_when_it_is_tried_again():
    table = written()
    table.upsert(rows(("a", "x", 9)))
    other = open_context(table.context.storage)
    txn = begin(other, Action.COMMIT)
    txn.inflight()
    aged(table).rollback(newest(table))
    with pytest.raises(WriteConflictError):
        txn._decide(Kind.COMMIT, [file_touch("z", "f")], f"{txn.time}.commit", b"{}")
    txn.abort()
    assert contents(table) == FIRST


def test_an_executor_that_began_before_a_rollback_conflicts_with_it_and_its_plan_stays():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    plan = table.schedule_compaction(force=True)
    table.upsert(rows(("b", "x", 9)))
    other = HudiTable(open_context(table.context.storage))
    at_work = resume(other.context, Instant(plan.instant, Action.COMPACTION, State.REQUESTED))
    assert at_work is not None
    aged(table).rollback(newest(table))
    with pytest.raises(WriteConflictError):
        at_work._decide(Kind.COMMIT, (), f"{plan.instant}.commit", b"{}")
    other.run_compaction(plan.instant)
    assert contents(table) == [("a", "x", 9), *FIRST[1:]]
    assert not any(item.logs for item in slices(table))


def test_a_process_that_remembers_the_chain_from_before_a_rollback_writes_on():
    table = written()
    mine, other = HudiTable(open_context(table.context.storage)), aged(table)
    mine.upsert(rows(("a", "x", 9)))
    other.rollback(newest(table))
    mine.upsert(rows(("b", "x", 9)))
    assert contents(table) == [("a", "x", 1), ("b", "x", 9), ("c", "y", 3)]


def test_a_failed_write_is_rolled_back_by_its_instant():
    table = written()
    txn = begin(open_context(table.context.storage), Action.COMMIT)
    txn.inflight()
    assert "leaves the timeline when nothing late" in table.rollback(txn.time).message
    assert "is rolled back" in table.rollback(txn.time, writers_stopped=True).message
    assert not load_timeline(table.context).pending
    with pytest.raises(WriteAbortedError):
        txn.right.prove()


def test_a_compaction_plan_is_not_rolled_back():
    table = written("MergeOnRead")
    table.upsert(rows(("a", "x", 9)))
    plan = table.schedule_compaction(force=True)
    with pytest.raises(InvalidRequestError, match="execute it"):
        table.rollback(plan.instant)


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
    request = ServiceRequest(instant=saved)
    plan = RESTORE_SERVICE.preview(table.context, request)
    assert plan is not None
    txn = begin_plan(open_context(table.context.storage), Action.RESTORE)
    txn.plan(table.context.storage.get(f".hoodie/.txn/plans/{plan.digest}"), ["table"])
    assert contents(table) == FIRST
    assert any("_0-0-0_" in path and saved not in path for path in files(table))
    table.upsert(rows(("b", "x", 9)))
    assert contents(table) == [("a", "x", 1), ("b", "x", 9), ("c", "y", 3)]
    assert (Action.RESTORE, State.COMPLETED) in actions(table)


def test_a_dry_run_says_what_would_go_and_its_approval_does_exactly_that():
    table = written()
    table.upsert(rows(("a", "x", 9), ("d", "x", 4)))
    request = ServiceRequest(instant=newest(table))
    before = actions(table)
    plan = ROLLBACK_SERVICE.preview(table.context, request)
    assert plan is not None
    assert actions(table) == before
    assert plan.details == (f"commit {newest(table)}: upsert, 1 rows inserted, 1 updated, 0 deleted, 1 files",)
    assert plan.bytes_freed == sum(item.size for item in slices(table) if item.instant == newest(table))
    approved = ServiceRequest({"hoodie.lakeops.writers.stopped": "true"}, plan=plan.digest, instant=newest(table))
    ROLLBACK_SERVICE.execute(table.context, "", approved, LocalEngine(1))
    assert contents(table) == FIRST


def test_an_approved_restore_that_would_take_more_back_than_was_approved_is_refused():
    table = written()
    saved = keep(table)
    table.upsert(rows(("a", "x", 9)))
    plan = RESTORE_SERVICE.preview(table.context, ServiceRequest(instant=saved))
    assert plan is not None
    table.upsert(rows(("b", "x", 9)))
    approved = ServiceRequest({"hoodie.lakeops.writers.stopped": "true"}, plan=plan.digest, instant=saved)
    with pytest.raises(InvalidRequestError, match="the table has changed since plan"):
        RESTORE_SERVICE.execute(table.context, "", approved, LocalEngine(1))
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


def dead_write(table):
    """An instant whose writer died, as old as anybody wants it."""
    txn = begin(open_context(table.context.storage), Action.COMMIT)
    txn.inflight()
    return txn


def suspicious(table, **more):
    """The table as a process sees it that takes every pending instant for dead."""
    return HudiTable(open_context(table.context.storage, settings=TxnSettings(3600.0, 0.0, **more)))


@pytest.mark.parametrize("key", ["hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes"])
@pytest.mark.parametrize(("policy", "left"), [("EAGER", 0), ("LAZY", 1), ("never", 1)])
def test_a_writer_takes_failed_writes_back_unless_the_policy_leaves_them(key, policy, left):
    table = written()
    dead_write(table)
    suspicious(table).upsert(rows(("a", "x", 9)), options={key: policy})
    assert len(load_timeline(table.context).pending) == (1 if left else 2)
    tail = chain.read_tail(table.context)
    aborts = [e for _, e in chain.entries_after(table.context, 0) if e.kind is Kind.ABORT]
    assert (len(aborts), tail.sequence > 0) == (1 - left, True)


def test_the_table_can_name_the_policy_too():
    table = written()
    dead_write(table)
    suspicious(table, failed_writes=FailedWrites.LAZY).upsert(rows(("a", "x", 9)))
    assert [i.action for i in load_timeline(table.context).pending] == [Action.COMMIT]
    settings = TxnSettings.from_properties({"hoodie.cleaner.policy.failed.writes": "lazy"})
    assert settings.failed_writes is FailedWrites.LAZY


def test_an_unknown_policy_or_two_that_differ_are_refused():
    table = written()
    with pytest.raises(InvalidOptionError, match="'SOON' is none of EAGER, LAZY, NEVER"):
        table.upsert(rows(("a", "x", 9)), options={"hoodie.clean.failed.writes.policy": "SOON"})
    twice = {"hoodie.clean.failed.writes.policy": "LAZY", "hoodie.cleaner.policy.failed.writes": "EAGER"}
    with pytest.raises(InvalidOptionError, match="given twice"):
        table.upsert(rows(("a", "x", 9)), options=twice)


@pytest.mark.parametrize(("policy", "taken"), [("LAZY", True), ("NEVER", False)])
def test_cleaning_takes_failed_writes_back_unless_the_policy_is_never(policy, taken):
    table = written()
    txn = dead_write(table)
    done = recover_failed_writes(suspicious(table).context, {"hoodie.clean.failed.writes.policy": policy})
    assert done == ((txn.time,) if taken else ())


def test_two_cleaners_make_one_rollback_and_the_writer_whose_heartbeats_came_late_fails_at_once(monkeypatch):
    monkeypatch.setattr("hudi_table.table.transaction.BEAT_SECONDS_LEAST", 60.0)
    table = written()
    txn = begin(open_context(table.context.storage), Action.COMMIT)
    with txn.signs_of_life():
        txn.inflight()
        write_file(txn, 0, "x")
        with ThreadPoolExecutor(2) as pool:
            cleaners = [pool.submit(recover_failed_writes, suspicious(table).context, {}) for _ in range(2)]
            assert {time for cleaner in cleaners for time in cleaner.result()} == {txn.time}
        with pytest.raises(WriteAbortedError, match="was taken for dead"):
            write_file(txn, 1, "x")
        with pytest.raises(WriteAbortedError):
            txn.commit(CommitMetadata("UPSERT"), ["bucket:x/0"])
    assert contents(table) == FIRST
    aged(table).upsert(rows(("a", "x", 9)))
    timeline = load_timeline(table.context)
    assert not timeline.pending
    taken = [
        r["commitsRollback"]
        for i in timeline.completed
        if i.action is Action.ROLLBACK
        for r in records_of(table.context, i)
    ]
    assert taken == [[txn.time]]


def test_the_verbs_say_what_would_go_and_take_it_back_on_yes(tmp_path, capsys):
    base = str(tmp_path / "t")
    table = new_table(base)
    table.upsert(rows(*FIRST))
    saved = keep(table)
    table.upsert(rows(("a", "x", 9)))
    assert main(["rollback", base, newest(table)]) == 0
    assert f"commit {newest(table)}: upsert, 0 rows inserted, 1 updated, 0 deleted, 1 files" in capsys.readouterr().out
    assert ("a", "x", 9) in contents(table)
    assert main(["rollback", base, newest(table), "--yes"]) == 1
    assert "--writers-stopped" in capsys.readouterr().err
    assert main(["rollback", base, newest(table), "--yes", "--writers-stopped"]) == 0
    assert contents(table) == FIRST
    table.upsert(rows(("a", "x", 8)))
    assert main(["restore", base, saved]) == 0
    assert main(["restore", base, saved, "--yes", "--writers-stopped", "-o", "json"]) == 0
    assert '"done": "took back' in capsys.readouterr().out
    assert contents(table) == FIRST
