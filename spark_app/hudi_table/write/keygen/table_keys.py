"""The key generator of one table, as the intake of rows uses it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from hudi_table.model.table.config import TableConfig
from hudi_table.table.keys.java_text import column
from hudi_table.table.keys.record_keys import FieldKeys, Rows
from hudi_table.write.functions import custom_keys
from hudi_table.write.keygen import columns as keygen
from hudi_table.write.keygen.composite_keys import doubtful_keys


@dataclass(frozen=True, slots=True)
class TableKeys(FieldKeys):
    """Keys and partition paths by the table's own rules."""

    function: Callable[[pa.Table], pa.Array] | None = None

    @classmethod
    def of(cls, config: TableConfig) -> TableKeys:
        """The rules of a table. Raises InvalidRequestError for a key generator that is not
        registered here."""
        return cls(config, custom_keys(config))

    def record_keys(self, rows: Rows) -> pa.Array:
        """One record key per row. Raises InvalidDataError for null keys."""
        if self.function is None:
            return FieldKeys.record_keys(self, rows)
        columns = {name: column(rows, name) for name in self.config.record_key}
        return self.function(pa.table(columns))

    def keys_or_null(self, rows: Rows) -> pa.Array:
        """As `record_keys`, null where no key can be made. A function of one's own decides
        itself."""
        return FieldKeys.keys_or_null(self, rows) if self.function is None else self.record_keys(rows)

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """One partition path per row."""
        return keygen.partition_paths(batch, self.config)

    def doubtful(self, batch: pa.RecordBatch, keys: pa.Array, places: pa.Array | None) -> pa.Table | None:
        """Of the keys whose text other values may have too, text and values; see
        `composite_keys`."""
        return None if self.function is not None else doubtful_keys(batch, self.config, keys, places)
