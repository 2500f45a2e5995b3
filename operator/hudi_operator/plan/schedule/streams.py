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
from datetime import UTC, datetime, timedelta

from hudi_operator.api.ingests.ingest import FRESHNESS, IngestMode, IngestSpec
from hudi_operator.api.ingests.source import KafkaSpec, OnDataLoss
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.observed import Problem, SourceObservation, TableObservation
from hudi_operator.plan.schedule.runs import CONTINUOUS, DONE, RetryPolicy, rfc3339
from hudi_table.errors import DataLossError
from hudi_table.model.counts import counted
from hudi_table.model.job.positions import Extent, Positions, behind, lost, words_of

NOTHING = "NothingToDo"


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


def age_of(positions: Positions | None, now: datetime) -> timedelta | None:
    """How old the newest message is that was taken in; None where that is not known."""
    if positions is None or positions.newest < 0:
        return None
    return max(timedelta(0), now - (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=positions.newest)))


def late(
    ingest: IngestSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...], now: datetime
) -> str:
    """What waits in a stream for longer than it may, \"\" if nothing does."""
    extent = next((s.extent for s in sources if s.ingest == ingest.name), None)
    if extent is None:
        return ""
    positions = table.positions(ingest.name) if table is not None else None
    waits, age = behind(extent, positions), age_of(positions, now)
    if waits is None:
        return f"{ingest.name} has committed nothing yet"
    limit = ingest.freshness or FRESHNESS
    if not waits or (age is not None and age.total_seconds() <= seconds_of(limit)):
        return ""
    return f"at most {counted(waits, 'message')} of {ingest.name} not in the table yet, and the newest there is older than {limit}"
