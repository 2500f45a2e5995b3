"""Keys that only the logs of a slice hold: rows that were inserted there, or written again after
their base row was deleted.

Hudi 0.15.0's simple indexes look into base files alone, and insert such a key a second time
(docs/reference/compatibility.md, case 29).
"""

from __future__ import annotations

import pyarrow as pa

from hudi_table.codec.log.blocks import BlockType
from hudi_table.table.keys.record_keys import FieldKeys
from hudi_table.table.rows.log_entries import block_keys
from hudi_table.table.rows.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.store.ports import Storage
from hudi_table.table.view.file_system_view import FileSlice


def logged_keys(storage: Storage, item: FileSlice, visible: VisibleInstants, made: FieldKeys | None = None) -> pa.Array:
    """The distinct record keys of the rows in the slice's logs, strings, deleted ones included.
    `made`: how they are made, None where they are stored."""
    found: list[pa.Array] = []
    for block in slice_blocks(storage, item.logs, visible):
        if block.type is BlockType.DELETE:
            continue
        with storage.open_read(block.path) as source:
            found.append(block_keys(source, block, made))
    return one_chunk(pa.chunked_array(found, pa.string())).unique()
