"""Cleaning as a table service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hudi_table.model.service.services import ServicePlan, ServiceResult, ServiceType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.base import WhenDue
from hudi_table.services.cleaning.execute import pending_instants, run_clean
from hudi_table.services.cleaning.plan import approved_clean, clean_choice, prepare_clean
from hudi_table.services.planning import Choose, Look, looked, publish
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import confirm, load_timeline, unconfirmed_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline


@dataclass(frozen=True)
class CleaningService(WhenDue):
    """Old versions of files that nothing needs are deleted; see
    `services.base.ScheduledService`."""

    type: ClassVar[ServiceType] = ServiceType.CLEANING
    action: ClassVar[Action] = Action.CLEAN

    def schedule(self) -> ServicePlan | None:
        """See `ScheduledService`. First, failed writes are taken back, as `prepare_clean` says."""
        if not self.request.plan:
            with_relists(self.ctx, lambda: prepare_clean(self.ctx, load_timeline(self.ctx), self.request.options))
        return super().schedule()

    def waiting(self, timeline: Timeline) -> list[str]:
        """Published plans."""
        return pending_instants(timeline)

    def _look(self) -> tuple[list[str], Look | None]:
        """As of every service, but that failed writes are taken back first: what is pending is
        judged by a timeline that is known to be whole."""

        def look() -> tuple[list[str], Look | None]:
            timeline = unconfirmed_timeline(self.ctx, exact=True)
            waiting = self.waiting(timeline)
            if is_whole := bool(timeline.pending or timeline.planner_claims):
                confirm(self.ctx, timeline)
            if waiting or prepare_clean(self.ctx, timeline, self.request.options):
                return waiting, None
            return waiting, looked(self.ctx, timeline, self._published_choice(), is_whole=is_whole)

        return with_relists(self.ctx, look)

    def _publish(self, first: Look | None) -> ServicePlan | None:
        return publish(self.ctx, self.action, self._published_choice(), first, self._leaves)

    def _published_choice(self) -> Choose:
        return clean_choice(self.ctx, self.request.options, force=self.request.force, publishes=True)

    def choice(self, ctx: TableContext, *, force: bool) -> Choose:
        """The files that may go."""
        return clean_choice(ctx, self.request.options, force=force)

    def approved(self, data: bytes) -> Choose:
        """See `approved_clean`."""
        return approved_clean(self.ctx, data)

    def carry_out(self, instant: str, engine: Engine) -> ServiceResult:
        """See `run_clean`."""
        return run_clean(self.ctx, instant, engine)
