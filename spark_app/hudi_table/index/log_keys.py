"""Keys that only the logs of a slice hold: rows that were inserted there, or written again after
their base row was deleted.

Hudi 0.15.0's simple indexes look into base files alone, and insert such a key a second time
(docs/reference/compatibility.md, case 29).
"""

from __future__ import annotations

import pyarrow as pa

from hudi_table.codec.log.blocks import BlockType
from hudi_table.codec.log.rows import read_rows
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.rows.log_scan import VisibleInstants, slice_blocks
from hudi_table.table.rows.merge import one_chunk
from hudi_table.table.store.ports import Storage
from hudi_table.table.view.file_system_view import FileSlice


def logged_keys(storage: Storage, item: FileSlice, visible: VisibleInstants) -> pa.Array:
    """The distinct record keys of the rows in the slice's logs, strings, deleted ones included."""
    found: list[pa.Array] = []
    for block in slice_blocks(storage, item.logs, visible):
        if block.type is BlockType.DELETE:
            continue
        with storage.open_read(block.path) as source:
            found.append(one_chunk(read_rows(source, block, [RECORD_KEY]).column(RECORD_KEY)).cast(pa.string()))
    return one_chunk(pa.chunked_array(found, pa.string())).unique()
