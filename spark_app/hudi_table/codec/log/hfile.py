"""Log blocks that hold an HFile: those of the metadata table, and of tables that write
`hoodie.logfile.data.block.format=hfile`.

Facts (measured on Hudi 0.15.0): the content is a whole HFile without bloom filter and without
smallest and largest key; the schema of its values stands in the block's header and in its file
info. The field of a record that holds its key is written empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hudi_table.codec.hfile import HFile, write_hfile
from hudi_table.codec.log.blocks import (
    COMPACTED_BLOCK_TIMES,
    INSTANT_TIME,
    SCHEMA,
    BlockType,
    LogBlock,
    read_content,
    sealed_block,
)


def read_hfile(source: Any, block: LogBlock) -> HFile:
    """The HFile in a block, read into memory. Raises CorruptTableError that names the file."""
    return HFile.open(pa.BufferReader(read_content(source, block)), path=block.where)


def hfile_block(
    keys: pa.Array | pa.ChunkedArray,
    values: pa.Array | pa.ChunkedArray,
    schema: str,
    instant: str,
    *,
    compression: str = "GZ",
    compacted: Sequence[str] = (),
) -> bytes:
    """A block of these entries, which `write_hfile` checks; `compacted`: instants whose blocks it
    replaces."""
    content = write_hfile(keys, values, schema=schema, compression=compression)
    header = {INSTANT_TIME: instant, SCHEMA: schema}
    if compacted:
        header[COMPACTED_BLOCK_TIMES] = ",".join(sorted(compacted, reverse=True))
    return sealed_block(BlockType.HFILE, header, content)
