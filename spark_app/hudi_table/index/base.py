"""The index: where the row of a key is, or is to go.

An index sends every incoming row to a `Slot`. Some need nothing but the keys (buckets), others look
into the snapshot (simple); the planner turns slots into file groups. `Index` holds every question
whose answer differs from one index to another: who writes, lists, checks or serves a table asks it,
and never which class it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.errors import InvariantError
from hudi_table.index.bucket_signs import refuse_buckets, refuse_rings
from hudi_table.index.filters import Filters
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.model.timeline.conflict_keys import file_conflict_key
from hudi_table.table.commit.transaction import Transaction
from hudi_table.table.keys.record_keys import FieldKeys
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Engine, Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice, FileSystemView

Codes = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where rows go: a file group (that of a ring's node may not exist yet), a bucket (the same),
    or just a partition."""

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

    A global index moves keys: `deletes` are rows whose key is also to be deleted at `delete_codes`.
    Inserts may have left a key in several files: `copies` are rows that also go to `copy_codes`.
    """

    slots: tuple[Slot, ...]
    codes: Codes
    deletes: Positions = field(default_factory=_no_rows)
    delete_codes: Codes = field(default_factory=_no_codes)
    copies: Positions = field(default_factory=_no_rows)
    copy_codes: Codes = field(default_factory=_no_codes)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of n incoming rows: `record_keys` (string), `partitions[i]` a position in
    `partition_paths`.

    `ordering` are their ordering values if event time decides, else None.
    """

    record_keys: pa.Array
    partition_paths: tuple[str, ...]
    partitions: Codes
    ordering: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Lookup:
    """What an index may look into: storage, the latest slices of the partitions that it asks for,
    and threads.

    `virtual_keys`: how to make the keys of stored rows, None if `_hoodie_record_key` holds them.
    `visible` says which blocks of the slices' logs count, `live` which of their keys a reader sees;
    a table without logs needs neither.
    """

    storage: Storage
    slices: Sequence[FileSlice]
    engine: Engine
    ordering_field: str | None = None
    virtual_keys: FieldKeys | None = None
    visible: VisibleInstants | None = None
    live: Callable[[], LiveKeys] | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """What a write of this process sent to one file group, and what came of it.

    `before`: the slice that the write saw, None for a new group. `file`: `name size` of the base
    file, or with `to_log` of the log behind the slice. `rows` have record keys and perhaps
    `ALWAYS_DELETE`. `instant` is that of the commit.
    """

    partition: str
    file_id: str
    before: FileSlice | None
    file: str
    to_log: bool
    rows: Iterable[pa.RecordBatch]
    instant: str


class UniformBuckets(Protocol):
    """Buckets whose number is the same in every partition, so that an engine may number rows before
    it knows their partition."""

    @property
    def buckets(self) -> int:
        """How many a partition has."""
        ...

    @property
    def java_hashed(self) -> bool:
        """Whether the bucket of a key without `:` is `(31 + its Java hash) & 0x7fffffff` modulo
        their number."""
        ...

    def buckets_of(self, record_keys: pa.Array, partition: str) -> Codes:
        """The bucket number of every record key of one partition."""
        ...


@dataclass(frozen=True, slots=True)
class FileSearch:
    """Keys are found where the key columns of base files and the logs hold them, and nowhere else:
    an engine may compare them its own way. `filters` rule base files out before that, and unless
    `by_ranges` is False their key ranges do."""

    filters: Filters | None = None
    by_ranges: bool = True


@dataclass(frozen=True, slots=True)
class InTasks:
    """How the tasks of a distributed engine find the places of keys.

    `index`: what travels to them, picklable. They ask it, unless `search` or `buckets` say how the
    engine may do without. `shards`: keys of one of these had better be asked by one task.
    """

    index: Index
    search: FileSearch | None = None
    shards: RecordShards | None = None
    buckets: UniformBuckets | None = None


class IndexChange:
    """What a write changes of the index itself, beside its files. This one: nothing."""

    __slots__ = ()

    def moved(self, slots: Sequence[Slot]) -> Sequence[Slot]:
        """The slots where rows that were routed before the change go."""
        return slots

    def store(self, ctx: TableContext, txn: Transaction) -> None:
        """Store the change, which counts with the commit of `txn`. Raises WriteConflictError if
        another writer's came first."""


class Index(ABC):
    """An index of one table. Immutable; the first three members say where keys are, the others have
    an answer that fits most indexes.

    A new index needs `reads_snapshot`, `is_global` and `route`. One that places rows by itself
    (`reads_snapshot` False) has `slots_in` too.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def reads_snapshot(self) -> bool:
        """Whether `route` needs a `Lookup`; if not, rows may be grouped before the instant is
        claimed."""

    @property
    @abstractmethod
    def is_global(self) -> bool:
        """Whether a key is unique across partitions."""

    @abstractmethod
    def route(self, keys: Keys, lookup: Lookup | None = None) -> Routed:
        """The slot of every row. Keys are unique per partition (of a global index: altogether) if
        the index reads the snapshot. Raises CorruptTableError if the table contradicts the
        index."""

    @property
    def moves(self) -> bool:
        """Whether a key whose new row names another partition moves there, and its stored row stays
        behind."""
        return self.is_global

    @property
    def needs_filters(self) -> bool:
        """Whether base files are to carry a bloom filter over their keys."""
        return False

    def as_of(self, ctx: TableContext, timeline: Timeline) -> Index:
        """The same index with what the table stores of it, as of a timeline.

        An index that needs no snapshot is asked for it when a request is checked, and again when
        its instant is claimed; one that looks keys up when it is about to.
        """
        del ctx, timeline
        return self

    def check_fits(self, ctx: TableContext, timeline: Timeline, *, from_options: bool) -> None:
        """Refuse to write a table by an index that what it stores contradicts: other writers would
        not find the rows. `from_options`: the options alone name the index, so that its files are
        to be looked at too. Raises InvalidOptionError."""
        if from_options:
            slices = FileSystemView(ctx, timeline).latest_slices()
            refuse_rings(ctx)
            refuse_buckets(ctx, slices)

    def slots_in(self, partition: str) -> list[Slot]:
        """All places of a partition where rows can go, of an index that needs no snapshot. Raises
        CorruptTableError."""
        raise InvariantError(f"an index that looks keys up was asked for the places of partition {partition!r}")

    def groups(self, slices: Iterable[FileSlice], *, replacing: bool = False) -> dict[Slot, FileSlice]:
        """The slot of every existing file group. `replacing`: the write hides them. Raises
        CorruptTableError if two groups share one, or a group has none."""
        del replacing
        return {Slot(item.partition, file_id=item.file_id): item for item in slices}

    def moved_since(self, before: Index) -> bool:
        """Whether rows that were routed by `before`, this index as of an older timeline, go
        elsewhere now."""
        del before
        return False

    def conflict_key(self, partition: str, file_id: str, *, exists: bool) -> str | None:
        """What a write of rows into a file group touches, by which two writers beside each other
        meet; None for a new group of an index that looks keys up: writers of the same new key meet
        in the key, and in nothing else."""
        return file_conflict_key(partition, file_id) if exists or not self.reads_snapshot else None

    def change(
        self,
        ctx: TableContext,
        txn: Transaction,
        filled: Collection[str],
        replaced: Mapping[str, Sequence[str]] | None,
    ) -> IndexChange:
        """What a write to the `filled` partitions changes of the index; `replaced` are the groups
        that it hides, None if its operation replaces none. Raises CorruptTableError if rows would
        go where nobody sees them."""
        del ctx, txn, filled, replaced
        return IndexChange()

    def in_tasks(self, partitions: Sequence[str]) -> InTasks:
        """How tasks of a distributed engine find the places of keys of these partitions."""
        del partitions
        return InTasks(self)

    def wrote(self, storage: Storage, written: Callable[[], Iterable[Written]]) -> None:
        """After a commit of this process, without an engine: take in what went to which file group.
        For an index that keeps something beside the table; what it missed must do no harm."""
        del storage, written

    def learn(self, snapshot: Callable[[], Lookup]) -> None:
        """After a commit: take in what the table holds now, which `snapshot` lists. For an index
        that keeps something beside the table; what it missed must do no harm."""
        del snapshot


def route_by_partition(keys: Keys) -> Routed:
    """Every row to its partition alone: what inserts do where the index places nothing."""
    return Routed(tuple(Slot(path) for path in keys.partition_paths), keys.partitions)
