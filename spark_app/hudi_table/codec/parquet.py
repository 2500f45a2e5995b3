"""Base files: Parquet with the footer that Hudi expects, read batch by batch. `parquet_writer.py`
writes them.

Facts (measured on Hudi 0.15.0): footer keys `hoodie_min_record_key`, `hoodie_max_record_key`,
`org.apache.hudi.bloomfilter`, `hoodie_bloom_filter_type_code` (absent for SIMPLE),
`parquet.avro.schema`, `writer.model.name` = `avro`; none of the first four where the record key
column is null. Hudi reads pyarrow's three-level lists; its own lists may have two levels, which
pyarrow reads. No Arrow schema is stored: the types that a table holds follow from Parquet alone,
and with it dictionary columns would come back as dictionaries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_table.codec import footer_seal
from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.errors import CorruptTableError

MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
BLOOM = "org.apache.hudi.bloomfilter"
LEGACY_BLOOM = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
AVRO_SCHEMA = "parquet.avro.schema"
BATCH_ROWS = 128 * 1024
_DICTIONARY_BYTES_A_ROW = 4


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: its rows, and its bytes before compression."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BaseFileFooter:
    """What a base file says of itself. `schema` is the file's own, meta columns included.

    `min_key` and `max_key` are None in a file without record keys; `bloom_text` is the serialised
    filter. `metadata` is Parquet's own (statistics of each column chunk).
    """

    rows: int
    min_key: str | None
    max_key: str | None
    schema: pa.Schema
    row_groups: tuple[RowGroup, ...] = ()
    avro_schema: str | None = None
    bloom_type: str | None = None
    bloom_text: str | None = field(default=None, repr=False)
    metadata: pq.FileMetaData | None = field(default=None, repr=False, compare=False)

    def bloom(self) -> BloomFilter | None:
        """The bloom filter over the record keys, if the file carries one."""
        return None if self.bloom_text is None else BloomFilter.parse(self.bloom_text, self.bloom_type or "SIMPLE")


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of `read_batches`."""

    columns: Sequence[str] | None
    path: str
    batch_rows: int
    batch_bytes: int | None
    row_groups: Sequence[int] | None
    dictionary_columns: Sequence[str] | None
    metadata: pq.FileMetaData | None


class Stitched(ABC):
    """An opened base file whose columns lie in several files, side by side."""

    @abstractmethod
    def footer(self, path: str) -> BaseFileFooter:
        """As `read_footer`."""

    @abstractmethod
    def batches(self, asked: Asked) -> Iterator[pa.RecordBatch]:
        """As `read_batches`."""


@runtime_checkable
class AskedAhead(Protocol):
    """A file of which what is read next can be asked for before it is read."""

    def groups_ahead(
        self, metadata: pq.FileMetaData, groups: Sequence[int], columns: Iterable[str] | None, *, piece: int = 0
    ) -> Iterator[int]:
        """The row groups, each once its columns (None: all) were asked for, and those of some
        behind it. `piece`: bytes of a column that are read at a time, 0 for all of it."""
        ...


def groups_ahead(
    source: Any, metadata: pq.FileMetaData, groups: Sequence[int], columns: Iterable[str] | None, *, piece: int = 0
) -> Iterable[int]:
    """The row groups as an `AskedAhead` gives them; of any other source as they are: a local file
    has no need of it."""
    return source.groups_ahead(metadata, groups, columns, piece=piece) if isinstance(source, AskedAhead) else groups


def read_footer(source: Any, *, path: str = "") -> BaseFileFooter:
    """The footer of a base file (a path, a seekable binary file, or `Stitched`). Raises
    CorruptTableError that names `path`."""
    if isinstance(source, Stitched):
        return source.footer(path)
    with (
        _corruption(path or str(source)),
        open(source, "rb") if isinstance(source, str) else nullcontext(source) as file,
    ):
        end = footer_seal.read_end(file)
    with _open_file(pa.BufferReader(end), path or str(source)) as file:
        metadata = file.metadata
        pairs = {_text(key): value for key, value in (metadata.metadata or {}).items()}
        return footer_from(metadata, {key: _text(value) for key, value in pairs.items()}, file.schema_arrow)


def read_batches(
    source: Any,
    columns: Sequence[str] | None = None,
    *,
    path: str = "",
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int | None = None,
    row_groups: Sequence[int] | None = None,
    dictionary_columns: Sequence[str] | None = (),
    metadata: pq.FileMetaData | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of at most `batch_rows` rows, one row group after the other, in file order.

    `batch_bytes` makes them smaller where rows are wide, and has columns of row groups larger than
    that read piece by piece. `columns` are top-level names in the wanted order, None for all; those
    that the file lacks are left out (see `conform`), so that a batch of no columns still counts its
    rows. Types are the file's own, but that `dictionary_columns` (None: those that the file stores
    as small ones) are such. `metadata`: the footer, if it was read already. Row groups are asked
    for as `groups_ahead` does. Raises CorruptTableError that names `path`.
    """
    if isinstance(source, Stitched):
        yield from source.batches(
            Asked(columns, path, batch_rows, batch_bytes, row_groups, dictionary_columns, metadata)
        )
        return
    metadata = metadata or read_footer(source, path=path).metadata
    assert metadata is not None
    known = _small_dictionaries(metadata) if dictionary_columns is None else list(dictionary_columns)
    buffer = _read_buffer(batch_bytes, metadata)
    if isinstance(source, AskedAhead):
        # As much again is on its way.
        buffer //= 2
    with _open_file(source, path, read_dictionary=known, metadata=metadata, buffer_size=buffer) as file:
        have = file.schema_arrow.names
        wanted = have if columns is None else [name for name in columns if name in have]
        groups = range(file.metadata.num_row_groups) if row_groups is None else row_groups
        for group in groups_ahead(source, file.metadata, groups, wanted, piece=buffer):
            rows = _rows_in(batch_bytes, file.metadata.row_group(group), batch_rows)
            batches = whole_batches(file, wanted, row_groups=[group], batch_rows=rows)
            while (batch := _next(batches, path)) is not None:
                yield batch.select(wanted)


def whole_batches(
    file: pq.ParquetFile,
    columns: Sequence[str] | None = None,
    *,
    row_groups: Sequence[int] | None = None,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The batches of an open file, or of some row groups, and no row less than its footer counts.

    Arrow passes over a page of a kind that it does not know, and ends at the first column that has
    no more rows (measured on pyarrow 26.0.1): one changed byte in a page's header, which no
    checksum covers, would drop rows. Raises pa.ArrowInvalid.
    """
    for group in range(file.metadata.num_row_groups) if row_groups is None else row_groups:
        missing = file.metadata.row_group(group).num_rows
        for batch in file.iter_batches(batch_rows, [group], columns, use_threads=pa.cpu_count() > 1):
            missing -= batch.num_rows
            yield batch
        if missing:
            raise pa.ArrowInvalid(f"the pages of row group {group} lack {missing} of its rows")


def _read_buffer(batch_bytes: int | None, metadata: pq.FileMetaData) -> int:
    """Bytes that are read of a column at a time; 0: each of a row group's columns as a whole, which
    is fewer requests."""
    largest = max((metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)), default=0)
    some = 0 if batch_bytes is None else min(8 << 20, max(1 << 20, batch_bytes // int(metadata.num_columns)))
    return some if batch_bytes is not None and largest > batch_bytes else 0


def _rows_in(batch_bytes: int | None, group: pq.RowGroupMetaData, most: int) -> int:
    if batch_bytes is None or group.total_byte_size <= batch_bytes:
        return most
    return max(1, min(most, int(group.num_rows) * batch_bytes // int(group.total_byte_size)))


def _small_dictionaries(metadata: pq.FileMetaData) -> list[str]:
    """Flat string columns that every row group stores in a few bytes a row, thanks to a
    dictionary."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    found = []
    for number in range(metadata.num_columns):
        kind = metadata.schema.column(number)
        if kind.path.count(".") or kind.max_repetition_level or kind.logical_type.type != "STRING":
            continue
        chunks = [group.column(number) for group in groups]
        sized = all(c.total_uncompressed_size <= _DICTIONARY_BYTES_A_ROW * max(c.num_values, 64) for c in chunks)
        if chunks and sized and all(chunk.has_dictionary_page for chunk in chunks):
            found.append(kind.path)
    return found


def _next(batches: Iterator[pa.RecordBatch], path: str) -> pa.RecordBatch | None:
    # One step at a time, so that an error of the consumer is never taken for one of the file.
    with _corruption(path):
        return next(batches, None)


@contextmanager
def _open_file(source: Any, path: str, **options: Any) -> Iterator[pq.ParquetFile]:
    with _corruption(path or str(source)):
        file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=True, **options)
    with file:
        yield file


@contextmanager
def _corruption(path: str) -> Iterator[None]:
    try:
        yield
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        pa.ArrowKeyError,
        pa.ArrowIndexError,
        OSError,
        ValueError,
    ) as error:
        # Arrow reports broken Thrift and broken pages as OSError; one of the operating system has a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise CorruptTableError(
            f"Base file '{path}' is not readable Parquet: {error}. Restore the file or roll its commit back.", path=path
        ) from error


def footer_from(metadata: pq.FileMetaData, pairs: dict[str, str], schema: pa.Schema) -> BaseFileFooter:
    """What Parquet's own footer and Hudi's `pairs` in it say; `schema`: the columns, with or
    without metadata of Arrow."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    bloom = pairs.get(BLOOM, pairs.get(LEGACY_BLOOM))
    return BaseFileFooter(
        rows=metadata.num_rows,
        min_key=pairs.get(MIN_KEY),
        max_key=pairs.get(MAX_KEY),
        schema=schema.remove_metadata(),
        row_groups=tuple(RowGroup(group.num_rows, group.total_byte_size) for group in groups),
        avro_schema=pairs.get(AVRO_SCHEMA),
        bloom_type=None if bloom is None else pairs.get(BLOOM_TYPE, "SIMPLE"),
        bloom_text=bloom,
        metadata=metadata,
    )


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
