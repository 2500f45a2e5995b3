"""One SELECT over tables, answered by DuckDB: columns and conditions are handed down to the scans,
the answer streams.

The statement may come from anybody, so the session reaches nothing but these tables: no file, no
network, no extension, no variable of this process, and no setting that would give them back. What
does not fit into DuckDB's memory (80 % of the machine's, or of its control group's) goes to a
folder of its own under the temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.metadata.port import open_context
from hudi_table.read.reader import TableReader
from hudi_table.table.store.opening import open_storage

if TYPE_CHECKING:
    import duckdb

    from hudi_table.read.output.duckdb_source import HudiDataset

BATCH_ROWS = 64 * 1024
_LOCKED = (
    "set python_enable_replacements = false",
    "set autoinstall_known_extensions = false",
    "set autoload_known_extensions = false",
    "set TimeZone = 'UTC'",
    "set enable_external_access = false",
    "set lock_configuration = true",
)


@dataclass(frozen=True, slots=True)
class QueriedTable:
    """A table under its name in the statement. `how` are arguments of `HudiTable.scan`: as_of,
    query, since, until, …"""

    name: str
    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    how: Mapping[str, object] = field(default_factory=dict)

    def open(self) -> TableReader:
        """The table. Raises what `open_table` raises."""
        return TableReader(open_context(open_storage(self.uri, self.storage_options)))


@contextmanager
def duckdb_rows(sql: str, tables: Mapping[str, QueriedTable]) -> Iterator[pa.RecordBatchReader]:
    """The answer as a stream, within the context; names in it are unique. Each table is read in one
    state.

    Raises InvalidRequestError without DuckDB, InvalidOptionError for anything but one SELECT that
    DuckDB can answer, and what scans raise.
    """
    try:
        import duckdb
    except ImportError as error:
        raise InvalidRequestError(
            "SQL needs DuckDB, which is not installed: pip install 'hudi-table[query]'"
        ) from error

    with TemporaryDirectory(prefix="hudi-query-") as scratch:
        connection = duckdb.connect(":memory:", config={"temp_directory": scratch})
        try:
            opened = _opened(tables)
            with _plain_errors(opened):
                for name, source in opened.items():
                    connection.register(name, source)
            for setting in _LOCKED:
                connection.execute(setting)
            with _plain_errors(opened):
                _check(connection, sql)
                answer = connection.sql(sql).to_arrow_reader(BATCH_ROWS)
            names = unique_names(answer.schema.names)
            schema = pa.schema([each.with_name(name) for each, name in zip(answer.schema, names, strict=True)])
            yield pa.RecordBatchReader.from_batches(schema, _translated(answer, schema, opened))
        finally:
            connection.close()


def _opened(tables: Mapping[str, QueriedTable]) -> dict[str, HudiDataset]:
    """By name; one table under two names is read in one state."""
    by_place: dict[str, HudiDataset] = {}
    for table in tables.values():
        if table.uri not in by_place:
            by_place[table.uri] = table.open().scan(**table.how).duckdb_source()  # type: ignore[arg-type]
    return {name: by_place[table.uri] for name, table in tables.items()}


def _check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        kinds = ", ".join(str(each.type).rpartition(".")[2] for each in statements) or "nothing"
        raise InvalidOptionError(f"the query is {kinds}: give one SELECT; nothing here changes a table")


def _translated(
    answer: pa.RecordBatchReader, schema: pa.Schema, opened: Mapping[str, HudiDataset]
) -> Iterator[pa.RecordBatch]:
    while True:
        with _plain_errors(opened):
            try:
                batch = answer.read_next_batch()
            except StopIteration:
                return
        yield batch.rename_columns(schema.names)


@contextmanager
def _plain_errors(opened: Mapping[str, HudiDataset]) -> Iterator[None]:
    """DuckDB's errors in our words; where one of ours was the cause, that one."""
    import duckdb

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        for source in opened.values():
            if source.failure is not None:
                raise source.failure from error
        text = str(error).split("\n\n")[0].splitlines()
        message = " ".join(line for line in text if not line.startswith('Did you mean "pg_'))
        names = ", ".join(opened)
        raise InvalidOptionError(f"the query failed: {message} (tables here: {names})") from error


def unique_names(names: Sequence[str]) -> list[str]:
    """SQL lets columns share a name; here the second `x` is `x_2`."""
    found: dict[str, None] = {}
    for name in names:
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found[free] = None
    return list(found)
