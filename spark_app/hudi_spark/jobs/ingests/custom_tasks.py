"""What a source of another package gives in parts, read in tasks of Spark: each task makes an
object of the class for itself, of the same options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hudi_spark.jobs.ingest_spark import Judge, Recorded, data_errors, in_spark_types, started, transformed, write_rows
from hudi_spark.jobs.progress import Progress
from hudi_spark.worker import set_up_worker
from hudi_table.api import CommitResult, HudiTable
from hudi_table.codec.conform import conform
from hudi_table.errors import InvalidSchemaError
from hudi_table.model.job.jobspec import JobSpec
from hudi_table.sources.custom import CustomParts, custom_source, part_of
from hudi_table.write.incoming import open_stream

_ITEMS = "ordinal int, part string"


def write_parts(
    spec: JobSpec,
    table: HudiTable | None,
    parts: CustomParts,
    recorded: Recorded,
    progress: Progress,
    judge: Judge | None = None,
) -> CommitResult:
    """Read, transform, write. `judge`: which rows are taken. Raises HudiError. What a task reads is
    kept on its disk, as the write looks at rows more than once."""
    spark = started(spec, progress, short=False)
    with data_errors():
        kept = _frame(spark, spec.work["source"]["custom"], parts).persist(StorageLevel.DISK_ONLY)
        try:
            rows = transformed(spark, judge(spark, kept) if judge is not None else kept, spec.work.get("transform", ()))
            return write_rows(spark, spec, table, rows, recorded, progress)
        finally:
            kept.unpersist()


def _frame(spark: SparkSession, custom: Mapping[str, Any], parts: CustomParts) -> DataFrame:
    name, told = str(custom["name"]), dict(custom.get("options", {}))
    # Of the first part only the columns are looked at here.
    first = open_stream(part_of(name, custom_source(name, told), parts.parts[0]))
    spark_schema, target = in_spark_types(first.schema)

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        source = custom_source(name, told)
        for batch in batches:
            for part in batch.column("part").to_pylist():
                found = open_stream(part_of(name, source, part))
                if found.schema.names != target.names:
                    raise InvalidSchemaError(
                        f"source {name!r} gives columns {', '.join(found.schema.names)} in one part and {', '.join(target.names)} in another"
                    )
                for each in found:
                    yield conform(each, target)

    items = spark.createDataFrame(list(enumerate(parts.parts)), _ITEMS)
    return items.repartitionById(len(parts.parts), "ordinal").mapInArrow(rows, spark_schema)
