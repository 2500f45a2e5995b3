"""`Scan`: a lazy query. Nothing is read until rows are asked for; then batches stream in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from hudi_table.read.exports import ArrowResult
from hudi_table.read.files import count_rows, stream
from hudi_table.read.human import number, size
from hudi_table.read.plan import Request, ScanPlan, make_plan
from hudi_table.read.show import key_values_html
from hudi_table.table.context import TableContext

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from hudi_table.read.duckdb_source import HudiDataset

FILE_SCHEMA = pa.schema(
    [
        ("path", pa.string()),
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("instant", pa.string()),
        ("size_bytes", pa.int64()),
        ("log_files", pa.int64()),
    ]
)


class Scan(ArrowResult):
    """Rows of one snapshot of a table.

    The snapshot is fixed when the plan is first needed (`schema`, `explain()`, the first batch); every later stream
    of the same scan gives the same rows. Methods that read raise UnsupportedTableError, InvalidOptionError, ExpiredError,
    CorruptTableError, UnavailableError and AccessDeniedError.
    """

    def __init__(self, context: TableContext, request: Request) -> None:
        self._context = context
        self._request = request

    @cached_property
    def plan(self) -> ScanPlan:
        """The files and columns that will be read."""
        return make_plan(self._context, self._request)

    @property
    def schema(self) -> pa.Schema:
        """The result's Arrow schema."""
        return self.plan.schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return stream(self._context, self.plan, self._request.limit)

    def to_polars(self) -> pl.LazyFrame:
        """A Polars lazy frame over this scan: it hands down columns, filter and number of rows."""
        from hudi_table.read.polars_source import lazy_frame

        return lazy_frame(self._context, self.plan, self._request.limit)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over this scan, in `connection` or DuckDB's default one; it reads only when it is run.

        DuckDB hands down the columns and conditions of what is built on it, unless the scan has a limit, which counts before.
        """
        import duckdb

        source = self if self._request.limit is not None else self.to_dataset()
        return (connection or duckdb.default_connection()).from_arrow(source)

    def to_dataset(self) -> HudiDataset:
        """What DuckDB can register and push columns and conditions into; nothing else of a pyarrow data set is there."""
        from hudi_table.read.duckdb_source import HudiDataset

        return HudiDataset(self._context, self.plan)

    def count(self) -> int:
        """The number of rows; without a filter from the files' footers alone."""
        rows = count_rows(self._context, self.plan)
        return rows if self._request.limit is None else min(rows, self._request.limit)

    def plan_files(self) -> pa.Table:
        """One row for each file slice that will be read: path of the base file (null if it has only logs), partition,
        file_id, instant, size_bytes of base file and logs, log_files (their number)."""
        slices = self.plan.slices
        columns = [
            [s.base.path if s.base else None for s in slices],
            [s.partition for s in slices],
            [s.file_id for s in slices],
            [s.instant for s in slices],
            [s.size for s in slices],
            [len(s.logs) for s in slices],
        ]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, FILE_SCHEMA, strict=True)], schema=FILE_SCHEMA)

    def explain(self) -> str:
        """The plan in words: snapshot, columns, filter, partitions and files that are read."""
        return "\n".join([f"Scan of {self._context.base_path}", *(f"  {key:<12}{text}" for key, text in self._facts())])

    def __repr__(self) -> str:
        asked = self._request
        parts = [
            repr(self._context.base_path),
            "" if asked.columns is None else f"columns={list(asked.columns)}",
            "" if asked.filter is None else f"filter={asked.filter.text!r}",
            "" if asked.as_of is None else f"as_of={asked.as_of!r}",
            "" if asked.limit is None else f"limit={asked.limit}",
        ]
        return f"Scan({', '.join(part for part in parts if part)})"

    def _repr_html_(self) -> str:
        return key_values_html(f"Scan of {self._context.config.name}", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        plan, asked = self.plan, self._request
        data = sum(found.size for found in plan.slices)
        logs = sum(len(found.logs) for found in plan.slices)
        shown = ", ".join(plan.schema.names) or "none"
        facts = [
            ("snapshot", plan.instant or "no commit yet"),
            ("columns", f"{shown} ({len(plan.schema)} of {plan.columns_total})"),
            ("filter", asked.filter.text if asked.filter else "none"),
            ("partitions", f"{number(plan.partitions)} of {number(plan.partitions_total)}"),
            *(
                [("buckets", f"{number(len(plan.buckets))} of {number(plan.buckets_total or 0)}")]
                if plan.buckets is not None
                else []
            ),
            ("files", f"{number(len(plan.slices))} of {number(plan.slices_total)}, {size(data)}"),
            *([("log files", number(logs))] if logs else []),
        ]
        return facts if asked.limit is None else [*facts, ("limit", f"{number(asked.limit)} rows")]
