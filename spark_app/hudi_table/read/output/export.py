"""Rows of a table into files of another form, in a folder of their own: Parquet, CSV or JSON lines.

The folder must be empty. `_export.json` claims it first and tells what is exported; `_SUCCESS`, as
Hadoop names it, comes last: a folder without it is not whole. Readers pass over both, since their
names begin with `_`. Partitions are Hive's: `column=value` folders, whose column no file holds,
`__HIVE_DEFAULT_PARTITION__` for null.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.hidden_nulls import without_hidden_nulls
from hudi_table.codec.text.json_lines import json_lines
from hudi_table.errors import InvalidOptionError, InvalidRequestError, ObjectExistsError
from hudi_table.model.names import escape_partition_value, join
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Storage

FORMS = ("parquet", "csv", "jsonl")
CLAIM, DONE = "_export.json", "_SUCCESS"
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
FILE_BYTES = 512 << 20
"""Of Arrow data: what a file takes before the next one begins."""
CHUNK_BYTES = 64 << 20
"""Of Arrow data: what is held before it is divided among the partitions."""
OPEN_MAX = 8
"""Files that are written at once: what rows of another partition want then, ends the oldest of
them."""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote: `files` without the two that tell of it. `next_since`: an instant after
    which an incremental export misses nothing, or `earliest`; rows of writes that completed beside
    one that was pending come again."""

    target: str
    rows: int
    files: int
    next_since: str


class _Sink:
    """One file of the export, to which tables are added."""

    def __init__(self, opened: AbstractContextManager[BinaryIO], form: str, schema: pa.Schema) -> None:
        self.bytes = 0
        self._stack = ExitStack()
        file = self._stack.enter_context(opened)
        try:
            self._add = self._writer(file, form, schema)
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise

    def _writer(self, file: BinaryIO, form: str, schema: pa.Schema) -> Callable[[pa.Table], object]:
        if form == "parquet":
            import pyarrow.parquet as pq

            parquet = self._stack.enter_context(pq.ParquetWriter(file, schema, compression="zstd"))
            return lambda table: parquet.write_table(without_hidden_nulls(table))
        if form == "csv":
            import pyarrow.csv

            csv: Callable[[pa.Table], object] = self._stack.enter_context(
                pyarrow.csv.CSVWriter(file, schema)
            ).write_table
            return csv
        return lambda table: [file.write(json_lines(batch)) for batch in table.combine_chunks().to_batches()]

    def add(self, table: pa.Table) -> None:
        self._add(table)
        self.bytes += table.nbytes

    def close(self) -> None:
        self._stack.close()

    def abort(self, error: BaseException) -> None:
        """No object appears."""
        self._stack.__exit__(type(error), error, error.__traceback__)


class _Files:
    """The files that are open, at most `OPEN_MAX`, each by its folder."""

    def __init__(self, storage: Storage, form: str, schema: pa.Schema) -> None:
        self.count = 0
        self._storage, self._form, self._schema = storage, form, schema
        self._token = secrets.token_hex(4)
        self._open: dict[str, _Sink] = {}

    def add(self, folder: str, rows: pa.Table) -> None:
        sink = self._open.get(folder)
        if sink is None:
            if len(self._open) == OPEN_MAX:
                self._open.pop(next(iter(self._open))).close()
            path = join(folder, f"part-{self.count:05}-{self._token}.{self._form}")
            sink = self._open[folder] = _Sink(self._storage.open_write(path), self._form, self._schema)
            self.count += 1
        sink.add(rows)
        if sink.bytes >= FILE_BYTES:
            self._open.pop(folder).close()

    def close(self) -> None:
        while self._open:
            self._open.pop(next(iter(self._open))).close()

    def abort(self, error: BaseException) -> None:
        for sink in self._open.values():
            sink.abort(error)


@retry.confirmed()
def export(
    rows: pa.RecordBatchReader,
    target: Storage,
    form: str,
    partition_by: Sequence[str],
    said: Mapping[str, Any],
    next_since: Callable[[], str],
) -> ExportResult:
    """Write all of `rows` below `target`. `said`: what `_export.json` tells besides the form.
    `next_since` is asked when all rows have come.

    At most `CHUNK_BYTES` of rows and the buffers of `OPEN_MAX` files are held. Raises
    InvalidOptionError for a form or partition that cannot be, InvalidRequestError if the folder is
    not empty; what stops it on its way leaves a folder without `_SUCCESS`.
    """
    schema = _checked(rows.schema, form, partition_by)
    _claim(target, {"format": form, "partitionBy": list(partition_by), **said})
    files = _Files(target, form, schema)
    count = 0
    try:
        for chunk in _chunks(rows):
            count += chunk.num_rows
            for folder, part in _divided(chunk, partition_by):
                files.add(folder, part.select(schema.names))
        if count == 0:
            files.add("", schema.empty_table())  # Who reads the folder finds the columns.
        files.close()
    except BaseException as error:
        files.abort(error)
        raise
    result = ExportResult(target.base_path, count, files.count, next_since())
    done = {"rows": count, "files": files.count, "nextSince": result.next_since}
    retry.put(target, DONE, json.dumps(done).encode())
    return result


def _checked(schema: pa.Schema, form: str, partition_by: Sequence[str]) -> pa.Schema:
    """The columns of the files."""
    if form not in FORMS:
        raise InvalidOptionError(f"format {form!r} is not known: give one of {', '.join(FORMS)}")
    for name in partition_by:
        if name not in schema.names:
            raise InvalidOptionError(
                f"partition_by names {name!r}, which is no column of the rows: {', '.join(schema.names)}"
            )
        if pa.types.is_nested(schema.field(name).type) or _is_bytes(schema.field(name).type):
            raise InvalidOptionError(
                f"partition_by names {name!r} of type {schema.field(name).type}, which has no text: name another column"
            )
    left = [field for field in schema if field.name not in partition_by]
    if not left:
        raise InvalidOptionError("partition_by names every column, so that files would hold none: leave one out")
    for field in left if form == "csv" else ():
        kind = "nested" if pa.types.is_nested(field.type) else "binary" if _is_bytes(field.type) else None
        if kind is not None:
            raise InvalidOptionError(
                f"CSV cannot hold the {kind} column {field.name!r}: leave it out, or take jsonl or parquet"
            )
    return pa.schema(left)


def _is_bytes(kind: pa.DataType) -> bool:
    """Bytes need not be text."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _claim(target: Storage, said: Mapping[str, Any]) -> None:
    there = target.list(limit=3)
    if there:
        found = "an export that has not ended" if there[0].path == CLAIM else there[0].path
        raise InvalidRequestError(
            f"{target.base_path} is not empty, {found} is there: export into another folder, or remove what it holds"
        )
    try:
        target.put_if_absent(CLAIM, json.dumps(said, indent=1).encode())
    except ObjectExistsError as error:
        raise InvalidRequestError(f"another export writes into {target.base_path}: name another folder") from error


def _chunks(rows: pa.RecordBatchReader) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in rows:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= CHUNK_BYTES:
            yield pa.Table.from_batches(held, rows.schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, rows.schema)


def _divided(rows: pa.Table, partition_by: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each folder, in their order."""
    if not partition_by:
        yield "", rows
        return
    folders = (
        pc.binary_join_element_wise(*(_folders(name, rows.column(name)) for name in partition_by), "/")
        .combine_chunks()
        .dictionary_encode()
    )
    order = pc.sort_indices(folders.indices)
    lengths = dict(zip(*(each.to_pylist() for each in pc.value_counts(folders.indices).flatten()), strict=True))
    ordered, start = rows.take(order), 0
    for code in sorted(lengths):
        yield folders.dictionary[code].as_py(), ordered.slice(start, lengths[code])
        start += lengths[code]


def _folders(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """`column=value` of each row."""
    texts = values.cast(pa.string()).combine_chunks().dictionary_encode()
    known = [
        f"{escape_partition_value(name)}={escape_partition_value(text) or NULL_PARTITION}"
        for text in texts.dictionary.to_pylist()
    ]
    found = pa.array(known, pa.string()).take(texts.indices)
    return pa.chunked_array([pc.fill_null(found, f"{escape_partition_value(name)}={NULL_PARTITION}")])
