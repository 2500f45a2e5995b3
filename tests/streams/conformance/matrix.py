"""Which test shows what of which source, and which cells do not apply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.streams.conformance.databases import MariaDB, Postgres
from tests.streams.conformance.folders import Files, Notified
from tests.streams.conformance.messages import Kafka, Kinesis, OfMariaDB, OfPostgres
from tests.streams.conformance.on_spark import KafkaOnSpark, OfMariaDBOnSpark, OfPostgresOnSpark, PostgresOnSpark
from tests.streams.conformance.packages import Custom
from tests.streams.conformance.part import Part
from tests.streams.conformance.tables import Hudi, Sql

STREAMS, JOBS = "tests/streams", "tests/hudi_spark/jobs"
SUITE = f"{STREAMS}/conformance/test_conformance.py"
PARTS: tuple[type[Part], ...] = (
    Kafka, OfPostgres, OfMariaDB, Postgres, MariaDB, Files, Notified, Hudi, Sql, Kinesis, Custom,
    KafkaOnSpark, OfPostgresOnSpark, OfMariaDBOnSpark, PostgresOnSpark,
)  # fmt: skip
BY_NAME = {each.label: each for each in PARTS}


@dataclass(frozen=True, slots=True)
class Case:
    """What befalls a source. `test`: of the suite; `says`: what it asks for."""

    heading: str
    test: str
    says: str


CASES = {
    "restart": Case(
        "Restart at every boundary",
        "test_each_row_is_once_in_the_table_behind_whichever_call_a_run_ends",
        "A run dies behind each of its calls of the source and each write of the table's store, or has its answer lost there and ends with an error; in the commit that makes the table and in a later one. The next run has each row, once.",
    ),
    "duplicates": Case(
        "Duplicates",
        "test_a_row_that_comes_again_is_once_in_the_table",
        "Rows come again, in one commit and behind it. Each key is in the table once.",
    ),
    "reordering": Case(
        "Reordering",
        "test_an_older_row_that_comes_late_overwrites_no_newer_one",
        "An older version of a row comes behind a newer one, in one commit and behind it. The newer one stays, and a row that comes late is taken.",
    ),
    "partitions": Case(
        "New partitions",
        "test_rows_of_a_partition_that_was_not_there_are_taken",
        "A partition, a folder or a shard comes that was not there. Its rows are taken from the first one on.",
    ),
    "retention": Case(
        "Retention passed",
        "test_what_retention_took_ends_the_ingest_unless_it_is_to_go_on",
        "What the ingest has not read is gone. It ends with `DataLoss`, the place and nothing committed, until `onDataLoss: Continue` lets it go on.",
    ),
    "away": Case(
        "Broker or database restarted",
        "test_a_part_that_is_away_is_waited_for",
        "The source is ended at once, and started again. A run meanwhile ends with `Unavailable` and commits nothing; the next one goes on.",
    ),
    "credentials": Case(
        "Credentials rotated",
        "test_rotated_credentials_are_refused_until_the_ingest_has_the_new_ones",
        "The source takes other credentials than the ingest has. A run ends with `AccessDenied`, commits nothing and shows no secret; with the new ones it goes on.",
    ),
    "schema": Case(
        "Schema changed",
        "test_a_column_that_comes_is_refused_or_taken_as_the_policy_says",
        "A column comes. `schemaPolicy: Refuse` names it and commits nothing; `AddColumns` takes the same rows then.",
    ),
    "poison": Case(
        "Poison message",
        "test_what_cannot_be_taken_is_named_commits_nothing_and_loses_nothing",
        "A message, row or file cannot be taken. A run names its place and commits nothing; once it is mended, or kept apart, the rest is there, once.",
    ),
}

_IN_DATABASES = (
    "a database takes nothing by itself: a row that somebody deletes before it was read leaves no trace there"
)
LACKS = {
    ("Jdbc, PostgreSQL", "retention"): _IN_DATABASES,
    ("Jdbc, MariaDB", "retention"): _IN_DATABASES,
    ("Jdbc, PostgreSQL, on Spark", "retention"): _IN_DATABASES,
    (
        "Files",
        "retention",
    ): "a folder takes nothing by itself: a file that somebody deletes before it was taken leaves no trace there",
    (
        "Sql",
        "retention",
    ): "a statement is answered from the rows that its tables hold now, whatever cleaning took of earlier states",
    (
        "Custom",
        "partitions",
    ): "what its parts are is the package's own: the ingest knows one position, and what lies behind it",
    (
        "Custom",
        "retention",
    ): "what can no longer be read the package alone knows: any exception of its `read` ends the ingest with its words",
}
"""Cells that do not apply, and why."""
ELSEWHERE = {
    (
        "Files by SQS",
        "retention",
    ): f"{SUITE}::test_files_whose_events_a_queue_has_forgotten_are_taken_by_a_run_that_lists",
    (
        "Files by SQS",
        "poison",
    ): f"{JOBS}/test_ingest_notified.py::test_what_cannot_be_read_is_set_aside_and_does_not_keep_the_others_back",
    (
        "Hudi",
        "retention",
    ): f"{JOBS}/test_ingest_hudi.py::test_changes_that_were_cleaned_away_stop_the_ingest_or_all_rows_come_again",
}
"""Cells that a test of this source alone shows, for there it is otherwise."""
_KILLED = "test_a_driver_that_is_killed_at_random_loses_and_doubles_nothing"
_EVENTS_KILLED = f"{STREAMS}/test_debezium_kills.py::test_a_driver_of_change_events_that_is_killed_at_random_loses_and_doubles_nothing"
_CONNECTOR_KILLED = (
    f"{STREAMS}/test_debezium_kills.py::test_nothing_is_lost_or_doubled_where_what_fills_the_topic_is_killed_at_random"
)
_SERVER_KILLED = f"{STREAMS}/test_jdbc_both.py::test_a_server_that_is_killed_while_it_is_read_leaves_nothing_and_the_next_run_has_all"
_LATE = f"{STREAMS}/test_jdbc_both.py::test_a_transaction_that_ends_late_is_taken_within_the_lag"
ALSO = {
    ("Kafka", "restart"): f"{STREAMS}/test_continuous.py::{_KILLED}",
    ("Kafka", "partitions"): f"{STREAMS}/test_once.py::test_topics_that_come_later_are_read_from_their_beginning",
    ("Kafka", "retention"): f"{STREAMS}/test_continuous.py::test_retention_that_passes_by_a_running_driver_stops_it",
    (
        "Kafka",
        "away",
    ): f"{STREAMS}/test_continuous.py::test_a_broker_that_is_killed_at_random_loses_and_doubles_nothing",
    (
        "Kafka",
        "credentials",
    ): f"{STREAMS}/test_rotated.py::test_a_driver_goes_on_with_the_password_that_its_secret_has_later",
    (
        "Kafka",
        "poison",
    ): f"{STREAMS}/test_quarantine.py::test_a_message_that_cannot_be_read_is_kept_with_its_place_reason_and_bytes",
    ("Debezium, PostgreSQL", "restart"): _EVENTS_KILLED,
    (
        "Debezium, PostgreSQL",
        "duplicates",
    ): f"{STREAMS}/test_debezium.py::test_events_that_come_again_behind_newer_ones_change_nothing",
    ("Debezium, PostgreSQL", "away"): _CONNECTOR_KILLED,
    (
        "Debezium, PostgreSQL",
        "schema",
    ): f"{STREAMS}/test_debezium.py::test_a_column_that_the_database_gets_or_renames_stops_the_ingest_as_the_policy_says",
    ("Debezium, MariaDB", "restart"): _EVENTS_KILLED,
    (
        "Debezium, MariaDB",
        "duplicates",
    ): f"{STREAMS}/test_debezium_binlog.py::test_the_table_is_what_the_database_was_and_events_that_come_again_change_nothing",
    ("Debezium, MariaDB", "away"): _CONNECTOR_KILLED,
    (
        "Debezium, MariaDB",
        "schema",
    ): f"{STREAMS}/test_live_database.py::test_after_random_transactions_the_table_is_what_the_database_is",
    ("Jdbc, PostgreSQL", "restart"): f"{STREAMS}/test_polled.py::{_KILLED}",
    ("Jdbc, PostgreSQL", "reordering"): _LATE,
    ("Jdbc, PostgreSQL", "away"): _SERVER_KILLED,
    (
        "Jdbc, PostgreSQL",
        "credentials",
    ): f"{STREAMS}/test_rotated.py::test_an_ingest_from_a_database_whose_password_is_rotated_goes_on_with_the_new_one",
    (
        "Jdbc, PostgreSQL",
        "schema",
    ): f"{STREAMS}/test_jdbc.py::test_a_column_that_the_database_gets_is_refused_or_taken_as_the_policy_says",
    ("Jdbc, MariaDB", "reordering"): _LATE,
    ("Jdbc, MariaDB", "away"): _SERVER_KILLED,
    ("Files", "restart"): f"{STREAMS}/test_polled.py::{_KILLED}",
    ("Files", "duplicates"): f"{JOBS}/test_ingest.py::test_a_file_that_was_replaced_in_place_is_taken_again",
    (
        "Files",
        "schema",
    ): f"{JOBS}/test_schema_policy.py::test_what_a_policy_refuses_leaves_table_and_checkpoint_as_they_were",
    ("Files", "poison"): f"{JOBS}/test_ingest.py::test_a_file_that_is_damaged_inside_is_named",
    ("Files by SQS", "restart"): f"{STREAMS}/test_polled.py::{_KILLED}",
    (
        "Files by SQS",
        "duplicates",
    ): f"{JOBS}/test_ingest_notified.py::test_a_file_is_taken_once_though_its_message_was_not_deleted",
    (
        "Files by SQS",
        "schema",
    ): f"{JOBS}/test_schema_policy.py::test_a_file_that_the_policy_refuses_stops_the_ingest_and_is_not_set_aside",
    ("Hudi", "restart"): f"{JOBS}/test_follow_hudi.py::{_KILLED}",
    (
        "Hudi",
        "schema",
    ): f"{JOBS}/test_schema_policy.py::test_a_table_that_another_follows_stops_it_where_its_columns_change",
    ("Sql", "restart"): f"{STREAMS}/test_polled.py::{_KILLED}",
    (
        "Sql",
        "reordering",
    ): f"{JOBS}/test_ingest_sql.py::test_rows_by_a_column_that_grows_are_those_behind_the_greatest_and_a_lag",
    ("Kinesis", "restart"): f"{JOBS}/test_operated_kinesis.py::{_KILLED}",
    (
        "Kinesis",
        "partitions",
    ): f"{JOBS}/test_ingest_kinesis.py::test_no_record_is_passed_over_or_doubled_while_shards_are_split_and_merged",
    ("Kinesis", "retention"): f"{JOBS}/test_ingest_kinesis.py::test_what_is_lost_ends_the_ingest_unless_it_is_to_go_on",
    (
        "Kinesis",
        "poison",
    ): f"{JOBS}/test_ingest_kinesis.py::test_records_that_a_producer_made_one_of_are_refused_by_name",
    ("Custom", "restart"): f"{STREAMS}/test_polled.py::{_KILLED}",
    ("Custom", "poison"): f"{JOBS}/test_ingest_custom.py::test_what_is_wrong_with_a_package_is_said_by_its_name",
}
"""Tests that show more of a cell than the suite does."""


def applies(case: str) -> list[Any]:
    """Parameters of the suite's test of a case: the sources that it runs for."""
    others = {*LACKS, *ELSEWHERE}
    return [pytest.param(each.label, marks=each.marks) for each in PARTS if (each.label, case) not in others]


def cells() -> Iterator[tuple[type[Part], str, str, str]]:
    """(source, case, the test that shows it, why there is none); one of the last two is empty."""
    for part in PARTS:
        for name, case in CASES.items():
            cell = part.label, name
            if cell in LACKS:
                yield part, name, "", LACKS[cell]
            else:
                yield part, name, ELSEWHERE.get(cell, f"{SUITE}::{case.test}"), ""
