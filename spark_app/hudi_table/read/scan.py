"""`Scan`: a lazy query. Nothing is read until rows are asked for; then batches stream in bounded
memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_table.errors import ObjectNotFoundError
from hudi_table.model.counts import counted
from hudi_table.read.files import count_rows, gone, stream
from hudi_table.read.footer_stats import with_footers
from hudi_table.read.incremental import last_stable
from hudi_table.read.output.exports import ArrowResult, extra
from hudi_table.read.output.human import number, size
from hudi_table.read.output.show import key_values_html
from hudi_table.read.plan import Request, ScanPlan, make_plan
from hudi_table.read.replanned import Replanned
from hudi_table.table.timeline.context import TableContext

if TYPE_CHECKING:
    import datafusion
    import duckdb
    import polars as pl

    from hudi_table.read.output.duckdb_source import HudiDataset

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

    The snapshot is fixed when the plan is first needed (`schema`, `explain()`, the first batch), or
    made anew if its files go before any row was given; every later stream of the same scan gives
    the same rows. Methods that read raise UnsupportedTableError, InvalidOptionError, ExpiredError,
    CorruptTableError, UnavailableError and AccessDeniedError.
    """

    def __init__(self, context: TableContext, request: Request) -> None:
        self._context = context
        self._request = request
        self._planned = Replanned(context, lambda: make_plan(context, request))

    @property
    def context(self) -> TableContext:
        """The table."""
        return self._context

    @property
    def plan(self) -> ScanPlan:
        """The files and columns that will be read."""
        return self._planned.plan

    @property
    def schema(self) -> pa.Schema:
        """The result's Arrow schema."""
        return self.plan.schema

    def _batches(self) -> Iterator[pa.RecordBatch]:
        return self._planned.batches(self._of)

    def _all_batches(self) -> list[pa.RecordBatch]:
        return self._planned.value(lambda plan: list(self._of(plan)))

    def _of(self, plan: ScanPlan) -> Generator[pa.RecordBatch, None, None]:
        return stream(self._context, plan, self._request.limit)

    def _said(self) -> dict[str, Any]:
        request = self._request
        said = {
            "table": self._context.base_path,
            "query": request.query,
            "columns": request.columns,
            "limit": request.limit,
        }
        said["filter"] = None if request.filter is None else request.filter.text
        return said if request.span is None else said | {"since": request.span.since}

    def _stable(self) -> str:
        return last_stable(self._context)

    def _newest(self) -> str:
        return self.plan.reached

    def to_polars(self) -> pl.LazyFrame:
        """A Polars lazy frame over this scan: it hands down columns, filter and number of rows.
        Base files on local disk that have no logs Polars reads itself."""
        extra("polars", "polars")
        from hudi_table.read.output.polars_source import lazy_frame

        return lazy_frame(self._context, self._planned, self._request.limit)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """A DuckDB relation over this scan, in `connection` or DuckDB's default one; it reads only
        when it is run.

        On local disk DuckDB reads base files without logs itself, those of the snapshot of this
        call: if a clean takes one before the relation is run, DuckDB says that there is no such
        file. All else it asks the scan for, with the columns and conditions of what is built on the
        relation, unless the scan has a limit, which counts before.
        """
        duckdb = extra("duckdb", "query")
        chosen = connection or duckdb.default_connection()
        if self._request.limit is not None:
            return chosen.from_arrow(self)
        from hudi_table.read.output.duckdb_relation import relation

        return relation(self._context, self._planned, chosen)

    def duckdb_source(self) -> HudiDataset:
        """What DuckDB can register under a name and hand columns and conditions down to:
        `connection.register("t", …)`."""
        from hudi_table.read.output.duckdb_source import HudiDataset

        return HudiDataset(self._context, self._planned)

    def to_datafusion(self, session: datafusion.SessionContext | None = None) -> datafusion.DataFrame:
        """A DataFusion frame over this scan, in `session` or DataFusion's global one; it reads only
        when it is run.

        DataFusion reads the same files itself as DuckDB does, see `to_duckdb`, of at most 200
        slices; if a clean takes one before the frame is run, the run ends with an error that names
        it. All else it asks the scan for, with the columns and conditions of what is built on the
        frame, unless the scan has a limit, which counts before.
        """
        datafusion = extra("datafusion", "datafusion")
        from hudi_table.read.output.datafusion_frame import frame

        chosen = session or datafusion.SessionContext.global_ctx()
        return frame(self._context, self._planned, chosen, self._request.limit)

    def count(self) -> int:
        """The number of rows; without a filter from the files' footers alone."""
        rows = self._planned.value(lambda plan: count_rows(self._context, plan))
        return rows if self._request.limit is None else min(rows, self._request.limit)

    def plan_files(self, *, statistics: bool = False) -> pa.Table:
        """One row for each file slice that will be read: whole path of the base file (null if it
        has only logs), partition, file_id, instant, size_bytes of base file and logs, log_files
        (their number). A skeleton of a bootstrap holds the meta columns alone.

        `statistics`: also what the footers of the base files say, one request for each: rows, and
        minimum and maximum, structs with a field for each column that has such values in every row
        group (null elsewhere). Of a slice with logs they are those of its base file: merging may
        change them.
        """
        return self._planned.value(self._with_footers) if statistics else self._files(self.plan)

    def _files(self, plan: ScanPlan) -> pa.Table:
        slices, base = plan.slices, self._context.base_path
        columns = [
            [f"{base}/{s.base.path}" if s.base else None for s in slices],
            [s.partition for s in slices],
            [s.file_id for s in slices],
            [s.instant for s in slices],
            [s.size for s in slices],
            [len(s.logs) for s in slices],
        ]
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, FILE_SCHEMA, strict=True)], schema=FILE_SCHEMA)

    def _with_footers(self, plan: ScanPlan) -> pa.Table:
        try:
            return with_footers(self._context, plan.slices, plan.schema, self._files(plan))
        except ObjectNotFoundError as error:
            path = str(error.path)
            raise gone(self._context, path.rpartition("/")[0], path) from error

    def explain(self) -> str:
        """The plan in words: snapshot, columns, filter, partitions and files that are read."""
        return "\n".join([f"Scan of {self._context.base_path}", *(f"  {key:<12}{text}" for key, text in self._facts())])

    def __repr__(self) -> str:
        request = self._request
        parts = [
            repr(self._context.base_path),
            "" if request.columns is None else f"columns={list(request.columns)}",
            "" if request.filter is None else f"filter={request.filter.text!r}",
            "" if request.as_of is None else f"as_of={request.as_of!r}",
            "" if request.limit is None else f"limit={request.limit}",
        ]
        return f"Scan({', '.join(part for part in parts if part)})"

    def _repr_html_(self) -> str:
        return key_values_html(f"Scan of {self._context.config.name}", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        plan, request = self.plan, self._request
        data = sum(found.size for found in plan.slices)
        logs = sum(len(found.logs) for found in plan.slices)
        shown = ", ".join(plan.schema.names) or "none"
        facts = [
            ("snapshot", plan.instant or "no commit yet"),
            ("columns", f"{shown} ({len(plan.schema)} of {plan.columns_total})"),
            ("filter", request.filter.text if request.filter else "none"),
            ("partitions", f"{number(plan.partitions)} of {number(plan.partitions_total)}"),
            *(
                [("buckets", f"{number(len(plan.buckets))} of {number(plan.buckets_total or 0)}")]
                if plan.buckets is not None
                else []
            ),
            ("files", f"{number(len(plan.slices))} of {number(plan.slices_total)}, {size(data)}"),
            *([("log files", number(logs))] if logs else []),
        ]
        return facts if request.limit is None else [*facts, ("limit", counted(request.limit, "row"))]
