"""Ingests from another Hudi table: whether an attempt is wanted, and how late the table is."""

from __future__ import annotations

import hashlib
from datetime import datetime

from hudi_operator.api.ingests.ingest import FRESHNESS, IngestSpec
from hudi_operator.api.ingests.upstreams import UpstreamLoss, UpstreamSpec
from hudi_operator.manifests.quantities import seconds_of
from hudi_operator.plan.observed import Problem, SourceObservation
from hudi_table.errors import DataLossError
from hudi_table.model.counts import counted
from hudi_table.model.job.upstream import LOSS_REMEDY, Upstream, UpstreamExtent


def batch_of(ingest: str, extent: UpstreamExtent, held: Upstream | None) -> str:
    """Of an attempt: from this checkpoint to the other table's newest commit."""
    begin = held.batch if held is not None else "begin"
    return hashlib.sha256(f"{ingest}\n{begin}\n{extent.newest}".encode()).hexdigest()[:20]


def loss(upstream: UpstreamSpec, extent: UpstreamExtent) -> Problem | None:
    """What the other table can no longer tell, if that is to stop the ingest."""
    if not extent.lost or upstream.on_data_loss is UpstreamLoss.CONTINUE:
        return None
    return Problem(DataLossError.name(), f"{extent.lost}; {LOSS_REMEDY}")


def missing(ingest: IngestSpec, sources: tuple[SourceObservation, ...]) -> str:
    """Where the other table is not there yet, \"\" if it is, or its source is none."""
    hudi = ingest.source.hudi
    seen = next((s for s in sources if s.ingest == ingest.name), None)
    absent = hudi is not None and seen is not None and seen.problem is None and seen.upstream is None
    return hudi.location if hudi is not None and absent else ""


def late(ingest: IngestSpec, sources: tuple[SourceObservation, ...], now: datetime) -> str:
    """What has waited in the other table for longer than it may, \"\" if nothing has."""
    extent = next((s.upstream for s in sources if s.ingest == ingest.name), None)
    if extent is None or extent.oldest is None:
        return ""
    limit = ingest.freshness or FRESHNESS
    if (now - extent.oldest).total_seconds() <= seconds_of(limit):
        return ""
    return (
        f"{counted(extent.commits, 'commit')} of {ingest.name} not in the table yet, the oldest for longer than {limit}"
    )
