"""Building partitions of the metadata table as a table service, while writers go on."""

from __future__ import annotations

from hudi_table.errors import InvalidOptionError
from hudi_table.metadata.table import read_partitions
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.model.names import parse_data_file
from hudi_table.model.options.write_options import INDEXING_PARTITIONS, METADATA_ENABLE
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.base import Unplanned
from hudi_table.services.metadata.building import build, wanted_partitions
from hudi_table.services.metadata.report import report
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.listing import list_data_files


class IndexingService(Unplanned):
    """See `services.base.Service`. The plan that building leaves on the timeline, as Hudi's does, is carried out by the run that makes it, and after a
    crash by whoever builds or writes next."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """Which partitions are to be built; None if all are ready."""
        missing = _missing(ctx, _names(request))
        if not missing:
            return None
        files = [info for info in list_data_files(ctx.storage) if parse_data_file(info.path.rpartition("/")[2])]
        return ServicePlan(
            ServiceType.INDEXING,
            why=f"{', '.join(missing)} not there",
            files_before=len(files),
            bytes_read=sum(item.size for item in files),
            details=tuple(f"build {name}" for name in missing),
        )

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Build what is missing."""
        del instant, engine
        names = _names(request)
        missing = _missing(ctx, names)
        if not build(ctx, names, request.options) or not missing:
            return ServiceResult(ServiceType.INDEXING, "", "all partitions are ready")
        built = [item for item in report(ctx) if item.partition in missing]
        figures = {
            "partitionsBuilt": float(len(built)),
            "fileGroups": float(sum(item.file_groups for item in built)),
            "bytesWritten": float(sum(item.bytes for item in built)),
        }
        return ServiceResult(ServiceType.INDEXING, "", f"built {', '.join(missing)}", figures)


def _names(request: ServiceRequest) -> list[str]:
    """Raises InvalidOptionError where the next write would drop what is built."""
    if request.options.get(METADATA_ENABLE, "").strip().lower() == "false":
        raise InvalidOptionError(
            f"{METADATA_ENABLE} is false, so that every write drops the metadata table; leave it out to have one"
        )
    return [name for name in map(str.strip, request.options.get(INDEXING_PARTITIONS, "").split(",")) if name]


def _missing(ctx: TableContext, names: list[str]) -> list[MetadataPartition]:
    """Raises InvalidRequestError."""
    ready = read_partitions(ctx).ready
    return [name for name in wanted_partitions(names) if name not in ready]


SERVICE = IndexingService()
