"""Numbers of tasks for rows in Arrow, for whoever has the rows themselves.

Where the index places rows they are those that the expressions in `key_columns` give in Spark;
where tasks share rows out any hash of the key does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from hudi_table.codec.hashes.javahash import java_string_hash
from hudi_table.index.base import Codes, Index, Keys, Slot
from hudi_table.write.keygen.table_keys import TableKeys

_SHARE_BITS = 20
SHARES = 1 << _SHARE_BITS
"""Into so many shares the keys of a partition fall, by hash."""
_SPREAD = np.uint32(0x9E3779B1)


class Numbering(Protocol):
    """Which task writes a row."""

    def of(self, rows: pa.RecordBatch) -> Codes:
        """The number of every row's task, -1 for none."""
        ...


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows go where the index places them: `places` gives the number of each slot, and none to rows
    that are not written."""

    keys: TableKeys
    index: Index
    places: Mapping[Slot, int]

    def of(self, rows: pa.RecordBatch) -> Codes:
        """The number of every row's task, -1 for none."""
        paths, partitions = _partitions(self.keys, rows)
        routed = self.index.route(Keys(self.keys.record_keys(rows), tuple(paths), partitions))
        numbers = np.array([self.places.get(slot, -1) for slot in routed.slots], dtype=np.int32)
        return numbers[routed.codes]


@dataclass(frozen=True, slots=True)
class Shared:
    """Rows go to one of the tasks of their partition, all rows of a key to the same: `tasks` has
    the first share and the number of each, in the order of the shares."""

    keys: TableKeys
    tasks: Mapping[str, Sequence[tuple[int, int]]]

    def of(self, rows: pa.RecordBatch) -> Codes:
        """The number of every row's task, -1 for none."""
        paths, partitions = _partitions(self.keys, rows)
        known = [(place, *task) for place, path in enumerate(paths) for task in self.tasks.get(path, ((0, -1),))]
        firsts = np.array([place << _SHARE_BITS | first for place, first, _ in known], dtype=np.int64)
        numbers = np.array([number for *_, number in known], dtype=np.int32)
        # Java's hashes of short keys lie close together: a multiplication spreads them over the upper bits.
        spread = java_string_hash(self.keys.record_keys(rows)).view(np.uint32) * _SPREAD
        shares = (spread >> np.uint32(32 - _SHARE_BITS)).astype(np.int64)
        at = np.searchsorted(firsts, partitions.astype(np.int64) << _SHARE_BITS | shares, "right") - 1
        return numbers[at]


def _partitions(keys: TableKeys, rows: pa.RecordBatch) -> tuple[list[str], Codes]:
    """Partition paths, and of each row the position of its own."""
    paths = keys.partition_paths(rows)
    encoded = paths if pa.types.is_dictionary(paths.type) else paths.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
