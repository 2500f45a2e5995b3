"""Cleaning as a table service."""

from __future__ import annotations

from functools import partial

from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult
from hudi_table.model.timeline.instants import Action
from hudi_table.services.cleaning.execute import pending_instants, run_clean
from hudi_table.services.cleaning.plan import approved_clean, clean_choice, schedule_clean
from hudi_table.services.planning import Choose, preview, publish_approved
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext


class CleaningService:
    """See `services.base.Service`."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run."""
        return preview(ctx, clean_choice(ctx, request.options, force=request.force))

    def schedule(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Publish a plan."""
        if not request.plan:
            return schedule_clean(ctx, request.options, force=request.force)

        def makes(ctx: TableContext) -> list[Choose]:
            return [clean_choice(ctx, request.options, force=True)]

        return publish_approved(ctx, Action.CLEAN, request.plan, makes, partial(approved_clean, ctx))

    def pending(self, ctx: TableContext) -> list[str]:
        """Published plans."""
        return pending_instants(load_timeline(ctx))

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Carry a plan out."""
        del request
        return run_clean(ctx, instant, engine)


SERVICE = CleaningService()
