"""`format("hudi")` without a jar: a Python data source over `hudi_table`.

Facts (measured on pyspark 4.3): columns are never pruned by Spark, so the option `columns` does it;
filters arrive only with `spark.sql.python.filterPushdown.enabled`, and a reader that defines
`pushFilters` fails without it, hence the option `pushFilters`; a table of Spark's catalog gives a
reader the catalog's columns and no path; the modes `ignore` and `errorifexists` are refused by
Spark before a source hears of them, see `save_modes`.

Options, beside those of Hudi (`format_options`): `path`; `columns` (comma list), `filter` (SQL-like
text), `asOf`, `meta` (false leaves Hudi's five columns out), `query` with `since`, `until`,
`fullScan`, and `pushFilters`; those of writes (`writes`); and storage options as `storage.<name>`,
whose credentials are better left to the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import datasource as ds
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from hudi_spark.datasource.format_options import (
    READ_KEYS,
    FormatOptions,
    ReadRequest,
    format_options,
    refuse_of_streams,
)
from hudi_spark.datasource.writes import RowsWriter
from hudi_spark.tasks import TableHandle
from hudi_spark.worker import set_up_worker
from hudi_table.api import HudiTable, open_table
from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidOptionError, InvalidRequestError, InvalidSchemaError
from hudi_table.read.changes.plan import ChangesPlan
from hudi_table.read.changes.rows import step_batches
from hudi_table.read.files import stream
from hudi_table.read.plan import ScanPlan
from hudi_table.write.checks.table_options import refuse_contradictions

NAME = "hudi"
LONG_NAME = "org.apache.hudi"


class HudiDataSource(ds.DataSource):
    """The data source `hudi`."""

    @classmethod
    def name(cls) -> str:
        """`hudi`: beside Apache Hudi's own jar, whichever of the two Spark finds first wins; see
        `register`."""
        return NAME

    def schema(self) -> StructType:
        """The schema of the result: of today, or of the moment that a batch asks for."""
        spark_options = format_options(self.options)
        request = ReadRequest.of(spark_options)
        if request.query == "snapshot":
            # Spark asks for the schema before it says whether it reads a batch or a stream, which is told where to begin.
            request = replace(request, since=None, until=None, full_scan=False)
        return from_arrow_schema(plan_of(request, table_of(spark_options, request)).schema)

    def reader(self, schema: StructType) -> ds.DataSourceReader:
        """A reader of what the options ask for, in the columns of `schema`."""
        spark_options = format_options(self.options)
        refuse_of_streams(spark_options)
        request = ReadRequest.of(spark_options)
        return (
            PushingReader(spark_options, request, schema)
            if request.pushes
            else SnapshotReader(spark_options, request, schema)
        )

    def streamReader(self, schema: StructType) -> ds.DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of what changes. Raises InvalidRequestError on Spark before 4.2."""
        try:
            from hudi_spark.datasource.stream_reads import HudiStreamReader
        except ImportError as error:
            raise InvalidRequestError("readStream.format('hudi') needs Spark 4.2 or newer") from error
        spark_options = format_options(self.options)
        request = ReadRequest.of(spark_options, streaming=True)
        return HudiStreamReader(request, schema, table_of(spark_options, request))

    def writer(self, schema: StructType, overwrite: bool) -> ds.DataSourceWriter:
        """A writer of any number of rows, which commits them once."""
        return RowsWriter(format_options(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> ds.DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """A writer of micro-batches, each committed once. Raises InvalidRequestError on Spark
        before 4.1."""
        try:
            from hudi_spark.datasource.stream_writes import BatchWriter
        except ImportError as error:
            raise InvalidRequestError("writeStream.format('hudi') needs Spark 4.1 or newer") from error
        return BatchWriter(format_options(self.options), schema, overwrite)


class LongNamedSource(HudiDataSource):
    """The same under the name that older jobs use."""

    @classmethod
    def name(cls) -> str:
        """`org.apache.hudi`."""
        return LONG_NAME


@dataclass
class PlannedPart(ds.InputPartition):
    """A slice of a plan, or a step of one of changes, by its number."""

    number: int


class SnapshotReader(ds.DataSourceReader):
    """Reads the slices of one plan, one Spark partition each. Pickled to the tasks with its
    plan."""

    def __init__(self, spark_options: FormatOptions, request: ReadRequest, schema: StructType) -> None:
        table = table_of(spark_options, request)
        self.schema: pa.Schema = to_arrow_schema(schema, timezone="UTC")
        self.plan = _in_columns(plan_of(request, table), request, table, self.schema)
        self.handle = TableHandle.of(table.context)

    def partitions(self) -> Sequence[ds.InputPartition]:
        """One partition a slice, or a step."""
        parts: Sequence[object] = self.plan.steps if isinstance(self.plan, ChangesPlan) else self.plan.slices
        return [PlannedPart(number) for number in range(len(parts))]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of one part."""
        if not isinstance(partition, PlannedPart):
            # A table without files: Spark then asks once, with no partition.
            return
        set_up_worker()
        if isinstance(self.plan, ChangesPlan):
            batches = step_batches(self.handle.open(), self.plan, self.plan.steps[partition.number])
        else:
            batches = stream(self.handle.open(), replace(self.plan, slices=(self.plan.slices[partition.number],)))
        for batch in batches:
            yield conform(batch, self.schema)


class PushingReader(SnapshotReader):
    """Takes Spark's filters for pruning partitions and row groups; Spark applies them again to the
    rows."""

    def __init__(self, spark_options: FormatOptions, request: ReadRequest, schema: StructType) -> None:
        super().__init__(spark_options, request, schema)
        self._spark_options, self._request = spark_options, request

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:  # noqa: N802 - Spark's name
        """Narrow the plan by the filters that we can express, and give all back: Spark checks the
        rows as well."""
        conditions = [as_condition(item, self.schema) for item in filters]
        known = [condition for condition in conditions if condition is not None]
        if known and self._request.query != "cdc":
            table = table_of(self._spark_options, self._request)
            self.plan = _in_columns(plan_of(self._request, table, known), self._request, table, self.schema, known)
        return filters


def table_of(spark_options: FormatOptions, request: ReadRequest) -> HudiTable:
    """The table at the options' path, as of their moment. Raises InvalidOptionError for options
    that describe another table: Hudi reads by what is stored, in silence."""
    table = open_table(spark_options.path, as_of=request.as_of, storage_options=spark_options.storage)
    told = {key: value for key, value in spark_options.hudi.items() if key not in READ_KEYS}
    refuse_contradictions(table.context.config, told)
    return table


def plan_of(
    request: ReadRequest, table: HudiTable, conditions: Sequence[tuple[str, str, object]] = ()
) -> ScanPlan | ChangesPlan:
    """What the options ask for. Raises InvalidOptionError."""
    if request.query == "cdc":
        if request.filter is not None or request.meta:
            raise InvalidOptionError("filter and meta do not go with query='cdc'; leave them out")
        return table.changes(request.since, request.until, columns=request.columns, full_scan=request.full_scan).plan
    # Spark's own filters come on top of the option; rows are filtered by Spark again, so one of the two suffices.
    condition: object = request.filter if request.filter is not None else (list(conditions) or None)
    meta = request.meta
    if meta is None:
        meta = request.columns is None and table.context.config.populate_meta_fields
    return table.scan(
        request.columns, condition, meta=meta, query=request.query,
        since=request.since, until=request.until, full_scan=request.full_scan,
    ).plan  # fmt: skip


def _in_columns(
    plan: ScanPlan | ChangesPlan,
    request: ReadRequest,
    table: HudiTable,
    schema: pa.Schema,
    conditions: Sequence[tuple[str, str, object]] = (),
) -> ScanPlan | ChangesPlan:
    """The plan in the columns that Spark asks for, which are others where a catalog or `.schema(…)`
    names them.

    Raises InvalidSchemaError for one that the table does not have.
    """
    if schema.names == plan.schema.names or request.query == "cdc":
        return plan
    known = table.schema(meta=table.context.config.populate_meta_fields).names
    missing = [name for name in schema.names if name not in known]
    if missing:
        raise InvalidSchemaError(
            f"the table at {table.base_path} has no column '{missing[0]}': columns that Spark's catalog (CREATE TABLE, ALTER TABLE … "
            "ADD COLUMNS) or .schema(…) names do not change a Hudi table; write rows that have the column"
        )
    return plan_of(replace(request, columns=tuple(schema.names), meta=False), table, conditions)


def as_condition(item: ds.Filter, schema: pa.Schema) -> tuple[str, str, object] | None:
    """A filter of Spark as (column, operator, value), or None for what we do not push: what is not
    known, and floats, among which Spark has NaN as the greatest and equal to itself."""
    operators = {
        ds.EqualTo: "=",
        ds.GreaterThan: ">",
        ds.GreaterThanOrEqual: ">=",
        ds.LessThan: "<",
        ds.LessThanOrEqual: "<=",
    }
    attribute: Sequence[str] = getattr(item, "attribute", ())
    value: Any = getattr(item, "value", None)
    if len(attribute) != 1 or attribute[0] not in schema.names or pt.is_floating(schema.field(attribute[0]).type):
        return None
    if isinstance(item, ds.In):
        # Nothing equals a null, so it finds no row.
        return (attribute[0], "in", [member for member in value if member is not None])
    operator = operators.get(type(item))
    return None if operator is None or value is None else (attribute[0], operator, value)
