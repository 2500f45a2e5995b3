"""`ingest` of a HudiTable: one way of rows into the table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields import patterns
from hudi_operator.api.fields.patterns import DURATION, NAME
from hudi_operator.api.fields.shaping import ExpectationSpec, OnError, OnFail, TransformSpec
from hudi_operator.api.ingests.ranges import StartPosition, is_bounded
from hudi_operator.api.ingests.source import FOLLOWED, MESSAGES, STREAMS, SourceSpec, SourceType
from hudi_operator.api.schema import Rule, prop
from hudi_table.model.job.jobspec import SchemaPolicy


class IngestOperation(StrEnum):
    """What an ingest does with its rows."""

    UPSERT = "Upsert"
    INSERT = "Insert"
    BULK_INSERT = "BulkInsert"


class IngestMode(StrEnum):
    """When an ingest runs."""

    ONCE = "Once"
    CONTINUOUS = "Continuous"
    BACKFILL = "Backfill"
    SCHEDULED = "Scheduled"


class IngestEngine(StrEnum):
    """Where the rows of a source are read."""

    LOCAL = "Local"
    SPARK = "Spark"


COMMIT_INTERVAL, FRESHNESS = "10s", "60s"
MAX_ERROR_RATIO = "0.05"


@dataclass(frozen=True, slots=True)
class IngestSpec:
    """One way of rows into the table."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.mode != 'Continuous' || ((!has(self.source.jdbc) || has(self.source.jdbc.incremental)) && (!has(self.source.sql) || has(self.source.sql.incremental)))",
            "mode Continuous of type Jdbc or Sql needs incremental: without it all rows would be read each time",
            "mode",
            lambda i: i.mode is not IngestMode.CONTINUOUS or i.source.grows,
        ),
        Rule(
            "!self.dropDuplicates || self.operation == 'Insert'",
            "dropDuplicates goes with operation Insert: Upsert makes rows of one key one by itself, and BulkInsert looks for no keys",
            "dropDuplicates",
            lambda i: not i.drop_duplicates or i.operation is IngestOperation.INSERT,
        ),
        Rule(
            "!has(self.commitInterval) || self.mode == 'Continuous'",
            "commitInterval belongs to mode Continuous",
            "commitInterval",
            lambda i: i.commit_interval is None or i.mode is IngestMode.CONTINUOUS,
        ),
        Rule(
            "(self.mode == 'Backfill') == (has(self.source.range) || (has(self.source.kafka) && has(self.source.kafka.endAt)))",
            "mode Backfill needs kafka.endAt, or source.range of Files, Kinesis, Jdbc with incremental or Hudi, and no other mode has one",
            "mode",
            lambda i: (i.mode is IngestMode.BACKFILL) == is_bounded(i.source),
        ),
        Rule(
            "self.mode != 'Backfill' || (self.operation == 'Upsert' && (!has(self.source.kafka) || self.source.kafka.startFrom.position != 'Latest'))",
            "mode Backfill goes with operation Upsert, and does not begin at Latest",
            "mode",
            lambda i: (
                i.mode is not IngestMode.BACKFILL
                or (
                    i.operation is IngestOperation.UPSERT
                    and (i.source.kafka is None or i.source.kafka.start_from.position is not StartPosition.LATEST)
                )
            ),
        ),
        Rule(
            "(self.mode == 'Scheduled') == has(self.schedule)",
            "mode Scheduled needs a schedule, and no other mode has one",
            "schedule",
            lambda i: (i.mode is IngestMode.SCHEDULED) == (i.schedule is not None),
        ),
        patterns.of_schedule("time_zone"),
        patterns.of_schedule("starting_deadline_seconds"),
        Rule(
            "!has(self.activeDeadline) || self.mode != 'Continuous'",
            "activeDeadline does not go with mode Continuous, which has no end",
            "activeDeadline",
            lambda i: i.active_deadline is None or i.mode is not IngestMode.CONTINUOUS,
        ),
        Rule(
            "!has(self.freshness) || self.source.type in ['Kafka', 'Debezium', 'Kinesis', 'Hudi'] || (self.source.type == 'Files' && !has(self.source.notifications) && self.mode == 'Continuous')",
            "freshness goes with a source of type Kafka, Debezium, Kinesis or Hudi, or Files in mode Continuous without notifications",
            "freshness",
            lambda i: i.freshness is None or i.source.type in FOLLOWED or i.lists_continuously,
        ),
        Rule(
            "self.source.type in ['Kafka', 'Debezium', 'Kinesis'] || self.onUndecodable == 'Fail'",
            "onUndecodable Quarantine goes with a source of type Kafka, Debezium or Kinesis: rows of others are not decoded one by one",
            "onUndecodable",
            lambda i: i.source.type in MESSAGES or i.on_undecodable is OnError.FAIL,
        ),
        Rule(
            "!has(self.maxErrorRatio) || self.onUndecodable == 'Quarantine' || self.expectations.exists(e, e.onFail == 'Quarantine') || self.transform.exists(t, has(t.onFail) && t.onFail == 'Quarantine')",
            "maxErrorRatio needs something that is quarantined: onUndecodable, an expectation or a transform",
            "maxErrorRatio",
            lambda i: i.max_error_ratio is None or i.quarantines,
        ),
        Rule(
            "!has(self.source.kafka) || self.source.kafka.tombstones != 'Delete' || self.operation == 'Upsert'",
            "tombstones Delete goes with operation Upsert",
            "operation",
            lambda i: not i.source.deletes or i.operation is IngestOperation.UPSERT,
        ),
        Rule(
            "!has(self.source.hudi) || (self.source.hudi.deletes != 'Delete' && self.source.hudi.onDataLoss != 'Continue') || self.operation == 'Upsert'",
            "hudi.deletes Delete and hudi.onDataLoss Continue go with operation Upsert",
            "operation",
            lambda i: i.source.hudi is None or i.operation is IngestOperation.UPSERT or not i.source.hudi.needs_keys,
        ),
        Rule(
            "!has(self.source.sql) || self.operation == 'Upsert'",
            "a statement is answered again and again: it goes with operation Upsert",
            "operation",
            lambda i: i.source.sql is None or i.operation is IngestOperation.UPSERT,
        ),
        Rule(
            "!has(self.source.jdbc) || !has(self.source.jdbc.incremental) || self.operation == 'Upsert'",
            "jdbc.incremental reads some rows again: it goes with operation Upsert",
            "operation",
            lambda i: (
                i.source.jdbc is None or i.source.jdbc.incremental is None or i.operation is IngestOperation.UPSERT
            ),
        ),
        Rule(
            "!has(self.engine) || self.source.type in ['Kafka', 'Debezium', 'Jdbc', 'Custom']",
            "engine goes with a source of type Kafka, Debezium, Jdbc or Custom: one process reads the shards of Kinesis, whose reads AWS bounds, and answers a statement, which DuckDB does; of files and tables the operator decides it",
            "engine",
            lambda i: i.engine is None or i.source.type in (*STREAMS, SourceType.JDBC, SourceType.CUSTOM),
        ),
        Rule(
            "!has(self.engine) || self.engine != 'Spark' || !has(self.source.jdbc) || self.source.jdbc.url.startsWith('postgresql://')",
            "engine Spark does not go with MySQL and MariaDB, whose connections see no common state",
            "engine",
            lambda i: not i.on_spark or i.source.jdbc is None or i.source.jdbc.url.startswith("postgresql://"),
        ),
        Rule(
            "!has(self.engine) || self.engine != 'Spark' || self.transform.all(t, !has(t.onFail) || t.onFail == 'Fail')",
            "engine Spark tells no row that a transform fails on: onFail Quarantine goes with engine Local",
            "transform",
            lambda i: not i.on_spark or not i.sifts,
        ),
    )

    name: str = prop(
        "name of the ingest, unique in the table: it finds its checkpoint by it", pattern=NAME, max_length=40
    )
    source: SourceSpec = prop("where rows come from")
    operation: IngestOperation = prop("what is done with the rows", IngestOperation.UPSERT)
    mode: IngestMode = prop(
        "Once takes what is there, whenever something is; Continuous keeps one driver at work; Backfill takes a range once, beside another ingest; Scheduled takes what is there at the moments of its schedule",
        IngestMode.ONCE,
    )
    schedule: str | None = patterns.schedule(
        "of mode Scheduled: five cron fields; a source that has `every` is asked at these moments instead"
    )
    time_zone: str | None = patterns.time_zone()
    starting_deadline_seconds: int | None = patterns.starting_deadline_seconds()
    engine: IngestEngine | None = prop(
        "of Kafka, Debezium, Jdbc, and Custom where its class can split what waits: Local reads in the driver, Spark in tasks of its executors; Local if absent",
        None,
    )
    commit_interval: str | None = prop(
        "of mode Continuous: how long rows are gathered for a commit, 10s if absent; maxRows or maxBytes end it sooner, of another table maxInstants. Files, Jdbc, Sql and Custom are asked so often what waits",
        None,
        pattern=DURATION,
        max_length=32,
    )
    freshness: str | None = prop(
        "Fresh is False once something has waited for longer, 60s if absent: of a stream a message, of another table a commit, of Files in mode Continuous a file",
        None,
        pattern=DURATION,
        max_length=32,
    )
    transform: tuple[TransformSpec, ...] = prop(
        "steps between source and table, each over what the one before gives", (), max_items=8
    )
    expectations: tuple[ExpectationSpec, ...] = prop(
        "what the rows of the source must hold, before any transform", (), max_items=32, list_key="name"
    )
    on_undecodable: OnError = prop(
        "a message that cannot be read ends the ingest, or goes to the error table", OnError.FAIL
    )
    max_error_ratio: str | None = prop(
        "the part of the messages or rows of a commit, and of all that a run has read, that may go to the error table, 0.05 if absent; 10 of a run may in any case",
        None,
        pattern="^(0(\\.[0-9]{1,6})?|1(\\.0)?)$",
        max_length=8,
    )
    drop_duplicates: bool = prop(
        "of operation Insert: rows whose key is in the table are left out, and rows of one key in a commit become one",
        False,
    )
    schema_policy: SchemaPolicy | None = prop(
        "of columns that are not the table's: Refuse stops the ingest; AddColumns takes new ones and fills missing ones with nulls; Widen takes wider types too; Evolve also fills missing columns that are required, and lets a field of Avro fill the column that its alias names. If absent, Widen of messages; of other sources too, but missing columns are refused unless hoodie.write.set.null.for.missing.columns is true",
        None,
    )
    active_deadline: str | None = prop(
        "a run that takes longer is stopped and failed, such as 2h", None, pattern=DURATION, max_length=32
    )

    @property
    def lists_continuously(self) -> bool:
        """Whether a driver lists a folder again and again."""
        listed = self.source.type is SourceType.FILES and self.source.notifications is None
        return listed and self.mode is IngestMode.CONTINUOUS

    @property
    def on_spark(self) -> bool:
        """Whether tasks of Spark are asked for."""
        return self.engine is IngestEngine.SPARK

    @property
    def quarantines(self) -> bool:
        """Whether messages or rows may go to the error table."""
        return (
            self.on_undecodable is OnError.QUARANTINE
            or any(each.on_fail is OnFail.QUARANTINE for each in self.expectations)
            or self.sifts
        )

    @property
    def sifts(self) -> bool:
        """Whether rows that a transform cannot take are kept apart, which only one process does."""
        return any(each.quarantines for each in self.transform)
