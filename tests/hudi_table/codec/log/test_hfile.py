"""HFiles in log blocks: entries, and rows of a table whose logs Hudi 0.15.0 wrote so."""

from __future__ import annotations

import io
import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_table import open_table
from hudi_table.codec.avro.schema import arrow_to_avro
from hudi_table.codec.log.blocks import INSTANT_TIME, BlockType, LogBlock, encode_block, scan_blocks
from hudi_table.codec.log.hfile import hfile_block, read_hfile
from hudi_table.codec.log.rows import delete_block, read_rows
from hudi_table.errors import CorruptTableError
from tests.support import metadata_files

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


def test_rows_in_hfiles_are_read_as_hudi_reads_them(tmp_path: Path) -> None:
    base = metadata_files.unpacked("logs-0.15.0", tmp_path)
    expected = pq.ParquetFile(base / "expected.rows").read()
    found = open_table(str(base)).scan(meta=True).to_arrow()
    names = [name for name in expected.column_names if not name.startswith("_hoodie") or name == "_hoodie_record_key"]
    assert found.select(names).sort_by("id").cast(expected.select(names).schema) == expected.select(names).sort_by("id")
    assert len(found) == 20


def test_rows_of_some_columns_and_nested_rows_come_from_an_hfile() -> None:
    schema = pa.schema([pa.field("id", pa.string()), pa.field("n", pa.int64()), pa.field("t", pa.list_(pa.int32()))])
    rows = pa.table({"id": ["a", "b"], "n": [1, None], "t": [[1], None]}, schema=schema)
    for chosen in (schema, pa.schema(list(schema)[:2])):
        text = arrow_to_avro(chosen, table_name="t")
        parsed = fastavro.parse_schema(json.loads(text))
        values = []
        for row in rows.select(chosen.names).to_pylist():
            sink = io.BytesIO()
            fastavro.schemaless_writer(sink, parsed, row)
            values.append(sink.getvalue())
        source, (block,) = blocks_of(hfile_block(pa.array(["a", "b"]), pa.array(values), text, "1"))
        assert read_rows(source, block).to_pylist() == rows.select(chosen.names).to_pylist()
        assert read_rows(source, block, ["n", "absent"]).to_pydict() == {"n": [1, None]}
