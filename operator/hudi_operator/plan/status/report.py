"""Figures of a HudiTable's status, computed from what was observed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hudi_operator.api.ingests.source import SourceType
from hudi_operator.api.options import ignored
from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.status import (
    NOTE_LENGTH_MAX,
    RUNS_MAX,
    DataStatus,
    IngestStatus,
    Note,
    TimelineStatus,
    UpkeepStatus,
)
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.api.words import one_line
from hudi_operator.manifests.quantities import human_bytes, seconds_of
from hudi_operator.plan.figures import small_files
from hudi_operator.plan.observed import CommittedCheckpoint, Observed, Pace, TableObservation
from hudi_operator.plan.schedule import retention, shards, streams
from hudi_operator.plan.schedule.ingests import waiting_of
from hudi_operator.plan.schedule.runs import rfc3339
from hudi_table.model.counts import counted
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.positions import behind
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.model.job.retention import bytes_of
from hudi_table.model.job.shards import StreamLag
from hudi_table.model.job.upstream import Upstream, UpstreamExtent
from hudi_table.model.options.write_options import COLON_RULE

__all__ = [
    "RUNS_MAX",
    "data",
    "human_duration",
    "ingests",
    "notes",
    "seen_at",
    "services",
    "summary",
    "timeline",
    "worst_lag",
]

YEARS = 100 * 365 * 86_400.0
"""What is kept for longer is kept for so many seconds, in words."""


def seen_at(desired: DesiredTable, table: TableObservation | None, *, unseen: bool) -> str | None:
    """The location at which the table was seen last. What is `unseen`, and a manifest that nothing
    is asked for, as one without its Secret, tell nothing new."""
    if unseen or desired.spec is None or desired.errors:
        return desired.status.table_location
    return desired.spec.location if table is not None else None


def timeline(table: TableObservation | None, before: TimelineStatus | None = None) -> TimelineStatus | None:
    """The active timeline, or None without a table. `before`: as it was reported last. Event times
    that were reported stay: the watermark never falls, and commits that record them may be
    archived, or be no more among those that are read."""
    if table is None:
        return None
    known = before or TimelineStatus()
    last = table.commits[-1] if table.commits else None
    least, most = table.event_times or (None, None)
    return TimelineStatus(
        last_instant=last.time if last else None,
        last_action=last.action.value if last else None,
        last_time=rfc3339(table.last_moment) if table.last_moment else None,
        commits=len(table.commits),
        files=table.timeline_files,
        pending=tuple(f"{i.time}.{i.action.value}.{i.state.value}" for i in table.pending),
        oldest_pending=rfc3339(table.oldest_pending) if table.oldest_pending else None,
        min_event_time=_event_time(least) or known.min_event_time,
        # RFC 3339 of four-digit years in UTC: texts in the order of their moments.
        watermark=max(_event_time(most) or "", known.watermark or "") or None,
    )


def _event_time(millis: int | None) -> str | None:
    """Of what any engine has recorded: nothing for what is no time of four-digit years."""
    if millis is None:
        return None
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return rfc3339(moment) if moment.year >= 1000 else None


def records_of(table: TableObservation) -> int | None:
    """Rows of a snapshot read, or None if some file's are not known."""
    rows = [f.rows for f in table.groups]
    return None if any(r is None for r in rows) else sum(r for r in rows if r is not None)


def data(spec: HudiTableSpec | None, table: TableObservation | None) -> DataStatus | None:
    """What a snapshot read sees, or None without a table."""
    if table is None:
        return None
    files = table.files
    ratio = f"{small_files(spec, table) / len(files):.2f}" if spec is not None and files else None
    return DataStatus(
        records=records_of(table),
        files=len(files),
        partitions=len({f.partition for f in table.groups}),
        bytes=sum(f.size for f in files),
        small_file_ratio=ratio,
        log_bytes=table.log_bytes,
    )


def services(table: TableObservation | None) -> tuple[UpkeepStatus, ...]:
    """What services have left, by type."""
    found = sorted(table.traces.items()) if table is not None else []
    return tuple(UpkeepStatus(kind.value, trace.last, trace.commits_since, trace.pending) for kind, trace in found)


def ingests(
    spec: HudiTableSpec, observed: Observed, now: datetime, before: tuple[IngestStatus, ...] = ()
) -> tuple[IngestStatus, ...]:
    """How far each ingest is. `before`: as it was reported last; event times stay as those of the
    timeline do."""
    known = {each.name: each for each in before} if observed.table is not None else {}
    paces = observed.table.paces if observed.table is not None else {}
    return tuple(
        _paced(status, paces.get(status.name) or Pace(), known.get(status.name) or IngestStatus(status.name))
        for status in _positions(spec, observed, now)
    )


def _paced(status: IngestStatus, pace: Pace, before: IngestStatus) -> IngestStatus:
    return replace(
        status,
        rate=pace.rate,
        newest_event_time=_event_time(pace.newest) or before.newest_event_time,
        watermark=max(_event_time(pace.most) or "", before.watermark or "") or None,
    )


def _positions(spec: HudiTableSpec, observed: Observed, now: datetime) -> tuple[IngestStatus, ...]:
    statuses, table = [], observed.table
    for ingest in spec.ingest:
        source = observed.source(ingest.name)
        if ingest.source.kafka is not None:
            statuses.append(_stream(ingest.name, observed, now))
            continue
        held = observed.table.checkpoints.get(ingest.name) if observed.table is not None else None
        if ingest.source.hudi is not None:
            extent = (source.upstream if source is not None else None) or UpstreamExtent()
            status, since = _follower(ingest.name, extent, held, now), extent.since
            if since is not None and ingest.name in observed.holding:
                until = since + timedelta(seconds=seconds_of(ingest.source.hudi.max_hold))
                status = replace(status, held_until=rfc3339(until) if until > now else None)
            statuses.append(status)
            continue
        files = waiting_of(source, observed.table) if source is not None and source.problem is None else ()
        lag = max((now - f.modified for f in files), default=timedelta(0))
        kept = None
        if source is not None and isinstance(source.lag, StreamLag):
            lag, kept = shards.age_of(source.lag, now), shards.remaining_of(source.lag, now)
        depth = source.queue if source is not None else None
        listed = ingest.source.type is SourceType.FILES and depth is None
        places = table.shards(ingest.name) if table is not None else None
        statuses.append(
            IngestStatus(
                name=ingest.name,
                position=_value(held),
                pending_files=depth.waiting if depth is not None else len(files),
                in_flight_messages=depth.in_flight if depth is not None else 0,
                pending_bytes=sum(f.size for f in files) if listed else None,
                refused_messages=places.refused if places is not None else 0,
                lag=human_duration(lag),
                retention_remaining=human_duration(kept) if kept is not None else None,
                consumed_files=len(taken.consumed)
                if (taken := table.files_held(ingest.name) if table else None)
                else 0,
                checkpoint=held.checkpoint.batch if held is not None else None,
                last_commit=held.instant if held is not None else None,
            )
        )
    return tuple(statuses)


def _value(held: CommittedCheckpoint | None) -> str | None:
    """The greatest value that was read, of a checkpoint that holds one."""
    found = held.checkpoint if held is not None else None
    return found.value or None if isinstance(found, Mark | QueryMark) else None


def _stream(name: str, observed: Observed, now: datetime) -> IngestStatus:
    source, table = observed.source(name), observed.table
    held = table.checkpoints.get(name) if table is not None else None
    positions = table.positions(name) if table is not None else None
    waits = behind(source.extent, positions) if source is not None and source.extent is not None else None
    age = streams.age_of(source, positions, now) if source is not None else None
    standing = retention.standing_of(source, table, now)
    kept = standing.seconds if standing is not None else None
    return IngestStatus(
        name=name,
        pending_bytes=bytes_of(source.unread, waits) if source is not None and waits is not None else None,
        pending_messages=waits,
        lag=human_duration(age or timedelta(0)),
        refused_messages=positions.refused if positions is not None else 0,
        checkpoint=held.checkpoint.batch if held is not None else None,
        last_commit=held.instant if held is not None else None,
        retention_remaining=human_duration(timedelta(seconds=min(kept, YEARS))) if kept is not None else None,
    )


def _follower(name: str, extent: UpstreamExtent, held: CommittedCheckpoint | None, now: datetime) -> IngestStatus:
    return IngestStatus(
        name=name,
        pending_commits=extent.commits,
        position=held.checkpoint.instant if held is not None and isinstance(held.checkpoint, Upstream) else None,
        pending_bytes=extent.size if extent.commits else 0,
        lag=human_duration(now - extent.oldest if extent.oldest is not None else timedelta(0)),
        checkpoint=held.checkpoint.batch if held is not None else None,
        last_commit=held.instant if held is not None else None,
    )


def worst_lag(found: tuple[IngestStatus, ...]) -> str | None:
    """The largest lag of ingests, None of none."""
    return max((each.lag for each in found), key=seconds_of, default=None)


def human_duration(span: timedelta) -> str:
    """Two units as kubectl writes ages: `3d4h`, `5m12s`, `9s`."""
    seconds = max(0, int(span.total_seconds()))
    units = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        if seconds >= size or (name == "s" and not parts):
            parts.append(f"{seconds // size}{name}")
        seconds %= size
    return "".join(parts[:2])


def summary(table: TableObservation) -> str:
    """One line about a readable table."""
    records = records_of(table)
    held = "an unknown number of records" if records is None else counted(records, "record")
    size = human_bytes(sum(f.size for f in table.files))
    return f"{held} in {counted(len(table.files), 'file')}, {size}, as of {table.commits[-1].time}"


def notes(spec: HudiTableSpec | None, table: TableObservation | None) -> tuple[Note, ...]:
    """What a person should know: options that do nothing, and what other writers must not do."""
    ignored_line = ignored(spec.options) if spec is not None else ""
    return (
        *([Note("IgnoredOptions", one_line(ignored_line, NOTE_LENGTH_MAX))] if ignored_line else []),
        *_colons(table),
    )


def _colons(table: TableObservation | None) -> tuple[Note, ...]:
    """Which Hudi generation must not write a bucket table whose single record key holds ':'
    (docs/reference/compatibility.md)."""
    if table is None or table.config.index is None or not table.config.index.type.hashes:
        return ()
    if len(table.config.record_key) != 1 or table.colon_keys is False:
        return ()
    rule = table.config.extra.get(COLON_RULE, "0.15")
    other = "1.x" if rule == "0.15" else "0.15"
    seen = "Record keys hold ':'" if table.colon_keys else "If a record key holds ':'"
    return (
        Note(
            "ColonKeys",
            f"{seen}: this table places such keys as Hudi {rule} does, so Hudi {other} must not write to it; it would look "
            "for them in other buckets and store them twice",
        ),
    )
