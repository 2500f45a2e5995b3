"""Base files decoded by Polars: the rows that Arrow's decoder gives, or fewer, never others.

Aspects: every stored type (hypothesis); rows in steps within memory; what is left to Arrow; bytes
that have changed; processes where Polars' threads are gone; damage as a scan tells it.
"""

from __future__ import annotations

import multiprocessing
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hudi_table
from hudi_table.codec.pages import decoding
from hudi_table.codec.pages.decoding import decoded, is_worth
from hudi_table.codec.parquet import read_batches, read_footer
from hudi_table.errors import CorruptTableError
from hudi_table.read.files import WORTH_BYTES
from hudi_table.table.store import threads
from tests.support.arrow_types import tables
from tests.support.scale import scaled

MEMORY = 64 << 20
ROWS = 3000
HEAD_BYTES = 60
"""Of a chunk: the header of its first page."""
DATA = pa.table(
    {
        "key": [f"k{number:05}" for number in range(ROWS)],
        "few": ["ab" * (number % 3) if number % 7 else None for number in range(ROWS)],
        "n": pa.array(range(ROWS), pa.int64()),
        "price": pa.array([Decimal(number) / 100 for number in range(ROWS)], pa.decimal128(15, 2)),
    }
)


def write(path: Path, data: pa.Table, **options: Any) -> Path:
    given = {"store_schema": False, "write_page_checksum": True, "compression": "zstd", **options}
    pq.write_table(data, path, **given)
    return path


def by_arrow(path: Path, names: list[str]) -> pa.Table:
    return pa.Table.from_batches(list(read_batches(str(path), names, path="p")))


def by_polars(path: Path, names: list[str] | None = None, memory: int = MEMORY) -> list[pa.Table]:
    with pa.OSFile(str(path)) as source:
        footer = read_footer(source, path="p")
        assert footer.metadata is not None
        return list(decoded(source, names or footer.schema.names, footer.schema, footer.metadata, memory))


def place(path: Path, column: str) -> tuple[int, int]:
    """First byte of the only chunk of a column, and the one behind its last."""
    metadata = pq.read_metadata(path)
    chunks = map(metadata.row_group(0).column, range(metadata.num_columns))
    (chunk,) = (found for found in chunks if found.path_in_schema == column)
    start = chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset
    return start, start + chunk.total_compressed_size


@settings(max_examples=scaled(60), deadline=None)
@given(tables(depth=0), st.booleans(), st.sampled_from(["1.0", "2.0"]))
def test_every_flat_type_is_what_arrow_reads(
    tmp_path_factory: pytest.TempPathFactory, data: pa.Table, dictionary: bool, pages: str
) -> None:
    path = tmp_path_factory.mktemp("t") / "f.parquet"
    write(path, data, use_dictionary=dictionary, data_page_version=pages)
    found = by_polars(path)
    if data.num_rows:
        assert pa.concat_tables(found).combine_chunks() == by_arrow(path, data.schema.names).combine_chunks()
    else:
        assert found == []


def test_rows_come_in_steps_that_fit_the_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", DATA, row_group_size=1000)
    small = by_polars(path, ["n", "key"], 64_000)
    assert {table.num_rows for table in small} == {500}
    assert pa.concat_tables(small) == by_arrow(path, ["n", "key"])
    assert by_polars(path, ["n", "key"], 100) == []


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], None]),
        pa.array([{"a": 1}, None]),
        pa.array([b"ab", None], pa.binary(2)),
        pa.array([1, None], pa.int16()),
        pa.array([1, None], pa.time64("us")),
    ],
    ids=["list", "struct", "fixed", "int16", "time"],
)
def test_columns_of_other_types_are_left_to_arrow(tmp_path: Path, column: pa.Array) -> None:
    path = write(tmp_path / "f.parquet", pa.table({"id": ["a", "b"], "x": column}))
    assert by_polars(path) == []
    assert [table.num_rows for table in by_polars(path, ["id"])] == [2]


def test_moments_of_96_bits_are_left_to_arrow(tmp_path: Path) -> None:
    data = pa.table({"t": pa.array([1, 2], pa.timestamp("us"))})
    assert by_polars(write(tmp_path / "f.parquet", data, use_deprecated_int96_timestamps=True)) == []


@pytest.mark.parametrize("column", DATA.column_names)
def test_a_changed_bit_gives_no_other_row(tmp_path: Path, column: str) -> None:
    """Of the bytes of a chunk: what a check sum covers is left to Arrow, which names the file. In a
    page's header, which none covers, the rows are the same or none."""
    path = write(tmp_path / "f.parquet", DATA)
    body, (start, end) = path.read_bytes(), place(path, column)
    whole = by_arrow(path, [column])
    inside = range(start, end, max(1, (end - start) // scaled(150)))
    heads = [(at, bit) for at in range(start, min(end, start + HEAD_BYTES)) for bit in range(8)]
    for at, bit in [*heads, *((at, at % 8) for at in inside)]:
        changed = bytearray(body)
        changed[at] ^= 1 << bit
        path.write_bytes(changed)
        found = by_polars(path, [column])
        assert found == [] or pa.concat_tables(found) == whole


def test_pages_without_check_sums_are_read_as_arrow_does(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", DATA, write_page_checksum=False)
    assert pa.concat_tables(by_polars(path)) == by_arrow(path, DATA.column_names)


def test_what_lies_beyond_the_file_is_left_to_arrow(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", DATA)
    metadata = pq.read_metadata(path)
    path.write_bytes(path.read_bytes()[:2000])
    with pa.OSFile(str(path)) as source:
        assert list(decoded(source, ["n"], DATA.schema, metadata, MEMORY)) == []


def test_bytes_from_elsewhere_are_left_to_arrow(tmp_path: Path) -> None:
    path = write(tmp_path / "f.parquet", DATA)
    footer = read_footer(str(path))
    assert footer.metadata is not None
    source = pa.BufferReader(path.read_bytes())
    assert list(decoded(source, ["n"], footer.schema, footer.metadata, MEMORY)) == []


def table_of(folder: Path) -> tuple[hudi_table.HudiTable, Path]:
    """A table whose one base file is large enough for Polars."""
    rows = 200_000
    data = pa.table({"id": [f"{number:09}" for number in range(rows)], "n": pa.array(range(rows), pa.int64())})
    options = {"hoodie.parquet.compression.codec": "uncompressed"}
    table = hudi_table.create_table(str(folder), data.schema, record_key="id")
    table.write(data, operation="bulk_insert", options=options)
    (path,) = table.scan().plan_files()["path"].to_pylist()
    return table, Path(path)


def test_a_scan_names_a_file_that_has_changed(tmp_path: Path) -> None:
    table, path = table_of(tmp_path / "t")
    assert path.stat().st_size > WORTH_BYTES
    assert is_worth(path.stat().st_size)
    want = table.scan().to_arrow()
    assert want.num_rows == 200_000
    body, (start, end) = bytearray(path.read_bytes()), place(path, "n")
    assert end - start > 100_000
    body[start + 1000] ^= 1
    path.write_bytes(body)
    with pytest.raises(CorruptTableError, match="CRC checksum verification failed") as caught:
        table.scan().to_arrow()
    assert caught.value.path == path.relative_to(tmp_path / "t").as_posix()
    assert table.scan(columns=["id"]).to_arrow() == want.select(["id"])


def _told(table: hudi_table.HudiTable, answers: Any) -> None:
    decoding._some = None  # type: ignore[assignment]  # whoever calls it fails
    answers.put((threads.is_forked(), table.scan().to_arrow().num_rows))


def test_a_forked_process_reads_by_arrow_alone(tmp_path: Path) -> None:
    table, _ = table_of(tmp_path / "t")
    assert not threads.is_forked()
    pl.DataFrame({"n": range(100_000)}).lazy().select(pl.col("n").sum()).collect()
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=_told, args=(table, answers))
    process.start()
    assert answers.get() == (True, 200_000)
    process.join()
    readable, writable = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writable, b"yes" if threads.is_forked() else b"no")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(readable, 3) == b"yes"


def test_arrow_goes_on_where_polars_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = table_of(tmp_path / "t")
    want = table.scan().to_arrow()
    real = decoding._some
    tables_given: list[pa.Table | None] = []

    def once(*arguments: Any) -> pa.Table | None:
        tables_given.append(None if tables_given else real(*arguments))
        return tables_given[-1]

    monkeypatch.setattr(decoding, "_some", once)
    monkeypatch.setattr(decoding, "_rows_at_once", lambda *_: 30_001)
    assert table.scan().to_arrow() == want
    assert len(tables_given) == 2
