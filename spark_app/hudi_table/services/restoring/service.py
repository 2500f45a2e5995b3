"""Rollback and restore as table services."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

from hudi_table.model.given import checked_call
from hudi_table.model.options.known import boolean_option
from hudi_table.model.options.write_options import WRITERS_STOPPED
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.base import Unplanned
from hudi_table.services.planning import preview
from hudi_table.services.restoring.losing import preview_giving_up
from hudi_table.services.restoring.plan import restore_choice, rollback_choice
from hudi_table.services.restoring.run import restore, rollback
from hudi_table.table.store.ports import Engine
from hudi_table.write.checks.request import refuse_unsupported


class _GoingBack(Unplanned, ABC):
    def unmoved(self) -> ServicePlan | None:
        """An approval is held against the plan as it is decided."""
        return super().unmoved() if self.request.lost else None


@dataclass(frozen=True)
class RollbackService(_GoingBack):
    """The newest write, or a failed one that is pending, is taken back; see
    `services.base.Service`. What is decided is carried out at once: no plan waits for others."""

    type: ClassVar[ServiceType] = ServiceType.ROLLBACK

    @checked_call
    def __call__(
        self, instant: str, *, writers_stopped: bool = False, lost: Iterable[str] = (), plan: str = ""
    ) -> Self:
        """The service with the write of `instant`. `writers_stopped`: all processes that write the
        table have ended. `lost`: the instant is a pending compaction's, and these of its files are
        given up. `plan`: digest of a dry run, of which exactly the plan is done."""
        options = {WRITERS_STOPPED: "true"} if writers_stopped else {}
        return self.with_request(ServiceRequest(options, plan=plan, instant=instant, lost=tuple(lost)))

    def current_plan(self) -> ServicePlan | None:
        """Which instant, rows and files would go. Raises InvalidRequestError where there is nothing
        to take back."""
        ctx, request = self.ctx, self.request
        refuse_unsupported(ctx.config)
        if request.lost:
            return preview_giving_up(ctx, request.instant, request.lost)
        return preview(ctx, rollback_choice(ctx, request.instant, writers_stopped=_stopped(request), dry=True))

    def work(self, engine: Engine) -> ServiceResult:
        """Decide and carry out."""
        del engine
        request, stopped = self.request, _stopped(self.request)
        return rollback(self.ctx, request.instant, writers_stopped=stopped, approved=request.plan, lost=request.lost)


@dataclass(frozen=True)
class RestoreService(_GoingBack):
    """Everything that was written after a savepoint is taken back; see `services.base.Service`.
    What is decided is carried out at once: no plan waits for others."""

    type: ClassVar[ServiceType] = ServiceType.RESTORE

    @checked_call
    def __call__(self, savepoint: str, *, writers_stopped: bool = False, plan: str = "") -> Self:
        """The service with the instant of a savepoint; the rest as of a rollback."""
        options = {WRITERS_STOPPED: "true"} if writers_stopped else {}
        return self.with_request(ServiceRequest(options, plan=plan, instant=savepoint))

    def current_plan(self) -> ServicePlan | None:
        """Which instants, rows and files would go."""
        ctx, request = self.ctx, self.request
        refuse_unsupported(ctx.config)
        return preview(ctx, restore_choice(ctx, request.instant, writers_stopped=_stopped(request), dry=True))

    def work(self, engine: Engine) -> ServiceResult:
        """Decide and carry out."""
        del engine
        request = self.request
        return restore(self.ctx, request.instant, writers_stopped=_stopped(request), approved=request.plan)


def _stopped(request: ServiceRequest) -> bool:
    return boolean_option(request.options, WRITERS_STOPPED)
