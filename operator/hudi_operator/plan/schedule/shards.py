"""Ingests from Kinesis, and those whose sources the operator does not ask: how late the table is,
as far as that is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hudi_operator.api.ingests.ingest import FRESHNESS, IngestSpec
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.observed import Problem, SourceObservation, TableObservation
from hudi_table.model.counts import counted
from hudi_table.model.job.shards import StreamLag


def age_of(lag: StreamLag, now: datetime) -> timedelta:
    """For how long the oldest record waits that is not in the table; none if none does."""
    if lag.oldest is None:
        return timedelta(0)
    return max(timedelta(0), now - (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=lag.oldest)))


def late(
    ingest: IngestSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...], now: datetime
) -> str:
    """What waits in a stream of Kinesis for longer than it may, \"\" if nothing is known to."""
    if ingest.source.kinesis is None:
        return ""
    if table is None or table.shards(ingest.name) is None:
        return f"{ingest.name} has committed nothing yet"
    found = next((s.lag for s in sources if s.ingest == ingest.name), None)
    limit = ingest.freshness or FRESHNESS
    if not isinstance(found, StreamLag) or age_of(found, now).total_seconds() <= seconds_of(limit):
        return ""
    return f"records of {ingest.name} are not in the table yet, the oldest for longer than {limit}"


def unknown(ingest: IngestSpec, sources: tuple[SourceObservation, ...]) -> str:
    """Why it is not known whether the table has what the source holds, \"\" if it is known."""
    source, name = ingest.source, ingest.name
    if source.kinesis is not None:
        found = next((s.lag for s in sources if s.ingest == name), None)
        if found is None:
            return f"the operator asks the stream of {name} only with AWS_ACCESS_KEY_ID of storage.credentialsSecretRef"
        if isinstance(found, Problem):
            return f"the stream of {name} did not tell what waits: {found.message}"
        return f"{counted(found.silent, 'shard')} of {name} did not tell what waits" if found.silent else ""
    if source.jdbc is not None or source.sql is not None or source.custom is not None:
        return f"the operator does not ask the source of {name}: each run finds out what is new"
    return ""
