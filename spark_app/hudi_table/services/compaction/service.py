"""Compaction and log compaction as table services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.base import WhenDue, check_engine
from hudi_table.services.compaction.debt import pending_instants
from hudi_table.services.compaction.execute import run_compaction
from hudi_table.services.compaction.schedule import (
    approved_choice,
    compaction_choice,
    deletes_choice,
    log_compaction_choice,
)
from hudi_table.services.planning import Choose
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


@dataclass(frozen=True)
class CompactionService(WhenDue):
    """Logs are merged into new base files; see `services.base.ScheduledService`. Writers go on,
    whoever executes a plan, and whenever."""

    type: ClassVar[ServiceType] = ServiceType.COMPACTION
    action: ClassVar[Action] = Action.COMPACTION

    def waiting(self, timeline: Timeline) -> list[str]:
        """Published plans."""
        return pending_instants(self.ctx, timeline, self.action)

    def choice(self, ctx: TableContext, *, force: bool) -> Choose:
        """The slices that are due."""
        return compaction_choice(ctx, self.request.options, force=force)

    def choices_again(self, ctx: TableContext) -> list[Choose]:
        """What is asked for takes slices of fewer logs than what is due."""
        return [self.choice(ctx, force=force) for force in (True, False)]

    def approved(self, data: bytes) -> Choose:
        """See `approved_choice`."""
        return approved_choice(self.ctx, self.type, data)

    def carry_out(self, instant: str, engine: Engine) -> ServiceResult:
        """See `run_compaction`."""
        options, memory = self.request.options, self.request.max_memory
        return run_compaction(self.ctx, instant, engine, options, max_memory=memory, action=self.action)


@dataclass(frozen=True)
class DeletesCompaction(CompactionService):
    """The slices whose logs hold deletes. Until then a row that is written behind a delete loses to
    the one of the base file, if event time decides and that one is newer. So it leaves none out."""

    yields: ClassVar[bool] = False

    def choice(self, ctx: TableContext, *, force: bool) -> Choose:  # noqa: ARG002 - it is due whenever there are some
        """Those slices."""
        return deletes_choice(ctx, self.request.options)


@dataclass(frozen=True)
class LogCompactionService(CompactionService):
    """Slices with many logs get one log that stands for them, a fraction of what rewriting the base
    file costs. Due where `hoodie.log.compaction.blocks.threshold` logs lie, forced where two do."""

    type: ClassVar[ServiceType] = ServiceType.LOG_COMPACTION
    action: ClassVar[Action] = Action.LOG_COMPACTION

    def choice(self, ctx: TableContext, *, force: bool) -> Choose:
        """The slices with enough logs."""
        return log_compaction_choice(ctx, self.request.options, force=force)

    def run(self, *, engine: Engine | None = None, progress: ProgressFunction | None = None) -> list[ServiceResult]:
        """See `Service`. The new plan is made beside what waits: a log that was just made is not
        folded again at once."""
        check_engine(engine, progress)
        if self.request.plan:
            return super().run(engine=engine, progress=progress)
        waiting, planned = self.pending(), self.schedule()
        instants = [*waiting, *([planned.instant] if planned else [])]
        return [self.execute(instant, engine=engine, progress=progress) for instant in instants]
