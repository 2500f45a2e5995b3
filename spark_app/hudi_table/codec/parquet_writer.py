"""Writes base files: Parquet with Hudi's footer, in bounded memory. The footer's keys are those of
`parquet.py`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from hudi_table.codec import footer_seal
from hudi_table.codec.avro.schema import with_meta_text
from hudi_table.codec.bloom.filters import BloomFilter, BloomFilterSpec
from hudi_table.codec.gate import Gate
from hudi_table.codec.hidden_nulls import without_hidden_nulls
from hudi_table.codec.keyrange import key_range, merge_ranges
from hudi_table.codec.logical_types.vectors import FOOTER_KEY, as_stored, footer_text, has_vectors, stored_schema
from hudi_table.codec.parquet import AVRO_SCHEMA, BLOOM, BLOOM_TYPE, MAX_KEY, MIN_KEY, BaseFileFooter, footer_from
from hudi_table.errors import InvalidOptionError, InvariantError
from hudi_table.model.names import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY

MODEL_NAME = "writer.model.name"
CODECS = ("zstd", "snappy", "gzip", "lz4", "none")
ROW_GROUP_ROWS = 1_000_000
ROW_GROUP_BYTES = 128 * 1024 * 1024
_CONSTANT_COLUMNS = (COMMIT_TIME, PARTITION_PATH, FILE_NAME)
_UNIQUE_COLUMNS = (COMMIT_SEQNO, RECORD_KEY)
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_SAMPLE_ROWS = 8192
_SAMPLE_DISTINCT_MAX = _SAMPLE_ROWS // 8


def constant_column(value: str, rows: int) -> pa.DictionaryArray:
    """`rows` times the same string in the encoding that the writer stores as it is: for meta
    columns."""
    indices = pa.Array.from_buffers(pa.int32(), rows, [None, pa.py_buffer(bytes(4 * rows))])
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], pa.string()))


class BaseFileWriter:
    """Writes one base file to `sink`, row group by row group.

    `schema` starts with the meta columns; batches must have it, except that string columns may be
    dictionaries (as `constant_column` and `read_batches` make them). `avro_schema` is the table's,
    with or without meta columns. Rows are held until `row_group_rows` rows or `row_group_bytes`
    bytes of Arrow data are there. `dictionary_columns` None chooses by a sample of the first rows;
    keys and sequence numbers never are. Leaving the context on an error leaves the sink without a
    footer: no reader takes it for a file.
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
            [
                pa.field(f.name, _DICTIONARY, f.nullable) if f.name in _CONSTANT_COLUMNS else f
                for f in stored_schema(schema)
            ]
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
        """Append rows. `known`: a filter that holds their keys already, with which the file's
        begins; given from the first rows on.

        Raises InvariantError if the columns are not those of the schema.
        """
        if known is not None and self._rows == 0:
            self._bloom = known
        given = data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
        table = self._encoded(without_hidden_nulls(as_stored(given)))
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
        """Write the footer; the sink itself stays open. Returns what a reader of the file would
        see."""
        if self._closed:
            raise InvariantError("The base file writer is closed already.")
        self._flush()
        writer = self._open()
        footer = {AVRO_SCHEMA: self._avro_schema, MODEL_NAME: "avro", **footer_seal.PAIR}
        if has_vectors(self._schema):
            footer[FOOTER_KEY] = footer_text(self._schema)
        if self._range is not None:
            footer |= {MIN_KEY: self._range[0], MAX_KEY: self._range[1]}
        if self._range is not None or not self._rows:
            # A file without rows has one, too: Hudi's bloom index fails on files without.
            footer |= self._bloom_footer()
        writer.add_key_value_metadata(footer)
        self._gate.hold()
        writer.close()
        self._gate.release(footer_seal.sealed_end)
        self._closed = True
        return footer_from(writer.writer.metadata, {**footer}, stored_schema(self._schema))

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
        """The table in the physical schema: constants, and what the first rows had so, as
        dictionaries, the rest as it is."""
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
