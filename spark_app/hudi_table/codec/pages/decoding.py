"""Columns of base files decoded by Polars, which needs a third of Arrow's time for decimals and
less for texts.

Polars checks no check sum, so its pages are checked before it sees them, in the bytes that it is
given. Whatever is unusual is left to Arrow's decoder, from the row on where Polars stopped: so
the errors of damage have the same words as without Polars.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_table.codec import large_arrays
from hudi_table.codec.footer_seal import footer_bytes
from hudi_table.codec.pages.sums import pages_hold

IMPORT_BYTES: Final = 16 << 20
"""Of base files: decoding them faster pays for the import of Polars."""
_KINDS = {
    "NONE": {"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE", "BYTE_ARRAY"},
    "STRING": {"BYTE_ARRAY"},
    "DATE": {"INT32"},
    "DECIMAL": {"INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"},
    "TIMESTAMP": {"INT64"},
}
"""Logical type → physical types that Polars and Arrow read alike."""
_VALUE_BYTES = 16


def is_worth(size: int) -> bool:
    """Whether Polars should decode base files of so many bytes: where it is loaded, or is
    installed and pays for its import."""
    return "polars" in sys.modules or (size >= IMPORT_BYTES and find_spec("polars") is not None)


def decoded(
    source: Any, names: Sequence[str], schema: pa.Schema, metadata: pq.FileMetaData, memory_bytes: int
) -> Iterator[pa.Table]:
    """The first rows of a file as tables of these columns in the types of `schema`: all rows, or as
    many as Polars decodes as Arrow would. Half of `memory_bytes` may be chunks of a row group, half
    rows of it."""
    columns = _columns(metadata, names) if type(source) is pa.OSFile else []
    if not columns:
        return
    wanted, first = [schema.field(name).type for name in names], 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        last = first + group.num_rows
        step = _rows_at_once(group, columns, memory_bytes // 2)
        data = _checked_bytes(source, group, columns, memory_bytes // 2) if step else None
        if data is None:
            return
        for start in range(first, last, step):
            table = _some(data, names, wanted, start, min(step, last - start))
            if table is None:
                return
            yield table
        first = last


def _columns(metadata: pq.FileMetaData, names: Sequence[str]) -> list[int]:
    """The numbers of the columns; none if one of them is nested or of a type that the two may read
    differently."""
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    if len({leaf.path for leaf in leaves}) < len(leaves):
        return []
    known = {}
    for number, leaf in enumerate(leaves):
        is_flat = leaf.max_repetition_level == 0 and leaf.max_definition_level <= 1 and "." not in leaf.path
        if is_flat and leaf.physical_type in _KINDS.get(leaf.logical_type.type, ()):
            known[leaf.path] = number
    return [known[name] for name in names] if all(name in known for name in names) else []


def _rows_at_once(group: pq.RowGroupMetaData, columns: Sequence[int], memory_bytes: int) -> int:
    """Rows that take about `memory_bytes`, once as Polars has them and once as Arrow; 0 if one does
    not fit."""
    sizes = (group.column(number).total_uncompressed_size for number in columns)
    width = sum(max(_VALUE_BYTES, size // max(1, group.num_rows)) for size in sizes)
    return int(memory_bytes // (2 * width))


def _checked_bytes(
    source: pa.OSFile, group: pq.RowGroupMetaData, columns: Sequence[int], memory_bytes: int
) -> bytes | None:
    """The file with the chunks of these columns alone, zeros elsewhere; None if a page of them is
    not what its check sum says. Zeros that nobody touches take no memory."""
    places = [_place(group.column(number)) for number in columns]
    size = source.size()
    if sum(length for _, length, _ in places) > memory_bytes or any(a < 0 or a + n > size for a, n, _ in places):
        return None
    held = io.BytesIO(bytes(size))
    end = footer_bytes(source.read_at(8, size - 8))
    with held.getbuffer() as view:
        for start, length, values in places:
            with view[start : start + length] as chunk:
                source.seek(start)
                if source.readinto(chunk) != length or not pages_hold(chunk, values):
                    return None
        for start, length in ((0, 4), (size - end, end)):
            view[start : start + length] = source.read_at(length, start)
    return held.getvalue()


def _place(chunk: pq.ColumnChunkMetaData) -> tuple[int, int, int]:
    """Start, bytes and values of a chunk."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    return start, chunk.total_compressed_size, chunk.num_values


def _some(data: bytes, names: Sequence[str], wanted: Sequence[pa.DataType], start: int, rows: int) -> pa.Table | None:
    try:
        import polars as pl
    except ImportError:
        return None
    try:
        lazy = pl.scan_parquet(data, hive_partitioning=False, glob=False).select(names).slice(start, rows)
        found = lazy.collect().to_arrow(compat_level=pl.CompatLevel.oldest())
        columns = [_as(found.column(name), kind) for name, kind in zip(names, wanted, strict=True)]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError):
        return None
    except (AttributeError, TypeError):  # A Polars that is older than ours.
        return None
    if found.num_rows != rows or any(column is None for column in columns):
        return None
    return pa.table(columns, names=list(names))


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """The column in the type that Arrow reads it as; None if Polars took it for another one."""
    if column.type == kind:
        return column
    texts = pt.is_large_string(column.type) and pt.is_string(kind)
    if not texts and not (pt.is_large_binary(column.type) and pt.is_binary(kind)):
        return None
    return pc.cast(column, kind, memory_pool=large_arrays.pool())
