"""Clustering that a writer does itself after its commit, as `hoodie.clustering.inline` and
`hoodie.clustering.schedule.inline` ask."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import boolean_option
from hudi_table.model.service.services import ServiceRequest
from hudi_table.services.clustering.schedule import clustering_choice
from hudi_table.services.clustering.service import ClusteringService
from hudi_table.services.clustering.trigger import Cadence
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.inline_clustering import INLINE, SCHEDULE_INLINE, clusters_inline


def check_clustering(ctx: TableContext, options: Mapping[str, str]) -> None:
    """Refuse contradicting options before anything is written, as Hudi does, and what could never
    be planned.

    Raises InvalidOptionError, and InvalidRequestError for a table that is not clustered.
    """
    if boolean_option(options, INLINE) and boolean_option(options, SCHEDULE_INLINE):
        raise InvalidOptionError(f"{INLINE} and {SCHEDULE_INLINE} exclude each other; set one of them to false")
    if clusters_inline(options):
        clustering_choice(ctx, options, force=False)


def cluster_inline(ctx: TableContext, options: Mapping[str, str], engine: Engine, *, max_memory: int) -> None:
    """What the options ask after a write."""
    request = ServiceRequest(options, max_memory=max_memory)
    if boolean_option(options, SCHEDULE_INLINE):
        ClusteringService(ctx, request, Cadence.EVERY_COMMIT).schedule()
    if boolean_option(options, INLINE):
        ClusteringService(ctx, request, Cadence.INLINE).run(engine=engine)
