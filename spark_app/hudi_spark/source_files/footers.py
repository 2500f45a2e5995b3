"""Which files Arrow reads as Spark does, by their footers, and who reads which row groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_spark.source_files.scan import Part
from hudi_table.model.digits import whole

_THREADS = 16
FILES_MAX = 500
"""Files whose footers the driver looks at; Spark's own tasks look at theirs."""
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI"})


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file that one of Spark's tasks would read the row groups of."""

    scheme: str | None
    path: str
    start: int
    length: int
    size: int
    modified: int


def shared_out(
    splits: Sequence[Sequence[Piece]], read: pa.Schema, *, corrected: bool
) -> tuple[tuple[Part, ...], ...] | None:
    """Row groups for each split, shared out as Spark does: to whose bytes their middle belongs.

    None if a file holds other types than the columns `read`, or is otherwise Spark's to read.

    `corrected`: dates and times in files that do not say whose calendar they follow are taken as
    they are.
    """
    files = {piece.path: piece for split in splits for piece in split}
    if any(piece.scheme != "file" for piece in files.values()):
        return None
    with ThreadPoolExecutor(_THREADS) as threads:
        found = list(threads.map(partial(_middles, read=read, corrected=corrected), files.values()))
    middles = dict(zip(files, found, strict=True))
    parts = tuple(tuple(_part(piece, middles[piece.path] or []) for piece in split) for split in splits)
    assigned = sum(len(part.row_groups) for split in parts for part in split)
    if None in found or assigned != sum(len(item or ()) for item in found):
        return None
    return parts


def _part(piece: Piece, middles: Sequence[int]) -> Part:
    groups = [n for n, middle in enumerate(middles) if piece.start <= middle < piece.start + piece.length]
    return Part(piece.path, piece.size, piece.modified, tuple(groups))


def _middles(piece: Piece, *, read: pa.Schema, corrected: bool) -> list[int] | None:
    """Where the middle of each row group of a file lies; None if Spark has to read it."""
    state = os.stat(piece.path)
    if (state.st_size, state.st_mtime_ns // 1_000_000) != (piece.size, piece.modified):
        return None
    with pq.ParquetFile(piece.path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        if not _fits(file, read) or not (corrected or _says_calendar(file, read)) or _is_legacy(file):
            return None
    middles = []
    for group in groups:
        columns = [group.column(number) for number in range(group.num_columns)]
        if any(column.compression not in _CODECS for column in columns):
            return None
        first = columns[0].dictionary_page_offset or columns[0].data_page_offset
        middles.append(first + sum(column.total_compressed_size for column in columns) // 2)
    return middles


def _fits(file: pq.ParquetFile, read: pa.Schema) -> bool:
    """Whether the file has the columns by exactly these names and types, or nothing that Spark
    takes for them."""
    stored = file.schema_arrow
    lower = [name.lower() for name in stored.names]
    paths = [file.schema.column(number).path for number in range(len(file.schema))]
    for field in read:
        same = lower.count(field.name.lower())
        if same > 1 or (same == 1 and field.name not in stored.names):
            return False
        if same == 1 and (paths.count(field.name) != 1 or not _is_same(stored.field(field.name).type, field.type)):
            return False
    return True


def _is_same(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Zones are no part of an instant; all else is to be the same."""
    if pt.is_timestamp(stored) and pt.is_timestamp(wanted):
        return stored.unit == wanted.unit and (stored.tz is None) == (wanted.tz is None)
    return bool(stored == wanted)


def _says_calendar(file: pq.ParquetFile, read: pa.Schema) -> bool:
    dated = any(pt.is_date(field.type) or pt.is_timestamp(field.type) for field in read)
    return not dated or _SPARK_VERSION in (file.metadata.metadata or {})


def _is_legacy(file: pq.ParquetFile) -> bool:
    """Whether its dates may follow the calendar of before 1582, as those of Spark 2 do."""
    said = file.metadata.metadata or {}
    version = said.get(_SPARK_VERSION, b"3").split(b".")[0].decode("ascii", "replace")
    return any(name in said for name in _LEGACY) or whole(version, 3) is None
