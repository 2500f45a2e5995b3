"""Building partitions of the metadata table as a table service, while writers go on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.metadata.table import read_partitions
from hudi_table.model.given import checked_call
from hudi_table.model.names import parse_data_file
from hudi_table.model.options.values import members
from hudi_table.model.options.write_options import INDEXING_DROP, INDEXING_PARTITIONS, METADATA_ENABLE
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.base import Unplanned
from hudi_table.services.metadata.building import build, wanted_partitions
from hudi_table.services.metadata.defined import asked_columns, drop_indexes, partition_of, there_of
from hudi_table.services.metadata.report import report
from hudi_table.table.store.ports import Engine
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
        self,
        partitions: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
        *,
        drop: Iterable[str] = (),
        plan: str = "",
    ) -> Self:
        """The service with these partitions beside `files`: `column_stats`, `partition_stats`,
        `bloom_filters`, `record_index` or `partitioned_record_index`,
        `secondary_index_<name>=<column>` and `expr_index_<name>=<function>(<column>)`. `drop`: the
        names of indexes of secondary keys and expressions that go before. `plan`: digest of a dry
        run, which must still hold. Raises InvalidOptionError for options that name others."""
        given = dict(options or {})
        _say(given, INDEXING_PARTITIONS, "the partitions", ",".join(partitions))
        _say(given, INDEXING_DROP, "what is to be dropped,", ",".join(drop))
        return self.with_request(ServiceRequest(given, plan=plan))

    def current_plan(self) -> ServicePlan | None:
        """Which partitions are to be built, and which go; None if all are ready."""
        missing, gone = self._changes()
        if not missing and not gone:
            return None
        listed = list_data_files(self.ctx.storage) if missing else ()
        files = [info for info in listed if parse_data_file(info.path.rpartition("/")[2])]
        why = [f"{', '.join(missing)} not there"] if missing else []
        return ServicePlan(
            ServiceType.INDEXING,
            why="; ".join([*why, *([f"{', '.join(gone)} no longer wanted"] if gone else [])]),
            files_before=len(files),
            bytes_read=sum(item.size for item in files),
            details=(*(f"drop {name}" for name in gone), *(f"build {name}" for name in missing)),
        )

    def work(self, engine: Engine) -> ServiceResult | None:
        """Drop what goes, and build what is missing."""
        del engine
        missing, _ = self._changes()
        gone = drop_indexes(self.ctx, self._dropped())
        is_built = build(self.ctx, self._names(), self.request.options)
        if not is_built and not gone:
            return None
        built = [item for item in report(self.ctx) if item.partition in missing] if is_built else []
        figures = {
            "partitionsBuilt": float(len(built)),
            "fileGroups": float(sum(item.file_groups for item in built)),
            "bytesWritten": float(sum(item.bytes for item in built)),
        }
        said = [f"dropped {', '.join(gone)}"] if gone else []
        if is_built:
            said.append(f"built {', '.join(missing)}" if missing else "what was begun is finished")
        return ServiceResult(
            ServiceType.INDEXING,
            "",
            "; ".join(said),
            figures | ({"partitionsDropped": float(len(gone))} if gone else {}),
        )

    def _changes(self) -> tuple[list[str], list[str]]:
        """The partitions that are to be built, and those that go before. Raises InvalidRequestError
        before anything is written."""
        names, dropped = self._names(), self._dropped()
        both = {partition_of(name, expression=kind): name for name in dropped for kind in (False, True)}
        for partition in both.keys() & asked_columns(names).keys():
            raise InvalidRequestError(f"the index {both[partition]} is to be built and to be dropped: leave one out")
        gone = there_of(self.ctx, dropped)
        ready = read_partitions(self.ctx).ready
        return [name for name in wanted_partitions(self.ctx, names, gone) if name not in ready], gone

    def _dropped(self) -> list[str]:
        return members(self.request.options.get(INDEXING_DROP, ""))

    def _names(self) -> list[str]:
        """Raises InvalidOptionError where the next write would drop what is built."""
        if self.request.options.get(METADATA_ENABLE, "").strip().lower() == "false":
            raise InvalidOptionError(
                f"{METADATA_ENABLE} is false, so that every write drops the metadata table; leave it out to have one"
            )
        return members(self.request.options.get(INDEXING_PARTITIONS, ""))


def _say(options: dict[str, str], key: str, what: str, chosen: str) -> None:
    """Put what a call says among the options. Raises InvalidOptionError if they say otherwise."""
    named = options.setdefault(key, chosen) if chosen else ""
    if members(named) != members(chosen):
        raise InvalidOptionError(f"option {key}={named} contradicts {what} {chosen}: leave one of the two out")
