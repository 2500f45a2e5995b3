"""The keys of a slice of a file group, and what tells one slice from another.

Neither a base file nor a log of this library ever changes; Hudi may append to a log of its own,
which then is larger. So names and sizes of its files say which slice it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.log.blocks import BlockType, scan_blocks
from hudi_table.codec.parquet import read_batches
from hudi_table.index.base import Lookup
from hudi_table.model.names import RECORD_KEY, join
from hudi_table.table.rows.log_entries import block_keys
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.view.file_system_view import FileSlice

_BATCH_ROWS = 250_000
_NOT_ROWS = (BlockType.DELETE, BlockType.COMMAND, BlockType.CORRUPT)


def files_of(item: FileSlice) -> tuple[str, ...]:
    """`name size` of the base file, '' where there is none, and of each log in order."""
    base = f"{item.base.name} {item.base.size}" if item.base is not None else ""
    return (base, *(f"{log.path.rpartition('/')[2]} {log.size}" for log in item.logs))


def keys_in(lookup: Lookup, partition: str, files: Sequence[str]) -> pa.Array:
    """The distinct record keys, strings, of every row in these files of a partition: those of log
    blocks too that nobody sees yet, or any more. Raises ObjectNotFoundError if a file is gone."""
    found: list[pa.Array] = []
    for file in files:
        name = file.rpartition(" ")[0]
        if name.startswith("."):
            found += _logged(lookup, join(partition, name))
        elif name:
            found += _based(lookup, join(partition, name))
    return one_chunk(pa.chunked_array(found, pa.string())).unique()


def _based(lookup: Lookup, path: str) -> list[pa.Array]:
    virtual = lookup.virtual_keys
    columns = [RECORD_KEY] if virtual is None else list(virtual.columns)
    with lookup.storage.open_read(path) as source:
        batches = read_batches(source, columns, path=path, batch_rows=_BATCH_ROWS)
        return [batch.column(RECORD_KEY) if virtual is None else virtual.record_keys(batch) for batch in batches]


def _logged(lookup: Lookup, path: str) -> list[pa.Array]:
    with lookup.storage.open_read(path) as source:
        blocks = [block for block in scan_blocks(source, path=path) if block.type not in _NOT_ROWS]
        return [block_keys(source, block, lookup.virtual_keys) for block in blocks]


def stored_ordering(lookup: Lookup, item: FileSlice, wanted: pa.Array, ordering: str) -> tuple[pa.Array, pa.Array]:
    """(positions in `wanted`, ordering values) of the rows in the slice's base file that have one
    of these keys."""
    places: list[pa.Array] = [pa.array([], pa.int32())]
    values: list[pa.Array] = []
    virtual = lookup.virtual_keys
    columns = [RECORD_KEY] if virtual is None else list(virtual.columns)
    columns += [] if ordering in columns else [ordering]
    if item.base is None:
        return places[0], pa.nulls(0)
    with lookup.storage.open_read(item.base.path) as source:
        for batch in read_batches(source, columns, path=item.base.path, batch_rows=_BATCH_ROWS):
            stored = batch.column(RECORD_KEY) if virtual is None else virtual.record_keys(batch)
            found = one_chunk(pc.index_in(stored, value_set=wanted))
            places.append(found.drop_null())
            values.append(one_chunk(batch.column(ordering).filter(found.is_valid())))
    # A file whose last row was deleted has no batch.
    return pa.concat_arrays(places), pa.concat_arrays(values) if values else pa.nulls(0)
