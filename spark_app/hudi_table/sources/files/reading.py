"""Source files as one Arrow stream, without Spark: Parquet, CSV and JSON lines, read through the
storage port. What a text means is of `text.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.model.job.checkpoint import SourceFile
from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.sources.files.text import csv_batches, csv_schema, json_batches, json_schema
from hudi_table.sources.formats.unions import check_exact
from hudi_table.table.store.ports import Storage

BATCH_ROWS = 131_072
Told = Callable[[SourceFile, int], None]


@dataclass(frozen=True, slots=True)
class Form:
    """How the files of a source are read. `known`: the types of columns of text files that are
    said; `whole`: types that nobody says are those of all rows of JSON, else of the first block."""

    name: str
    csv: Mapping[str, object] = field(default_factory=dict)
    known: pa.Schema | None = None
    whole: bool = False


def read_files(
    storage: Storage, files: Iterable[SourceFile], form: Form, told: Told | None = None
) -> tuple[pa.Schema, pa.RecordBatchReader]:
    """(schema, stream) of all files. The schema is the union of theirs. `told`: of each batch,
    before it is given, its file and how many rows of that came before.

    Raises InvalidDataError that names a file which cannot be read, InvalidSchemaError if files
    contradict each other.
    """
    listed = list(files)
    schema = unified_schema({each.path: file_schema(storage, each.path, form) for each in listed})

    def batches() -> Iterator[pa.RecordBatch]:
        for file in listed:
            count = 0
            for batch in file_batches(storage, file.path, form, schema):
                if told is not None:
                    told(file, count)
                count += len(batch)
                yield conform(batch, schema)

    return schema, pa.RecordBatchReader.from_batches(schema, batches())


def unified_schema(schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The union of the files' columns, numbers widened; Hudi's meta columns are left out.

    Raises InvalidSchemaError that names the first file that does not fit those before it.
    """
    unified = pa.schema([])
    for path, schema in schemas.items():
        plain = pa.schema([field for field in schema if field.name not in ALL_META_COLUMNS])
        try:
            check_exact([unified, plain])
            unified = pa.unify_schemas([unified, plain], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidSchemaError(
                f"source file {path} does not fit the files before it: {error}; correct it, or ingest it apart",
                path=path,
            ) from error
    return unified


def file_schema(storage: Storage, path: str, form: Form) -> pa.Schema:
    """The schema of one file: from its footer, or from its text."""
    with _named(path), storage.open_read(path) as source:
        if form.name == "csv":
            return csv_schema(source, form.csv, _said(form))
        if form.name == "json":
            return json_schema(source, form.known, whole=form.whole)
        import pyarrow.parquet as pq

        with pq.ParquetFile(source) as file:
            return file.schema_arrow


def file_batches(storage: Storage, path: str, form: Form, types: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of one file; those of text have `types`."""
    if form.name == "parquet":
        yield from parquet_batches(storage, path)
        return
    with _named(path), storage.open_read(path) as source:
        if form.name == "csv":
            yield from csv_batches(source, form.csv, types, _said(form))
        else:
            yield from json_batches(source, types, form.known)


def _said(form: Form) -> pa.Schema:
    return form.known if form.known is not None else pa.schema([])


def parquet_batches(
    storage: Storage, path: str, row_groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file, or of some of its row groups; of `columns` those that it has."""
    import pyarrow.parquet as pq

    from hudi_table.codec.parquet import groups_ahead, whole_batches

    with (
        _named(path),
        storage.open_read(path) as source,
        pq.ParquetFile(source, page_checksum_verification=True) as file,
    ):
        wanted = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        for group in groups_ahead(source, file.metadata, groups, wanted):
            yield from whole_batches(file, wanted, row_groups=[group], batch_rows=BATCH_ROWS)


class _named:  # noqa: N801 - reads as a statement: with _named(path)
    """Turns what Arrow says of bytes into an error that names the source file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # Arrow tells of damaged pages by an OSError without a number; a store's own errors are HudiErrors by now.
        damaged = isinstance(error, OSError) and error.errno is None
        if damaged or isinstance(error, ValueError | pa.ArrowNotImplementedError | pa.ArrowTypeError):
            said = " ".join(str(error).split())
            raise InvalidDataError(
                f"source file {self._path} cannot be read: {said}; replace or remove it", path=self._path
            ) from error
