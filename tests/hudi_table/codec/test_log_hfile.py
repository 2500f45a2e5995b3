"""HFiles in log blocks."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from hudi_table.codec.log_blocks import INSTANT_TIME, BlockType, LogBlock, encode_block, scan_blocks
from hudi_table.codec.log_hfile import hfile_block, read_hfile
from hudi_table.codec.log_rows import delete_block
from hudi_table.errors import CorruptTableError

SCHEMA = '{"type":"record","name":"r","fields":[]}'


def blocks_of(data: bytes) -> tuple[io.BytesIO, list[LogBlock]]:
    source = io.BytesIO(data)
    return source, scan_blocks(source, path="a.log")


def test_entries_come_back_between_other_blocks() -> None:
    keys, values = pa.array(["a", "b"]), pa.array([b"1", b"2"])
    data = (
        delete_block(pa.array(["x"]), "p", "1")
        + hfile_block(keys, values, SCHEMA, "2")
        + hfile_block(keys.slice(1), values.slice(1), SCHEMA, "3", compacted=["1", "2"])
    )
    source, (_, first, second) = blocks_of(data)
    assert (first.type, first.instant, first.schema, first.compacted) == (BlockType.HFILE, "2", SCHEMA, ())
    assert read_hfile(source, first).read().to_pydict() == {"key": [b"a", b"b"], "value": [b"1", b"2"]}
    assert (second.instant, second.compacted) == ("3", ("2", "1"))
    assert read_hfile(source, second).lookup(pa.array(["b"])).num_rows == 1


def test_a_block_that_holds_no_hfile_is_named_with_its_place() -> None:
    source, (block,) = blocks_of(encode_block(BlockType.HFILE, {INSTANT_TIME: "1"}, b"nothing"))
    with pytest.raises(CorruptTableError, match=r"a\.log \(block at 0\)"):
        read_hfile(source, block)
