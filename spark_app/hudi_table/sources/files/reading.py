"""Source files as one Arrow stream, without Spark: Parquet, CSV and JSON lines, read through the
storage port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidSchemaError
from hudi_table.model.job.checkpoint import SourceFile
from hudi_table.model.names import ALL_META_COLUMNS
from hudi_table.sources.formats.unions import check_exact
from hudi_table.table.store.ports import Storage

BATCH_ROWS = 131_072
Told = Callable[[SourceFile, int], None]


def read_files(
    storage: Storage,
    files: Iterable[SourceFile],
    form: str,
    csv: Mapping[str, object],
    known: pa.Schema | None,
    told: Told | None = None,
) -> tuple[pa.Schema, pa.RecordBatchReader]:
    """(schema, stream) of all files. The schema is the union of theirs; text files take known
    columns' types. `told`: of each batch, before it is given, its file and how many rows of that
    came before.

    Raises InvalidDataError that names a file which cannot be read, InvalidSchemaError if files
    contradict each other.
    """
    listed = list(files)
    paths = [f.path for f in listed]
    schema = unified_schema({path: file_schema(storage, path, form, csv, known) for path in paths})

    def batches() -> Iterator[pa.RecordBatch]:
        for file in listed:
            count = 0
            for batch in file_batches(storage, file.path, form, csv, schema):
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


def file_schema(
    storage: Storage, path: str, form: str, csv: Mapping[str, object], known: pa.Schema | None = None
) -> pa.Schema:
    """The schema of one file: from its footer, or from its first block of text."""
    if form == "parquet":
        import pyarrow.parquet as pq

        with _named(path), storage.open_read(path) as source, pq.ParquetFile(source) as file:
            return file.schema_arrow
    for batch in file_batches(storage, path, form, csv, known):
        return batch.schema
    return pa.schema([])


def file_batches(
    storage: Storage, path: str, form: str, csv: Mapping[str, object], types: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """Batches of one file. `types` fixes the types of columns of text files by name."""
    if form == "parquet":
        yield from parquet_batches(storage, path)
        return
    with _named(path), storage.open_read(path) as source:
        yield from _csv(source, csv, types) if form == "csv" else _json(source, types)


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


def _csv(source: Any, csv: Mapping[str, object], types: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pc

    header = bool(csv.get("header", True))
    reader = pc.open_csv(
        source,
        read_options=pc.ReadOptions(autogenerate_column_names=not header),
        parse_options=pc.ParseOptions(delimiter=str(csv.get("delimiter", ","))),
        convert_options=pc.ConvertOptions(column_types=dict(_types(types)), strings_can_be_null=True),
    )
    with reader:
        yield from reader


def _json(source: Any, types: pa.Schema | None) -> Iterator[pa.RecordBatch]:
    import pyarrow.json as pj

    schema = pa.schema(list(_types(types))) if types is not None else None
    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    with pj.open_json(source, parse_options=options) as reader:
        yield from reader


def _types(types: pa.Schema | None) -> Iterator[tuple[str, pa.DataType]]:
    return ((f.name, f.type) for f in types) if types is not None else iter(())


class _named:  # noqa: N801 - reads as a statement: with _named(path)
    """Turns what Arrow says of bytes into an error that names the source file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # Arrow tells of damaged pages by an OSError without a number; a store's own errors are HudiErrors by now.
        damaged = isinstance(error, OSError) and error.errno is None
        if damaged or isinstance(error, pa.ArrowInvalid | pa.ArrowNotImplementedError | pa.ArrowTypeError):
            said = " ".join(str(error).split())
            raise InvalidDataError(
                f"source file {self._path} cannot be read: {said}; replace or remove it", path=self._path
            ) from error
