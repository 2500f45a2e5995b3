"""What tasks do with files: they read row groups, number the rows by the task that writes them, and
hand each task its rows as Arrow streams: a few large values cross to the JVM and back instead of
rows.

Streams are compressed, since Spark copies each value several times: of lineitem's rows that took a
tenth to a fifth of a bulk_insert's processor time away (measured).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from hudi_spark.routing.numbering import Numbering
from hudi_spark.routing.routes import TASK
from hudi_spark.source_files.scan import FileScan, Part
from hudi_spark.worker import set_up_worker
from hudi_table.codec.parquet import whole_batches
from hudi_table.errors import InvalidDataError
from hudi_table.index.base import Codes

PAYLOAD = "_lakeops_payload"
PACKED = f"{TASK} int, {PAYLOAD} binary"
"""Of what crosses: a task, and a stream of rows for it."""
TASKS_MAX = 512
"""Tasks that rows are packed for: with more of them streams get short, and what stands before the
rows of a stream weighs as much as they."""
WINDOW_BYTES = 64 << 20
"""What a reading task holds of rows before it hands them on."""
PAYLOAD_BYTES = 8 << 20
"""About the largest value that crosses to the JVM, before compression."""
_READ_BYTES = 1 << 20
_BATCH_ROWS_MAX = 1 << 18
_STREAMS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of files, each split read by one task; see `ArrowRows`."""

    spark: SparkSession
    scan: FileScan

    def frame(self, names: Sequence[str]) -> None:
        """Spark reads of files the columns that it needs."""

    def packed(self, numbering: Numbering, sent: Sequence[str]) -> DataFrame:
        """See `ArrowRows`."""
        count = len(self.scan.splits)
        work = partial(pack, scan=self.scan, numbering=numbering, sent=sent)
        # A range has one number in each of so many partitions, and needs no exchange for it.
        return self.spark.range(0, count, 1, count).mapInArrow(work, PACKED)


def pack(
    batches: Iterator[pa.RecordBatch], *, scan: FileScan, numbering: Numbering, sent: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """What one Spark task does: numbers of splits come in, rows of (task, stream) go out."""
    set_up_worker()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            packer = Packer(sent)
            for part in scan.splits[number]:
                for rows in _read(part, scan):
                    yield from packer.add(rows, numbering.of(rows))
            yield from packer.flush()


def unpacked(payloads: pa.Array) -> Iterator[pa.RecordBatch]:
    """The rows of some streams."""
    for payload in payloads:
        with pa.ipc.open_stream(payload.as_buffer()) as stream:
            yield from stream


def _read(part: Part, scan: FileScan) -> Iterator[pa.RecordBatch]:
    """The rows that the condition keeps, in the frame's columns."""
    found = os.stat(part.path)
    if (found.st_size, found.st_mtime_ns // 1_000_000) != (part.size, part.modified):
        raise InvalidDataError(f"{part.path} was changed after the frame was made of it: read it again")
    # Arrow does not look into Hadoop's files of check sums; those of the pages are the file's own.
    with pq.ParquetFile(part.path, buffer_size=_READ_BYTES, page_checksum_verification=True) as file:
        have = set(file.schema_arrow.names)
        wanted = [name for name in dict.fromkeys((*scan.stored, *scan.tested.names)) if name in have]
        for group in part.row_groups:
            rows = _batch_rows(file.metadata.row_group(group))
            for batch in whole_batches(file, wanted, row_groups=[group], batch_rows=rows):
                kept = batch
                if scan.condition is not None:
                    kept = batch.filter(scan.condition.of(_brought(batch, scan.tested.names, scan.tested)))
                if len(kept):
                    yield _brought(kept, scan.stored, scan.columns)


def _batch_rows(group: pq.RowGroupMetaData) -> int:
    size = max(1, int(group.total_byte_size) // max(1, int(group.num_rows)))
    return max(1, min(_BATCH_ROWS_MAX, WINDOW_BYTES // 2 // size))


def _brought(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """The named columns as those of a schema: null where the file lacks one, and instants in
    another zone."""
    columns = []
    for name, field in zip(names, schema, strict=True):
        if name not in batch.schema.names:
            columns.append(pa.nulls(len(batch), field.type))
        else:
            values = batch.column(name)
            columns.append(values if values.type == field.type else values.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class Packer:
    """Rows by task, until they are handed on."""

    def __init__(self, sent: Sequence[str]) -> None:
        self._sent = list(sent)
        self._held: dict[int, list[pa.RecordBatch]] = {}
        self._bytes = 0

    def add(self, rows: pa.RecordBatch, codes: Codes) -> Iterator[pa.RecordBatch]:
        """Take rows in, in their order; what is handed on comes out."""
        kept = rows.select(self._sent)
        for number, batch in _grouped(kept, codes):
            self._held.setdefault(number, []).append(batch)
        self._bytes += kept.nbytes
        if self._bytes >= WINDOW_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Hand on all that is held."""
        for number in sorted(self._held):
            for payload in _payloads(self._held.pop(number)):
                ends = pa.py_buffer(np.array([0, payload.size], dtype=np.int32))
                value = pa.Array.from_buffers(pa.binary(), 1, [None, ends, payload])
                yield pa.record_batch([pa.array([number], pa.int32()), value], names=[TASK, PAYLOAD])
        self._bytes = 0


def _grouped(rows: pa.RecordBatch, codes: Codes) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each number, in the order in which they came."""
    # numpy sorts 16-bit integers by radix, several times faster than wider ones; `TASKS_MAX` fits.
    order = np.argsort(codes.astype(np.int16), kind="stable")
    numbers, firsts = np.unique(codes[order], return_index=True)
    taken = rows.take(pa.array(order))
    stops = [*firsts[1:].tolist(), len(order)]
    for number, start, stop in zip(numbers.tolist(), firsts.tolist(), stops, strict=True):
        if number >= 0:
            yield number, taken.slice(start, stop - start)


def _payloads(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.Buffer]:
    """Streams of the batches, of about `PAYLOAD_BYTES` of rows each."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        rows = max(1, len(batch) * PAYLOAD_BYTES // max(1, batch.nbytes))
        for start in range(0, len(batch), rows):
            piece = batch.slice(start, rows)
            if pending and size + piece.nbytes > PAYLOAD_BYTES:
                yield _stream(pending)
                pending, size = [], 0
            pending.append(piece)
            size += piece.nbytes
    yield _stream(pending)


def _stream(batches: Sequence[pa.RecordBatch]) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=_STREAMS) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return sink.getvalue()
