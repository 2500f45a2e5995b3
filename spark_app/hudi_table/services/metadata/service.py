"""Building partitions of the metadata table as a table service, while writers go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from hudi_table.errors import InvalidOptionError
from hudi_table.metadata.table import read_partitions
from hudi_table.model.given import checked_call
from hudi_table.model.metadata_table import AnyPartition
from hudi_table.model.names import parse_data_file
from hudi_table.model.options.write_options import INDEXING_PARTITIONS, METADATA_ENABLE
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.model.table.index_properties import names_in
from hudi_table.services.base import Unplanned
from hudi_table.services.metadata.building import build, wanted_partitions
from hudi_table.services.metadata.report import report
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.view.listing import list_data_files


@dataclass(frozen=True)
class IndexingService(Unplanned):
    """Partitions of the metadata table are built while writers go on; see `services.base.Service`.
    The plan that building leaves on the timeline, as Hudi's does, is carried out by the run that
    makes it, and after a crash by whoever builds or writes next."""

    type: ClassVar[ServiceType] = ServiceType.INDEXING
    nothing: ClassVar[str] = "all partitions are ready"

    @checked_call
    def __call__(
        self, partitions: Iterable[str] = (), options: Mapping[str, str] | None = None, *, plan: str = ""
    ) -> Self:
        """The service with these partitions beside `files`: `column_stats`, `partition_stats`,
        `bloom_filters`, `record_index` or `partitioned_record_index`,
        `secondary_index_<name>=<column>` and `expr_index_<name>=<function>(<column>)`. `plan`:
        digest of a dry run, which must still hold. Raises InvalidOptionError for options that name
        others."""
        given, chosen = dict(options or {}), ",".join(partitions)
        named = given.setdefault(INDEXING_PARTITIONS, chosen)
        if chosen and names_in(named) != names_in(chosen):
            raise InvalidOptionError(
                f"option {INDEXING_PARTITIONS}={named} contradicts the partitions {chosen}: leave one of the two out"
            )
        return self.with_request(ServiceRequest(given, plan=plan))

    def current_plan(self) -> ServicePlan | None:
        """Which partitions are to be built; None if all are ready."""
        missing = _missing(self.ctx, self._names())
        if not missing:
            return None
        files = [info for info in list_data_files(self.ctx.storage) if parse_data_file(info.path.rpartition("/")[2])]
        return ServicePlan(
            ServiceType.INDEXING,
            why=f"{', '.join(missing)} not there",
            files_before=len(files),
            bytes_read=sum(item.size for item in files),
            details=tuple(f"build {name}" for name in missing),
        )

    def work(self, engine: Engine) -> ServiceResult | None:
        """Build what is missing."""
        del engine
        names = self._names()
        missing = _missing(self.ctx, names)
        if not build(self.ctx, names, self.request.options):
            return None
        built = [item for item in report(self.ctx) if item.partition in missing]
        figures = {
            "partitionsBuilt": float(len(built)),
            "fileGroups": float(sum(item.file_groups for item in built)),
            "bytesWritten": float(sum(item.bytes for item in built)),
        }
        message = f"built {', '.join(missing)}" if missing else "what was begun is finished"
        return ServiceResult(ServiceType.INDEXING, "", message, figures)

    def _names(self) -> list[str]:
        """Raises InvalidOptionError where the next write would drop what is built."""
        if self.request.options.get(METADATA_ENABLE, "").strip().lower() == "false":
            raise InvalidOptionError(
                f"{METADATA_ENABLE} is false, so that every write drops the metadata table; leave it out to have one"
            )
        return list(names_in(self.request.options.get(INDEXING_PARTITIONS, "")))


def _missing(ctx: TableContext, names: list[str]) -> list[AnyPartition]:
    """Raises InvalidRequestError."""
    ready = read_partitions(ctx).ready
    return [name for name in wanted_partitions(ctx, names) if name not in ready]
