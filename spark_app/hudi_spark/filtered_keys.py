"""The stored keys that the incoming rows of a bloom index meet: files are asked by range and filter before they are read.

Keys are paired with the files whose range they lie in, in the JVM; a task a file asks its filter, and reads the key column
only if some are left. Neither the driver nor a task holds more than the keys that a file may hold. Where nearly every key
meets every file the pairs would cost more than what they save: then all stored keys are read, as for a simple index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_spark.stored_keys import PATH, SLOT, as_stored, key_columns, slice_keys, stored_schema
from hudi_spark.tasks import TableHandle
from hudi_table.codec.bloom import BloomFilter
from hudi_table.index.bloom import BloomIndex
from hudi_table.index.logged import logged_keys
from hudi_table.index.lookup import OpenBase
from hudi_table.index.wanted import orders_agree
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.log_scan import VisibleInstants
from hudi_table.table.ports import Storage
from hudi_table.table.view import FileSlice
from hudi_table.write.attempt import Attempt

PAIRS_MAX = 100_000_000
"""Pairs of a key and a file that may hold it, above which the files' keys are read instead."""
_RANGE_TASKS_MAX = 256
_LOW, _HIGH = "_lakeops_low", "_lakeops_high"
_RANGES = st.StructType(
    [
        st.StructField(SLOT, st.IntegerType()),
        st.StructField(PATH, st.StringType()),
        st.StructField(_LOW, st.StringType()),
        st.StructField(_HIGH, st.StringType()),
    ]
)


def filtered_keys(
    rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt, index: BloomIndex, pairs_most: int
) -> DataFrame | None:
    """Those stored keys that some row has, shaped as `stored_keys` does; None if all stored keys had better be read.

    `pairs_most`: how many pairs of a row and a file there are if no range rules any out.
    """
    pairs = _pairs(rows, slices, attempt, index)
    if pairs_most > PAIRS_MAX and pairs.count() > PAIRS_MAX:
        return None
    schema = stored_schema(rows, attempt)
    handle, visible, columns, wanted = (
        TableHandle.of(attempt.ctx),
        attempt.visible,
        key_columns(attempt),
        to_arrow_schema(schema),
    )

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        asked: dict[int, _Asked] = {}
        for batch in batches:
            for number in batch.column(0).unique().to_pylist():
                if number not in asked:
                    asked[number] = _Asked(storage, slices[number], visible, index)
                asked[number].add(batch.column(1).filter(pc.equal(batch.column(0), number)))
        for number, one in asked.items():
            for part in one.stored(columns):
                yield as_stored(part, number, slices[number].partition, wanted)

    return pairs.repartitionById(len(slices), SLOT).mapInArrow(found, schema)


class _Asked:
    """One slice, and the keys that it may hold."""

    def __init__(self, storage: Storage, item: FileSlice, visible: VisibleInstants, index: BloomIndex) -> None:
        self._storage = storage
        self._item = item
        self._logged = logged_keys(storage, item, visible) if item.logs else pa.array([], pa.string())
        self._possible: list[pa.Array] = []
        self._bloom: BloomFilter | None = None
        if item.base is not None:
            with OpenBase(storage, item.base) as file:
                self._bloom = index.filters.filters_of([item])(file).bloom()

    def add(self, keys: pa.Array) -> None:
        """Keep of these keys what the slice may hold."""
        if self._bloom is not None:
            held = pa.array(self._bloom.might_contain(keys))
            keys = keys.filter(pc.or_(held, pc.is_in(keys, self._logged)))
        self._possible.append(keys)

    def stored(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The stored rows of the keys kept. Nothing is read if there are none."""
        possible = pa.concat_arrays(self._possible)
        if len(possible) == 0:
            return
        for part in slice_keys(self._storage, self._item, self._logged, columns):
            yield part.filter(pc.is_in(part.column(0), value_set=possible))


def _pairs(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt, index: BloomIndex) -> DataFrame:
    """(slot, record key) of every row and file whose range holds the key; the ranges are read in tasks, and few."""
    spark = rows.sparkSession
    numbers = spark.createDataFrame([(number,) for number in range(len(slices))], "number int")
    if not index.prune_by_ranges:
        known = [(number, item.partition, None, None) for number, item in enumerate(slices)]
    else:
        found = numbers.repartitionById(min(len(slices), _RANGE_TASKS_MAX), "number").mapInArrow(
            _ranges_in_tasks(slices, TableHandle.of(attempt.ctx), index), _RANGES
        )
        known = [tuple(row) for row in found.collect()]
    ranges = sf.broadcast(spark.createDataFrame(known, _RANGES).alias("range"))
    key = sf.col(f"given.{RECORD_KEY}")
    within = sf.col(_LOW).isNull() | ((key >= sf.col(_LOW)) & (key <= sf.col(_HIGH)))
    if not index.is_global:
        within = (sf.col(f"given.{PATH}") == sf.col(f"range.{PATH}")) & within
    return rows.select(RECORD_KEY, PATH).alias("given").join(ranges, within).select(SLOT, RECORD_KEY)


def _ranges_in_tasks(
    slices: Sequence[FileSlice], handle: TableHandle, index: BloomIndex
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    wanted = to_arrow_schema(_RANGES)

    def ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            bounds = [_range(storage, slices[number], index) for number in numbers]
            columns = [numbers, [slices[number].partition for number in numbers], *map(list, zip(*bounds, strict=True))]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, item.type) for column, item in zip(columns, wanted, strict=True)], schema=wanted
            )

    return ranges


def _range(storage: Storage, item: FileSlice, index: BloomIndex) -> tuple[str | None, str | None]:
    """(smallest, largest) key of a slice in the order in which Spark compares strings; nulls where that is not known."""
    if item.base is None or item.logs:
        return None, None
    with OpenBase(storage, item.base) as file:
        known = index.filters.filters_of([item])(file)
    if known.smallest is None or known.largest is None or not orders_agree(known.smallest, known.largest):
        return None, None
    return known.smallest, known.largest
