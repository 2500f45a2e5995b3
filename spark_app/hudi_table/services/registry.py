"""Every table service by its type."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.service.services import ServiceType
from hudi_table.services import savepoints
from hudi_table.services.archiving import service as archiving
from hudi_table.services.base import Service
from hudi_table.services.cleaning import service as cleaning
from hudi_table.services.cleaning import ttl
from hudi_table.services.clustering import service as clustering
from hudi_table.services.compaction import service as compaction
from hudi_table.services.doctor import service as doctor
from hudi_table.services.metadata import service as indexing
from hudi_table.services.resizing import service as resizing
from hudi_table.services.restoring import service as restoring

SERVICES: Mapping[ServiceType, Service] = {
    ServiceType.COMPACTION: compaction.SERVICE,
    ServiceType.LOG_COMPACTION: compaction.LOG_SERVICE,
    ServiceType.CLUSTERING: clustering.SERVICE,
    ServiceType.CLEANING: cleaning.SERVICE,
    ServiceType.ARCHIVING: archiving.SERVICE,
    ServiceType.SAVEPOINT: savepoints.SERVICE,
    ServiceType.RESTORE: restoring.RESTORE_SERVICE,
    ServiceType.ROLLBACK: restoring.ROLLBACK_SERVICE,
    ServiceType.REPAIR: doctor.SERVICE,
    ServiceType.PARTITION_TTL: ttl.SERVICE,
    ServiceType.RESIZE: resizing.SERVICE,
    ServiceType.INDEXING: indexing.SERVICE,
}
