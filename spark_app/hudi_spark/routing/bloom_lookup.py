"""The stored keys that the incoming rows of a bloom index meet: files are asked by range and filter
before they are read.

Keys are paired with the files whose range they lie in, in the JVM; a task a file asks its filter,
and reads the key column only if some are left. Filters of the metadata table come many at once, so
tasks of as many files ask them first, and hold no key. Neither the driver nor a task holds more
than the keys that a file may hold. Where nearly every key meets every file the pairs would cost
more than what they save: then all stored keys are read, as for a simple index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_spark.routing.stored_keys import PATH, SLOT, Worth, as_stored, key_columns, slice_keys, stored_schema
from hudi_spark.tasks import TableHandle
from hudi_table.codec.bloom.filters import BloomFilter
from hudi_table.index.filters import FileFilter, Filters, OpenBase
from hudi_table.index.log_keys import logged_keys
from hudi_table.index.sorted_keys import orders_agree
from hudi_table.model.names import RECORD_KEY
from hudi_table.table.keys.record_keys import FieldKeys, keys_of_stored
from hudi_table.table.rows.log_scan import VisibleInstants
from hudi_table.table.store.ports import Storage
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.attempt import Attempt

PAIRS_MAX = 100_000_000
"""Pairs of a key and a file that may hold it, above which the files' keys are read instead."""
_RANGE_TASKS_MAX = 256
_LOW, _HIGH, _IN_BASE = "_lakeops_low", "_lakeops_high", "_lakeops_in_base"
_RANGES = st.StructType(
    [
        st.StructField(SLOT, st.IntegerType()),
        st.StructField(PATH, st.StringType()),
        st.StructField(_LOW, st.StringType()),
        st.StructField(_HIGH, st.StringType()),
    ]
)
_FILTERED = st.StructType(
    [
        st.StructField(SLOT, st.IntegerType()),
        st.StructField(RECORD_KEY, st.StringType()),
        st.StructField(_IN_BASE, st.BooleanType()),
    ]
)


def filtered_keys(
    rows: DataFrame,
    slices: Sequence[FileSlice],
    attempt: Attempt,
    filters: Filters,
    pairs_most: int,
    *,
    by_ranges: bool,
) -> DataFrame | None:
    """Those stored keys that some row has, shaped as `stored_keys` does; None if all stored keys
    had better be read.

    `pairs_most`: how many pairs of a row and a file there are if no range rules any out.
    `by_ranges`: whether ranges are asked.
    """
    pairs = _pairs(rows, slices, attempt, filters if by_ranges else None)
    if pairs_most > PAIRS_MAX and pairs.count() > PAIRS_MAX:
        return None
    schema = stored_schema(rows, attempt)
    handle, visible, columns, wanted = (
        TableHandle.of(attempt.ctx),
        attempt.visible,
        key_columns(attempt),
        to_arrow_schema(schema),
    )
    worth, made = Worth(slices, attempt), keys_of_stored(attempt.ctx.config)
    together = filters.at_once > 1
    if together:
        pairs = _requested_together(pairs, slices, handle, filters)
    left = None if together else filters

    def stored_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        searches: dict[int, _SliceSearch] = {}
        for batch in batches:
            for number, part in _by_slot(batch):
                if number not in searches:
                    searches[number] = _SliceSearch(storage, slices[number], visible, left, made)
                searches[number].add(part)
        for number, one in searches.items():
            dead = None
            for part in one.stored(columns):
                dead = worth.dead(storage, number) if dead is None else dead
                yield as_stored(part, number, slices[number].partition, worth.of(part.column(0), number, dead), wanted)

    return pairs.repartitionById(len(slices), SLOT).mapInArrow(stored_rows, schema)


def _by_slot(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    for number in batch.column(0).unique().to_pylist():
        yield number, batch.filter(pc.equal(batch.column(0), number))


def _requested_together(
    pairs: DataFrame, slices: Sequence[FileSlice], handle: TableHandle, filters: Filters
) -> DataFrame:
    """The pairs with what filters tell of them, those of neighbouring files asked by one task.
    Pairs that a filter rules out are left out, but of a slice with logs, which may hold the key."""
    wanted, at_once = to_arrow_schema(_FILTERED), filters.at_once

    def filtered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        blooms: dict[int, BloomFilter | None] = {}
        filter_of: Callable[[OpenBase], FileFilter] | None = None
        for batch in batches:
            for number, part in _by_slot(batch):
                if filter_of is None:
                    start = number - number % at_once
                    filter_of = filters.filters_of(slices[start : start + at_once])
                if number not in blooms:
                    blooms[number] = _bloom(storage, slices[number], filter_of)
                held = _in_base(blooms[number], part.column(1))
                possible = pa.RecordBatch.from_arrays([part.column(0), part.column(1), held], schema=wanted)
                yield possible if slices[number].logs else possible.filter(held)

    tasks = -(-len(slices) // at_once)
    return pairs.repartitionById(tasks, sf.floor(sf.col(SLOT) / at_once).cast("int")).mapInArrow(filtered, _FILTERED)


def _bloom(storage: Storage, item: FileSlice, filter_of: Callable[[OpenBase], FileFilter]) -> BloomFilter | None:
    if item.base is None:
        return None
    with OpenBase(storage, item.base) as file:
        return filter_of(file).bloom()


def _in_base(bloom: BloomFilter | None, keys: pa.Array) -> pa.Array:
    """Whether a base file may hold each key."""
    return pa.array(np.ones(len(keys), dtype=bool) if bloom is None else bloom.might_contain(keys))


class _SliceSearch:
    """One slice, and the keys that it may hold. `filters`: where its filter comes from, None if it
    was read already. `made`: how keys are made, None where they are stored."""

    def __init__(
        self,
        storage: Storage,
        item: FileSlice,
        visible: VisibleInstants,
        filters: Filters | None,
        made: FieldKeys | None,
    ) -> None:
        self._storage = storage
        self._item = item
        self._made = made
        self._logged = logged_keys(storage, item, visible, made) if item.logs else pa.array([], pa.string())
        self._possible: list[pa.Array] = []
        self._bloom = None if filters is None else _bloom(storage, item, filters.filters_of([item]))

    def add(self, pairs: pa.RecordBatch) -> None:
        """Keep of the keys of these pairs what the slice may hold."""
        keys = pairs.column(1)
        held = pairs.column(2) if pairs.num_columns > 2 else _in_base(self._bloom, keys)
        self._possible.append(keys.filter(pc.or_(held, pc.is_in(keys, self._logged))))

    def stored(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The stored rows of the keys kept. Nothing is read if there are none."""
        possible = pa.concat_arrays(self._possible)
        if len(possible) == 0:
            return
        for part in slice_keys(self._storage, self._item, self._logged, columns, self._made):
            yield part.filter(pc.is_in(part.column(0), value_set=possible))


def _pairs(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt, filters: Filters | None) -> DataFrame:
    """(slot, record key) of every row and file whose range, as `filters` tell it, holds the key;
    the ranges are read in tasks, and few."""
    spark = rows.sparkSession
    numbers = spark.createDataFrame([(number,) for number in range(len(slices))], "number int")
    if filters is None:
        known = [(number, item.partition, None, None) for number, item in enumerate(slices)]
    else:
        at_once = filters.at_once
        tasks = min(-(-len(slices) // at_once), _RANGE_TASKS_MAX)
        placed = numbers.repartitionById(tasks, sf.floor(sf.col("number") / at_once).cast("int"))
        found = placed.mapInArrow(_ranges_in_tasks(slices, TableHandle.of(attempt.ctx), filters), _RANGES)
        known = [tuple(row) for row in found.collect()]
    ranges = sf.broadcast(spark.createDataFrame(known, _RANGES).alias("range"))
    key = sf.col(f"given.{RECORD_KEY}")
    within = sf.col(_LOW).isNull() | ((key >= sf.col(_LOW)) & (key <= sf.col(_HIGH)))
    if not attempt.prepared.index.is_global:
        within = (sf.col(f"given.{PATH}") == sf.col(f"range.{PATH}")) & within
    return rows.select(RECORD_KEY, PATH).alias("given").join(ranges, within).select(SLOT, RECORD_KEY)


def _ranges_in_tasks(
    slices: Sequence[FileSlice], handle: TableHandle, filters: Filters
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    wanted = to_arrow_schema(_RANGES)

    def ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        storage = handle.open().storage
        for batch in batches:
            numbers = sorted(batch.column(0).to_pylist())
            filter_of = filters.filters_of([slices[number] for number in numbers])
            bounds = [_range(storage, slices[number], filter_of) for number in numbers]
            columns = [numbers, [slices[number].partition for number in numbers], *map(list, zip(*bounds, strict=True))]
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, item.type) for column, item in zip(columns, wanted, strict=True)], schema=wanted
            )

    return ranges


def _range(
    storage: Storage, item: FileSlice, filter_of: Callable[[OpenBase], FileFilter]
) -> tuple[str | None, str | None]:
    """(smallest, largest) key of a slice in the order in which Spark compares strings; nulls where
    that is not known."""
    if item.base is None or item.logs:
        return None, None
    with OpenBase(storage, item.base) as file:
        known = filter_of(file)
    if known.smallest is None or known.largest is None or not orders_agree(known.smallest, known.largest):
        return None, None
    return known.smallest, known.largest
