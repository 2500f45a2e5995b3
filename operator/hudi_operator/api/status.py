"""Status of the resources. Everything about the table is read from its timeline, never
remembered."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.schema import prop

RUNS_MAX = 10
NOTES_MAX = 16
NOTE_LENGTH_MAX = 4096
SERVICE_RUNS_MAX = 30
DETAILS_MAX = 20
ADVICE_MAX = 8
ADVICE_LENGTH_MAX = 1024
CONDITION_LENGTH_MAX = 32_768


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, as Kubernetes has them."""

    type: str = prop("type of the condition", max_length=316)
    status: str = prop("True, False or Unknown", pattern="^(True|False|Unknown)$", max_length=7)
    reason: str = prop("stable name: hudictl explain REASON", max_length=1024)
    message: str = prop("what is so, and what to do", max_length=CONDITION_LENGTH_MAX)
    last_transition_time: str = prop("when the status last changed, RFC 3339", format="date-time")
    observed_generation: int = prop("generation that this condition speaks of", 0, minimum=0)


@dataclass(frozen=True, slots=True)
class TimelineStatus:
    """The active timeline."""

    last_instant: str | None = prop("newest completed write", None)
    last_action: str | None = prop("its action", None)
    last_time: str | None = prop("its time, RFC 3339", None, format="date-time")
    commits: int = prop("completed writes in the active timeline", 0)
    files: int = prop("files of the active timeline", 0)
    pending: tuple[str, ...] = prop("instants that are not completed, as <time>.<action>.<state>", ())
    oldest_pending: str | None = prop("when the oldest of them began, RFC 3339", None, format="date-time")
    min_event_time: str | None = prop(
        "smallest event time of the newest write that records any (hoodie.write.track.event.time.watermark), RFC 3339",
        None,
        format="date-time",
    )
    watermark: str | None = prop(
        "largest event time that writes have recorded, RFC 3339; it never falls", None, format="date-time"
    )


@dataclass(frozen=True, slots=True)
class DataStatus:
    """What a snapshot read sees. Sizes in bytes."""

    records: int | None = prop(
        "rows; absent where file groups have logs, or a commit that counts them is gone", None, format="int64"
    )
    files: int = prop("base files", 0)
    partitions: int = prop("partitions", 0)
    bytes: int = prop("size of the base files", 0, format="int64")
    small_file_ratio: str | None = prop("share of base files below files.smallFileLimit, 0 to 1", None)
    log_bytes: int = prop("size of the log files", 0, format="int64")


@dataclass(frozen=True, slots=True)
class UpkeepStatus:
    """What one table service has left on the timeline."""

    type: str = prop("which service", max_length=32)
    last: str | None = prop("its newest completed instant", None)
    commits_since: int = prop("writes since then, or all of the active timeline", 0)
    pending: tuple[str, ...] = prop("instants of plans that wait, oldest first", ())


@dataclass(frozen=True, slots=True)
class ScheduleStatus:
    """The schedule that is followed, and where in it the service or ingest is."""

    cron: str = prop("the five fields")
    time_zone: str = prop("their time zone")
    since: str = prop("moments after this one count, RFC 3339", format="date-time")
    last: str | None = prop("the newest moment that was run or left out", None, format="date-time")
    next: str | None = prop(
        "the first moment that has come and waits for its run, else the one that comes next", None, format="date-time"
    )


@dataclass(frozen=True, slots=True)
class IngestStatus:
    """How far one ingest is."""

    name: str = prop("name of the ingest")
    pending_files: int = prop("files that are there and not in the table; of a queue, about how many messages wait", 0)
    pending_bytes: int | None = prop(
        "their size; of Kafka an estimate, by the mean size of the first messages that wait; absent where it is not known, as of a queue and of Kinesis",
        None,
        format="int64",
    )
    pending_messages: int | None = prop(
        "of a stream: at most so many messages are there and not in the table; absent before the first commit",
        None,
        format="int64",
    )
    pending_commits: int = prop("of another table: its commits that are not in this one", 0)
    position: str | None = prop(
        "of another table: the newest of its commits that is in this one; of Jdbc and Sql with incremental: the greatest value that was read",
        None,
    )
    held_until: str | None = prop(
        "of another table that is a HudiTable of this namespace: until when its archiving, and with deletes Delete its cleaning, keep what changed since position; absent where nothing waits, or maxHold is over",
        None,
        format="date-time",
    )
    lag: str = prop(
        "age of the oldest of them: of the file, message, record or commit that has waited longest; 0s of sources that only jobs ask",
        "0s",
    )
    in_flight_messages: int = prop(
        "of a queue that tells of files: messages that a run has received and not deleted, or has set aside", 0
    )
    refused_messages: int = prop(
        "of a stream: messages that went to the error table, since its first commit", 0, format="int64"
    )
    consumed_files: int = prop("files that the checkpoint holds", 0)
    checkpoint: str | None = prop("newest batch in the table; of a stream, name of its positions", None)
    last_commit: str | None = prop("instant that holds it", None)
    rate: float | None = prop(
        "messages of Kafka, else rows, that its commits took in a second: of the 20 newest of the last hour; absent where these are fewer than two",
        None,
    )
    newest_event_time: str | None = prop(
        "largest event time of the newest of its commits that records any (hoodie.write.track.event.time.watermark), RFC 3339",
        None,
        format="date-time",
    )
    watermark: str | None = prop(
        "largest event time that its commits have recorded, RFC 3339; it never falls", None, format="date-time"
    )
    retention_remaining: str | None = prop(
        "of Kafka and Kinesis: for how long at least the oldest message that is not in the table is kept; absent where none waits, nothing deletes it, or that is not told",
        None,
    )
    schedule: ScheduleStatus | None = prop("of mode Scheduled: the schedule that is followed", None)


@dataclass(frozen=True, slots=True)
class CallbackStatus:
    """How far one callback is. A position once it stands here is gone on from, whatever becomes of
    the operator."""

    name: str = prop("name of the callback")
    position: str | None = prop("position behind the last commit that the receiver has; hudictl events takes it", None)
    last_delivered: str | None = prop("instant of the newest commit that it has", None)
    last_time: str | None = prop("when it took that, RFC 3339", None, format="date-time")
    lag: str = prop("age of the oldest commit that it does not have", "0s")
    last_error: str | None = prop("why the last attempt failed; absent once one has succeeded", None, max_length=1024)


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """What a dry run found. Sizes in bytes."""

    digest: str = prop("by which it is approved", max_length=64)
    why: str = prop("why it is due", max_length=1024)
    file_groups: int = prop("file groups that it takes", 0)
    files_before: int = prop("files that it reads", 0)
    files_after: int = prop("files that it leaves in their place", 0)
    bytes_read: int = prop("bytes that it reads", 0, format="int64")
    bytes_written: int = prop("bytes that it writes", 0, format="int64")
    bytes_freed: int = prop("bytes that it frees", 0, format="int64")
    details: tuple[str, ...] = prop("its first file groups, a line each", (), max_items=DETAILS_MAX)
    predicted_seconds: float | None = prop("how long it is likely to take", None)
    made: str | None = prop("when it was made, RFC 3339", None, format="date-time")
    stale: str | None = prop("why it cannot be run any more", None, max_length=1024)


@dataclass(frozen=True, slots=True)
class ActualStatus:
    """What the run of an approved plan came to. Sizes in bytes."""

    digest: str = prop("of the plan")
    run: str = prop("name of the attempt")
    file_groups: int = prop("file groups that it took", 0)
    files_before: int | None = prop("files that it read", None)
    files_after: int | None = prop("files that it left in their place", None)
    bytes_read: int | None = prop("bytes that it read", None, format="int64")
    bytes_written: int | None = prop("bytes that it wrote", None, format="int64")
    seconds: float | None = prop("how long it took", None)


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """What a job has measured of the index."""

    type: str = prop("the index that was measured", max_length=32)
    instant: str = prop("newest write that was there", max_length=32)
    advice: tuple[str, ...] = prop(
        "what to do about it, and why; empty where nothing is to be done",
        (),
        max_items=ADVICE_MAX,
        item_max_length=ADVICE_LENGTH_MAX,
    )
    better: str | None = prop("the index that would read less", None, max_length=32)
    observed_at: str | None = prop("when the job had measured it, RFC 3339", None, format="date-time")


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One attempt."""

    name: str = prop("name of the attempt")
    work: str = prop("what it does, such as Ingest/feed")
    phase: str = prop("Running, Succeeded, NothingToDo, Failed or Lost")
    generation: int = prop("generation that it was started for", 0)
    attempt: int = prop("number of the attempt", 1)
    batch: str | None = prop("the files that it was started for, as the checkpoint names them", None)
    started: str | None = prop("RFC 3339", None, format="date-time")
    finished: str | None = prop("RFC 3339", None, format="date-time")
    reason: str | None = prop("stable name of the error", None)
    message: str | None = prop("what happened", None, max_length=4096)
    instants: tuple[str, ...] = prop("instants that it made", ())
    figures: dict[str, float] = prop("numbers, the unit in the name", dict)
    plan: PlanStatus | None = prop("what it planned, until the status of its resource holds it", None)
    index: IndexStatus | None = prop("what it measured of the index, until the status of its table holds it", None)


@dataclass(frozen=True, slots=True)
class Note:
    """Something a person should know that is no fault."""

    reason: str = prop("stable name: hudictl explain REASON")
    message: str = prop("what is so", max_length=NOTE_LENGTH_MAX)


@dataclass(frozen=True, slots=True)
class HudiTableStatus:
    """State of a HudiTable."""

    observed_generation: int = prop("generation that the status speaks of", 0, minimum=0)
    conditions: tuple[Condition, ...] = prop(
        "Ready; Reconciling and Stalled while they are so; Fresh, Compacted, WellSized, Clean, Archived; MetadataTable, "
        "AtRisk, ForeignWriters, PropertiesLost, ResizeNeedsApproval, UpgradeNeedsApproval, Upgrading, ReadersServed, CallbacksDelivered and MemoryShort where there is something to say",
        (),
        list_key="type",
    )
    table_version: int | None = prop("Hudi's table version of the table as it is", None)
    table_location: str | None = prop(
        "spec.location at which the table was seen last: while the credentials fail the place stays this table's", None
    )
    timeline: TimelineStatus | None = prop("the active timeline", None)
    data: DataStatus | None = prop("what a snapshot read sees", None)
    index: IndexStatus | None = prop("what the newest job that measured the index has found", None)
    ingest: tuple[IngestStatus, ...] = prop("how far each ingest is", (), list_key="name")
    lag: str | None = prop("the largest lag of the ingests; absent where there is none", None)
    callbacks: tuple[CallbackStatus, ...] = prop("how far each callback is", (), list_key="name")
    services: tuple[UpkeepStatus, ...] = prop("what table services have left on the timeline", (), list_key="type")
    runs: tuple[RunStatus, ...] = prop("newest attempts, newest first", (), max_items=RUNS_MAX)
    notes: tuple[Note, ...] = prop("what a person should know", (), max_items=NOTES_MAX)


@dataclass(frozen=True, slots=True)
class TableServiceStatus:
    """State of a TableService."""

    observed_generation: int = prop("generation that the status speaks of", 0, minimum=0)
    phase: str | None = prop("Idle, Due, Running, Planned, Succeeded, Suspended or Failed", None)
    conditions: tuple[Condition, ...] = prop(
        "Ready; Reconciling, Stalled and PlanStale while they are so", (), list_key="type"
    )
    schedule: ScheduleStatus | None = prop("the schedule that is followed", None)
    last_run_time: str | None = prop("when the newest run ended, RFC 3339", None, format="date-time")
    plan: PlanStatus | None = prop("what would be done: approve its digest", None)
    last_plan: PlanStatus | None = prop("the plan that was approved and run last", None)
    actual: ActualStatus | None = prop("what the run of lastPlan came to", None)
    done: str | None = prop("what ended well last, as the batch of its run", None)
    attempts: int = prop("attempts that were started", 0)
    failures: int | None = prop("attempts in a row, up to the newest that has ended, that failed", None)
    bytes_to_clean: int | None = prop(
        "bytes that its cleaning would free now; absent where when.bytesToClean does not ask", None, format="int64"
    )
    runs: tuple[RunStatus, ...] = prop("newest attempts, newest first", (), max_items=SERVICE_RUNS_MAX)
