"""Whether an attempt at an ingest is wanted, by what its source holds; a judgement for each type of
source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hudi_operator.api.ingests.ingest import FRESHNESS, IngestMode, IngestSpec
from hudi_operator.api.ingests.source import KafkaSpec, SourceSpec
from hudi_operator.api.ingests.upstreams import UpstreamSpec
from hudi_operator.api.status import RunStatus
from hudi_operator.manifests.quantities import human_bytes, seconds_of
from hudi_operator.plan.effects import RequeueAfter
from hudi_operator.plan.observed import Problem, SourceObservation, TableObservation
from hudi_operator.plan.schedule import queries, streams, upstreams
from hudi_operator.plan.schedule.runs import RetryPolicy
from hudi_operator.plan.schedule.scheduled import Followed
from hudi_table.model.counts import counted
from hudi_table.model.job.checkpoint import SourceFile, batch_id, waiting
from hudi_table.model.job.positions import Extent, behind
from hudi_table.model.job.upstream import UpstreamExtent

AGAIN = "1m"
"""How soon a queue is asked again that told of nothing new."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An attempt that is wanted. `batch`: what it is for; `doing`: what it does, in words; `size`:
    bytes that it is likely to read; `policy`: how it is repeated, as others are if None.
    `measures`: whether its job may look at the table's index, too."""

    batch: str
    doing: str
    size: int = 0
    policy: RetryPolicy | None = None
    measures: bool = True


@dataclass(frozen=True, slots=True)
class Look:
    """What a judgement goes by: the runs so far, newest first, and the manifest's generation."""

    source: SourceObservation
    table: TableObservation | None
    runs: tuple[RunStatus, ...]
    generation: int
    policy: RetryPolicy
    now: datetime
    schedule: Followed | Problem | None = None


def asked(ingest: IngestSpec, look: Look) -> Asked | Problem | RequeueAfter | None:
    """The attempt that is wanted; why there can be none; when it is asked again; or nothing."""
    source = ingest.source
    if look.schedule is not None:
        return _at_moment(ingest, look.schedule, look)
    if source.kafka is not None:
        return _of_stream(ingest, source.kafka, look.source.extent, look)
    if source.hudi is not None:
        return _of_upstream(ingest, source.hudi, look.source.upstream, look)
    if ingest.mode is IngestMode.CONTINUOUS:
        return _follows(ingest, look)
    if source.kinesis is not None:
        return _of_query(ingest, source.kinesis.every, f"asks stream {source.kinesis.stream}", look)
    if source.jdbc is not None:
        return _of_query(ingest, source.jdbc.every, "asks its database", look)
    if source.sql is not None:
        return _of_query(ingest, source.sql.every, "looks at the tables of its statement", look)
    if source.custom is not None:
        return _of_query(ingest, source.custom.every, f"asks {source.custom.name}", look)
    if source.notifications is not None:
        return _of_queue(ingest, look)
    files = waiting_of(look.source, look.table)
    if not files:
        return None
    size = sum(f.size for f in files)
    return Asked(batch_id(ingest.name, files), f"takes {counted(len(files), 'file')}, {human_bytes(size)}", size)


def waiting_of(source: SourceObservation, table: TableObservation | None) -> tuple[SourceFile, ...]:
    """Files of a source that the table does not hold yet."""
    return waiting(source.files, table.files_held(source.ingest) if table is not None else None)


def late_files(ingest: IngestSpec, source: SourceObservation, table: TableObservation | None, now: datetime) -> int:
    """How many files wait; of a driver that lists them again and again those that wait for longer
    than they may."""
    files = waiting_of(source, table)
    if not ingest.lists_continuously:
        return len(files)
    since = now - timedelta(seconds=seconds_of(ingest.freshness or FRESHNESS))
    return sum(each.modified < since for each in files)


def _at_moment(ingest: IngestSpec, schedule: Followed | Problem, look: Look) -> Asked | Problem | None:
    """What is there once a moment has come, whether or not anything is seen to wait: the job looks
    itself."""
    if isinstance(schedule, Problem):
        return schedule
    if schedule.due is None:
        return None
    kafka, hudi, found = ingest.source.kafka, ingest.source.hudi, look.source
    lost = None
    if kafka is not None and found.extent is not None:
        lost = streams.loss(kafka, found.extent, look.table.positions(ingest.name) if look.table is not None else None)
    elif hudi is not None and found.upstream is not None:
        lost = upstreams.loss(hudi, found.upstream)
    if lost is not None:
        return lost
    size = sum(each.size for each in waiting_of(found, look.table))
    size += found.upstream.size if found.upstream is not None else 0
    return Asked(schedule.due, f"takes what is there: the schedule says {schedule.due}", size)


def _of_stream(ingest: IngestSpec, kafka: KafkaSpec, extent: Extent | None, look: Look) -> Asked | Problem | None:
    work, runs = f"Ingest/{ingest.name}", look.runs
    positions = look.table.positions(ingest.name) if look.table is not None else None
    if extent is None or any(run.work == work and run.phase == "Running" for run in runs):
        return None
    loss = streams.loss(kafka, extent, positions)
    if loss is not None:
        return loss
    if ingest.mode is IngestMode.CONTINUOUS:
        return _driver(work, positions.batch if positions is not None else "begin", "its topics", look)
    waits, batch = behind(extent, positions), streams.once_batch(ingest.name, extent, positions)
    if waits == 0 or streams.found_nothing(work, batch, runs):
        return None
    many = f"at most {counted(waits, 'message')}" if waits is not None else "what its topics hold"
    return Asked(batch, f"takes {many}", measures=False)


def _driver(work: str, begin: str, followed: str, look: Look) -> Asked:
    """The next continuous driver. `begin` names the checkpoint that it goes on from."""
    batch = streams.continuous_batch(work, look.runs, begin)
    return Asked(batch, f"is started: it follows {followed}", policy=streams.tirelessly(look.policy), measures=False)


def _follows(ingest: IngestSpec, look: Look) -> Asked | None:
    """A driver of a source of which the job alone finds out what waits."""
    work = f"Ingest/{ingest.name}"
    if any(run.work == work and run.phase == "Running" for run in look.runs):
        return None
    held = look.table.checkpoints.get(ingest.name) if look.table is not None else None
    return _driver(work, held.checkpoint.batch if held is not None else "begin", _followed(ingest.source), look)


def _followed(source: SourceSpec) -> str:
    """What a driver follows, in words."""
    if source.kinesis is not None:
        return f"stream {source.kinesis.stream}"
    if source.jdbc is not None:
        return "its database"
    if source.sql is not None:
        return "the tables of its statement"
    if source.custom is not None:
        return source.custom.name
    return "its queue" if source.notifications is not None else f"the files at {source.path}"


def _of_query(ingest: IngestSpec, every: str, doing: str, look: Look) -> Asked | RequeueAfter | None:
    work = f"Ingest/{ingest.name}"
    last = queries.last_of(work, look.generation, look.runs)
    if last is not None and ingest.mode is IngestMode.BACKFILL:
        return None  # A range is taken once.
    wait = queries.wait_of(every, last, look.now)
    if wait > 0:
        return RequeueAfter(wait, work, appointment=True)
    return Asked(queries.batch_of(last), doing)


def _of_queue(ingest: IngestSpec, look: Look) -> Asked | RequeueAfter | None:
    """The first run lists the folder; those behind it take what the queue tells of."""
    depth, work = look.source.queue, f"Ingest/{ingest.name}"
    last = queries.last_of(work, look.generation, look.runs)
    begun = last is not None or (look.table is not None and look.table.files_held(ingest.name) is not None)
    if depth is None or (begun and not depth.waiting):
        return None
    if last is not None and last.phase == streams.NOTHING:
        # How many wait is only about right.
        wait = queries.wait_of(AGAIN, last, look.now)
        if wait > 0:
            return RequeueAfter(wait, work, appointment=True)
    many = f"takes what {counted(depth.waiting, 'message')} of its queue tell of" if begun else "takes what is there"
    return Asked(queries.batch_of(last), many)


def _of_upstream(
    ingest: IngestSpec, upstream: UpstreamSpec, extent: UpstreamExtent | None, look: Look
) -> Asked | Problem | None:
    if extent is None:
        return None
    loss = upstreams.loss(upstream, extent)
    if loss is not None:
        return loss
    work = f"Ingest/{ingest.name}"
    if ingest.mode is IngestMode.CONTINUOUS:
        if any(run.work == work and run.phase == "Running" for run in look.runs):
            return None
        held = look.table.upstream(ingest.name) if look.table is not None else None
        return _driver(work, held.batch if held is not None else "begin", upstream.location, look)
    if not (extent.commits or extent.lost):
        return None
    batch = upstreams.batch_of(ingest.name, extent, look.table.upstream(ingest.name) if look.table else None)
    if streams.found_nothing(work, batch, look.runs):
        return None
    many = f"{counted(extent.commits, 'commit')} of {upstream.location}, {human_bytes(extent.size)}"
    return Asked(batch, f"takes {many}", extent.size)
