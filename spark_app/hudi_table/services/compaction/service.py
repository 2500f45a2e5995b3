"""Compaction and log compaction as table services."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.compaction.execute import pending_instants, run_compaction
from hudi_table.services.compaction.schedule import approved_choice, compaction_choice, log_compaction_choice
from hudi_table.services.planning import Choose, preview, publish, publish_approved
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext


@dataclass(frozen=True, slots=True)
class CompactionService:
    """One of the two; see `services.base.Service`."""

    type: ServiceType
    action: Action

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """A dry run."""
        return preview(ctx, self._choice(ctx, request))

    def schedule(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Publish a plan."""
        if not request.plan:
            return publish(ctx, self.action, self._choice(ctx, request))

        def makes(ctx: TableContext) -> list[Choose]:
            # What is asked for takes slices of fewer logs than what is due.
            return [self._choice(ctx, replace(request, force=force)) for force in (True, False)]

        return publish_approved(ctx, self.action, request.plan, makes, partial(approved_choice, ctx, self.type))

    def pending(self, ctx: TableContext) -> list[str]:
        """Published plans."""
        return pending_instants(ctx, load_timeline(ctx), self.action)

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Carry a plan out."""
        done = run_compaction(
            ctx, instant, engine, request.options, max_memory=request.max_memory, action=self.action
        )  # fmt: skip
        figures = {
            "fileGroups": float(done.file_groups),
            "logFiles": float(done.log_files),
            "rowsWritten": float(done.rows_written),
            "bytesWritten": float(done.bytes_written),
        }
        message = f"{done.file_groups} file groups compacted, {done.rows_written:,} rows"
        return ServiceResult(self.type, instant, message, figures, done.replayed)

    def _choice(self, ctx: TableContext, request: ServiceRequest) -> Choose:
        chosen = compaction_choice if self.action is Action.COMPACTION else log_compaction_choice
        return chosen(ctx, request.options, force=request.force)


SERVICE = CompactionService(ServiceType.COMPACTION, Action.COMPACTION)
LOG_SERVICE = CompactionService(ServiceType.LOG_COMPACTION, Action.LOG_COMPACTION)
