"""Clustering as a table service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult
from hudi_table.model.timeline.instants import Action
from hudi_table.services.clustering.execute import pending_instants, run_clustering
from hudi_table.services.clustering.schedule import approved_choice, clustering_choice, schedule_clustering
from hudi_table.services.planning import Choose, preview, publish_approved
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import looking


@dataclass(frozen=True, slots=True)
class ClusteringService:
    """See `services.base.Service`."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run."""
        return preview(ctx, clustering_choice(ctx, request.options, force=request.force))

    def schedule(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Publish a plan."""
        if not request.plan:
            return schedule_clustering(ctx, request.options, force=request.force)

        def makes(ctx: TableContext) -> list[Choose]:
            return [clustering_choice(ctx, request.options, force=True)]

        return publish_approved(ctx, Action.REPLACE_COMMIT, request.plan, makes, partial(approved_choice, ctx))

    def pending(self, ctx: TableContext) -> list[str]:
        """Published plans."""
        return looking(ctx, lambda: pending_instants(ctx, load_timeline(ctx)))

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Carry a plan out."""
        return run_clustering(ctx, instant, engine, request.options, max_memory=request.max_memory)


SERVICE = ClusteringService()
