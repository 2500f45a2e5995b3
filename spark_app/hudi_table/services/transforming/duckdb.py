"""Rows through one SELECT, by DuckDB: a database in memory that reaches no file and no network,
whose zone is UTC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from hudi_table.errors import InvalidDataError, InvalidRequestError, InvalidSchemaError
from hudi_table.services.select_check import SOURCE
from hudi_table.services.transforming.column_types import check_types
from hudi_table.services.transforming.dialect import Select
from hudi_table.services.transforming.macros import MACROS

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 131_072
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "preserve_insertion_order": "true",
    "threads": "1",
}
_TEXTS = "SELECT value, sha256(value) AS id FROM (SELECT to_json(row_)::VARCHAR AS value FROM source AS row_)"


class Database:
    """One connection for the steps of a chain. Ended by `close`."""

    def __init__(self) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise InvalidRequestError(
                "a transform without Spark needs DuckDB, which is not installed: pip install 'hudi-table[query]'"
            ) from error
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=dict(_SETTINGS))
        for statement in ("SET TimeZone = 'UTC'", *MACROS, "SET lock_configuration = true"):
            self._connection.execute(statement)

    def rows(self, select: Select, source: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """What comes out, as a stream that reads the source as it goes. Raises InvalidRequestError
        for what DuckDB refuses; InvalidDataError, also from the stream, for a row that an
        expression cannot take."""
        names = [name.lower() for name in source.schema.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidSchemaError(
                f"the source has column {twice!r} twice, in other letters: a transform cannot distinguish them"
            )
        whole = source.schema if source.schema.names else None
        if whole is None:
            raise InvalidRequestError("the transform has no column to read: no row of the source has any")
        check_types(select.operands, source.schema)
        with _told(source.schema.names):
            # A stream can be read once.
            held = source if select.scans == 1 else source.read_all()
            self._connection.register(SOURCE, held)
            answer = self._connection.sql(select.text).to_arrow_reader(BATCH_ROWS)
        names = [name.lower() for name in answer.schema.names]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidRequestError(
                f"the transform gives column {twice!r} twice: name one of them otherwise, or leave it out"
            )
        return pa.RecordBatchReader.from_batches(answer.schema, _read(answer, source.schema.names))

    def schema(self, columns: Mapping[str, str]) -> pa.Schema:
        """Columns by name with types in Spark's words. Raises InvalidRequestError that names one
        that is none."""
        fields = []
        for name, words in columns.items():
            try:
                typed = exp.select(exp.cast(exp.Null(), exp.DataType.build(words, dialect="spark"))).sql("duckdb")
                found = self._connection.sql(typed).to_arrow_table().schema.field(0).type
            except (sqlglot.errors.SqlglotError, duckdb_errors()) as error:
                raise InvalidRequestError(
                    f"source.columns says {words!r} of {name}, which is no type: give one of Spark's, such as bigint"
                ) from error
            fields.append(pa.field(name, found))
        return pa.schema(fields)

    def texts(self, rows: pa.Table) -> pa.Table:
        """Of each row its columns as JSON (`value`), and the SHA-256 of that (`id`)."""
        with _told(rows.column_names):
            self._connection.register(SOURCE, rows)
            found: pa.Table = self._connection.sql(_TEXTS).to_arrow_table()
        return found

    def close(self) -> None:
        """End it."""
        self._connection.close()


def _read(answer: pa.RecordBatchReader, names: list[str]) -> Iterator[pa.RecordBatch]:
    while True:
        with _told(names):
            try:
                batch = answer.read_next_batch()
            except StopIteration:
                return
        yield batch


def duckdb_errors() -> type[Exception]:
    """What DuckDB raises."""
    import duckdb

    return duckdb.Error


@contextmanager
def _told(names: list[str]) -> Iterator[None]:
    """DuckDB's errors in our words: what it refuses of the statement, and what it meets in a
    row."""
    import duckdb

    try:
        yield
    except (
        duckdb.BinderException,
        duckdb.CatalogException,
        duckdb.ParserException,
        duckdb.NotImplementedException,
    ) as error:
        raise InvalidRequestError(
            f"the transform is refused: {_words(error)} (columns here: {', '.join(names)})"
        ) from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise InvalidDataError(f"the transform fails on some row: {_words(error)}") from error


def _words(error: Exception) -> str:
    first = str(error).split("\n\n", maxsplit=1)[0]
    return " ".join(line for line in first.splitlines() if not line.startswith("Did you mean"))
