"""Resizing as a table service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult
from hudi_table.model.table.index_properties import BUCKETS
from hudi_table.model.timeline.instants import Action
from hudi_table.services.planning import Choose, preview, publish, publish_approved
from hudi_table.services.resizing.execute import pending_instants, run_resize
from hudi_table.services.resizing.plan import approved_choice, resize_choice, wanted_buckets
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import looking


@dataclass(frozen=True, slots=True)
class ResizeService:
    """See `services.base.Service`. The number of buckets is the option `hoodie.bucket.index.num.buckets`."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run."""
        return preview(ctx, resize_choice(ctx, wanted_buckets(request.options), dry=True))

    def schedule(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Publish a plan; None if it is published already. Until it is executed the table takes no writes."""
        if not request.plan:
            return publish(ctx, Action.REPLACE_COMMIT, resize_choice(ctx, wanted_buckets(request.options)))

        def makes(ctx: TableContext) -> list[Choose]:
            return [resize_choice(ctx, wanted_buckets(request.options), dry=True)]

        return publish_approved(ctx, Action.REPLACE_COMMIT, request.plan, makes, partial(approved_choice, ctx))

    def pending(self, ctx: TableContext) -> list[str]:
        """Published plans."""
        return looking(ctx, lambda: pending_instants(ctx, load_timeline(ctx)))

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Carry a plan out. The number of buckets is the plan's, whatever the options say."""
        options = {key: value for key, value in request.options.items() if key != BUCKETS}
        return run_resize(ctx, instant, engine, options, max_memory=request.max_memory)


SERVICE = ResizeService()
