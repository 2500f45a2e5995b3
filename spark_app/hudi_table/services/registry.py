"""Every table service by its type."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.services import ServiceType
from hudi_table.services.base import Service
from hudi_table.services.clustering import service as clustering
from hudi_table.services.compaction import service as compaction

SERVICES: Mapping[ServiceType, Service] = {
    ServiceType.COMPACTION: compaction.SERVICE,
    ServiceType.LOG_COMPACTION: compaction.LOG_SERVICE,
    ServiceType.CLUSTERING: clustering.SERVICE,
}
