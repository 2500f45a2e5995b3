"""The key generator of one table, as the intake of rows uses it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_table.model.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class TableKeys:
    """Keys and partition paths by the table's own rules."""

    config: TableConfig

    def record_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """One record key per row. Raises InvalidDataError for null keys."""
        from hudi_table.write import keygen

        return keygen.record_keys(batch, self.config)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """One partition path per row."""
        from hudi_table.write import keygen

        return keygen.partition_paths(batch, self.config)
