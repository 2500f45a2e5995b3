"""Every metric: name, type, labels, meaning. docs/reference/metrics.md says the same, and a test
holds them together.

The labels of a resource are bounded by the number of resources, all others by lists that stand in
the code.
"""

from __future__ import annotations

from dataclasses import dataclass

RECONCILE_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
ATTEMPT_BUCKETS = (1, 5, 15, 30, 60, 120, 300, 900, 1800, 3600, 7200, 21600)
TABLE = ("namespace", "table")
SET = ("namespace", "set")
SERVICE = ("namespace", "service", "table", "type")


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of series. `kind` is counter, gauge or histogram."""

    name: str
    kind: str
    labels: tuple[str, ...]
    says: str


def _counter(name: str, labels: tuple[str, ...], says: str) -> Metric:
    return Metric(name, "counter", labels, says)


def _gauge(name: str, labels: tuple[str, ...], says: str) -> Metric:
    return Metric(name, "gauge", labels, says)


RECONCILE_SECONDS = Metric("hudi_operator_reconcile_seconds", "histogram", ("kind",), "how long one reconcile took")
RECONCILE_ERRORS = _counter(
    "hudi_operator_reconcile_errors_total",
    ("kind", "error"),
    "reconciles that ended in an error and are repeated, by its name",
)
API_REQUESTS = _counter(
    "hudi_operator_api_requests_total",
    ("verb", "code"),
    "calls of the API server, without those of the watch; code is the HTTP status or unreachable",
)
ATTEMPTS_STARTED = _counter("hudi_operator_attempts_started_total", ("work", "launcher"), "attempts that were started")
ATTEMPTS_REPEATED = _counter(
    "hudi_operator_attempts_repeated_total", ("work",), "attempts that were started because an earlier one failed"
)
ATTEMPTS_ENDED = _counter(
    "hudi_operator_attempts_ended_total",
    ("work", "launcher", "outcome"),
    "attempts that have ended; outcome is Succeeded, NothingToDo or Failed",
)
DRIVERS_RECYCLED = _counter(
    "hudi_operator_drivers_recycled_total",
    (),
    "continuous drivers that ended between two commits, since they had taken most of the memory that they may have",
)
ATTEMPT_SECONDS = Metric(
    "hudi_operator_attempt_seconds", "histogram", ("work",), "from the start of an attempt to its end"
)
COUNTED = (
    RECONCILE_SECONDS, RECONCILE_ERRORS, API_REQUESTS, ATTEMPTS_STARTED, ATTEMPTS_REPEATED, ATTEMPTS_ENDED, ATTEMPT_SECONDS,
    DRIVERS_RECYCLED,
)  # fmt: skip

PROCESS = (
    _gauge("hudi_operator_leader", (), "1 if this process is the leader, 0 if it waits to become it"),
    _gauge("hudi_operator_resources", ("kind",), "resources that are known"),
    _gauge("hudi_operator_queue_depth", (), "resources that are due to be reconciled"),
    _gauge("hudi_operator_queue_oldest_seconds", (), "for how long the first of them has been due"),
    _gauge("hudi_operator_workers", (), "workers that are free, or whose reconcile has not lasted too long"),
    _gauge("hudi_operator_workers_busy", (), "workers that reconcile a resource now"),
    _gauge("hudi_operator_reconcile_oldest_seconds", (), "how long the longest reconcile of now has lasted"),
    _gauge("hudi_operator_watch_behind_seconds", (), "for how long the watch has not brought something that is there"),
    _gauge("hudi_operator_namespaces_missing", (), "namespaces of which nothing is heard: deleted, or without rights"),
    _gauge("hudi_operator_tables_left_out", (), "tables without series of their own, for there are too many"),
)

TABLES = (
    _gauge(
        "hudi_table_condition", (*TABLE, "condition"), "1 if the condition is True, 0 if it is False, Unknown or absent"
    ),
    _gauge("hudi_table_suspended", TABLE, "1 if suspend is set"),
    _gauge("hudi_table_late", TABLE, "1 if something in a source has waited for longer than the ingest's freshness"),
    _gauge("hudi_table_last_commit_timestamp_seconds", TABLE, "when the newest write was completed, Unix time"),
    _gauge("hudi_table_freshness_seconds", TABLE, "time since then, as of the scrape"),
    _gauge(
        "hudi_table_ingest_lag_seconds",
        (*TABLE, "ingest"),
        "age of the oldest file, message, record or commit that waits, as of the last reconcile",
    ),
    _gauge(
        "hudi_table_ingest_next_run_timestamp_seconds",
        (*TABLE, "ingest"),
        "the first moment of its schedule that waits for its run, else the one that comes next, Unix time",
    ),
    _gauge("hudi_table_ingest_pending_files", (*TABLE, "ingest"), "files of the source that are not in the table"),
    _gauge(
        "hudi_table_ingest_pending_bytes",
        (*TABLE, "ingest"),
        "size of what is not in the table; of Kafka an estimate; absent where it is not known",
    ),
    _gauge(
        "hudi_table_ingest_pending_messages",
        (*TABLE, "ingest"),
        "at most so many messages of the source are not in the table",
    ),
    _gauge(
        "hudi_table_ingest_retention_remaining_seconds",
        (*TABLE, "ingest"),
        "for how long at least the oldest message that waits is kept; absent where none waits or that is not told",
    ),
    _gauge(
        "hudi_table_ingest_rate", (*TABLE, "ingest"), "messages of Kafka, else rows, in a second, of its newest commits"
    ),
    _gauge(
        "hudi_table_ingest_refused_messages",
        (*TABLE, "ingest"),
        "messages that went to the error table, since its first commit",
    ),
    _gauge(
        "hudi_table_ingest_newest_event_timestamp_seconds",
        (*TABLE, "ingest"),
        "largest event time of the newest commit that records any, Unix time",
    ),
    _gauge(
        "hudi_table_ingest_watermark_timestamp_seconds",
        (*TABLE, "ingest"),
        "largest event time that its commits have recorded, Unix time",
    ),
    _gauge(
        "hudi_table_callback_lag_seconds",
        (*TABLE, "callback"),
        "age of the oldest commit that a receiver does not have, as of the last reconcile",
    ),
    _gauge("hudi_table_callback_failing", (*TABLE, "callback"), "1 if the last attempt at a receiver failed"),
    _gauge("hudi_table_version", TABLE, "Hudi's table version"),
    _gauge("hudi_table_records", TABLE, "rows; absent if they are not known"),
    _gauge("hudi_table_files", TABLE, "base files"),
    _gauge("hudi_table_partitions", TABLE, "partitions"),
    _gauge("hudi_table_bytes", TABLE, "size of the base files"),
    _gauge("hudi_table_log_bytes", TABLE, "debt to compaction: size of the log files"),
    _gauge("hudi_table_small_file_ratio", TABLE, "debt to clustering: share of base files below files.smallFileLimit"),
    _gauge("hudi_table_commits_since", (*TABLE, "service"), "debt to a service: writes since it last completed"),
    _gauge("hudi_table_pending_plans", (*TABLE, "service"), "plans of a service that wait to be carried out"),
    _gauge("hudi_table_pending_instants", TABLE, "instants of the timeline that are not completed"),
    _gauge(
        "hudi_table_oldest_pending_timestamp_seconds",
        TABLE,
        "when the oldest of them began, Unix time; absent where there is none, or an attempt but a continuous driver is at work that began before",
    ),
    _gauge("hudi_table_timeline_commits", TABLE, "debt to archiving: completed writes in the active timeline"),
    _gauge("hudi_table_timeline_files", TABLE, "files of the active timeline"),
    _gauge("hudi_table_attempts_running", TABLE, "attempts of the table itself that are at work"),
)

SETS = (
    _gauge(
        "hudi_table_set_condition",
        (*SET, "condition"),
        "1 if the condition is True, 0 if it is False, Unknown or absent",
    ),
    _gauge("hudi_table_set_suspended", SET, "1 if suspend is set"),
    _gauge("hudi_table_set_topics", SET, "topics that are selected; absent until they were listed"),
    _gauge("hudi_table_set_tables", SET, "HudiTables that there are"),
    _gauge("hudi_table_set_tables_ready", SET, "of these, how many are ready, or wait for their first rows"),
    _gauge("hudi_table_set_tables_failing", SET, "topics without a table, and tables that are not ready"),
    _gauge("hudi_table_set_topics_vanished", SET, "topics that are gone and whose HudiTables are there"),
)

SERVICES = (
    _gauge(
        "hudi_service_condition",
        (*SERVICE, "condition"),
        "1 if the condition is True, 0 if it is False, Unknown or absent",
    ),
    _gauge("hudi_service_suspended", SERVICE, "1 if suspend is set"),
    _gauge("hudi_service_attempts_running", SERVICE, "attempts that are at work"),
    _gauge("hudi_service_failures", SERVICE, "attempts in a row, up to the newest, that failed"),
    _gauge("hudi_service_plan_waits", SERVICE, "1 if a plan waits for its approval"),
    _gauge("hudi_service_plan_bytes_freed", SERVICE, "bytes that the plan that waits would free"),
    _gauge(
        "hudi_service_bytes_to_clean",
        SERVICE,
        "debt to cleaning: bytes that it would free; where when.bytesToClean asks",
    ),
    _gauge("hudi_service_last_run_timestamp_seconds", SERVICE, "when the newest run ended, Unix time"),
    _gauge(
        "hudi_service_next_run_timestamp_seconds",
        SERVICE,
        "the first moment of the schedule that waits for its run, else the one that comes next, Unix time",
    ),
)

TABLE_CONDITIONS = (
    "Ready", "Reconciling", "Stalled", "Fresh", "AtRisk", "Compacted", "WellSized", "Clean", "Archived", "ResizeNeedsApproval",
    "MetadataTable", "ForeignWriters", "PropertiesLost", "UpgradeNeedsApproval", "Upgrading", "ReadersServed",
    "CallbacksDelivered", "MemoryShort",
)  # fmt: skip
SET_CONDITIONS = (
    "Ready", "Reconciling", "Stalled", "TopicsListed", "NameCollision", "TooManyTopics", "TopicsVanished",
)  # fmt: skip
SERVICE_CONDITIONS = ("Ready", "Reconciling", "Stalled", "PlanStale", "OptionsIgnored")
EVERY = (*COUNTED, *PROCESS, *TABLES, *SETS, *SERVICES)
