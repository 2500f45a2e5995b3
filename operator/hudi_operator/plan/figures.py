"""What was measured of a table, as needs and conditions speak of it, and numbers as people read
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.quantities import bytes_of
from hudi_operator.manifests.services import ServiceWork
from hudi_operator.plan.observed import TableObservation
from hudi_table.model.digits import whole

SMALL_FILE_RATIO_MAX = 0.5
SMALL_FILE_COUNT_MIN = 8
"""Fewer files than this are no burden, however small they are."""
_CLUSTERING_LIMIT = "hoodie.clustering.plan.strategy.small.file.limit"
_TABLE_LIMIT = "hoodie.parquet.small.file.limit"


@dataclass(frozen=True, slots=True)
class Figures:
    """Ratios are 0 without base files. `mergeable`: small files of partitions that have more than
    one. `bytes_to_clean` is None if it is not known."""

    files: int
    small_files: int
    mergeable: int
    small_file_ratio: float
    log_bytes: int
    log_bytes_ratio: float
    commits_since: int
    bytes_to_clean: int | None

    @classmethod
    def of(cls, table: TableObservation, work: ServiceWork, options: Mapping[str, str]) -> Figures:
        """Measured for one service: small by its own limit if it has one, else by the table's."""
        limit = whole(work.options.get(_CLUSTERING_LIMIT) or options.get(_TABLE_LIMIT, "")) or 0
        by_partition = Counter(f.partition for f in table.files if f.size < limit)
        small = by_partition.total()
        total, base, logs = len(table.files), table.base_bytes, table.log_bytes
        return cls(
            files=total,
            small_files=small,
            mergeable=sum(number for number in by_partition.values() if number > 1),
            small_file_ratio=small / total if total else 0.0,
            log_bytes=logs,
            log_bytes_ratio=logs / base if base else float(logs > 0),
            commits_since=table.trace(work.type).commits_since,
            bytes_to_clean=table.bytes_to_clean,
        )

    @property
    def well_sized(self) -> bool:
        """Whether small files that have another one beside them are few, or a small part."""
        return self.files < SMALL_FILE_COUNT_MIN or self.mergeable / self.files <= SMALL_FILE_RATIO_MAX


def small_files(spec: HudiTableSpec, table: TableObservation) -> int:
    """Base files below `files.smallFileLimit`."""
    limit = bytes_of(spec.files.small_file_limit)
    return sum(f.size < limit for f in table.files)
