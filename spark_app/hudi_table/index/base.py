"""The index: where the row of a key is, or is to go.

An index sends every incoming row to a `Slot`. Some need nothing but the keys (bucket), others look into the
snapshot (simple); the planner turns slots into file groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Engine, Storage
from hudi_table.table.view.file_system_view import FileSlice

Codes = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where rows go: a file group (that of a ring's node may not exist yet), a bucket (the same), or just a partition."""

    partition: str
    file_id: str | None = None
    bucket: int | None = None


def _no_rows() -> Any:
    return np.empty(0, dtype=np.int64)


def _no_codes() -> Any:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Routed:
    """`codes[i]` is the position in `slots` of row i, or -1 if the row is to be ignored.

    A global index moves keys: `deletes` are rows whose key is also to be deleted at `delete_codes`. Inserts may have left a
    key in several files: `copies` are rows that also go to `copy_codes`.
    """

    slots: tuple[Slot, ...]
    codes: Codes
    deletes: Positions = field(default_factory=_no_rows)
    delete_codes: Codes = field(default_factory=_no_codes)
    copies: Positions = field(default_factory=_no_rows)
    copy_codes: Codes = field(default_factory=_no_codes)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of n incoming rows: `record_keys` (string), `partitions[i]` a position in `partition_paths`.

    `ordering` are their ordering values if event time decides, else None.
    """

    record_keys: pa.Array
    partition_paths: tuple[str, ...]
    partitions: Codes
    ordering: pa.Array | None = None


class VirtualKeys(Protocol):
    """Record keys of stored rows of a table that stores none."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that keys are made of."""
        ...

    def record_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """One string per row."""
        ...


@dataclass(frozen=True, slots=True)
class Lookup:
    """What an index may look into: storage, the latest slices of the partitions that it asks for, and threads.

    `virtual_keys`: how to make the keys of stored rows, None if `_hoodie_record_key` holds them. `visible` says which
    blocks of the slices' logs count, `shards` are those of the record index, None without one that is ready.
    """

    storage: Storage
    slices: Sequence[FileSlice]
    engine: Engine
    ordering_field: str | None = None
    virtual_keys: VirtualKeys | None = None
    visible: VisibleInstants | None = None
    shards: RecordShards | None = None


class Index(Protocol):
    """An index of one table."""

    @property
    def reads_snapshot(self) -> bool:
        """Whether `route` needs a `Lookup`; if not, rows may be grouped before the instant is claimed."""
        ...

    @property
    def is_global(self) -> bool:
        """Whether a key is unique across partitions."""
        ...

    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """The slot of every row. Keys are unique per partition (of a global index: altogether) if the index reads
        the snapshot. Raises CorruptTableError if the table contradicts the index."""
        ...

    def groups(self, slices: Iterable[FileSlice]) -> dict[Slot, FileSlice]:
        """The slot of every existing file group. Raises CorruptTableError if two groups share one."""
        ...


def route_by_partition(keys: Keys) -> Routed:
    """Every row to its partition alone: what inserts do where the index places nothing."""
    return Routed(tuple(Slot(path) for path in keys.partition_paths), keys.partitions)
