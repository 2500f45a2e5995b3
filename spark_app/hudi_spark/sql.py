"""SELECT over tables on Spark: the engine `spark` of `hudictl query`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import environ
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hudi_spark.errors import as_hudi_errors
from hudi_spark.frames import read
from hudi_table.errors import InvalidOptionError, InvalidRequestError
from hudi_table.services.select_check import check_select
from hudi_table.services.sql_query import QueriedTable, unique_names

_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
}


@contextmanager
def rows(sql: str, tables: Mapping[str, QueriedTable], limit: int | None) -> Iterator[pa.RecordBatchReader]:
    """The answer, at most `limit` rows of it, which Spark brings into this process
    (`spark.driver.maxResultSize`).

    Raises InvalidRequestError for anything but one SELECT over `tables`, or without a Java;
    InvalidOptionError for a SELECT that Spark cannot answer; and what reading tables raises.
    """
    check_select(sql, tuple(tables), "the query")
    active = SparkSession.getActiveSession()
    spark = active or local_session()
    try:
        for name, table in tables.items():
            how: dict[str, Any] = dict(table.how)
            read(spark, table.uri, storage_options=table.storage_options, **how).createOrReplaceTempView(name)
        try:
            with as_hudi_errors():
                frame = spark.sql(sql)
                found: pa.Table = (frame if limit is None else frame.limit(limit)).toArrow()
        except PySparkException as error:
            message = " ".join(str(error).split("JVM stacktrace")[0].split())
            raise InvalidOptionError(f"the query failed: {message} (tables here: {', '.join(tables)})") from error
        yield found.rename_columns(unique_names(found.schema.names)).to_reader()
    finally:
        if active is None:
            spark.stop()


def local_session() -> SparkSession:
    """A quiet Spark in this process, on all its cores, in UTC. Raises InvalidRequestError where
    none starts."""
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        spark = SparkSession.builder.master("local[*]").config(map=dict(_LOCAL)).getOrCreate()
    except (PySparkException, OSError) as error:
        raise InvalidRequestError(f"Spark does not start; it needs Java 17 or newer (JAVA_HOME): {error}") from error
    spark.sparkContext.setLogLevel("OFF")
    return spark
