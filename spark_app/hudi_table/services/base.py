"""The shape of a table service, by which jobs and resources run any of them."""

from __future__ import annotations

from typing import Protocol

from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext


class Service(Protocol):
    """One table service. Every method raises HudiError; none does more than it says. One without a plan on the timeline is an
    `Unplanned`."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run: what it would do now, None if nothing. The table does not change."""
        ...

    def schedule(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Publish a plan if it is due, or the approved one of `request.plan`; None if there is nothing to do."""
        ...

    def pending(self, ctx: TableContext) -> list[str]:
        """Instants of published plans that wait for their execution, oldest first."""
        ...

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Carry a published plan out; running it again, or by two at once, is safe."""
        ...


class Unplanned:
    """A service that leaves no plan on the timeline (archiving, a savepoint, a rollback): all its work is `execute` with the
    instant ""."""

    def schedule(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Nothing is published."""
        del ctx, request
        return None

    def pending(self, ctx: TableContext) -> list[str]:
        """Nothing waits."""
        del ctx
        return []
