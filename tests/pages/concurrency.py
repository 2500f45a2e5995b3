"""Who may write, serve and read beside whom: the table of docs/explanation/concurrency.md, and of
each row the tests that hold it.

.venv/bin/python -m tests.pages.concurrency
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.pages.concurrency_cases import READERS, SERVICES, WRITERS, Case

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "concurrency.md"
MARKED = "<!-- cases, by python -m tests.pages.concurrency -->", "<!-- end of cases -->"
_COMMIT = "tests/hudi_table/table/commit"
_BESIDE = f"{_COMMIT}/test_foreign_writers.py"
_LOCKED = f"{_COMMIT}/test_locking.py"
_AHEAD = "tests/hudi_table/services/test_plans_ahead.py"
_TAKEN = "tests/hudi_table/services/test_compaction_of_taken_back.py"
_PERMIT = f"{_COMMIT}/test_write_permit.py"

FOREIGN = (
    Case(
        "a writer", "a commit of Apache Hudi that is there before our decision", "a listing just before the decision",
        "our write ends with `WriteConflict` if one of the two would be lost; a retry keeps both",
        (
            f"{_BESIDE}::test_a_write_beside_one_of_another_engine_that_would_be_lost_is_a_conflict_and_a_retry_keeps_both",
            "tests/interop/test_beside.py::test_an_update_beside_a_commit_of_hudi_is_lost_in_no_case",
        ),
    ),
    Case(
        "a writer", "a commit of Apache Hudi or Flink that appears behind that listing, or that looks for none of ours", "nothing",
        "**not promised**: of two updates of one file group one may be lost. The condition `ForeignWriters` and `hudictl info` say that there are such commits",
        (f"{_BESIDE}::test_the_command_tells_of_foreign_writers",),
    ),
    Case(
        "a writer that appends", "non-blocking writers of Apache Hudi 1.1.1 on the same bucket", "nothing",
        "nobody fails; every row is there for both",
        ("tests/interop/test_non_blocking.py::test_both_append_to_one_bucket_and_nobody_fails",),
    ),
    Case(
        "a writer", "a compaction or clustering that Apache Hudi plans before our decision", "a listing just before the decision",
        "a write to a planned file group ends with `WriteConflict`",
        (
            f"{_BESIDE}::test_a_write_to_a_log_whose_slice_another_engine_plans_to_compact_is_a_conflict",
            f"{_BESIDE}::test_a_write_to_a_group_that_another_engine_clusters_is_a_conflict",
        ),
    ),
    Case(
        "a writer", "Apache Hudi, which takes our pending write for failed", "a listing just before the decision",
        "our write ends with `WriteAborted`; nothing of it is visible",
        (
            f"{_BESIDE}::test_a_write_that_another_engine_takes_for_failed_is_not_published",
            f"{_BESIDE}::test_a_write_that_another_engine_has_planned_to_take_back_is_not_published",
        ),
    ),
    Case(
        "who executes a plan of ours", "Apache Hudi, which executes it too", "a listing just before the decision",
        "it is committed once", (f"{_BESIDE}::test_a_plan_of_ours_that_another_engine_executed_meanwhile_is_not_committed_twice",),
    ),
)  # fmt: skip
LOCKED = (
    Case(
        "a writer", "Apache Hudi or Flink under the same lock, with optimistic concurrency control", "the lock, and a listing under it",
        "of two updates of one file group one fails, and both are there after a retry; no acknowledged row is lost, but one that a writer of Hudi's hides itself; a commit of ours lets a write that began before read first, for 5 s at most ([foreign writers](foreign-writers.md#a-row-that-hudi-hides-itself))",
        (
            f"{_LOCKED}::test_what_another_engine_commits_while_we_wait_for_the_lock_is_a_conflict",
            "tests/interop/test_shared_lock.py::test_no_acknowledged_row_of_either_is_lost",
            "tests/interop/test_flink.py::test_three_engines_write_at_once_under_one_lock",
            f"{_COMMIT}/test_first_reads.py::test_a_write_of_another_engine_that_began_before_reads_before_ours_is_decided",
        ),
    ),
    Case(
        "a holder of the lock", "Apache Hudi's own clients of lock files and of ZooKeeper", "the lock",
        "nobody meets another inside",
        (
            "tests/interop/test_locks.py::test_the_lock_file_excludes_hudis_client_and_ours",
            "tests/interop/test_locks.py::test_the_lock_of_zookeeper_excludes_hudis_client_and_ours",
            "tests/interop/test_locks.py::test_the_lock_of_zookeeper_that_goes_by_the_tables_path_excludes_hudis_client_and_ours",
        ),
    ),
    Case(
        "a writer that loses the lock before its decision", "who has it then", "the lease",
        "it ends with `WriteAborted`; nothing of it is visible", (f"{_LOCKED}::test_who_lost_the_lock_before_his_decision_decides_nothing",),
    ),
    Case(
        "a writer that loses the lock, or dies, behind its decision", "Apache Hudi, which takes the lock then", "the lock again; what came since is listed",
        "it is published if nothing of both would be lost, else given up: `WriteConflict`, and nothing of it is visible",
        (
            f"{_LOCKED}::test_what_was_decided_before_the_lock_was_lost_does_not_hide_what_another_engine_wrote_under_it",
            f"{_LOCKED}::test_what_a_killed_writer_decided_is_published_if_no_other_engine_came_between",
            f"{_LOCKED}::test_what_a_killed_writer_decided_is_given_up_if_another_engine_came_between",
            f"{_LOCKED}::test_a_decision_that_comes_when_the_lock_is_lost_does_not_hide_what_another_engine_wrote_before_it",
            f"{_LOCKED}::test_a_publication_that_comes_when_the_lock_is_lost_is_taken_back_if_another_engine_came_before",
            f"{_COMMIT}/test_lock_crashes.py::test_a_fault_at_any_storage_call_of_a_write_under_a_lock_loses_nothing_that_was_acknowledged",
        ),
    ),
    Case(
        "who executes a compaction", "Apache Hudi, which takes back a write that the plan names", "the lock; rollbacks that came since the plan are listed",
        "no row of it comes back: the execution ends with `WriteConflict`, or `Unavailable` while the rollback goes on, and the plan can be executed again",
        (
            f"{_TAKEN}::test_before_the_decision",
            f"{_TAKEN}::test_behind_the_decision_of_an_executor_that_died",
            f"{_TAKEN}::test_while_an_executor_sleeps_before_the_create_of_its_file",
            f"{_TAKEN}::test_a_rollback_that_began_before_the_executor_read",
            f"{_TAKEN}::test_of_a_write_that_has_not_completed_a_compaction_holds_no_row",
        ),
    ),
    Case(
        "who executes a compaction, version 6", "a write of Apache Hudi that began while the planner slept before its plan's file", "two listings before the execution",
        "the plan waits for that write, and is not executed once it has completed, until it is taken back: readers show its rows meanwhile. **Not promised** if Apache Hudi executes the plan",
        (
            f"{_AHEAD}::test_the_plan_of_a_planner_that_slept_right_before_its_file_is_not_executed_while_a_write_that_missed_it_goes_on",
            f"{_AHEAD}::test_nor_once_that_has_completed_until_it_is_taken_back",
        ),
    ),
    Case(
        "a rollback or restore", "Apache Hudi under the same lock", "the lock, from the plan to the end",
        "nobody commits in between", (f"{_LOCKED}::test_a_restore_waits_for_the_lock",),
    ),
    Case(
        "writers of ours under a lock", "each other", "the lock where they decide, the chain besides",
        "as without it; who has nothing to decide takes none",
        (
            f"{_LOCKED}::test_threads_that_write_beside_each_other_wait_for_each_other",
            f"{_LOCKED}::test_only_who_decides_or_takes_something_back_takes_the_lock",
        ),
    ),
    Case(
        "a writer whose options ask for optimistic concurrency control", "anybody", "nothing, where they name no lock",
        "the options are refused by name, instead of having no effect",
        ("tests/hudi_table/write/test_lock_options.py::test_optimistic_concurrency_control_needs_a_lock_by_name",),
    ),
)  # fmt: skip
FAULTS = (
    Case(
        "a process that dies anywhere", "who comes next", "the chain: decided or not",
        "readers see the table of before or of after; the next writer needs no repair by hand",
        ("tests/hudi_table/test_crash_points.py::test_a_fault_at_any_storage_call_leaves_the_old_or_the_new_table",),
    ),
    Case(
        "a process that sleeps, however long", "who took it for dead", "the right to write, proved again; exclusive creation",
        "it ends with `WriteAborted`, and brings nothing back that was archived",
        (
            f"{_PERMIT}::test_a_process_that_slept_between_its_proof_and_its_file_takes_back_what_is_nobody_elses",
            f"{_PERMIT}::test_a_writer_that_slept_before_its_publication_does_not_bring_back_an_archived_commit",
        ),
    ),
    Case(
        "a process whose heartbeats come late", "two cleaners", "the chain decides once",
        "one rollback; the writer ends at its next proof",
        (f"{_COMMIT}/test_failed_writes.py::test_two_cleaners_make_one_rollback_and_the_writer_whose_heartbeats_came_late_fails_at_its_next_proof",),
    ),
    Case(
        "a process whose clock stands, goes back or is late", "processes with other clocks", "instants are drawn above all that is known, and created exclusively",
        "instants and completions grow", (
            f"{_COMMIT}/test_transaction.py::test_a_clock_that_went_back_draws_instants_above_everything_decided",
            "tests/hudi_table/write/test_completions.py::test_a_write_completes_after_all_that_was_decided_however_late_its_clock_is",
        ),
    ),
    Case(
        "a decision whose reply is lost", "anybody", "the slot is read back",
        "it is published if it is ours; where nobody can tell, `CommitStateUnknown` says so",
        (
            f"{_PERMIT}::test_a_lost_decision_is_read_back_and_published",
            f"{_PERMIT}::test_a_writer_that_slept_over_an_unknown_decision_reports_that_it_does_not_know",
            f"{_COMMIT}/test_transaction.py::test_a_store_that_refuses_to_be_asked_again_does_not_tell_that_the_lost_request_was_not_done",
        ),
    ),
    Case(
        "eight processes that create one object", "each other", "conditional puts of the store, exclusive links of a local disk",
        "one wins", ("tests/hudi_table/table/store/test_storage.py::test_of_eight_racing_creates_exactly_one_wins",),
    ),
    Case(
        "many processes", "each other, under every fault at once", "all of the above",
        "no history shows a lost, doubled or half-seen write",
        (
            "tests/simulation/test_simulation.py::test_no_history_has_an_anomaly_and_every_fault_has_fired",
            "tests/soak/test_soak.py::test_what_is_acknowledged_beside_others_stays_and_nothing_else_comes",
        ),
    ),
)  # fmt: skip
TABLES = {
    "Writers of ours beside each other": WRITERS,
    "Services": SERVICES,
    "Readers": READERS,
    "Apache Hudi and Flink": FOREIGN,
    "Apache Hudi under a shared lock": LOCKED,
    "Clocks, stores, processes that sleep or die": FAULTS,
}
CASES = tuple(case for cases in TABLES.values() for case in cases)


def table(cases: Iterable[Case]) -> list[str]:
    """The rows of cases, with the name of each test and its file."""
    lines = ["| who | beside | kept apart by | what is promised | held by |", "|---|---|---|---|---|"]
    for case in cases:
        tests = (test.partition("::") for test in case.tests)
        held = ", ".join(f"`{name}` ({path.rpartition('/')[2]})" for path, _, name in tests)
        lines.append(f"| {case.who} | {case.beside} | {case.by} | {case.promise} | {held} |")
    return lines


def generated() -> str:
    """What stands between the marks of the page."""
    lines = []
    for title, cases in TABLES.items():
        lines += ["", f"## {title}", "", *table(cases)]
    return "\n".join([*lines, "", ""])


def with_cases(page: str) -> str:
    """The page with the table of now."""
    before, _, rest = page.partition(MARKED[0])
    return f"{before}{MARKED[0]}\n{generated()}{MARKED[1]}{rest.partition(MARKED[1])[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_cases(PAGE.read_text()))
