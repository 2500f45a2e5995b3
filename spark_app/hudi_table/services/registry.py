"""Every table service of a table, by its noun."""

from __future__ import annotations

from hudi_table.model.service.services import ServiceRequest, ServiceType
from hudi_table.services.archiving.service import ArchivingService
from hudi_table.services.base import Planned, Service, Unplanned
from hudi_table.services.cleaning.service import CleaningService
from hudi_table.services.cleaning.ttl import PartitionTtlService
from hudi_table.services.clustering.service import ClusteringService
from hudi_table.services.compaction.service import CompactionService, LogCompactionService
from hudi_table.services.doctor.service import RepairService
from hudi_table.services.metadata.service import IndexingService
from hudi_table.services.resizing.service import ResizeService
from hudi_table.services.restoring.service import RestoreService, RollbackService
from hudi_table.services.savepoints import SavepointService
from hudi_table.services.upgrading.service import UpgradeService
from hudi_table.table.timeline.context import TableContext


class Services:
    """The table services of one table: `table.services.<noun>`, called with what is asked, has the
    verbs of `services.base`.

    `table.services.compaction.run()`, `table.services.resize(16).plan()`. The nouns are those of a
    TableService's `type`.
    """

    def __init__(self, ctx: TableContext) -> None:
        self.compaction = CompactionService(ctx)
        self.log_compaction = LogCompactionService(ctx)
        self.clustering = ClusteringService(ctx)
        self.cleaning = CleaningService(ctx)
        self.archiving = ArchivingService(ctx)
        self.savepoint = SavepointService(ctx)
        self.restore = RestoreService(ctx)
        self.rollback = RollbackService(ctx)
        self.repair = RepairService(ctx)
        self.partition_ttl = PartitionTtlService(ctx)
        self.resize = ResizeService(ctx)
        self.indexing = IndexingService(ctx)
        self.upgrade = UpgradeService(ctx)

    def of_type(self, kind: ServiceType, request: ServiceRequest) -> Service:
        """The service of a type with a request, as jobs have it."""
        service: Planned | Unplanned = vars(self)[kind.noun]
        return service.with_request(request)
