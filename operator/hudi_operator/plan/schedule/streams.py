"""Ingests from Kafka: what waits, and whether an attempt is wanted; and continuous drivers, of
whatever source: which is wanted, and which have had their time.

A continuous driver is a run like others, but it has no end of its own: it works beside services,
and what ends is started again, behind whatever it has committed. `batch` of a run tells which it
is.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from datetime import datetime, timedelta

from hudi_operator.api.documents import CONTINUOUS
from hudi_operator.api.ingests.ingest import FRESHNESS, IngestMode, IngestSpec
from hudi_operator.api.ingests.source import KafkaSpec, OnDataLoss
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.observed import Problem, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import DONE, RetryPolicy, rfc3339
from hudi_table.errors import DataLossError
from hudi_table.model.counts import counted
from hudi_table.model.job.positions import Extent, Positions, behind, lost, unread, words_of

NOTHING = "NothingToDo"
AHEAD_SECONDS_MAX = 60
"""So far clocks of producers may be ahead of ours."""


def outdated(run: RunStatus, spec: HudiTableSpec, generation: int) -> str:
    """Why a continuous driver at work is to end, \"\" if it is not."""
    if run.generation != generation:
        return "the manifest has changed"
    if run.work not in {f"Ingest/{each.name}" for each in spec.ingest if each.mode is IngestMode.CONTINUOUS}:
        return "its ingest is gone"
    return "the table is suspended" if spec.suspend else ""


def ended(run: RunStatus, why: str, now: datetime) -> RunStatus:
    """A driver that was asked to end. What it has committed stays; its successor goes on from
    there."""
    return replace(run, phase="Succeeded", message=f"asked to end: {why}", finished=rfc3339(now))


def continuous_batch(work: str, runs: tuple[RunStatus, ...], begin: str) -> str:
    """Of the next driver: where it begins (`begin` names the checkpoint), and behind which one that
    has ended well. Those that fail at one place are attempts at the same."""
    last = next((run.name for run in runs if run.work == work and run.phase in DONE), "")
    return f"{CONTINUOUS}{begin}/{last}"


def tirelessly(policy: RetryPolicy) -> RetryPolicy:
    """A driver whose brokers or store are away is started again for as long as they are."""
    return replace(policy, attempts_max=sys.maxsize)


def once_batch(ingest: str, extent: Extent, positions: Positions | None) -> str:
    """Of an attempt in mode Once: from these positions to these ends."""
    begin = positions.batch if positions is not None else "begin"
    return hashlib.sha256(f"{ingest}\n{begin}\n{extent.ends.batch}".encode()).hexdigest()[:20]


def found_nothing(work: str, batch: str, runs: tuple[RunStatus, ...]) -> bool:
    """Whether an attempt has looked at just this and found nothing to do, as where an ingest begins
    later than the topic ends."""
    return any(run.work == work and run.batch == batch and run.phase == NOTHING for run in runs)


def loss(kafka: KafkaSpec, extent: Extent, positions: Positions | None) -> Problem | None:
    """What the brokers no longer have, if that is to stop the ingest."""
    if positions is None or kafka.on_data_loss is OnDataLoss.CONTINUE:
        return None
    losses = lost(extent, positions)
    if not losses:
        return None
    remedy = "give onDataLoss: Continue to go on without them, or set another checkpoint (hudictl checkpoint set)"
    return Problem(DataLossError.name(), f"{words_of(losses)}; {remedy}")


def age_of(source: SourceObservation, positions: Positions | None, now: datetime) -> timedelta | None:
    """For how long the oldest message waits that is not in the table, of all partitions; none if
    none does, None where that is not known.

    For partitions that did not tell the newest message in the table speaks: what waits there is not
    known to be younger.
    """
    if source.extent is None or positions is None:
        return None
    waits = {place for place, (_, count) in unread(source.extent, positions).items() if count}
    if not waits:
        return timedelta(0)
    ages = {(each.topic, each.partition): _since(each.oldest, now) for each in source.unread}
    found = [age for age in ages.values() if age is not None]
    silent = bool(waits - source.told) or len(found) < len(ages)
    newest = _since(positions.newest, now) if silent and positions.newest >= 0 else None
    found += [newest] if newest is not None else []
    return max(found, default=None if silent else timedelta(0))


def _since(millis: int, now: datetime) -> timedelta | None:
    """How long ago a timestamp was; None of the future, of which it tells nothing."""
    age = int(now.timestamp() * 1000) - millis
    return timedelta(milliseconds=max(0, age)) if age >= -AHEAD_SECONDS_MAX * 1000 else None


def late(
    ingest: IngestSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...], now: datetime
) -> str:
    """What waits in a stream for longer than it may, \"\" if nothing does."""
    source = next((s for s in sources if s.ingest == ingest.name), None)
    if source is None or source.extent is None:
        return ""
    positions = table.positions(ingest.name) if table is not None else None
    waits, age = behind(source.extent, positions), age_of(source, positions, now)
    if waits is None:
        return ""
    limit = ingest.freshness or FRESHNESS
    if age is not None and age.total_seconds() <= seconds_of(limit):
        return ""
    since = f"the oldest for longer than {limit}" if age is not None else "and it is not known since when"
    return f"at most {counted(waits, 'message')} of {ingest.name} not in the table yet, {since}"
