"""The frames of log files: golden bytes of Hudi, and damage of every kind."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_table.codec.log.blocks import (
    INSTANT_TIME,
    MAGIC,
    SCHEMA,
    BlockType,
    LogBlock,
    encode_block,
    rollback_block,
    scan_blocks,
)
from tests.support import golden

KINDS = [kind for kind in BlockType if kind is not BlockType.CORRUPT]
HEADERS = st.dictionaries(st.integers(0, 6), st.text(max_size=40), max_size=4)
BLOCKS = st.tuples(st.sampled_from(KINDS), HEADERS, st.binary(max_size=200))


def scanned(data: bytes) -> list[LogBlock]:
    return scan_blocks(io.BytesIO(data), path="a.log")


@given(st.lists(BLOCKS, max_size=5))
def test_blocks_come_back_as_they_were_written(blocks: list[tuple[BlockType, dict[int, str], bytes]]) -> None:
    data = b"".join(encode_block(*block) for block in blocks)
    found = scanned(data)
    assert [(b.type, dict(b.header), data[b.content_offset :][: b.content_length]) for b in found] == blocks


@given(BLOCKS, st.data())
def test_a_torn_block_is_one_corrupt_stretch_and_the_next_block_is_read(
    block: tuple[BlockType, dict[int, str], bytes], data: st.DataObject
) -> None:
    whole = encode_block(*block)
    torn = whole[: data.draw(st.integers(len(MAGIC), len(whole) - 1))]
    after = encode_block(BlockType.AVRO, {INSTANT_TIME: "1"}, b"x")
    found = scanned(torn + after)
    assert found[0].type is BlockType.CORRUPT
    assert (found[-1].type, found[-1].instant) == (BlockType.AVRO, "1")


@given(st.binary(min_size=1, max_size=64).filter(lambda junk: MAGIC not in junk))
def test_junk_ahead_of_a_block_is_skipped(junk: bytes) -> None:
    found = scanned(junk + rollback_block("2", "1"))
    assert [b.type for b in found] == [BlockType.CORRUPT, BlockType.COMMAND]
    assert found[1].offset == len(junk)


def test_junk_after_a_block_spoils_that_block_as_it_does_for_hudi() -> None:
    block = encode_block(BlockType.AVRO, {INSTANT_TIME: "1"}, b"x")
    assert [b.type for b in scanned(block + b"junk that is longer than a magic")] == [BlockType.CORRUPT]
    assert [b.type for b in scanned(block + b"junk")] == [BlockType.AVRO, BlockType.CORRUPT]


def test_a_magic_inside_a_content_is_no_block() -> None:
    inner = encode_block(BlockType.AVRO, {INSTANT_TIME: "9"}, b"y")
    outer = encode_block(BlockType.PARQUET, {INSTANT_TIME: "1"}, inner)
    assert [(b.type, b.instant) for b in scanned(outer)] == [(BlockType.PARQUET, "1")]


def test_a_length_beyond_the_file_or_below_zero_is_damage() -> None:
    block = bytearray(encode_block(BlockType.AVRO, {INSTANT_TIME: "1"}, b"x"))
    for size in (b"\xff" * 8, b"\x7f" + b"\xff" * 7, bytes(8)):
        block[6:14] = size
        assert [b.type for b in scanned(bytes(block))] == [BlockType.CORRUPT]


def test_a_rollback_block_has_the_size_that_hudi_writes() -> None:
    assert len(rollback_block("20261121091237966", "20261121091237000")) == 105


@pytest.mark.parametrize("name", golden.MERGE_ON_READ)
def test_every_log_of_hudi_is_whole_and_is_written_the_same_again(name: str, tmp_path: Path) -> None:
    base = golden.unpack(name, tmp_path).base
    logs = [path for path in base.rglob(".*.log.*") if ".hoodie" not in path.parts and not path.name.endswith(".crc")]
    assert logs
    for path in logs:
        data = path.read_bytes()
        blocks = scanned(data)
        assert BlockType.CORRUPT not in {block.type for block in blocks}
        again = b"".join(encode_block(b.type, b.header, data[b.content_offset :][: b.content_length]) for b in blocks)
        assert again == data
        for block in blocks:
            assert block.instant.isdigit()
            assert (block.schema is not None) == (SCHEMA in block.header)
