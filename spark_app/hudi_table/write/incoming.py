"""Taking rows in: an Arrow stream becomes keyed rows, grouped by where they go, within the memory
budget.

The source is read once and to its end before an instant is claimed, so a slow or broken source
costs no claim. A bucket index and plain inserts know at once where a row goes. Other writes keep
the rows in one group first, and `tag` groups them when the index has looked into the snapshot; a
second attempt tags again from the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.index.base import Codes, Index, Keys, Lookup, Positions, Routed, Slot, route_by_partition
from hudi_table.model.counts import counted
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.options.write_options import Operation
from hudi_table.table.rows.merge import ALWAYS_DELETE, key_groups, newest, ordering_values
from hudi_table.table.rows.parts import range_split
from hudi_table.table.rows.spill import GroupedRows
from hudi_table.table.store.ports import Engine
from hudi_table.write.best_place import in_best_place
from hudi_table.write.checks.request import Prepared
from hudi_table.write.checks.row_values import check_layout, refuse_unsound
from hudi_table.write.keygen.composite_keys import KeyCollisions

Marks = npt.NDArray[np.bool_]

CHUNK_ROWS = 262_144
_SMALL_CHUNK_ROWS = 65_536
_SMALL_CHUNK_BYTES = 32 * 1024 * 1024


class KeyMaker(Protocol):
    """Record keys and partition paths of a batch of rows."""

    def record_keys(self, batch: pa.RecordBatch) -> pa.Array:
        """One string per row, never null. Raises InvalidDataError for keys that cannot be."""
        ...

    def partition_paths(self, batch: pa.RecordBatch) -> pa.Array:
        """One string per row ('' in a non-partitioned table), perhaps a dictionary."""
        ...

    def doubtful(self, batch: pa.RecordBatch, keys: pa.Array, places: pa.Array | None) -> pa.Table | None:
        """What `KeyCollisions` takes of a batch."""
        ...


@dataclass(slots=True)
class Taken:
    """Rows that were taken in. `slots[code]` says where group `code` of `rows` goes.

    Untagged rows lie all in group 0 with their keys beside them: `keys`, `partitions` and
    `ordering` are per row, `paths` are the partition paths that `partitions` counts.
    """

    rows: GroupedRows
    slots: list[Slot] = field(default_factory=list)
    tagged: bool = True
    paths: list[str] = field(default_factory=list)
    keys: list[pa.Array] = field(default_factory=list)
    partitions: list[Codes] = field(default_factory=list)
    ordering: list[pa.Array] = field(default_factory=list)

    def slot_rows(self) -> list[int]:
        """Rows of each slot."""
        return [self.rows.rows.get(code, 0) for code in range(len(self.slots))]

    def unmatched(self) -> list[int]:
        """Codes of the slots whose rows no file group holds yet."""
        return [code for code, slot in enumerate(self.slots) if slot.file_id is None and slot.bucket is None]

    def keys_of(self, code: int) -> Iterator[pa.Array]:
        """The record keys of one slot's rows."""
        for batch in self.rows.read(code):
            yield batch.column(RECORD_KEY)


@contextmanager
def filled(max_memory: int, slots: Sequence[Slot] = (), *, tagged: bool = True) -> Iterator[Taken]:
    """Rows to be taken in. Who gets them closes them; if they do not all come in, they are closed
    here."""
    taken = Taken(GroupedRows(max_memory), list(slots), tagged)
    try:
        yield taken
    except BaseException:
        taken.rows.close()
        raise


@dataclass(frozen=True, slots=True)
class _Chunk:
    batch: pa.RecordBatch
    keys: Keys
    routed: Routed | None
    doubtful: pa.Table | None = None


def open_stream(data: Any) -> pa.RecordBatchReader:
    """The rows as a stream of record batches. Raises InvalidRequestError for what does not export
    Arrow data."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data]).to_reader()
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    hint = "; call .collect() first" if hasattr(data, "collect") else ""
    raise InvalidRequestError(
        f"data of type {type(data).__name__} does not export Arrow data{hint}; give a pyarrow Table or "
        "RecordBatchReader, a polars or pandas DataFrame, or a DuckDB relation (pa.Table.from_pylist for dicts)"
    )


def take_in(
    reader: pa.RecordBatchReader, prepared: Prepared, maker: KeyMaker, engine: Engine, max_memory: int
) -> Taken:
    """Read the stream to its end. The caller closes `Taken.rows`. Raises InvalidDataError that
    names the column."""
    with filled(max_memory, tagged=not needs_tagging(prepared)) as taken:
        places: dict[Slot, int] = {}
        paths: dict[str, int] = {}

        def key(batch: pa.RecordBatch) -> _Chunk:
            return _key(batch, prepared, maker)

        collisions = KeyCollisions()
        for chunk in engine.imap(key, _chunks(reader)):
            collisions.add(chunk.doubtful)
            if chunk.routed is not None:
                _add_routed(taken, places, chunk)
            else:
                _add_untagged(taken, paths, chunk)
    return taken


def needs_tagging(prepared: Prepared) -> bool:
    """Whether rows can be grouped only with all their keys at hand: to look them up, or to combine
    them."""
    if not prepared.index.reads_snapshot:
        return False
    return prepared.finds_keys or prepared.combines


def tag(
    taken: Taken, prepared: Prepared, lookup: Lookup, max_memory: int, unstored: Callable[[Keys], Marks] | None = None
) -> Taken:
    """Combine untagged rows by key and group them by where the index finds them. The result is
    closed by the caller.

    `unstored`: which keys an insert is to write, if not all.
    """
    keys, owners = _combined_keys(taken, prepared)
    merges = prepared.operation.merges
    routed = in_best_place(prepared.index.route(keys, lookup), keys, lookup) if merges else route_by_partition(keys)
    places = routed.codes if unstored is None else np.where(unstored(keys), routed.codes, np.int32(-1))
    codes = np.where(owners < 0, np.int32(-1), places[owners]).astype(np.int32)
    copies, copy_codes = _copies(owners, routed)
    at = 0
    with filled(max_memory, routed.slots) as result:
        for batch in taken.rows.read(0):
            result.rows.add(batch, codes[at : at + len(batch)])
            here = (copies >= at) & (copies < at + len(batch))
            if here.any():
                result.rows.add(batch.take(pa.array(copies[here] - at)), copy_codes[here])
            at += len(batch)
        if len(routed.deletes):
            schema = keyed_schema(prepared)
            deleted = keys.record_keys.take(pa.array(routed.deletes))
            columns = [_delete_column(item, deleted) for item in schema]
            result.rows.add(pa.RecordBatch.from_arrays(columns, schema=schema), routed.delete_codes)
    return result


def rerouted(taken: Taken, index: Index, max_memory: int) -> Taken:
    """The rows grouped by another index than the one by which they were taken in. The result is
    closed by the caller."""
    places: dict[Slot, int] = {}
    with filled(max_memory) as result:
        for code, slot in enumerate(taken.slots):
            for batch in taken.rows.read(code):
                keys = Keys(batch.column(RECORD_KEY), (slot.partition,), np.zeros(len(batch), dtype=np.int32))
                _add_routed(result, places, _Chunk(batch, keys, index.route(keys)))
    return result


def split_by_key(taken: Taken, groups: Sequence[int], max_memory: int) -> Taken:
    """Cut each slot's rows into `groups` slots of equal size by key range. The result is closed by
    the caller."""
    with filled(max_memory) as result:
        for code, (slot, count) in enumerate(zip(taken.slots, groups, strict=True)):
            keys = list(taken.keys_of(code))
            if not keys:
                continue
            codes = range_split(pa.concat_arrays(keys), count) + np.int32(len(result.slots))
            result.slots += [slot] * count
            at = 0
            for batch in taken.rows.read(code):
                result.rows.add(batch, codes[at : at + len(batch)])
                at += len(batch)
    return result


def _copies(owners: Positions, routed: Routed) -> tuple[Positions, Codes]:
    """Rows that go to one more group, and to which: all those of the keys that the index found
    again."""
    order = np.argsort(routed.copies, kind="stable")
    copied = routed.copies[order]
    first = np.searchsorted(copied, owners, "left")
    counts = np.where(owners < 0, 0, np.searchsorted(copied, owners, "right") - first)
    rows = np.repeat(np.arange(len(owners)), counts)
    nth = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, routed.copy_codes[order][np.repeat(first, counts) + nth]


def _combined_keys(taken: Taken, prepared: Prepared) -> tuple[Keys, Positions]:
    """The keys as they are after combining, and of each row the number of its key, -1 for rows that
    are dropped now."""
    record_keys = pa.concat_arrays(taken.keys) if taken.keys else pa.array([], pa.string())
    partitions = np.concatenate(taken.partitions) if taken.partitions else np.empty(0, dtype=np.int32)
    ordering = pa.concat_arrays(taken.ordering) if taken.ordering else None
    groups = key_groups(record_keys)
    if not prepared.index.is_global and len(taken.paths) > 1:
        both = groups * len(taken.paths) + partitions
        groups = pa.array(both).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    survives = newest(groups, ordering)
    if survives is None:
        return Keys(record_keys, tuple(taken.paths), partitions, ordering), np.arange(len(partitions))
    places = np.flatnonzero(survives)
    kept = pa.array(places)
    values = None if ordering is None else ordering.take(kept)
    numbers = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    numbers[groups[places]] = np.arange(len(places))
    # Rows that are put together column by column all go to the task that does it.
    kept_all = prepared.rule.combines or not prepared.combines
    owners = np.where(survives | kept_all, numbers[groups], -1)
    return Keys(record_keys.take(kept), tuple(taken.paths), partitions[survives], values), owners


def _delete_column(item: pa.Field, keys: pa.Array) -> pa.Array:
    if item.name == RECORD_KEY:
        return keys
    if item.name == ALWAYS_DELETE:
        return pa.repeat(pa.scalar(True), len(keys))
    return pa.nulls(len(keys), item.type)


def keyed_schema(prepared: Prepared) -> pa.Schema:
    """Record key, the mark of deletes where there may be any, then the columns of the data (none
    for deletes)."""
    fields = [pa.field(RECORD_KEY, pa.string())]
    if prepared.operation is Operation.DELETE:
        return pa.schema([*fields, pa.field(ALWAYS_DELETE, pa.bool_())])
    if prepared.index.is_global and prepared.operation.merges:
        fields.append(pa.field(ALWAYS_DELETE, pa.bool_()))
    return pa.schema([*fields, *prepared.columns])


def _key(batch: pa.RecordBatch, prepared: Prepared, maker: KeyMaker) -> _Chunk:
    rows = conform(batch, prepared.columns)
    refuse_unsound(rows)
    if prepared.operation is Operation.DELETE and prepared.index.is_global:
        encoded = pa.array([""] * min(1, len(rows)), pa.string()).take(pa.array(np.zeros(len(rows), dtype=np.int32)))
        encoded = encoded.dictionary_encode()
    else:
        encoded = maker.partition_paths(rows)
        encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    record_keys = maker.record_keys(rows)
    ordering = _ordering_of(rows, prepared)
    partitions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    keys = Keys(record_keys, tuple(encoded.dictionary.to_pylist()), partitions, ordering)
    routed = None
    if not prepared.index.reads_snapshot:
        routed = prepared.index.route(keys)
    elif not needs_tagging(prepared):
        routed = route_by_partition(keys)
    doubtful = maker.doubtful(rows, record_keys, None if prepared.index.is_global else encoded)
    return _Chunk(_keyed_batch(rows, record_keys, prepared), keys, routed, doubtful)


def _keyed_batch(rows: pa.RecordBatch, record_keys: pa.Array, prepared: Prepared) -> pa.RecordBatch:
    schema = keyed_schema(prepared)
    columns: list[pa.Array] = [record_keys]
    if ALWAYS_DELETE in schema.names:
        mark = pa.scalar(True if prepared.operation is Operation.DELETE else None, pa.bool_())
        columns.append(pa.repeat(mark, len(rows)))
    if prepared.operation is not Operation.DELETE:
        columns += rows.columns
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _ordering_of(rows: pa.RecordBatch, prepared: Prepared) -> pa.Array | None:
    """Ordering values where rows are compared by them. Hudi 0.15 refuses null ones too."""
    names = prepared.combine_orderings if prepared.combines else ()
    for name in names:
        missing = rows.column(name).null_count
        if missing:
            raise InvalidDataError(
                f"ordering column '{name}' is null in {counted(missing, 'row')}: which row of a key is newer cannot be determined; "
                "fill the column or drop the rows"
            )
    return ordering_values(rows, names)


def _add_routed(taken: Taken, places: dict[Slot, int], chunk: _Chunk) -> None:
    assert chunk.routed is not None
    mapping = np.array([places.setdefault(slot, len(places)) for slot in chunk.routed.slots], dtype=np.int32)
    taken.slots = list(places)
    if len(chunk.batch):
        taken.rows.add(chunk.batch, mapping[chunk.routed.codes])


def _add_untagged(taken: Taken, paths: dict[str, int], chunk: _Chunk) -> None:
    mapping = np.array([paths.setdefault(path, len(paths)) for path in chunk.keys.partition_paths], dtype=np.int32)
    taken.paths = list(paths)
    if len(chunk.batch) == 0:
        return
    taken.rows.add(chunk.batch, np.zeros(len(chunk.batch), dtype=np.int32))
    taken.keys.append(chunk.keys.record_keys)
    taken.partitions.append(mapping[chunk.keys.partitions])
    if chunk.keys.ordering is not None:
        taken.ordering.append(chunk.keys.ordering)


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches in pieces of a size that is worth a task: large ones cut, small ones joined."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        check_layout(batch)
        if len(batch) >= _SMALL_CHUNK_ROWS and not pending:
            for start in range(0, len(batch), CHUNK_ROWS):
                yield batch.slice(start, CHUNK_ROWS)
            continue
        pending.append(batch)
        rows += len(batch)
        size += batch.nbytes
        if rows >= _SMALL_CHUNK_ROWS or size >= _SMALL_CHUNK_BYTES:
            yield from _joined(pending)
            pending, rows, size = [], 0, 0
    if rows:
        yield from _joined(pending)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches(max_chunksize=CHUNK_ROWS)
    return joined


__all__ = ["KeyMaker", "Taken", "filled", "needs_tagging", "open_stream", "tag", "take_in"]
