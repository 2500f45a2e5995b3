"""Rollback and restore as table services."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.model.options.known import boolean_option
from hudi_table.model.options.write_options import WRITERS_STOPPED
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.base import Unplanned
from hudi_table.services.planning import preview
from hudi_table.services.restoring.plan import restore_choice, rollback_choice
from hudi_table.services.restoring.run import restore, rollback
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.request import refuse_unsupported


@dataclass(frozen=True, slots=True)
class UndoService(Unplanned):
    """Rollback and restore as table services; see `services.base.Service`. `request.instant` is the write, or the savepoint; all
    is done by `execute`."""

    type: ServiceType

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run: which instants, rows and files would go."""
        make = rollback_choice if self.type is ServiceType.ROLLBACK else restore_choice
        refuse_unsupported(ctx.config)
        return preview(ctx, make(ctx, request.instant, writers_stopped=_stopped(request), dry=True))

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Decide and carry out."""
        del instant, engine
        work = rollback if self.type is ServiceType.ROLLBACK else restore
        return work(ctx, request.instant, writers_stopped=_stopped(request), approved=request.plan)


def _stopped(request: ServiceRequest) -> bool:
    return boolean_option(request.options, WRITERS_STOPPED)


ROLLBACK_SERVICE = UndoService(ServiceType.ROLLBACK)
RESTORE_SERVICE = UndoService(ServiceType.RESTORE)
