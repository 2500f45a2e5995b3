"""Who may write, serve and read beside whom: the table of docs/explanation/concurrency.md, and of
each row the tests that hold it.

.venv/bin/python -m tests.pages.concurrency
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "concurrency.md"
MARKED = "<!-- cases, by python -m tests.pages.concurrency -->", "<!-- end of cases -->"
_COMMIT = "tests/hudi_table/table/commit"
_SERVICES = "tests/hudi_table/services"
_CONFLICTS = "tests/hudi_table/write/test_conflicts.py"
_APPENDS = "tests/hudi_table/write/test_non_blocking.py"
_EARLY = "tests/hudi_table/write/test_early_conflicts.py"
_BESIDE = f"{_COMMIT}/test_foreign_writers.py"
_LOCKED = f"{_COMMIT}/test_locking.py"
_PERMIT = f"{_COMMIT}/test_write_permit.py"


@dataclass(frozen=True, slots=True)
class Case:
    """`who` beside `beside`: `by` keeps them apart, `promise` is what holds then, and `tests` show
    it."""

    who: str
    beside: str
    by: str
    promise: str
    tests: tuple[str, ...]


WRITERS = (
    Case(
        "a writer, bucket index", "a writer of the same bucket", "the chain: the bucket",
        "one commits, the other ends with `WriteConflict`; nothing of it is visible",
        (f"{_COMMIT}/test_transaction.py::test_a_write_that_lost_its_slot_to_the_same_bucket_is_a_conflict",),
    ),
    Case(
        "a writer, bucket index", "a writer of other buckets, or of another partition", "nothing",
        "both commit, one behind the other",
        (
            f"{_COMMIT}/test_transaction.py::test_a_write_that_lost_its_slot_to_another_bucket_commits_after_it",
            f"{_CONFLICTS}::test_writers_of_different_partitions_both_stand",
        ),
    ),
    Case(
        "an update, any index, copy-on-write or merge-on-read", "an update of the same file group", "the chain: the file group, or the bucket",
        "one commits, the other ends with `WriteConflict`; `hoodie.write.num.retries.on.conflict.failures` tries again on the new state",
        (
            f"{_CONFLICTS}::test_two_updates_of_one_key_exclude_each_other_and_the_first_decision_stands",
            f"{_CONFLICTS}::test_a_conflict_is_tried_again_on_the_new_snapshot_if_the_options_say_so",
        ),
    ),
    Case(
        "a writer that appends: merge-on-read of version 8 or 9, bucket index, `NON_BLOCKING_CONCURRENCY_CONTROL`", "others that append to the same bucket", "nothing",
        "all commit; of one key the larger ordering value counts, without ordering fields the later instant",
        (
            f"{_APPENDS}::test_two_that_update_one_bucket_both_stand",
            f"{_APPENDS}::test_two_that_begin_a_bucket_write_logs_of_one_file_group",
            f"{_APPENDS}::test_the_larger_ordering_value_wins_whoever_completes_last",
            f"{_APPENDS}::test_many_writers_of_one_bucket_lose_nothing",
        ),
    ),
    Case(
        "a writer that appends", "a write of the bucket that does not, an overwrite, a clustering, a log compaction", "the chain: the bucket",
        "one commits, the other ends with `WriteConflict`",
        (
            f"{_APPENDS}::test_what_does_more_than_append_excludes_them",
            f"{_APPENDS}::test_a_log_compaction_excludes_them",
        ),
    ),
    Case(
        "an update that looks for conflicts early", "an earlier update of the same file group that goes on", "the markers of the other, then the chain",
        "with `hoodie.write.concurrency.early.conflict.detection.enable` the later one ends with `WriteConflict` before it writes to that file group",
        (
            f"{_EARLY}::test_the_later_of_two_writes_of_one_file_group_ends_before_it_writes_a_row",
            "tests/hudi_spark/test_early_conflicts.py::test_a_write_ends_whose_file_group_an_earlier_one_has_begun_to_change",
        ),
    ),
    Case(
        "an insert of a new key", "an insert of the same key", "the chain: the bucket, else hashes of the keys, beyond 2,000 keys the partition",
        "the key is there once", (
            f"{_CONFLICTS}::test_two_first_inserts_of_one_key_exclude_each_other",
            f"{_CONFLICTS}::test_many_inserted_keys_touch_their_whole_partition",
        ),
    ),
    Case(
        "an insert, global index", "an insert of the same key into another partition", "the chain: hashes of the keys of all partitions",
        "the key is there once", (f"{_CONFLICTS}::test_keys_of_a_global_index_meet_across_partitions",),
    ),
    Case(
        "a writer, consistent hashing", "a writer of the same node, or of another one", "the chain: the node's file group",
        "of one node one commits, of two nodes both do",
        (f"{_SERVICES}/clustering/test_rings.py::test_two_first_writes_to_a_node_exclude_each_other_and_to_two_nodes_do_not",),
    ),
    Case(
        "a writer, external key store", "a writer that records the same files", "the chain; the store's records count only with the files that they name",
        "one record of the two counts", ("tests/hudi_table/index/keystore/test_external.py::test_of_two_that_record_the_same_slice_one_is_left_out",),
    ),
    Case(
        "an overwrite, or the deletion of a partition", "an upsert into the partition", "the chain: the partition",
        "one commits, the other ends with `WriteConflict`", (f"{_CONFLICTS}::test_overwriting_a_partition_excludes_an_upsert_into_it",),
    ),
    Case(
        "a write that changes the schema", "every other write", "the chain: the table",
        "one commits, the other ends with `WriteConflict`", (f"{_CONFLICTS}::test_a_change_of_the_schema_excludes_every_other_write",),
    ),
    Case(
        "a batch of a stream", "another attempt at the same batch", "the chain: the name of the batch",
        "its rows are there once", (f"{_CONFLICTS}::test_one_batch_by_two_writers_is_written_once",),
    ),
    Case(
        "the first writer of a table", "other first writers", "the chain; who was aborted waits for the first commit",
        "all get through", (f"{_COMMIT}/test_transaction.py::test_writers_that_begin_a_table_at_once_all_get_through",),
    ),
)  # fmt: skip
SERVICES = (
    Case(
        "a writer that appends", "a compaction", "the chain: the compaction is planned again where rows came meanwhile",
        "both go on, and no row is lost",
        (
            f"{_APPENDS}::test_a_compaction_goes_on_beside_them",
            f"{_APPENDS}::test_a_compaction_that_waits_is_executed_behind_them",
        ),
    ),
    Case(
        "a writer", "a compaction", "the chain: the plan names its file groups",
        "who read before the plan and writes to a planned group ends with `WriteConflict`; who read after it goes on, and its rows stay",
        (
            f"{_SERVICES}/test_compaction.py::test_a_writer_that_read_before_the_plan_conflicts_with_it",
            f"{_SERVICES}/test_compaction.py::test_what_is_written_beside_a_plan_is_there_before_and_after_its_execution",
        ),
    ),
    Case(
        "a writer", "a log compaction", "the chain: the plan names its file groups",
        "what is written beside it stays behind it", (f"{_SERVICES}/test_compaction.py::test_what_is_written_beside_a_log_compaction_stays_behind_it",),
    ),
    Case(
        "an update of planned file groups", "a clustering that waits", "the plan; `hoodie.clustering.updates.strategy`",
        "it is refused with `WriteConflict` before it writes; where updates are allowed it commits, and the plan is given up",
        (
            f"{_SERVICES}/clustering/test_clustering.py::test_a_write_to_a_planned_group_is_refused_before_it_writes_and_elsewhere_writers_go_on",
            f"{_SERVICES}/clustering/test_clustering.py::test_an_allowed_write_makes_the_plan_void_and_the_next_one_takes_its_rows",
        ),
    ),
    Case(
        "a large insert", "a clustering of the partition", "the chain: the file groups",
        "both stand if the insert writes to no planned group",
        (f"{_SERVICES}/clustering/test_clustering_beside.py::test_a_large_insert_that_writes_to_no_planned_group_and_the_clustering_both_stand",),
    ),
    Case(
        "a writer", "a change of the number of buckets", "the plan, and the chain: the table",
        "from the plan on every write is refused by the plan's name; one that began before it fails at its commit",
        (
            f"{_SERVICES}/test_resizing.py::test_while_a_plan_waits_every_write_and_service_keeps_off",
            f"{_SERVICES}/test_resizing.py::test_a_write_that_began_before_the_plan_fails_at_its_commit",
        ),
    ),
    Case(
        "a writer", "a clean", "nothing: what a clean deletes no writer needs",
        "both go on; the folder of a partition that a clean empties stays while a writer is at work",
        (f"{_SERVICES}/test_cleaning.py::test_the_metadata_of_an_emptied_partition_stays_while_a_writer_is_at_work",),
    ),
    Case(
        "a writer", "an archiving", "nothing: the oldest instant goes first, and its completed file last",
        "both go on", ("tests/hudi_table/table/timeline/test_active.py::test_a_write_updates_what_is_archived_while_it_lists_the_timeline",),
    ),
    Case(
        "a writer", "a rollback or restore", "the chain: the table",
        "who began before it ends with `WriteConflict`; who comes later carries it out first",
        (
            f"{_SERVICES}/test_rollback.py::test_a_write_that_began_before_a_rollback_conflicts_with_it_and_succeeds_when_it_is_tried_again",
            f"{_SERVICES}/test_restore.py::test_writers_finish_a_restore_that_was_decided_before_they_begin",
        ),
    ),
    Case(
        "a writer", "a change of the table version", "a note in `.hoodie/`, and the chain: the table",
        "a write is refused by name, or counts", (
            "tests/hudi_table/test_crash_upgrading.py::test_a_write_between_any_two_calls_is_refused_by_name_or_counts",
            "tests/hudi_table/test_crash_upgrading.py::test_a_write_that_has_not_ended_keeps_the_table_from_being_upgraded",
        ),
    ),
    Case(
        "a writer", "the building of the metadata table", "the chain: the plan of the building",
        "writers go on, and it has every file of theirs",
        ("tests/hudi_table/metadata/test_building_beside_writers.py::test_built_beside_threads_that_write_it_has_every_file_of_theirs",),
    ),
    Case(
        "who executes a plan", "others who execute it", "the chain: all are one attempt",
        "they write the same files, and one commit comes of it",
        (f"{_SERVICES}/test_compaction.py::test_two_executors_at_once_and_a_third_later_make_one_commit",),
    ),
    Case(
        "a compaction that is planned", "a clustering that is planned", "the plans: a file group is in one of them",
        "each leaves the other its file groups", (f"{_SERVICES}/clustering/test_clustering.py::test_a_clustering_and_a_compaction_leave_each_other_their_groups",),
    ),
    Case(
        "a clean that is planned", "savepoints and pending plans", "the chain: cleans and savepoints touch the same",
        "a clean takes nothing that these need; it plans again if a savepoint came between",
        (
            f"{_SERVICES}/test_cleaning.py::test_a_savepoint_made_since_the_planner_looked_makes_it_plan_again",
            f"{_SERVICES}/test_cleaning.py::test_pending_compactions_keep_what_they_read",
        ),
    ),
    Case(
        "an archiver", "another archiver", "exclusive creation of each file of the archive",
        "no instant is lost; one that both have archived counts once",
        (f"{_SERVICES}/test_archiving.py::test_of_two_archivers_at_once_each_leaves_a_whole_archive",),
    ),
    Case(
        "a recovery", "another recovery", "the chain decides once; the oldest rollback stays",
        "a failed write has one rollback",
        (f"{_COMMIT}/test_failed_writes.py::test_two_recoveries_that_find_two_rollbacks_of_one_write_end_with_one_at_any_interleaving",),
    ),
)  # fmt: skip
READERS = (
    Case(
        "a reader of the newest state", "writers and services", "nothing",
        "it has the rows of one moment; what goes before its first row is read in the newer state",
        (
            "tests/hudi_table/test_gone_meanwhile.py::test_who_asks_for_the_newest_state_goes_on_by_itself",
            f"{_SERVICES}/test_cleaning_histories.py::test_readers_have_their_rows_or_are_told_that_they_are_gone",
        ),
    ),
    Case(
        "a reader of a past moment", "a clean", "what the clean retains",
        "a retained moment reads on, an earlier one ends with `Expired`; never with a part of the rows",
        (f"{_SERVICES}/test_cleaning.py::test_retained_moments_read_on_and_earlier_ones_are_expired",),
    ),
    Case(
        "a reader", "an archiving", "the oldest commit is looked for once more behind each listing",
        "no commit is missing", ("tests/hudi_table/table/timeline/test_active.py::test_a_commit_that_is_archived_while_the_timeline_is_listed_stays_visible",),
    ),
    Case(
        "a reader who goes on with what has changed", "a write that began before and ends later", "the newest moment behind which nothing can come",
        "it misses nothing", ("tests/hudi_table/read/output/test_export.py::test_the_next_one_begins_before_a_write_that_was_pending",),
    ),
)  # fmt: skip
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
        "a writer", "Apache Hudi under the same lock, with optimistic concurrency control", "the lock, and a listing under it",
        "of two updates of one file group one fails, and both are there after a retry; no acknowledged row is lost",
        (
            f"{_LOCKED}::test_what_another_engine_commits_while_we_wait_for_the_lock_is_a_conflict",
            "tests/interop/test_shared_lock.py::test_no_acknowledged_row_of_either_is_lost",
        ),
    ),
    Case(
        "a holder of the lock", "Apache Hudi's own clients of lock files and of ZooKeeper", "the lock",
        "nobody meets another inside",
        (
            "tests/interop/test_locks.py::test_the_lock_file_excludes_hudis_client_and_ours",
            "tests/interop/test_locks.py::test_the_lock_of_zookeeper_excludes_hudis_client_and_ours",
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
            f"{_COMMIT}/test_lock_crashes.py::test_a_fault_at_any_storage_call_of_a_write_under_a_lock_loses_nothing_that_was_acknowledged",
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
