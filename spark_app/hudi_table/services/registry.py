"""Every table service by its type."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.services import ServiceType
from hudi_table.services import savepoints
from hudi_table.services.archiving import service as archiving
from hudi_table.services.base import Service
from hudi_table.services.cleaning import service as cleaning
from hudi_table.services.cleaning import ttl
from hudi_table.services.compaction import service as compaction

SERVICES: Mapping[ServiceType, Service] = {
    ServiceType.ARCHIVING: archiving.SERVICE,
    ServiceType.COMPACTION: compaction.SERVICE,
    ServiceType.LOG_COMPACTION: compaction.LOG_SERVICE,
    ServiceType.CLEANING: cleaning.SERVICE,
    ServiceType.SAVEPOINT: savepoints.SERVICE,
    ServiceType.PARTITION_TTL: ttl.SERVICE,
}
