"""Archiving as a table service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from hudi_table.model.given import checked_call
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.archiving.execute import archive, preview
from hudi_table.services.base import Unplanned
from hudi_table.table.store.ports import Engine


@dataclass(frozen=True)
class ArchivingService(Unplanned):
    """The oldest instants leave the active timeline; see `services.base.Service`. No plan is
    stored: whatever may leave when it runs then leaves."""

    type: ClassVar[ServiceType] = ServiceType.ARCHIVING
    nothing: ClassVar[str] = "nothing is due to be archived"

    @checked_call
    def __call__(self, options: Mapping[str, str] | None = None, *, force: bool = False, plan: str = "") -> Self:
        """The service with these options. `force`: whatever may leave, due or not; `plan`: digest
        of a dry run, which must still hold."""
        return self.with_request(ServiceRequest(options or {}, force, plan))

    def current_plan(self) -> ServicePlan | None:
        """See `archiving.execute.preview`."""
        return preview(self.ctx, self.request.options, force=self.request.force)

    def work(self, engine: Engine) -> ServiceResult | None:
        """See `archiving.execute.archive`."""
        del engine
        return archive(self.ctx, self.request.options, force=self.request.force)
