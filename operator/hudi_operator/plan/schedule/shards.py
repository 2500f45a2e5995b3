"""Ingests from Kinesis, and those whose sources the operator does not ask: how late the table is,
as far as that is known, and whether a stream keeps what waits until it is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hudi_operator.api.ingests.ingest import FRESHNESS, IngestMode, IngestSpec
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.observed import Problem, SourceObservation
from hudi_operator.plan.schedule.retention import PART_MIN
from hudi_table.model.counts import counted
from hudi_table.model.job.shards import ShardPositions, StreamLag


@dataclass(frozen=True, slots=True)
class ShardRisk:
    """That a stream takes what was not read. `waits`: whether a record is known to; `left`: when
    the first can be gone."""

    waits: bool
    left: timedelta


def age_of(lag: StreamLag, now: datetime) -> timedelta:
    """For how long the oldest record waits that is not in the table; none if none does."""
    return _since(lag.oldest, now) if lag.oldest is not None else timedelta(0)


def remaining_of(lag: StreamLag, now: datetime) -> timedelta | None:
    """For how long the oldest record that waits is kept, None where none waits."""
    return _left(lag.oldest, lag.kept, now) if lag.oldest is not None else None


def risk_of(lag: StreamLag, positions: ShardPositions, now: datetime) -> ShardRisk | None:
    """Whether less than a part of the retention is left. It counts from the oldest record that
    waits, and from the moment up to which the stream was read: an ingest that goes on behind its
    end says that records may be lost, whether some came or not."""
    since = [each for each in (lag.oldest, positions.seen) if each is not None and each >= 0]
    left = min((_left(each, lag.kept, now) for each in since), default=None)
    if left is None or left > PART_MIN * timedelta(milliseconds=lag.kept):
        return None
    return ShardRisk(lag.oldest is not None, left)


def _since(moment: int, now: datetime) -> timedelta:
    return max(timedelta(0), now - (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment)))


def _left(moment: int, kept: int, now: datetime) -> timedelta:
    return max(timedelta(0), timedelta(milliseconds=kept) - _since(moment, now))


def late(ingest: IngestSpec, sources: tuple[SourceObservation, ...], now: datetime) -> str:
    """What waits in a stream of Kinesis for longer than it may, \"\" if nothing is known to."""
    if ingest.source.kinesis is None or ingest.source.range is not None:
        return ""
    found = next((s.lag for s in sources if s.ingest == ingest.name), None)
    limit = ingest.freshness or FRESHNESS
    if not isinstance(found, StreamLag) or age_of(found, now).total_seconds() <= seconds_of(limit):
        return ""
    return f"records of {ingest.name} are not in the table yet, the oldest for longer than {limit}"


def unknown(ingest: IngestSpec, sources: tuple[SourceObservation, ...]) -> str:
    """Why it is not known whether the table has what the source holds, \"\" if it is known."""
    source, name = ingest.source, ingest.name
    if source.kinesis is not None and source.range is not None:
        return ""  # what lies behind the range is another ingest's
    if source.kinesis is not None:
        found = next((s.lag for s in sources if s.ingest == name), None)
        if found is None:
            return f"the operator asks the stream of {name} only with AWS_ACCESS_KEY_ID of storage.credentialsSecretRef"
        if isinstance(found, Problem):
            return f"the stream of {name} did not tell what waits: {found.message}"
        return f"{counted(found.silent, 'shard')} of {name} did not tell what waits" if found.silent else ""
    if source.jdbc is not None or source.sql is not None or source.custom is not None:
        who = "its driver" if ingest.mode is IngestMode.CONTINUOUS else "each run"
        return f"the operator does not ask the source of {name}: {who} finds out what is new"
    return ""
