"""Rows of a database in tasks of Spark: each reads one part itself, from the state that the
driver's connection keeps; no row goes through the driver."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hudi_spark.jobs.ingest_spark import Judge, Recorded, data_errors, in_spark_types, started, transformed, write_rows
from hudi_spark.jobs.progress import Progress
from hudi_spark.worker import set_up_worker
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.conform import conform
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.model.job.variables import SOURCE_VARIABLES
from hudi_table.sources.jdbc.database import schema_of
from hudi_table.sources.jdbc.settings import JdbcSettings
from hudi_table.sources.jdbc.source import JdbcParts

_ITEMS = "ordinal int, query string"


def write_parts(
    spec: JobSpec,
    table: HudiTable | None,
    settings: JdbcSettings,
    parts: JdbcParts,
    recorded: Recorded,
    progress: Progress,
    *,
    judge: Judge | None = None,
) -> CommitResult:
    """Read, transform, write. `judge`: which rows are taken. Raises HudiError. What a task reads is
    kept on its disk: the write looks at rows more than once, and a database is to be asked for them
    once."""
    spark = started(spec, progress, short=False)
    chain = spec.work.get("transform", ())
    with data_errors():
        kept = _frame(spark, settings, parts).persist(StorageLevel.DISK_ONLY)
        try:
            rows = transformed(spark, judge(spark, kept) if judge is not None else kept, chain)
            schema = None if chain else schema_of(parts.columns)
            return write_rows(spark, spec, table, rows, recorded, progress, schema=schema)
        finally:
            kept.unpersist()


def _frame(spark: SparkSession, settings: JdbcSettings, parts: JdbcParts) -> DataFrame:
    spark_schema, target = in_spark_types(schema_of(parts.columns))
    environment = {name: os.environ[name] for name in SOURCE_VARIABLES if name in os.environ}

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        for batch in batches:
            for query in batch.column("query").to_pylist():
                for found in parts.batches(settings, environment, query):
                    yield conform(found, target)

    queries = spark.createDataFrame(list(enumerate(parts.queries)), _ITEMS)
    return queries.repartitionById(len(parts.queries), "ordinal").mapInArrow(rows, spark_schema)
