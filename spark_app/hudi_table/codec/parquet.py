"""Base files: Parquet with the footer that Hudi expects, written in bounded memory and read batch by batch.

Facts (measured on Hudi 0.15.0): footer keys `hoodie_min_record_key`, `hoodie_max_record_key`,
`org.apache.hudi.bloomfilter`, `hoodie_bloom_filter_type_code` (absent for SIMPLE), `parquet.avro.schema`,
`writer.model.name` = `avro`; none of the first four where the record key column is null. Hudi reads pyarrow's
three-level lists; its own lists may have two levels, which pyarrow reads. No Arrow schema is stored: the types that
a table holds are told by Parquet alone, and with it dictionary columns would come back as dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_table.codec import footer_seal
from hudi_table.codec.avro.schema import with_meta_text
from hudi_table.codec.bloom.filters import BloomFilter, BloomFilterSpec
from hudi_table.codec.gate import Gate
from hudi_table.codec.keyrange import key_range, merge_ranges
from hudi_table.errors import CorruptTableError, InvalidOptionError, InvariantError
from hudi_table.model.names import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY

MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
BLOOM = "org.apache.hudi.bloomfilter"
LEGACY_BLOOM = "com.uber.hoodie.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
AVRO_SCHEMA = "parquet.avro.schema"
MODEL_NAME = "writer.model.name"
CODECS = ("zstd", "snappy", "gzip", "lz4", "none")
ROW_GROUP_ROWS = 1_000_000
ROW_GROUP_BYTES = 128 * 1024 * 1024
BATCH_ROWS = 128 * 1024
_CONSTANT_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_UNIQUE_COLUMNS = (COMMIT_SEQNO, RECORD_KEY)
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_DICTIONARY_BYTES_A_ROW = 4
_SAMPLE_ROWS = 8192
_SAMPLE_DISTINCT_MAX = _SAMPLE_ROWS // 8


@dataclass(frozen=True, slots=True)
class RowGroup:
    """One row group: its rows, and its bytes before compression."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BaseFileFooter:
    """What a base file says of itself. `schema` is the file's own, meta columns included.

    `min_key` and `max_key` are None in a file without record keys; `bloom_text` is the serialised filter.
    `metadata` is Parquet's own (statistics of each column chunk).
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


def constant_column(value: str, rows: int) -> pa.DictionaryArray:
    """`rows` times the same string in the encoding that the writer stores as it is: for meta columns."""
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


class BaseFileWriter:
    """Writes one base file to `sink`, row group by row group.

    `schema` starts with the meta columns; batches must have it, except that string columns may be dictionaries (as
    `constant_column` and `read_batches` make them). `avro_schema` is the table's, with or
    without meta columns. Rows are held until `row_group_rows` rows or `row_group_bytes` bytes of Arrow data are
    there. `dictionary_columns` None chooses by a sample of the first rows; keys and sequence numbers never are.
    Leaving the context on an error leaves the sink without a footer: no reader takes it for a file.
    """

    def __init__(
        self,
        sink: BinaryIO,
        schema: pa.Schema,
        *,
        avro_schema: str,
        bloom: BloomFilterSpec | None = None,
        codec: str = "zstd",
        level: int | None = None,
        row_group_rows: int = ROW_GROUP_ROWS,
        row_group_bytes: int = ROW_GROUP_BYTES,
        dictionary_columns: Sequence[str] | None = None,
    ) -> None:
        if codec not in CODECS:
            raise InvalidOptionError(f"Unknown Parquet codec '{codec}': use one of {', '.join(CODECS)}.")
        if codec in ("gzip", "zstd") and level is None:
            level = 1
        self._gate = Gate(sink)
        self._schema = schema
        self._physical = pa.schema(
            [pa.field(f.name, _DICTIONARY, f.nullable) if f.name in _CONSTANT_COLUMNS else f for f in schema]
        )
        self._avro_schema = with_meta_text(avro_schema) if RECORD_KEY in schema.names else avro_schema
        self._bloom_spec = bloom
        self._bloom = None if bloom is None else BloomFilter.from_spec(bloom)
        self._compression = (codec, level)
        self._limits = (row_group_rows, row_group_bytes)
        self._dictionary_columns = dictionary_columns
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []
        self._held_rows = self._held_bytes = self._rows = 0
        self._range: tuple[str, str] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.abort()
        elif not self._closed:
            self.close()

    @property
    def rows(self) -> int:
        """Rows given so far."""
        return self._rows

    def write(self, data: pa.Table | pa.RecordBatch, *, known: BloomFilter | None = None) -> None:
        """Append rows. `known`: a filter that holds their keys already, with which the file's begins; given from the first rows on.

        Raises InvariantError if the columns are not those of the schema.
        """
        if known is not None and self._rows == 0:
            self._bloom = known
        table = self._encoded(data if isinstance(data, pa.Table) else pa.Table.from_batches([data]))
        if RECORD_KEY in table.schema.names:
            for keys in table.column(RECORD_KEY).chunks:
                self._range = merge_ranges(self._range, key_range(keys))
                if self._bloom is not None and self._bloom is not known:
                    self._bloom.add(keys)
        self._rows += table.num_rows
        rows_max, bytes_max = self._limits
        width = max(1, table.nbytes // max(1, table.num_rows))
        step = min(rows_max, max(1, bytes_max // width))
        for start in range(0, table.num_rows, step):
            piece = table.slice(start, step)
            size = piece.num_rows * width
            if self._held and (self._held_rows + piece.num_rows > rows_max or self._held_bytes + size > bytes_max):
                self._flush()
            self._held.append(piece)
            self._held_rows += piece.num_rows
            self._held_bytes += size

    def close(self) -> BaseFileFooter:
        """Write the footer; the sink itself stays open. Returns what a reader of the file would see."""
        if self._closed:
            raise InvariantError("The base file writer is closed already.")
        self._flush()
        writer = self._open()
        footer = {AVRO_SCHEMA: self._avro_schema, MODEL_NAME: "avro", **footer_seal.PAIR}
        if self._range is not None:
            footer |= {MIN_KEY: self._range[0], MAX_KEY: self._range[1]}
            footer |= self._bloom_footer()
        writer.add_key_value_metadata(footer)
        self._gate.hold()
        writer.close()
        self._gate.release(footer_seal.sealed_end)
        self._closed = True
        return _footer(writer.writer.metadata, {**footer}, self._schema)

    def abort(self) -> None:
        """Stop without a footer, so that what was written is no Parquet file."""
        self._closed = True
        self._held.clear()
        self._gate.shut()
        self._writer = None

    def _bloom_footer(self) -> dict[str, str]:
        if self._bloom is None or self._bloom_spec is None:
            return {}
        kind = {} if self._bloom_spec.type == "SIMPLE" else {BLOOM_TYPE: self._bloom_spec.type}
        return {BLOOM: self._bloom.to_base64(), **kind}

    def _encoded(self, table: pa.Table) -> pa.Table:
        """The table in the physical schema: constants, and what the first rows had so, as dictionaries, the rest as it is."""
        if table.schema.names != self._schema.names:
            raise InvariantError(f"Columns {table.schema.names} written to a base file of {self._schema.names}.")
        if self._rows == 0 and self._writer is None:
            self._physical = pa.schema(
                [
                    pa.field(want.name, _DICTIONARY, want.nullable)
                    if want.type == pa.string() and actual.type == _DICTIONARY
                    else want
                    for want, actual in zip(self._physical, table.schema, strict=True)
                ]
            )
        columns = []
        for column, want in zip(table.columns, self._physical, strict=True):
            if want.type == _DICTIONARY and column.type == pa.string():
                columns.append(column.dictionary_encode())
            elif want.type == pa.string() and column.type == _DICTIONARY:
                columns.append(column.cast(pa.string()))
            elif column.type == want.type:
                columns.append(column)
            else:
                raise InvariantError(f"Column '{want.name}' is {column.type}, the base file holds {want.type}.")
        return pa.Table.from_arrays(columns, schema=self._physical)

    def _flush(self) -> None:
        if not self._held:
            return
        table = pa.concat_tables(self._held).unify_dictionaries()
        self._held.clear()
        self._held_rows = self._held_bytes = 0
        self._open(table).write_table(table, row_group_size=table.num_rows)

    def _open(self, first: pa.Table | None = None) -> pq.ParquetWriter:
        if self._writer is None:
            codec, level = self._compression
            self._writer = pq.ParquetWriter(
                self._gate,
                self._physical,
                compression=codec,
                compression_level=level,
                use_dictionary=self._choose_dictionaries(first),
                store_schema=False,
                write_page_checksum=True,
            )
        return self._writer

    def _choose_dictionaries(self, first: pa.Table | None) -> list[str]:
        chosen = [column.name for column in self._physical if column.type == _DICTIONARY]
        if self._dictionary_columns is not None:
            return chosen + [name for name in self._dictionary_columns if name not in chosen]
        if first is None:
            return chosen
        sample = first.slice(0, _SAMPLE_ROWS)
        limit = min(_SAMPLE_DISTINCT_MAX, max(1, sample.num_rows // 8))
        for column in self._schema:
            if column.name in chosen or column.name in _UNIQUE_COLUMNS or not _pays(column.type):
                continue
            if pc.count_distinct(sample.column(column.name)).as_py() <= limit:
                chosen.append(column.name)
        return chosen


def _pays(kind: pa.DataType) -> bool:
    """Whether a dictionary can save work: fixed-width numbers compress as well without one."""
    return bool(pt.is_string(kind) or pt.is_binary(kind) or pt.is_decimal(kind))


def read_footer(source: Any, *, path: str = "") -> BaseFileFooter:
    """The footer of a base file (a path or a seekable binary file). Raises CorruptTableError that names `path`."""
    with (
        _corruption(path or str(source)),
        open(source, "rb") if isinstance(source, str) else nullcontext(source) as file,
    ):
        end = footer_seal.read_end(file)
    with _open_file(pa.BufferReader(end), path or str(source)) as file:
        metadata = file.metadata
        pairs = {_text(key): value for key, value in (metadata.metadata or {}).items()}
        return _footer(metadata, {key: _text(value) for key, value in pairs.items()}, file.schema_arrow)


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

    `batch_bytes` makes them smaller where rows are wide, and has columns of row groups larger than that read piece by piece.
    `columns` are top-level names in the wanted order, None for all; those that the file lacks are left out (see
    `conform`), so that a batch of no columns still counts its rows. Types are the file's own, but that
    `dictionary_columns` (None: those that the file stores as small ones) are such. `metadata`: the footer, if it was read already.
    Raises CorruptTableError that names `path`.
    """
    metadata = metadata or read_footer(source, path=path).metadata
    assert metadata is not None
    known = _small_dictionaries(metadata) if dictionary_columns is None else list(dictionary_columns)
    buffer = _read_buffer(batch_bytes, metadata)
    with _open_file(source, path, read_dictionary=known, metadata=metadata, buffer_size=buffer) as file:
        have = file.schema_arrow.names
        wanted = have if columns is None else [name for name in columns if name in have]
        for group in range(file.metadata.num_row_groups) if row_groups is None else row_groups:
            rows = _rows_in(batch_bytes, file.metadata.row_group(group), batch_rows)
            batches = file.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=pa.cpu_count() > 1)
            while (batch := _next(batches, path)) is not None:
                yield batch.select(wanted)


def _read_buffer(batch_bytes: int | None, metadata: pq.FileMetaData) -> int:
    """Bytes that are read of a column at a time; 0: each of a row group's columns as a whole, which is fewer requests."""
    largest = max((metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)), default=0)
    some = 0 if batch_bytes is None else min(8 << 20, max(1 << 20, batch_bytes // int(metadata.num_columns)))
    return some if batch_bytes is not None and largest > batch_bytes else 0


def _rows_in(batch_bytes: int | None, group: pq.RowGroupMetaData, most: int) -> int:
    if batch_bytes is None or group.total_byte_size <= batch_bytes:
        return most
    return max(1, min(most, int(group.num_rows) * batch_bytes // int(group.total_byte_size)))


def _small_dictionaries(metadata: pq.FileMetaData) -> list[str]:
    """Flat string columns that every row group stores in a few bytes a row, thanks to a dictionary."""
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


def _footer(metadata: pq.FileMetaData, pairs: dict[str, str], schema: pa.Schema) -> BaseFileFooter:
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
