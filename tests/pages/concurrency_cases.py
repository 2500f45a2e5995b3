"""Our own writers, services and readers beside each other: rows of the page on concurrency."""

from __future__ import annotations

from dataclasses import dataclass

_COMMIT = "tests/hudi_table/table/commit"
_SERVICES = "tests/hudi_table/services"
_CONFLICTS = "tests/hudi_table/write/test_conflicts.py"
_APPENDS = "tests/hudi_table/write/test_non_blocking.py"
_EARLY = "tests/hudi_table/write/test_early_conflicts.py"


@dataclass(frozen=True, slots=True)
class Case:
    """`who` beside `beside`: `by` keeps them apart, `promise` is what holds then, and `tests` show
    it."""

    who: str
    beside: str
    by: str
    promise: str
    tests: tuple[str, ...]


_TURNS = f"{_COMMIT}/test_turns.py"
_LEFT = "tests/hudi_table/services/test_left_to_writes.py"

WRITERS = (
    Case(
        "a write that has lost an attempt, and tries again", "writes of the same that began later", "its turn; the chain besides",
        "they let it go first, for a bounded time; beside w others it commits with attempt 2 + w at the latest",
        (
            f"{_TURNS}::test_one_that_began_later_waits_until_it_has_committed",
            "tests/simulation/test_fairness.py::test_beside_others_no_write_takes_more_attempts_than_two_and_one_for_each",
        ),
    ),
    Case(
        "a write that has lost an attempt, and tries again", "planners of compactions, log compactions and clusterings", "its turn; the chain besides",
        "they leave its file groups out, but for logs that had waited 6 hours when it began; after a day they plan all the same",
        (
            f"{_LEFT}::test_a_write_that_has_lost_an_attempt_loses_none_to_a_compaction_that_is_planned_in_the_next",
            f"{_LEFT}::test_logs_that_waited_for_long_when_the_write_began_go_before_it",
        ),
    ),
    Case(
        "a write that has lost an attempt, and dies", "writes of the same", "nothing once it seems dead",
        "its turn holds nobody up any longer",
        (
            f"{_TURNS}::test_a_turn_that_a_dead_writer_left_is_deleted_and_not_waited_for",
            "tests/simulation/test_fairness.py::test_a_writer_that_dies_with_a_turn_holds_others_up_no_longer_than_it_seems_alive",
        ),
    ),
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
        "an upsert of a new key", "an upsert of the same new key", "the chain: the bucket, else hashes of the keys, beyond 2,000 keys the partition",
        "the key is there once", (
            f"{_CONFLICTS}::test_two_first_inserts_of_one_key_exclude_each_other",
            f"{_CONFLICTS}::test_many_inserted_keys_touch_their_whole_partition",
        ),
    ),
    Case(
        "an upsert of a new key, global index", "an upsert of the same key into another partition", "the chain: hashes of the keys of all partitions",
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
    Case(
        "the first writer of a table", "another engine's first write, with markers or a heartbeat", "its signs of life; ours waits up to 16 s",
        "`Unavailable` while that goes on, nothing of it is touched",
        (f"{_COMMIT}/test_first_writes.py::test_ours_is_refused_while_it_goes_on_and_touches_nothing",),
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
        "an update of planned file groups that goes on", "a clustering whose options prefer writers", "the markers of the write",
        "the clustering is given up, and the write commits",
        ("tests/hudi_table/services/clustering/test_writers_first.py::test_a_clustering_gives_way_to_a_write_that_goes_on_where_writers_are_preferred",),
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
        "a reader or writer that lists files after the timeline", "a clean, ours or Apache Hudi's",
        "the minute for which ours leave what was superseded; the timeline, which is listed once more",
        "no row is missing without a word, and no key is inserted twice",
        (
            f"{_SERVICES}/test_cleaning_beside_readers.py::test_a_reader_beside_a_clean_of_ours_has_the_rows_of_its_moment",
            f"{_SERVICES}/test_cleaning_beside_readers.py::test_a_reader_beside_a_clean_that_leaves_nothing_reads_the_newer_state",
            f"{_SERVICES}/test_cleaning_beside_readers.py::test_a_writer_beside_a_clean_doubles_no_key",
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
