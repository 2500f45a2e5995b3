"""Clustering as a table service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.base import WhenDue
from hudi_table.services.clustering.execute import pending_instants, run_clustering
from hudi_table.services.clustering.schedule import approved_choice, clustering_choice
from hudi_table.services.clustering.trigger import Cadence
from hudi_table.services.planning import Choose
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


@dataclass(frozen=True)
class ClusteringService(WhenDue):
    """Small or unsorted files are rewritten; see `services.base.ScheduledService`. Until a plan is
    executed, here or by Hudi, writes to its file groups are refused."""

    type: ClassVar[ServiceType] = ServiceType.CLUSTERING
    action: ClassVar[Action] = Action.REPLACE_COMMIT
    cadence: Cadence = Cadence.ASYNC

    def waiting(self, timeline: Timeline) -> list[str]:
        """Published plans."""
        return pending_instants(self.ctx, timeline)

    def choice(self, ctx: TableContext, *, force: bool) -> Choose:
        """The groups that are due."""
        return clustering_choice(ctx, self.request.options, force=force, cadence=self.cadence)

    def approved(self, data: bytes) -> Choose:
        """See `approved_choice`."""
        return approved_choice(self.ctx, data)

    def carry_out(self, instant: str, engine: Engine) -> ServiceResult:
        """See `run_clustering`."""
        return run_clustering(self.ctx, instant, engine, self.request.options, max_memory=self.request.max_memory)
