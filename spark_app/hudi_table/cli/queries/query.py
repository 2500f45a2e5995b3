"""`hudictl query [BASE] SQL`: the answer of one SELECT over any number of tables."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

import pyarrow as pa

from hudi_table.cli import exits
from hudi_table.cli.added_verbs import ENGINES, ENGINES_ELSEWHERE, entry_points
from hudi_table.cli.opened import read_arguments
from hudi_table.cli.program import storage_options
from hudi_table.cli.rows import Shown
from hudi_table.cli.without_pandas import let_pandas_in
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.services.sql_query import QueriedTable, duckdb_rows

THIS = "this_table"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Engine = Callable[[str, Mapping[str, QueriedTable], int | None], AbstractContextManager[pa.RecordBatchReader]]


def run(args: argparse.Namespace) -> int:
    """Print or write the answer."""
    shown = Shown.of(args)
    tables = _tables(args)
    with _engine(args.engine)(args.sql, tables, shown.wanted) as answer:
        shown.write(pa.RecordBatchReader.from_batches(answer.schema, _first(answer, shown.wanted)))
    return exits.GOOD


def _tables(args: argparse.Namespace) -> dict[str, QueriedTable]:
    """The tables by name: those of `--table`, and BASE under its own name and as `this_table`."""
    storage, how = storage_options(args.storage), read_arguments(args)
    tables: dict[str, QueriedTable] = {}
    for pair in args.table:
        name, equals, uri = pair.partition("=")
        if not equals or not uri or not _NAME.fullmatch(name):
            raise InvalidOptionError(
                f"--table {pair!r} is no NAME=BASE, such as flights=s3://lake/flights; a name has letters, digits and _"
            )
        if name.lower() in map(str.lower, tables):
            raise InvalidOptionError(f"--table names {name!r} twice")
        tables[name] = QueriedTable(name, uri, storage, how)
    if args.base is not None:
        one = QueriedTable(THIS, args.base, storage, how)
        own = one.open().name
        for name in (THIS, own):
            if _NAME.fullmatch(name) and name.lower() not in map(str.lower, tables):
                tables[name] = one
    if not tables:
        raise InvalidOptionError("no table: hudictl query BASE SQL, or hudictl query SQL --table NAME=BASE")
    return tables


def _engine(name: str) -> Engine:
    if name == "duckdb":
        return lambda sql, tables, _: duckdb_rows(sql, tables)
    known = entry_points(ENGINES)
    if name not in known and name in ENGINES_ELSEWHERE:
        brings = ENGINES_ELSEWHERE[name]
        raise InvalidRequestError(f"the engine {name} is not installed here: pip install '{brings}' brings it")
    if name not in known:
        raise InvalidRequestError(f"there is no engine {name!r}: there is {', '.join(['duckdb', *known])}")
    if missing := known[name].missing():
        raise InvalidRequestError(f"the engine {name} needs {', '.join(missing)}: {known[name].install} brings it")
    let_pandas_in()
    engine: Engine = known[name].load()
    return engine


def _first(answer: pa.RecordBatchReader, rows: int | None) -> Iterator[pa.RecordBatch]:
    left = rows
    for batch in answer if left != 0 else ():
        if left is not None and batch.num_rows >= left:
            yield batch.slice(0, left)
            return
        left = None if left is None else left - batch.num_rows
        yield batch
