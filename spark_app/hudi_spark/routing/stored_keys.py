"""The keys that a table holds, as a DataFrame: tasks read the key columns of base files, and of
logs, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_spark.tasks import TableHandle
from hudi_table.codec.parquet import read_batches
from hudi_table.index.log_keys import logged_keys
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.keys.record_keys import FieldKeys, keys_of_stored
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.store.ports import Storage
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.attempt import Attempt

PATH = "_lakeops_partition"
SLOT = "_lakeops_slot"
STORED = "_lakeops_stored_ordering"
WORTH = "_lakeops_worth"
_BATCH_ROWS = 100_000


def stored_keys(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt) -> DataFrame:
    """Record key, partition path, slot (position in `slices`) and `Worth` of every stored row.

    Of a global index whose rows are compared by event time also the stored ordering value, else
    null.
    """
    spark = rows.sparkSession
    schema = stored_schema(rows, attempt)
    if not slices:
        return spark.createDataFrame([], schema)
    wanted = to_arrow_schema(schema)
    handle = TableHandle.of(attempt.ctx)
    columns = key_columns(attempt)
    visible, worth, made = attempt.visible, Worth(slices, attempt), keys_of_stored(attempt.ctx.config)

    def keys_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        for batch in batches:
            for number in batch.column(0).to_pylist():
                item = slices[number]
                logged = logged_keys(storage, item, visible, made) if item.logs else pa.array([], pa.string())
                dead = worth.dead(storage, number)
                for part in slice_keys(storage, item, logged, columns, made):
                    yield as_stored(part, number, item.partition, worth.of(part.column(0), number, dead), wanted)

    numbers = spark.createDataFrame([(number,) for number in range(len(slices))], "number int")
    return numbers.repartitionById(len(slices), "number").mapInArrow(keys_of, schema)


def stored_schema(rows: DataFrame, attempt: Attempt) -> st.StructType:
    """The columns of stored keys."""
    ordering = _ordering(attempt)
    return st.StructType(
        [
            st.StructField(RECORD_KEY, st.StringType()),
            st.StructField(PATH, st.StringType()),
            st.StructField(SLOT, st.IntegerType()),
            st.StructField(STORED, st.IntegerType() if ordering is None else rows.schema[ordering].dataType),
            st.StructField(WORTH, st.IntegerType()),
        ]
    )


def key_columns(attempt: Attempt) -> list[str]:
    """The columns that are read of stored rows."""
    ordering = _ordering(attempt)
    return [RECORD_KEY] if ordering is None else [RECORD_KEY, ordering]


def _ordering(attempt: Attempt) -> str | None:
    return attempt.prepared.rule.ordering if attempt.prepared.index.is_global else None


def slice_keys(
    storage: Storage, item: FileSlice, logged: pa.Array, columns: list[str], made: FieldKeys | None
) -> Iterator[pa.RecordBatch]:
    """Batches of the key column (and the ordering column) of a slice, each key once. `logged`: the
    keys in its logs. `made`: how keys are made, None where they are stored."""
    unseen = np.ones(len(logged), dtype=bool)
    reads = columns if made is None else list(dict.fromkeys([*made.columns, *columns[1:]]))
    if item.base is not None:
        with storage.open_read(item.base.path) as source:
            for batch in read_batches(source, reads, path=item.base.path, batch_rows=_BATCH_ROWS):
                part = batch if made is None else _with_keys(batch, columns, made)
                if len(logged):
                    unseen &= ~np.asarray(pc.is_in(logged, value_set=part.column(0)))
                yield part
    if unseen.any():
        yield pa.record_batch([logged.filter(pa.array(unseen))], names=[RECORD_KEY])


def _with_keys(batch: pa.RecordBatch, columns: list[str], made: FieldKeys) -> pa.RecordBatch:
    return pa.record_batch([made.record_keys(batch), *(batch.column(name) for name in columns[1:])], names=columns)


def as_stored(part: pa.RecordBatch, number: int, partition: str, worth: pa.Array, wanted: pa.Schema) -> pa.RecordBatch:
    """A batch of `slice_keys` with the slice's partition and number."""
    size = len(part)
    value = part.column(1) if part.num_columns > 1 else pa.nulls(size, pa.int32())
    arrays = [part.column(0), pa.repeat(partition, size), pa.repeat(number, size), value, worth]
    return pa.RecordBatch.from_arrays(
        [array.cast(item.type) for array, item in zip(arrays, wanted, strict=True)], schema=wanted
    )


class Worth:
    """What a stored key is worth in a slice, to find the place of a row whose key several slices of
    a partition hold: the same wherever a reader sees it, less where logs delete it, and there the
    more the newer the slice is. Picklable."""

    def __init__(self, slices: Sequence[FileSlice], attempt: Attempt) -> None:
        self._slices = tuple(slices)
        self._live = LiveKeys(attempt.ctx, attempt.timeline) if any(item.logs for item in slices) else None
        order = sorted(range(len(slices)), key=lambda number: slices[number].instant)
        self._ages = {number: age for age, number in enumerate(order)}

    def dead(self, storage: Storage, number: int) -> pa.Array:
        """The keys of a slice that nobody sees."""
        item = self._slices[number]
        return pa.array([], pa.string()) if self._live is None or not item.logs else self._live.dead_of(storage, item)

    def of(self, keys: pa.Array, number: int, dead: pa.Array) -> pa.Array:
        """The worth of each key in a slice."""
        seen: Any = pa.scalar(len(self._slices), pa.int32())
        if len(dead) == 0:
            return pa.repeat(seen, len(keys))
        return pc.if_else(pc.is_in(keys, value_set=dead), pa.scalar(self._ages[number], pa.int32()), seen)


def in_best_place(joined: DataFrame, slices: Sequence[FileSlice], path: str) -> DataFrame:
    """Rows joined with their stored keys, each only where its key is worth most in its partition
    `path`; without `WORTH`."""
    if any(item.logs for item in slices):
        most = sf.max(WORTH).over(Window.partitionBy(RECORD_KEY, path))
        joined = (
            joined.withColumn("_most", most)
            .where(sf.col(SLOT).isNull() | (sf.col(WORTH) == sf.col("_most")))
            .drop("_most")
        )
    return joined.drop(WORTH)
