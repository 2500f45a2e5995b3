"""Record keys, partition paths and buckets as Spark columns.

Computed in the JVM where Spark's own expressions give exactly what `write.keygen.columns` gives:
string and integer key fields, partition fields taken as they are, the Java hash of buckets. For
everything else only the key columns cross to Python, never whole rows: sending rows merely to
compute a bucket costs as much as writing them (measured).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st
from pyspark.sql.pandas.functions import arrow_udf

from hudi_table.index.base import Index, Keys, Slot, UniformBuckets
from hudi_table.model.names import DEFAULT_PARTITION, EMPTY_KEY, NULL_KEY, RECORD_KEY
from hudi_table.model.table.config import PartitionType, TableConfig
from hudi_table.table.keys.record_keys import prefixes_fields
from hudi_table.write.keygen import columns as keygen
from hudi_table.write.keygen.table_keys import TableKeys

# The stubs name evaluation types that only Spark itself passes.
_udf: Any = arrow_udf
_PLAIN = (st.StringType, st.ByteType, st.ShortType, st.IntegerType, st.LongType)


def record_key_column(frame: DataFrame, config: TableConfig) -> Column:
    """The record key of every row, null where it is missing."""
    maker = TableKeys.of(config)
    if maker.function is not None or not _all_plain(frame, config.record_key):
        return _in_python(config.record_key, maker.record_keys)
    if len(config.record_key) == 1 and not prefixes_fields(config):
        return sf.col(quoted(config.record_key[0])).cast("string")
    parts = []
    for name in config.record_key:
        value = sf.col(quoted(name)).cast("string")
        shown = sf.when(value.isNull(), NULL_KEY).when(value == "", EMPTY_KEY).otherwise(value)
        parts.append(sf.concat(sf.lit(f"{name}:"), shown))
    whole = sf.concat_ws(",", *parts)
    empty = [sf.coalesce(sf.col(quoted(name)).cast("string"), sf.lit("")) == "" for name in config.record_key]
    missing = empty[0]
    for condition in empty[1:]:
        missing = missing & condition
    return sf.when(missing, sf.lit(None).cast("string")).otherwise(whole)


def partition_path_column(frame: DataFrame, config: TableConfig) -> Column:
    """The partition path of every row, '' for a non-partitioned table."""
    if not config.partition_by:
        return sf.lit("")
    simple = all(item.type is PartitionType.SIMPLE for item in config.partition_by)
    if not simple or config.url_encode or not _all_plain(frame, config.partition_fields):
        return _in_python(config.partition_fields, lambda table: keygen.partition_paths(table, config))
    parts = []
    for name in config.partition_fields:
        value = sf.col(quoted(name)).cast("string")
        shown = sf.when(sf.coalesce(value, sf.lit("")) == "", DEFAULT_PARTITION).otherwise(value)
        parts.append(sf.concat(sf.lit(f"{name}="), shown) if config.hive_style else shown)
    return sf.concat_ws("/", *parts)


def bucket_column(buckets: UniformBuckets, *, colons: bool) -> Column:
    """The bucket of a row, from its column `_hoodie_record_key`.

    For a single key without `:` it is computed in the JVM: `(31 + String.hashCode(key)) &
    0x7fffffff` modulo the number of buckets. `colons` says that some key holds one: then, and for
    composite keys, the keys cross to Python. The number of buckets is the same in every partition:
    see `place_column` for other indexes.
    """
    if colons or not buckets.java_hashed:
        return _bucket_in_python(buckets)
    code = sf.expr(f"cast(reflect('java.util.Objects', 'hashCode', {RECORD_KEY}) as bigint)")
    hashed = (sf.lit(31).cast("bigint") + code).bitwiseAND(sf.lit(0x7FFFFFFF).cast("bigint"))
    return sf.pmod(hashed, sf.lit(buckets.buckets).cast("bigint")).cast("int")


def place_column(index: Index, places: Mapping[Slot, int], path: str) -> Column:
    """The number that `places` gives to the slot of a row, -1 for none, from its columns
    `_hoodie_record_key` and `path`.

    For an index whose hash is all (`reads_snapshot` False); it goes to the tasks, and so has to be
    picklable.
    """

    def placed(keys: pa.Array, paths: pa.Array) -> pa.Array:
        encoded = paths.dictionary_encode()
        partitions = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        routed = index.route(Keys(keys, tuple(encoded.dictionary.to_pylist()), partitions))
        numbers = np.array([places.get(slot, -1) for slot in routed.slots], dtype=np.int32)
        return pa.array(numbers[routed.codes], pa.int32())

    made: Column = _udf(placed, "int")(sf.col(RECORD_KEY), sf.col(path))
    return made


def _bucket_in_python(buckets: UniformBuckets) -> Column:
    def bucket(keys: pa.Array) -> pa.Array:
        return pa.array(buckets.buckets_of(keys, ""), pa.int32())

    made: Column = _udf(bucket, "int")(sf.col(RECORD_KEY))
    return made


def _in_python(names: tuple[str, ...], compute: Callable[[pa.Table], pa.Array]) -> Column:
    """A string column that a function of the named columns' Arrow table computes."""

    def run(*columns: pa.Array) -> pa.Array:
        result = compute(pa.table(list(columns), names=list(names)))
        if pa.types.is_dictionary(result.type):
            result = result.cast(pa.string())
        return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result

    columns = [sf.col(quoted(name)) for name in names]
    made: Column = _udf(run, "string")(*columns)
    return made


def _all_plain(frame: DataFrame, names: tuple[str, ...]) -> bool:
    return all(isinstance(frame.schema[name].dataType, _PLAIN) for name in names)


def quoted(name: str) -> str:
    """A column name as Spark takes it literally, dots and all."""
    return "`" + name.replace("`", "``") + "`"
