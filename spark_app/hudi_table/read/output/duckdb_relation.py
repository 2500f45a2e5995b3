"""The DuckDB relation over a scan: DuckDB's own Parquet reader for the files that it may read, our stream for all others.

Facts (DuckDB 2.0): paths are patterns, of which `[*]` means the character itself; files of one list have the columns of the first;
statistics do not count NaN, its greatest number, so it must be told that there may be some; it checks no check sums of pages. What a connection refuses (`enable_external_access`) it refuses when the relation is made.
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
_PATTERN = re.compile(r"[*?\[]")


def relation(
    context: TableContext, planned: Replanned[ScanPlan], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """The rows of the plan. Where files are handed over the plan is bound to them: what goes before they are read is an error."""
    streamed = connection.from_arrow(HudiDataset(context, planned))
    plan = planned.plan
    files, left = split(context, plan)
    try:
        parts = [_read_by_duckdb(connection, some, streamed) for some in files]
    except extra("duckdb", "query").Error:
        return streamed
    if not parts or any(part.types != streamed.types for part in parts) or not planned.bind(plan):
        return streamed
    if left.slices:
        parts.append(connection.from_arrow(HudiDataset(context, Replanned.of(context, left))))
    return reduce(lambda one, other: one.union(other), parts)


def _read_by_duckdb(
    connection: duckdb.DuckDBPyConnection, files: EngineFiles, like: duckdb.DuckDBPyRelation
) -> duckdb.DuckDBPyRelation:
    paths = [_PATTERN.sub(lambda found: f"[{found[0]}]", path) for path in files.paths]
    columns = [
        _column(name, str(kind), stored)
        for name, kind, stored in zip(like.columns, like.types, files.stored, strict=True)
    ]
    found = connection.sql(_FILES, params=[paths])
    assert found is not None
    return found.project(", ".join(columns))


def _column(name: str, kind: str, stored: pa.DataType | None) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    return f"cast({'null' if stored is None else quoted} as {kind}) as {quoted}"
