"""Another Hudi table, or what a scan of one gives: how a table is copied, or exported as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hudi_table.errors import InvalidRequestError
from hudi_table.model.table.config import IndexSpec, IndexType, PartitionType, TableConfig
from hudi_table.model.table.version_properties import PAYLOAD
from hudi_table.read.scan import Scan
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext


@dataclass(frozen=True, slots=True)
class HudiSnapshot:
    """The rows of a scan, see `Snapshot`. The scan keeps its moment."""

    context: TableContext
    scan: Scan

    @property
    def form(self) -> str:
        """`hudi`."""
        return "hudi"

    @property
    def storage(self) -> Storage:
        """The table's."""
        return self.context.storage

    @property
    def place(self) -> str:
        """The table's base path."""
        return self.context.base_path

    @property
    def version(self) -> str:
        """The newest instant that the scan shows, and what it was asked."""
        asked = hashlib.sha256(self.scan.explain().encode()).hexdigest()
        return f"{self.scan.plan.instant or 'empty'} {asked[:8]}"

    @property
    def schema(self) -> pa.Schema:
        """The columns of the scan."""
        return self.scan.schema

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Columns whose values are the partitions."""
        plain = all(each.type is PartitionType.SIMPLE for each in self.context.config.partition_by)
        return self.context.config.partition_fields if plain else ()

    @property
    def record_key(self) -> tuple[str, ...]:
        """Those of the table. Raises InvalidRequestError for a scan that leaves one out."""
        config = self.context.config
        for name in (*config.record_key, *config.partition_fields, *config.ordering_fields):
            if name.partition(".")[0] not in self.schema.names:
                raise InvalidRequestError(
                    f"{name!r} is a record key, partition or ordering column of {self.place} and none of the columns: name it among them"
                )
        return config.record_key

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """See `Snapshot`."""
        return (batch.select(columns) for batch in self.scan.to_batches())


def _index_of(config: TableConfig) -> IndexSpec | None:
    """The index of a copy: one that is kept beside the files, by others or in a metadata table,
    is not there yet, and the copy looks its keys up in its files."""
    index = config.index
    if index is None or (index.type.metadata_partition is None and not index.type.is_custom):
        return index
    return IndexSpec(IndexType.GLOBAL_SIMPLE if index.type.is_global else IndexType.SIMPLE)


def like(config: TableConfig) -> Mapping[str, Any]:
    """What a table is besides its columns and key, as fields of a `TableSpec`."""
    return {
        "partition_by": list(config.partition_by),
        "ordering_fields": list(config.ordering_fields),
        "type": config.type.value,
        "merge_mode": config.merge_mode.value,
        "index": _index_of(config),
        "version": config.version,
        "hive_style": config.hive_style,
        "url_encode": config.url_encode,
    }


def payload_of(config: TableConfig) -> dict[str, str]:
    """The option by which a table merges by a class of its own."""
    return {PAYLOAD: config.payload_class} if config.payload_class else {}
