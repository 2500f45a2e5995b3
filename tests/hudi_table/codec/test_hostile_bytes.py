"""Bytes of a store that somebody else may write to: whatever they are, they are read or refused by
a typed error, within bounds.

Aspects: bytes made to do harm, in a process of 256 MiB and 5 s; whole files of ours with any of
their bytes changed, cut or repeated. Not here: Parquet, which Arrow reads
(docs/explanation/security.md).
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.archive_entries import encode_entries, read_entries
from hudi_table.codec.avro.container import read_container, write_container
from hudi_table.codec.avro.guard import load_schema
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.bloom.filters import DYNAMIC, BloomFilter, BloomFilterSpec
from hudi_table.codec.hfile import HFile, blocks, trailer, write_hfile
from hudi_table.codec.log.blocks import BlockType, rollback_block, scan_blocks
from hudi_table.codec.log.rows import avro_block, delete_block, read_deletes, read_rows
from hudi_table.codec.metadata.records import METADATA_SCHEMA, decode_metadata, encode_metadata, metadata_schema
from hudi_table.errors import CorruptTableError, UnsupportedTableError
from hudi_table.model.table.java_properties import parse_properties
from hudi_table.model.table.version_properties import RECORDS
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import parse_instant
from tests.support import hostile
from tests.support.scale import scaled

RECORD = RECORDS[6][0]

ROWS = pa.table({"id": ["a", "bc"], "n": pa.array([1, None], pa.int64()), "l": [[1, 2], []]})
CHECKSUM_KIND = 24
"""Place of the kind of checksum in a block's head."""
FLAT = ROWS.select(["id", "n"])
KEYS = pa.array(["a", "bc"])


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    return hostile.outcomes()


@pytest.mark.parametrize("case", hostile.CASES)
def test_bytes_that_would_do_harm_are_refused_by_name(outcomes: dict[str, str], case: str) -> None:
    assert outcomes.get(case, "ended the process").startswith("refused by "), outcomes.get(case)


@pytest.mark.parametrize("case", hostile.READ)
def test_bytes_that_ask_for_much_work_are_read_in_bounded_time(outcomes: dict[str, str], case: str) -> None:
    assert outcomes.get(case, "ended the process").startswith("read "), outcomes.get(case)


def changed(whole: bytes) -> st.SearchStrategy[bytes]:
    """The bytes with some of them replaced, cut out or doubled."""

    def apply(changes: list[tuple[int, int, bytes]]) -> bytes:
        data = whole
        for at, length, new in changes:
            place = at % (len(data) + 1)
            data = data[:place] + new + data[place + length :]
        return data

    few = st.binary(max_size=4) | st.sampled_from([b"\xff" * 8, b"\x7f\xff\xff\xff", bytes(8), whole[:64], b"#HUDI#"])
    return st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 8), few), min_size=1, max_size=4).map(apply)


def text_of(table: pa.Table) -> str:
    return arrow_to_avro(table.schema, table_name="t")


def log_of(data: bytes) -> None:
    source = io.BytesIO(data)
    for block in scan_blocks(source, path="a.log"):
        if block.type is BlockType.DELETE:
            read_deletes(source, block)
        elif block.type in (BlockType.AVRO, BlockType.PARQUET, BlockType.CDC):
            read_rows(source, block).validate(full=True)


def filter_of(data: bytes) -> None:
    BloomFilter.parse(base64.b64encode(data), DYNAMIC).might_contain(KEYS)


def hfile_of(data: bytes) -> None:
    file = HFile.open(pa.BufferReader(data), path="x")
    file.read().validate(full=True)
    file.lookup(KEYS)
    file.prefix(KEYS)
    file.bloom()


def unchecked(hfile: bytes) -> bytes:
    """The file without checksums, as Hudi 1.x writes it: what is changed in it is not found out by
    them."""
    data, at = bytearray(hfile), 0
    while at < len(data) - trailer.TRAILER_BYTES:
        head = blocks.head_at(memoryview(bytes(data)), at)
        data[at + CHECKSUM_KIND] = 0
        at += head.whole
    return bytes(data)


def metadata_of(data: bytes) -> None:
    decode_metadata(pa.array([data], pa.binary()), metadata_schema(RECORD)).validate(full=True)


def metadata_record() -> bytes:
    """One of the partition `files`, with a file."""
    files = pa.array([[("a.parquet", {"size": 1, "deleted": False})]], METADATA_SCHEMA.field("files").type)
    rows = pa.table({"key": ["p"], "type": pa.array([2], pa.int32()), "files": files})
    value: bytes = encode_metadata(rows, metadata_schema(RECORD))[0].as_py()
    return value


ENTRY = {"commitTime": "20260101000000000", "actionType": "commit", "actionState": "COMPLETED"}
SPEC = BloomFilterSpec(num_entries=8, fpp=0.1, max_entries=16)
WHOLE: dict[str, tuple[bytes, Callable[[bytes], Any], tuple[type[Exception], ...]]] = {
    "container": (write_container("HoodieRequestedReplaceMetadata", {}), read_container, (ValueError,)),
    "archive": (encode_entries([ENTRY, ENTRY]), lambda data: list(read_entries(data, path="x")), (CorruptTableError,)),
    "flat log": (
        avro_block(FLAT, text_of(FLAT), "1") + delete_block(KEYS, "p", "2", pa.array([1, 2])) + rollback_block("3", "1"),
        log_of, (CorruptTableError, UnsupportedTableError),
    ),
    "nested log": (avro_block(ROWS, text_of(ROWS), "1"), log_of, (CorruptTableError, UnsupportedTableError)),
    "filter": (
        BloomFilter.from_keys(KEYS, SPEC).to_bytes(), filter_of, (CorruptTableError,),
    ),
    "hfile": (
        unchecked(write_hfile(KEYS, pa.array([b"1", b"2" * 40]), schema="{}", compression="NONE", bloom=BloomFilter.from_keys(KEYS, SPEC))),
        hfile_of, (CorruptTableError, UnsupportedTableError),
    ),
    "metadata record": (metadata_record(), metadata_of, (CorruptTableError, UnsupportedTableError)),
    "commit": (
        CommitMetadata("UPSERT", extra_metadata={"schema": text_of(FLAT)}).to_json(), CommitMetadata.from_json,
        (ValueError, TypeError, AttributeError),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_not_changed_is_read(name: str) -> None:
    whole, read, _ = WHOLE[name]
    read(whole)


@pytest.mark.parametrize("name", WHOLE)
def test_changed_bytes_are_read_or_refused_by_a_typed_error(name: str) -> None:
    whole, read, errors = WHOLE[name]

    @settings(max_examples=scaled(150, quick=50))
    @given(changed(whole))
    def judge(data: bytes) -> None:
        with suppress(*errors):
            read(data)

    judge()


@settings(max_examples=scaled(200, quick=60))
@given(st.text(max_size=80) | st.from_regex(r"\d{1,20}\.[a-z.]{0,20}", fullmatch=True))
def test_any_name_on_a_timeline_is_an_instant_or_none(name: str) -> None:
    found = parse_instant(name)
    assert found is None or found.file_name == name


@settings(max_examples=scaled(200, quick=60))
@given(st.text(alphabet=st.sampled_from("ab\\ =:#!\n\r\tu0é\x00"), max_size=60))
def test_any_text_is_properties(text: str) -> None:
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in parse_properties(text).items())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["record", "null", "array", "map", "fixed", "int", "R", "name"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["type", "name", "fields", "items", "values", "size", "namespace"]), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=scaled(200, quick=60))
@given(JSON)
def test_any_schema_is_taken_or_refused(schema: Any) -> None:
    for sized in (False, True):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            assert load_schema(json.dumps(schema), sized=sized) == schema
