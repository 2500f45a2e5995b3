"""The keys that a table holds, as a DataFrame: tasks read the key columns of base files with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_spark.tasks import TableHandle
from hudi_table.codec.parquet import read_batches
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.view import FileSlice
from hudi_table.write.attempt import Attempt

PATH = "_lakeops_partition"
SLOT = "_lakeops_slot"
STORED = "_lakeops_stored_ordering"
_BATCH_ROWS = 100_000


def stored_keys(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt) -> DataFrame:
    """Record key, partition path and slot (position in `slices`) of every stored row.

    Of a global index whose rows are compared by event time also the stored ordering value, else null.
    """
    spark = rows.sparkSession
    ordering = attempt.prepared.rule.ordering if attempt.prepared.index.is_global else None
    kind = st.IntegerType() if ordering is None else rows.schema[ordering].dataType
    schema = st.StructType(
        [
            st.StructField(RECORD_KEY, st.StringType()),
            st.StructField(PATH, st.StringType()),
            st.StructField(SLOT, st.IntegerType()),
            st.StructField(STORED, kind),
        ]
    )
    if not slices:
        return spark.createDataFrame([], schema)
    wanted = to_arrow_schema(schema)
    handle = TableHandle.of(attempt.ctx)
    files = [(item.base.path if item.base else "", item.partition) for item in slices]
    columns = [RECORD_KEY] if ordering is None else [RECORD_KEY, ordering]

    def keys_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        for batch in batches:
            for number in batch.column(0).to_pylist():
                path, partition = files[number]
                with storage.open_read(path) as source:
                    for part in read_batches(source, columns, path=path, batch_rows=_BATCH_ROWS):
                        yield _as_stored(part, number, partition, wanted)

    numbers = spark.createDataFrame([(number,) for number in range(len(slices))], "number int")
    return numbers.repartitionById(len(slices), "number").mapInArrow(keys_of, schema)


def _as_stored(part: pa.RecordBatch, number: int, partition: str, wanted: pa.Schema) -> pa.RecordBatch:
    size = len(part)
    value = part.column(1) if part.num_columns > 1 else pa.nulls(size, pa.int32())
    arrays = [part.column(0), pa.repeat(partition, size), pa.repeat(number, size), value]
    return pa.RecordBatch.from_arrays(
        [array.cast(item.type) for array, item in zip(arrays, wanted, strict=True)], schema=wanted
    )
