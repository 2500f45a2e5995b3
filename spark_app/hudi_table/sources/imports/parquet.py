"""A folder of Parquet files, as Spark, Hive, DuckDB and pyarrow write them: divided by folders
`column=value`, or not at all.

Names that begin with `_` or `.` are no data. A value of a folder is percent-decoded,
`__HIVE_DEFAULT_PARTITION__` is null. A column that only folders have is a whole number where all
its values are, written without leading zeros, a date where all are, else text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidDataError, InvalidRequestError
from hudi_table.model.job.checkpoint import SourceFile
from hudi_table.read.prefetch import in_order
from hudi_table.sources.files.reading import Form, file_schema, parquet_batches, unified_schema
from hudi_table.sources.files.source import list_source
from hudi_table.sources.imports.base import chosen
from hudi_table.table.store.at_once import all_at_once
from hudi_table.table.store.local_files import is_file
from hudi_table.table.store.ports import Storage

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
ENDINGS: Final = (".parquet", ".parq")
_AHEAD, _DEPTH = 4, 2
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True)
class ParquetFolder:
    """The files that lay there when it was opened."""

    storage: Storage
    files: tuple[SourceFile, ...]
    _values: Mapping[str, Mapping[str, str | None]] = field(repr=False)
    """Of each file's path, the column values that its folders name."""

    @classmethod
    def open(cls, storage: Storage) -> ParquetFolder:
        """What lies there now. Raises InvalidRequestError if that is no folder of Parquet files."""
        files = tuple(sorted(_data(storage, list_source(storage)), key=lambda file: file.path))
        if not files:
            what = (
                f"{storage.base_path} is a file"
                if is_file(storage.base_path)
                else f"no Parquet file lies at {storage.base_path}"
            )
            raise InvalidRequestError(f"{what}: name the folder that holds the files")
        return cls(storage, files, _divided(files))

    @property
    def form(self) -> str:
        """See `Snapshot`."""
        return "parquet"

    @property
    def place(self) -> str:
        """See `Snapshot`."""
        return self.storage.base_path

    @cached_property
    def version(self) -> str:
        """Of the files, their sizes and what the store says of their contents."""
        digests = "".join(f"{file.digest:x}," for file in self.files)
        return hashlib.sha256(digests.encode()).hexdigest()[:20]

    @cached_property
    def schema(self) -> pa.Schema:
        """The union of the files' columns, and those of the folders behind them. Raises
        InvalidSchemaError if files contradict each other."""
        found = all_at_once(
            self.storage, [partial(file_schema, self.storage, file.path, Form("parquet")) for file in self.files]
        )
        unified = unified_schema({file.path: each for file, each in zip(self.files, found, strict=True)})
        more = [name for name in self.partition_by if name not in unified.names]
        texts = {name: {values[name] for values in self._values.values()} for name in more}
        return pa.schema([*unified, *(pa.field(name, _type_of(texts[name])) for name in more)])

    @cached_property
    def partition_by(self) -> tuple[str, ...]:
        """The columns that folders name, the outermost first."""
        return tuple(self._values[self.files[0].path])

    @property
    def record_key(self) -> tuple[str, ...]:
        """Files say nothing of keys."""
        return ()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """File after file. Raises InvalidDataError if a file cannot be read, its values contradict
        its folder, or the files are others than when the folder was opened."""
        schema = chosen(self.schema, columns)
        yield from in_order([partial(self._of, file, schema) for file in self.files], ahead=_AHEAD, depth=_DEPTH)
        self.check_unchanged()

    def batches_of(self, file: SourceFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The same of one file."""
        return self._of(file, chosen(self.schema, columns))

    def check_unchanged(self) -> None:
        """Raises InvalidDataError if the files are others than when the folder was opened."""
        now = {(file.path, file.digest) for file in _data(self.storage, list_source(self.storage))}
        if now != {(file.path, file.digest) for file in self.files}:
            path = min(path for path, _ in now ^ {(file.path, file.digest) for file in self.files})
            raise InvalidDataError(
                f"{path} changed at {self.place} while it was read: import it when nobody writes there", path=path
            )

    def _of(self, file: SourceFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        values = {
            name: _scalar(text, schema.field(name).type, file.path)
            for name, text in self._values[file.path].items()
            if name in schema.names
        }
        for batch in parquet_batches(self.storage, file.path, columns=schema.names):
            for name, value in values.items():
                if name in batch.schema.names:
                    _check_values(batch.column(name), value, name, file.path)
                else:
                    batch = batch.append_column(name, pa.repeat(value, len(batch)))
            yield conform(batch.select([name for name in schema.names if name in batch.schema.names]), schema)


def _data(storage: Storage, listed: Sequence[SourceFile]) -> Iterator[SourceFile]:
    for file in listed:
        parts = file.path.split("/")
        if parts[0] == ".hoodie":
            raise InvalidRequestError(f"{storage.base_path} is a Hudi table already: open it")
        if parts[0] == "_delta_log" or (parts[0] == "metadata" and file.path.endswith(".metadata.json")):
            form = "delta" if parts[0] == "_delta_log" else "iceberg"
            raise InvalidRequestError(
                f"{storage.base_path} is a table of the form {form}, whose files may hold rows that were deleted: import it as {form}"
            )
        if any(part.startswith(("_", ".")) and "=" not in part for part in parts):
            continue
        if not file.path.endswith(ENDINGS):
            raise InvalidRequestError(
                f"{file.path} at {storage.base_path} is no Parquet file by its name: take it away, or name the folder below "
                "which Parquet files alone lie"
            )
        yield file


def _divided(files: Sequence[SourceFile]) -> dict[str, dict[str, str | None]]:
    """Raises InvalidDataError if two files lie below folders of other columns."""
    found: dict[str, dict[str, str | None]] = {}
    for file in files:
        values: dict[str, str | None] = {}
        for part in file.path.split("/")[:-1]:
            name, equals, text = part.partition("=")
            if equals:
                values[unquote(name)] = None if text == NULL else unquote(text)
        found[file.path] = values
    first = found[files[0].path]
    for path, values in found.items():
        if list(values) != list(first):
            raise InvalidDataError(
                f"the folders of {path} name the columns {list(values)}, those of {files[0].path} {list(first)}: import them apart",
                path=path,
            )
    return found


def _type_of(texts: set[str | None]) -> pa.DataType:
    """Of a column that only folders have."""
    known = [text for text in texts if text is not None]
    if known and all(_WHOLE.fullmatch(text) for text in known):
        return pa.int32() if all(-(2**31) <= int(text) < 2**31 for text in known) else pa.int64()
    return pa.date32() if known and all(map(_is_date, known)) else pa.string()


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _scalar(text: str | None, kind: pa.DataType, path: str) -> pa.Scalar:
    try:
        return pa.scalar(text, pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidDataError(
            f"the folder of {path} names the value {text!r}, which is no {kind}: move the file", path=path
        ) from error


def _check_values(values: pa.Array, value: pa.Scalar, name: str, path: str) -> None:
    """What a file holds and what its folder says are the same, or who reads the folder and who
    reads the file see other rows. Raises InvalidDataError."""
    held = conform(pa.record_batch([values], [name]), pa.schema([pa.field(name, value.type)])).column(0)
    same = pc.is_null(held) if not value.is_valid else pc.equal(held, value)
    if not pc.all(pc.fill_null(same, False)).as_py():
        raise InvalidDataError(
            f"{path} holds other values of {name!r} than its folder names: move its rows, or take the file away",
            path=path,
        )
