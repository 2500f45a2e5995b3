"""Numbers of tasks for rows in Arrow, the same as the expressions in `key_columns` give in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_table.index.base import Codes, Index, Keys, Slot
from hudi_table.write.keygen.table_keys import TableKeys


@dataclass(frozen=True, slots=True)
class Numbering:
    """Which task writes a row: `places` gives the number of each slot, and none to rows that are
    not written."""

    keys: TableKeys
    index: Index
    places: Mapping[Slot, int]

    def of(self, rows: pa.RecordBatch) -> Codes:
        """The number of every row's task, -1 for none."""
        paths = self.keys.partition_paths(rows)
        encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
        partitions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        routed = self.index.route(Keys(self.keys.record_keys(rows), tuple(encoded.dictionary.to_pylist()), partitions))
        numbers = np.array([self.places.get(slot, -1) for slot in routed.slots], dtype=np.int32)
        return numbers[routed.codes]
