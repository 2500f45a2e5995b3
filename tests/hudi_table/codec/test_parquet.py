"""Base files: what is written is read back, in bounded memory, with the footer that Hudi expects.

Aspects: round trip of every stored type (hypothesis); footers; row groups; encodings; golden files
and list layouts; corruption. Not here: that Hudi reads the files (interop tests).
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_table.codec.avro.schema import arrow_to_avro, avro_to_arrow, meta_fields, with_meta, with_meta_text
from hudi_table.codec.bloom.filters import BloomFilterSpec
from hudi_table.codec.conform import conform
from hudi_table.codec.parquet import BaseFileFooter, read_batches, read_footer
from hudi_table.codec.parquet_writer import BaseFileWriter, constant_column
from hudi_table.errors import CorruptTableError, InvalidOptionError, InvariantError
from tests.support.arrow_types import tables
from tests.support.golden import COPY_ON_WRITE, MERGE_ON_READ, unpack
from tests.support.scale import scaled

INSTANT = "20240102030405678"
NAME = f"f-0_0-1-2_{INSTANT}.parquet"
DATA = pa.schema([("id", pa.string()), ("n", pa.int64())])
SCHEMA = with_meta(DATA)
AVRO = arrow_to_avro(DATA, table_name="t")


def stamped(data: pa.Table, *, keys: list[str] | None = None, constants: bool = True) -> pa.Table:
    """`data` behind meta columns; the constant ones encoded, or as plain strings."""
    rows = data.num_rows
    keys = [f"k{i:06d}" for i in range(rows)] if keys is None else keys
    seqno = pa.array([f"{INSTANT}_0_{i}" for i in range(rows)], pa.string())
    meta = [
        constant_column(INSTANT, rows),
        seqno,
        pa.array(keys, pa.string()),
        constant_column("p", rows),
        constant_column(NAME, rows),
    ]
    if not constants:
        meta = [column.cast(pa.string()) for column in meta]
    return pa.Table.from_arrays([*meta, *data.columns], names=[*(f.name for f in meta_fields()), *data.schema.names])


def numbered(rows: int) -> pa.Table:
    return pa.table(
        {"id": pa.array([f"k{i:06d}" for i in range(rows)], pa.string()), "n": pa.array(range(rows), pa.int64())},
        schema=DATA,
    )


def written(
    *parts: pa.Table | pa.RecordBatch, schema: pa.Schema = SCHEMA, **options: Any
) -> tuple[io.BytesIO, BaseFileFooter]:
    sink = io.BytesIO()
    options.setdefault("avro_schema", AVRO)
    writer = BaseFileWriter(sink, schema, **options)
    for part in parts:
        writer.write(part)
    footer = writer.close()
    return sink, footer


def read(source: Any, columns: list[str] | None = None, **options: Any) -> pa.Table:
    batches = list(read_batches(source, columns, **options))
    return pa.Table.from_batches(batches)


@settings(max_examples=scaled(60))
@given(tables(), st.sampled_from(["zstd", "snappy", "gzip", "lz4", "none"]), st.integers(1, 5))
def test_every_stored_type_comes_back_equal(table: pa.Table, codec: str, row_group_rows: int) -> None:
    full = stamped(table)
    schema = with_meta(table.schema)
    avro = arrow_to_avro(table.schema, table_name="t")
    sink, footer = written(full, schema=schema, avro_schema=avro, codec=codec, row_group_rows=row_group_rows)
    assert footer.rows == table.num_rows
    assert read_footer(sink).schema.equals(schema)
    batches = [conform(batch, schema) for batch in read_batches(sink)]
    back = pa.Table.from_batches(batches, schema=schema)
    back.validate(full=True)
    assert back.select(table.schema.names).equals(table)
    assert back.column("_hoodie_file_name").to_pylist() == [NAME] * table.num_rows


def test_the_footer_has_exactly_the_keys_that_hudi_writes_and_a_check_sum() -> None:
    sink, _ = written(stamped(numbered(3)), bloom=BloomFilterSpec())
    pairs = pq.read_metadata(sink).metadata
    assert sorted(pairs) == [
        b"hoodie_bloom_filter_type_code",
        b"hoodie_max_record_key",
        b"hoodie_min_record_key",
        b"lakeops.crc32",
        b"org.apache.hudi.bloomfilter",
        b"parquet.avro.schema",
        b"writer.model.name",
    ]
    assert pairs[b"writer.model.name"] == b"avro"
    assert pairs[b"hoodie_bloom_filter_type_code"] == b"DYNAMIC_V0"
    assert pairs[b"parquet.avro.schema"].decode() == with_meta_text(AVRO)


def test_a_simple_filter_leaves_its_type_out() -> None:
    sink, _ = written(stamped(numbered(3)), bloom=BloomFilterSpec("SIMPLE"))
    assert b"hoodie_bloom_filter_type_code" not in pq.read_metadata(sink).metadata
    footer = read_footer(sink)
    bloom = footer.bloom()
    assert footer.bloom_type == "SIMPLE"
    assert bloom is not None
    assert bloom.might_contain(pa.array(["k000001", "k999999"])).tolist() == [True, False]


def test_a_file_without_a_filter_still_has_its_key_range() -> None:
    sink, footer = written(stamped(numbered(3)))
    assert (footer.min_key, footer.max_key) == ("k000000", "k000002")
    assert footer.bloom() is None
    assert b"org.apache.hudi.bloomfilter" not in pq.read_metadata(sink).metadata


def test_the_footer_that_close_returns_is_the_one_that_a_reader_finds() -> None:
    sink, footer = written(stamped(numbered(10)), bloom=BloomFilterSpec(), row_group_rows=4)
    found = read_footer(sink)
    assert found == footer
    assert [group.rows for group in found.row_groups] == [4, 4, 2]
    assert found.bloom_text == footer.bloom_text
    assert found.metadata is not None
    assert found.metadata.num_rows == 10


def test_without_record_keys_there_is_neither_range_nor_filter() -> None:
    table = stamped(numbered(2)).set_column(2, "_hoodie_record_key", pa.nulls(2, pa.string()))
    sink, footer = written(table, bloom=BloomFilterSpec())
    assert (footer.min_key, footer.max_key, footer.bloom()) == (None, None, None)
    assert sorted(pq.read_metadata(sink).metadata) == [b"lakeops.crc32", b"parquet.avro.schema", b"writer.model.name"]


def test_the_key_range_and_the_filter_span_all_parts_in_java_s_order() -> None:
    keys = [["m", "😀"], ["\ue000"], ["b", "c"]]
    sink, footer = written(
        *(stamped(numbered(len(k)), keys=k) for k in keys), bloom=BloomFilterSpec("SIMPLE", 10, 1e-6)
    )
    assert (footer.min_key, footer.max_key) == ("b", "\ue000")
    bloom = read_footer(sink).bloom()
    assert bloom is not None
    assert bloom.might_contain(pa.array([key for part in keys for key in part])).all()


def test_a_file_of_no_rows_is_a_file() -> None:
    sink, footer = written()
    assert (footer.rows, footer.row_groups) == (0, ())
    assert list(read_batches(sink)) == []
    assert read_footer(sink).schema.equals(SCHEMA)


def test_meta_columns_may_come_encoded_or_plain_and_mixed() -> None:
    parts = [stamped(numbered(3)), stamped(numbered(2), constants=False).to_batches()[0]]
    sink, _ = written(*parts)
    table = read(sink)
    assert table.schema.types[:5] == [pa.string()] * 5
    assert table.column("_hoodie_commit_time").to_pylist() == [INSTANT] * 5
    chunk = pq.read_metadata(sink).row_group(0).column(4)
    assert chunk.has_dictionary_page
    assert chunk.total_uncompressed_size < 200


def test_many_small_parts_become_few_row_groups() -> None:
    rows = numbered(1000)
    parts = [stamped(rows.slice(start, 10)) for start in range(0, 1000, 10)]
    _, footer = written(*parts, row_group_rows=300)
    assert [group.rows for group in footer.row_groups] == [300, 300, 300, 100]


def test_a_row_group_never_holds_more_bytes_than_its_budget() -> None:
    table = stamped(numbered(5000))
    width = table.nbytes // 5000
    _, footer = written(table, row_group_bytes=width * 1200)
    assert sum(group.rows for group in footer.row_groups) == 5000
    assert max(group.rows for group in footer.row_groups) <= 1200


def test_repeated_texts_get_a_dictionary_and_distinct_ones_do_not() -> None:
    rows = 4000
    data = pa.table(
        {"city": pa.array([f"city{i % 7}" for i in range(rows)]), "text": pa.array([f"{i:x}" for i in range(rows)])}
    )
    avro = arrow_to_avro(data.schema, table_name="t")
    sink, _ = written(stamped(data), schema=with_meta(data.schema), avro_schema=avro)
    group = pq.read_metadata(sink).row_group(0)
    encoded = {group.column(i).path_in_schema: group.column(i).has_dictionary_page for i in range(group.num_columns)}
    assert encoded["city"]
    assert not encoded["text"]
    assert not encoded["_hoodie_record_key"]


def test_dictionary_columns_may_be_named() -> None:
    sink, _ = written(stamped(numbered(100)), dictionary_columns=["n"])
    group = pq.read_metadata(sink).row_group(0)
    assert [group.column(i).has_dictionary_page for i in (5, 6)] == [False, True]


def test_the_file_says_nothing_about_arrow() -> None:
    sink, _ = written(stamped(numbered(1)))
    assert b"ARROW:schema" not in pq.read_metadata(sink).metadata


def test_columns_come_in_the_wanted_order_and_absent_ones_are_left_out() -> None:
    sink, _ = written(stamped(numbered(10)))
    assert read(sink, ["n", "later", "id"]).schema.names == ["n", "id"]


def test_a_batch_of_no_columns_counts_its_rows() -> None:
    sink, _ = written(stamped(numbered(10)))
    assert sum(batch.num_rows for batch in read_batches(sink, ["later"])) == 10


def test_batches_and_row_groups_are_read_as_asked() -> None:
    sink, _ = written(stamped(numbered(100)), row_group_rows=40)
    assert [batch.num_rows for batch in read_batches(sink, batch_rows=30)] == [30, 10, 30, 10, 20]
    assert read(sink, ["n"], row_groups=[2, 0]).column("n").to_pylist() == [*range(80, 100), *range(40)]


def test_a_column_may_be_read_as_a_dictionary() -> None:
    sink, _ = written(stamped(numbered(10)))
    (batch,) = read_batches(sink, ["_hoodie_commit_time"], dictionary_columns=["_hoodie_commit_time"])
    assert pa.types.is_dictionary(batch.schema.field(0).type)


def test_an_error_inside_the_context_leaves_no_parquet_file() -> None:
    sink = io.BytesIO()

    def fail_halfway() -> None:
        with BaseFileWriter(sink, SCHEMA, avro_schema=AVRO, row_group_rows=5) as writer:
            writer.write(stamped(numbered(20)))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail_halfway()
    assert len(sink.getvalue()) > 100
    assert not sink.getvalue().endswith(b"PAR1")
    with pytest.raises(CorruptTableError):
        read_footer(sink, path="half.parquet")


def test_other_columns_than_those_of_the_schema_are_a_bug_of_the_caller() -> None:
    table = stamped(numbered(2))
    with pytest.raises(InvariantError, match="Columns"):
        written(table.drop_columns(["n"]))
    with pytest.raises(InvariantError, match="'n' is string"):
        written(table.set_column(6, "n", table.column("id")))


def test_a_writer_is_closed_once() -> None:
    writer = BaseFileWriter(io.BytesIO(), SCHEMA, avro_schema=AVRO)
    writer.close()
    with pytest.raises(InvariantError, match="closed"):
        writer.close()


def test_an_unknown_codec_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidOptionError, match=r"'brotli'.*zstd"):
        BaseFileWriter(io.BytesIO(), SCHEMA, avro_schema=AVRO, codec="brotli")


@pytest.mark.parametrize("name", COPY_ON_WRITE + MERGE_ON_READ)
def test_every_base_file_of_hudi_is_read_whole(name: str, tmp_path: Path) -> None:
    table = unpack(name, tmp_path)
    files = [path for path in table.base.rglob("*.parquet") if ".hoodie" not in path.relative_to(table.base).parts]
    for path in files:
        footer = read_footer(str(path))
        rows = read(str(path))
        assert rows.num_rows == footer.rows > 0
        if footer.min_key is not None:
            keys = rows.column("_hoodie_record_key").to_pylist()
            assert (footer.min_key, footer.max_key) == (min(keys), max(keys))


def test_lists_with_other_names_of_their_items_give_the_same_column() -> None:
    item = pa.list_(pa.field("element", pa.string()))
    three = pa.table({"arr": pa.array([["a"], [], None], item)})
    old_names = pa.table({"arr": pa.array([["a"], [], None], pa.list_(pa.field("array", pa.string(), nullable=False)))})
    results = []
    for table, options in ((three, {}), (old_names, {"use_compliant_nested_type": False})):
        sink = io.BytesIO()
        pq.write_table(table, sink, **options)
        (batch,) = read_batches(sink)
        results.append(conform(batch, pa.schema([("arr", item)])))
    assert results[0].equals(results[1])
    assert str(results[0].schema) == str(results[1].schema)


def test_two_level_lists_of_hudi_fit_the_table_s_schema(tmp_path: Path) -> None:
    table = unpack("mor1", tmp_path)
    path = next(path for path in sorted(table.base.glob("city=*/*.parquet")))
    schema = with_meta(schema_of(table.base))
    file_type = read_footer(str(path)).schema.field("arr").type
    assert not file_type.value_field.nullable, "two levels have no room for null items"
    (batch,) = (conform(batch, schema) for batch in read_batches(str(path)))
    batch.validate(full=True)
    assert batch.schema.field("arr").type.value_field.nullable
    assert batch.column("arr").to_pylist()[0] == ["a0"]


def schema_of(base: Path) -> pa.Schema:
    commit = min((base / ".hoodie").glob("*commit"))
    return avro_to_arrow(json.loads(commit.read_bytes())["extraMetadata"]["schema"])


def test_an_instant_of_96_bits_is_read_in_microseconds() -> None:
    sink = io.BytesIO()
    table = pa.table({"t": pa.array([0, 253402300799000000], pa.timestamp("us"))})
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True)
    (batch,) = read_batches(sink)
    assert batch.column("t").type == pa.timestamp("us")
    assert (
        conform(batch, pa.schema([("t", pa.timestamp("us", tz="UTC"))])).column("t").cast(pa.int64()).to_pylist()[1]
        == 253402300799000000
    )


def damage(kind: str, body: bytes) -> bytes:
    return {
        "empty": b"",
        "cut": body[: len(body) // 2],
        "text": b"id,n\n1,2\n" * 10,
        "footer": body[:-30] + b"\xff" * 22 + body[-8:],
        "pages": body[:4] + b"\xa5" * (len(body) // 3) + body[4 + len(body) // 3 :],
    }[kind]


@pytest.mark.parametrize("kind", ["empty", "cut", "text", "footer", "pages"])
def test_a_corrupt_file_is_named(kind: str, tmp_path: Path) -> None:
    sink, _ = written(stamped(numbered(2000)))
    path = tmp_path / "bad.parquet"
    path.write_bytes(damage(kind, sink.getvalue()))
    for source in (str(path), io.BytesIO(path.read_bytes())):
        with pytest.raises(CorruptTableError, match=r"p/bad\.parquet") as caught:
            list(read_batches(source, path="p/bad.parquet"))
        assert caught.value.path == "p/bad.parquet"


@pytest.mark.parametrize("column", DATA.names)
@pytest.mark.parametrize("read", [None, ["id"], ["n"]], ids=["all", "id", "n"])
def test_a_page_of_an_unknown_kind_costs_no_row(column: str, read: list[str] | None) -> None:
    """No checksum covers a page's header; Arrow passes over such a page, and over its rows."""
    sink, _ = written(stamped(numbered(1)))
    body = bytearray(sink.getvalue())
    metadata = pq.read_metadata(io.BytesIO(body))
    (chunk,) = (c for c in map(metadata.row_group(0).column, range(metadata.num_columns)) if c.path_in_schema == column)
    assert body[chunk.data_page_offset : chunk.data_page_offset + 2] == b"\x15\x00"
    body[chunk.data_page_offset + 1] = 0x20
    if read is None or column in read:
        with pytest.raises(CorruptTableError, match="lack 1 of its rows"):
            list(read_batches(io.BytesIO(body), read, path="p"))
    else:
        assert sum(batch.num_rows for batch in read_batches(io.BytesIO(body), read)) == 1


def test_a_failing_store_is_not_taken_for_a_corrupt_file() -> None:
    class Unreachable(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise ConnectionResetError(104, "reset by peer")

    sink, _ = written(stamped(numbered(10)))
    with pytest.raises(ConnectionResetError):
        list(read_batches(Unreachable(sink.getvalue())))
    with pytest.raises(FileNotFoundError):
        read_footer("/nowhere/at-all.parquet")
