"""The DuckDB relation over a scan: DuckDB's own Parquet reader for the files that it may read, our
stream for all others.

Facts (DuckDB 2.0): paths are patterns, of which `[*]` means the character itself; files of one list
have the columns of the first; statistics do not count NaN, its greatest number, so it must learn
that there may be some; it checks no check sums of pages. What a connection refuses
(`enable_external_access`) it refuses when the relation is made.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_table.read.output.duckdb_source import HudiDataset
from hudi_table.read.output.engine_files import EngineFiles, split
from hudi_table.read.output.exports import extra
from hudi_table.read.plan import ScanPlan
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext

if TYPE_CHECKING:
    import duckdb

_FILES = "select * from read_parquet(?, can_have_nan = true, hive_partitioning = false, union_by_name = false)"
_KNOWN_TYPES: dict[pa.Schema, tuple[str, ...]] = {}
_KNOWN_MAX = 64
_PATTERN = re.compile(r"[*?\[]")


def relation(
    context: TableContext, planned: Replanned[ScanPlan], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """The rows of the plan. Where files are handed over the plan is bound to them: what goes before
    they are read is an error."""
    streamed = connection.from_arrow(HudiDataset(context, planned))
    plan = planned.plan
    files, left = split(context, plan)
    try:
        types = _types(connection, plan.schema) if files else ()
        parts = [_read_by_duckdb(connection, some, plan.schema, types) for some in files]
    except extra("duckdb", "query").Error:
        return streamed
    if not parts or any(tuple(map(str, part.types)) != types for part in parts) or not planned.bind(plan):
        return streamed
    if left.slices:
        parts.append(connection.from_arrow(HudiDataset(context, Replanned.of(context, left))))
    return reduce(lambda one, other: one.union(other), parts)


def _read_by_duckdb(
    connection: duckdb.DuckDBPyConnection, files: EngineFiles, schema: pa.Schema, types: tuple[str, ...]
) -> duckdb.DuckDBPyRelation:
    paths = [_PATTERN.sub(lambda found: f"[{found[0]}]", path) for path in files.paths]
    columns = [
        _column(name, kind, stored) for name, kind, stored in zip(schema.names, types, files.stored, strict=True)
    ]
    found = connection.sql(_FILES, params=[paths])
    assert found is not None
    return found.project(", ".join(columns))


def _types(connection: duckdb.DuckDBPyConnection, schema: pa.Schema) -> tuple[str, ...]:
    """What DuckDB calls the types of a stream with this schema. Asking it costs as much as a small
    query."""
    found = _KNOWN_TYPES.get(schema)
    if found is None:
        found = tuple(map(str, connection.from_arrow(schema.empty_table()).types))
        if len(_KNOWN_TYPES) >= _KNOWN_MAX:
            _KNOWN_TYPES.clear()
        _KNOWN_TYPES[schema] = found
    return found


def _column(name: str, kind: str, stored: pa.DataType | None) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    return f"cast({'null' if stored is None else quoted} as {kind}) as {quoted}"
