"""The key generator of one table, as the intake of rows uses it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_table.model.table_config import TableConfig
from hudi_table.write import keygen


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Keys and partition paths by the table's own rules."""

    config: TableConfig

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that record keys are made of."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.config.record_key))

    def record_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """One record key per row. Raises InvalidDataError for null keys."""
        return keygen.record_keys(batch, self.config)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """One partition path per row."""
        return keygen.partition_paths(batch, self.config)
