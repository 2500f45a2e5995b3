"""Tables as DataFrames: `read`, and the registration of `format("hudi")`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.readwriter import DataStreamWriter

from hudi_spark.datasource.catalog_rules import refuse_idle_statements, refuse_tables_of_writers
from hudi_spark.datasource.save_modes import hand_over_modes, hand_over_partitions
from hudi_spark.datasource.source import HudiDataSource, LongNamedSource
from hudi_spark.tasks import TableHandle
from hudi_spark.worker import set_up_worker
from hudi_table.api import open_table
from hudi_table.codec.conform import conform
from hudi_table.codec.logical_types.vectors import has_vectors, with_lists
from hudi_table.errors import InvalidOptionError
from hudi_table.model.names import is_skeleton
from hudi_table.read.changes.plan import ChangesPlan
from hudi_table.read.changes.rows import step_batches
from hudi_table.read.files import stream
from hudi_table.read.plan import ScanPlan
from hudi_table.table.timeline.context import TableContext

_FILE_NUMBER = "number int"


def register(spark: SparkSession) -> str:
    """Register `format("hudi")` and `format("org.apache.hudi")` by hand; returns a sentence that
    says which source wins in this session.

    Spark finds them by itself where `pyspark_hudi` and `pyspark_org_apache_hudi` are on its Python
    path; what it refuses sources in Python, the save modes `ignore` and `errorifexists` and
    `partitionBy`, works after this call, and what its catalog would do alone is refused
    (`catalog_rules`). A Hudi jar on the class path claims the same names, and a source of the JVM
    goes before one of Python.
    """
    for source in (HudiDataSource, LongNamedSource):
        if not _is_found(spark, source.name()):
            spark.dataSource.register(source)
    frames, tables, streams = _writer_classes(spark)
    hand_over_modes(frames)
    hand_over_partitions(streams)
    refuse_idle_statements(spark)
    refuse_tables_of_writers(tables, streams)
    if _has_hudi_jar(spark):
        return "a Hudi jar is on the class path: format('hudi') is the jar's; use hudi_spark.read for this library"
    return "format('hudi') is this library's"


def _is_found(spark: SparkSession, name: str) -> bool:
    """Whether Spark has found a source in Python of this name: to register it again makes Spark
    print a warning."""
    try:
        return bool(spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(name))
    except Py4JError:
        return False


def read(
    spark: SparkSession,
    uri: str | Path,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,  # noqa: A002 - the name that `scan` uses
    as_of: str | None = None,
    meta: bool = False,
    query: str = "snapshot",
    since: str | None = None,
    until: str | None = None,
    full_scan: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The newest snapshot of a table, or the one at `as_of`, as a DataFrame; `query`, `since`,
    `until` and `full_scan` are those of `HudiTable.scan`. `query="cdc"` gives what
    `HudiTable.changes` does; rows come in no order, `ts_ms` tells it.

    On local paths Spark reads the chosen base files itself, unless they hold vectors, so column
    pruning, push-down and counts come free; on object stores tasks read them with pyarrow, and no
    Hadoop file system is needed. `filter` (SQL-like text) prunes partitions, row groups and rows.
    Raises what `hudi_table.open_table` and its scan raise.
    """
    table = open_table(uri, as_of=as_of, storage_options=storage_options)
    if query == "cdc":
        if filter is not None or meta:
            raise InvalidOptionError("filter and meta do not go with query='cdc'; leave them out")
        changes = table.changes(since, until, columns=columns, full_scan=full_scan)
        return changes_frame(spark, table.context, changes.plan)
    plan = table.scan(columns, filter, meta=meta, query=query, since=since, until=until, full_scan=full_scan).plan
    return scan_frame(spark, table.context, plan)


def scan_frame(spark: SparkSession, context: TableContext, plan: ScanPlan) -> DataFrame:
    """The rows of a plan."""
    bases = [each.base for each in plan.slices if each.base and not each.logs and not is_skeleton(each.base.path)]
    readable = plan.bound is None and not has_vectors(plan.schema)
    if _is_local(context.base_path) and readable and 0 < len(bases) == len(plan.slices):
        paths = [f"file://{context.base_path.removeprefix('file://')}/{base.path}" for base in bases]
        # Explicit files hold partition-like folder names: base paths would make Spark infer columns from them.
        reader = spark.read.schema(from_arrow_schema(plan.schema)).option("recursiveFileLookup", "true")
        return reader.parquet(*(_escaped(path) for path in paths))

    def slice_rows(opened: TableContext, number: int) -> Iterator[pa.RecordBatch]:
        return stream(opened, replace(plan, slices=(plan.slices[number],)))

    return _in_tasks(spark, context, plan.schema, len(plan.slices), slice_rows)


def changes_frame(spark: SparkSession, context: TableContext, plan: ChangesPlan) -> DataFrame:
    """The changes of a plan."""

    def step_rows(opened: TableContext, number: int) -> Iterator[pa.RecordBatch]:
        return step_batches(opened, plan, plan.steps[number])

    return _in_tasks(spark, context, plan.schema, len(plan.steps), step_rows)


def _in_tasks(
    spark: SparkSession,
    context: TableContext,
    arrow: pa.Schema,
    parts: int,
    read_part: Callable[[TableContext, int], Iterator[pa.RecordBatch]],
) -> DataFrame:
    """One task for each of the numbered parts."""
    schema, handle, plain = from_arrow_schema(arrow), TableHandle.of(context), with_lists(arrow)
    if not parts:
        return spark.createDataFrame([], schema)
    numbers = spark.createDataFrame([(number,) for number in range(parts)], _FILE_NUMBER)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from (conform(found, plain) for found in read_part(handle.open(), number))

    return numbers.repartitionById(parts, "number").mapInArrow(rows, schema)


def _is_local(base_path: str) -> bool:
    return base_path.startswith(("/", "file:"))


def _escaped(path: str) -> str:
    """Hadoop takes glob characters in paths literally when they are escaped."""
    return "".join("\\" + char if char in "{}[]*?\\" else char for char in path)


def _writer_classes(spark: SparkSession) -> tuple[type[Any], type[Any], type[Any]]:
    """The classes whose instances `df.write`, `df.writeTo` and `df.writeStream` give in this
    session."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect import readwriter
        from pyspark.sql.connect.streaming import readwriter as stream_readwriter

        return readwriter.DataFrameWriter, readwriter.DataFrameWriterV2, stream_readwriter.DataStreamWriter
    return DataFrameWriter, DataFrameWriterV2, DataStreamWriter


def _has_hudi_jar(spark: SparkSession) -> bool:
    try:
        machine: Any = spark.sparkContext._jvm
        machine.java.lang.Class.forName("org.apache.hudi.DefaultSource")
    except (Py4JError, PySparkException, AttributeError):  # no such class, or Connect's missing SparkContext
        return False
    return True
