"""Rows where an index says that is asked for keys: one of another package, or the record index.
Tasks ask it for the keys that they hold, and the rows follow its answers.

The index travels to the tasks with the plan. A task gathers all its keys before it asks, so an
index that reads files reads each of them once for a task, and one that asks a server asks in large
batches. Of a record index a task has the keys of a shard, so that each shard is opened by one task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from hudi_spark.routing import key_columns
from hudi_spark.routing.stored_keys import PATH, SLOT
from hudi_spark.tasks import TableHandle
from hudi_spark.worker import set_up_worker
from hudi_table.index.base import InTasks, Keys, Lookup, Routed
from hudi_table.metadata.record_index.lookup import RecordShards
from hudi_table.model.names import RECORD_KEY
from hudi_table.model.options.write_options import Operation
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.keys.record_keys import keys_of_stored
from hudi_table.table.rows.live_keys import LiveKeys
from hudi_table.table.rows.merge import ALWAYS_DELETE
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.attempt import Attempt
from hudi_table.write.best_place import in_best_place

_TO = "_lakeops_to"
_GONE = "_lakeops_gone"
_SHARD = "_lakeops_shard"


def lookup_locations(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt, in_tasks: InTasks) -> DataFrame:
    """The rows with `SLOT`, the position in `slices` of the group that each goes to, or null; and
    the rows that delete keys where they were. Rows that the index ignores are left out."""
    prepared = attempt.prepared
    deletes = prepared.operation is Operation.DELETE
    anywhere = deletes and prepared.index.is_global
    keyed = rows.withColumn(PATH, sf.lit("")) if anywhere else rows
    located = keyed.join(_answers(keyed, slices, attempt, in_tasks), [RECORD_KEY, PATH])
    located = located.withColumn(PATH, sf.col(_TO))
    if deletes:
        located = located.where(sf.col(SLOT).isNotNull()).withColumn(ALWAYS_DELETE, sf.lit(True))
    elif prepared.index.is_global:
        located = located.withColumn(ALWAYS_DELETE, sf.when(sf.col(_GONE), sf.lit(True)))
    return located.drop(_TO, _GONE)


def _answers(rows: DataFrame, slices: Sequence[FileSlice], attempt: Attempt, in_tasks: InTasks) -> DataFrame:
    """(record key, partition path) of every distinct key, and where it goes; more than once where
    it lies more than once."""
    distinct, ordering = rows.groupBy(RECORD_KEY, PATH), attempt.prepared.rule.ordering
    value = sf.lit(None) if ordering is None else sf.max(key_columns.quoted(ordering))
    text, number, flag = st.StringType(), st.IntegerType(), st.BooleanType()
    schema = st.StructType(
        [st.StructField(name, kind) for name, kind in zip(_ANSWER, (text, text, text, number, flag), strict=True)]
    )
    wanted = to_arrow_schema(schema)
    index, shards = in_tasks.index, in_tasks.shards
    handle, visible = TableHandle.of(attempt.ctx), attempt.visible
    virtual = keys_of_stored(attempt.ctx.config)
    groups = tuple(slices)
    live = LiveKeys(attempt.ctx, attempt.timeline) if any(item.logs for item in slices) else None

    def answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        table = pa.Table.from_batches(held).combine_chunks()
        storage = handle.open().storage
        seen = None if live is None else lambda: live
        lookup = Lookup(storage, groups, LocalEngine(1), ordering, virtual, visible, seen)
        wanted_keys = _keys(table, ordering)
        routed = in_best_place(index.route(wanted_keys, lookup), wanted_keys, lookup)
        yield _as_rows(routed, wanted_keys, groups, wanted)

    keys = distinct.agg(value.alias("_value"))
    return (keys if shards is None else _by_shard(keys, shards)).mapInArrow(answers, schema)


def _by_shard(pairs: DataFrame, shards: RecordShards) -> DataFrame:
    """The keys of each shard brought together. The hash is not one of Spark's, so tasks compute
    it."""
    schema = st.StructType([*pairs.schema.fields, st.StructField(_SHARD, st.IntegerType())])

    def numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        set_up_worker()
        for batch in batches:
            texts, paths = batch.column(0).cast(pa.string()), batch.column(1).cast(pa.string()).dictionary_encode()
            # Keys of a data partition without shards are new, or are looked up in its files.
            yield batch.append_column(_SHARD, pa.array(np.maximum(shards.numbers(texts, paths), 0)))

    sharded = pairs.mapInArrow(numbered, schema).repartitionById(max(1, len(shards.slices)), _SHARD)
    return sharded.drop(_SHARD)


_ANSWER = (RECORD_KEY, PATH, _TO, SLOT, _GONE)


def _keys(table: pa.Table, ordering: str | None) -> Keys:
    paths = _one(table.column(PATH)).cast(pa.string()).dictionary_encode()
    values = None if ordering is None else _one(table.column("_value"))
    numbers = paths.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return Keys(_one(table.column(RECORD_KEY)).cast(pa.string()), tuple(paths.dictionary.to_pylist()), numbers, values)


def _one(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def _as_rows(routed: Routed, keys: Keys, slices: Sequence[FileSlice], wanted: pa.Schema) -> pa.RecordBatch:
    """An answer as rows: where each key goes, its copies, and where it is to be deleted."""
    kept = np.flatnonzero(routed.codes >= 0)
    rows = np.concatenate([kept, routed.copies, routed.deletes])
    codes = np.concatenate([routed.codes[kept], routed.copy_codes, routed.delete_codes]).astype(np.int64)
    gone = np.zeros(len(rows), dtype=bool)
    gone[len(rows) - len(routed.deletes) :] = True
    place = {(item.partition, item.file_id): number for number, item in enumerate(slices)}
    numbers = [place.get((slot.partition, slot.file_id or "")) for slot in routed.slots]
    paths = pa.array([slot.partition for slot in routed.slots], pa.string())
    taken = pa.array(codes)
    columns = [
        keys.record_keys.take(pa.array(rows)),
        _own_paths(keys, rows),
        paths.take(taken),
        pa.array(numbers, pa.int32()).take(taken),
        pa.array(gone),
    ]
    arrays = [column.cast(field.type) for column, field in zip(columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _own_paths(keys: Keys, rows: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(keys.partition_paths, pa.string()).take(pa.array(keys.partitions[rows].astype(np.int64)))
