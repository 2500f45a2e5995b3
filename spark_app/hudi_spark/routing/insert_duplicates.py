"""Rows of an insert whose key is not stored yet: the keys of stored rows are read by tasks, a slice
each, and joined away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from hudi_spark.routing.stored_keys import PATH
from hudi_spark.tasks import TableHandle
from hudi_spark.worker import set_up_worker
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.options.write_options import DuplicatePolicy
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.attempt import Attempt
from hudi_table.write.insert_duplicates import StoredRows, duplicates_error

_SCHEMA = f"{RECORD_KEY} string, {PATH} string"


def unstored(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt) -> DataFrame:
    """The rows that the attempt is to write. `slices` are those that may hold their keys. Raises
    InvalidDataError for a stored key where the policy is to fail."""
    if not slices:
        return rows
    stored = _seen_keys(rows, slices, attempt)
    same = [RECORD_KEY] if attempt.prepared.index.is_global else [RECORD_KEY, PATH]
    if attempt.prepared.duplicates is DuplicatePolicy.DROP:
        return rows.join(stored.select(*same), same, "left_anti")
    found = rows.join(stored.select(*same), same, "left_semi")
    first = found.agg(sf.min(RECORD_KEY).alias("key"), sf.count_distinct(*same).alias("keys")).collect()[0]
    if first["keys"]:
        raise duplicates_error(first["key"], first["keys"])
    return rows


def _seen_keys(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt) -> DataFrame:
    """Record key and partition path of every row that a reader of the snapshot sees in these
    slices."""
    handle, stored = TableHandle.of(attempt.ctx), StoredRows(attempt.ctx, attempt.timeline)

    def keys_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        storage = handle.open().storage
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for found in stored.keys_of(storage, slices[number]):
                    path = pa.repeat(slices[number].partition, len(found))
                    yield pa.RecordBatch.from_arrays([found, path], names=[RECORD_KEY, PATH])

    numbers = rows.sparkSession.createDataFrame([(number,) for number in range(len(slices))], "number int")
    return numbers.repartitionById(len(slices), "number").mapInArrow(keys_of, _SCHEMA)
