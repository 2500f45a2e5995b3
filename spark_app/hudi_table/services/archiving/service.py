"""Archiving as a table service: no plan on the timeline, all of its work is one execution."""

from __future__ import annotations

from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.archiving.execute import archive, preview
from hudi_table.services.base import Unplanned
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext


class ArchivingService(Unplanned):
    """See `services.base.Service`."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run; it has no digest, as whatever may leave then leaves."""
        return preview(ctx, request.options, force=request.force)

    def execute(
        self,
        ctx: TableContext,
        instant: str,  # noqa: ARG002 - the protocol's
        request: ServiceRequest,
        engine: Engine,  # noqa: ARG002 - the protocol's
    ) -> ServiceResult:
        """Archive what is due."""
        done = archive(ctx, request.options, force=request.force)
        return done or ServiceResult(ServiceType.ARCHIVING, "", "nothing is due to be archived")


SERVICE = ArchivingService()
