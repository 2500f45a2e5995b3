"""Entries of the metadata table for one file: column statistics, its bloom filter, where its record
keys are.

Each function gives a table sorted by `key`, with the columns of METADATA_SCHEMA that this kind of
record has. Facts (measured on Hudi 0.15.0 and 1.1.1): a bloom filter's bytes are the text of the
file's footer, its `timestamp` the instant that wrote the file; a file id that is a UUID, `-` and a
number is stored as two signed halves and the number with an empty `file_id`, any other one as it is
with encoding 1; the instant is stored in milliseconds since 1970, read as UTC.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import UTC
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.codec.metadata.keys import (
    bloom_keys,
    column_stats_keys,
    column_stats_prefixes,
    expression_partition_keys,
)
from hudi_table.codec.metadata.records import (
    BLOOM_FILTERS,
    BLOOM_TYPE,
    COLUMN_STATS,
    LOCATION_TYPE,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    SECONDARY_TYPE,
    STATS_TYPE,
    stats_with,
)
from hudi_table.model.timeline.instants import parse_instant_time

UUID_ENCODING: Final = 0
TEXT_ENCODING: Final = 1
_UUID_ID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})-(\d{1,9})")
_HALF_MASK: Final = (1 << 64) - 1


def column_stats_entries(partition: str, stats: pa.StructArray) -> pa.Table:
    """Statistics of columns (STATS_TYPE, of one or more files) of the partition path
    `partition`."""
    partitions = pa.repeat(pa.scalar(partition, pa.string()), len(stats))
    keys = column_stats_keys(stats.field("column"), partitions, stats.field("file_name"))
    return _entries(keys, COLUMN_STATS, "stats", stats)


def partition_stats_entries(partition: str, stats: pa.StructArray, *, of_expression: bool = False) -> pa.Table:
    """Statistics of columns (STATS_TYPE) of all files of the partition path `partition` together;
    `of_expression`: of an expression of the column, in an index of it."""
    partitions = pa.repeat(pa.scalar(partition, pa.string()), len(stats))
    named = [partitions if child.name == "file_name" else stats.field(child.name) for child in STATS_TYPE]
    keyed = expression_partition_keys if of_expression else column_stats_prefixes
    keys = keyed(stats.field("column"), partitions)
    return _entries(keys, PARTITION_STATS, "stats", pa.StructArray.from_arrays(named, fields=list(STATS_TYPE)))


def column_stats_removals(partition: str, file_name: str, columns: Sequence[str]) -> pa.Table:
    """What says that a file with statistics of these columns is gone."""
    count = len(columns)
    values = {
        "file_name": pa.array([file_name] * count, pa.string()),
        "column": pa.array(columns, pa.string()),
        "deleted": pa.array([True] * count, pa.bool_()),
    }
    return column_stats_entries(partition, stats_with(values, count))


def bloom_entry(partition: str, file_name: str, kind: str, text: str, instant: str) -> pa.Table:
    """The filter of a base file: its type code and the text in the file's footer; `instant` wrote
    the file."""
    return _bloom(partition, file_name, {"type": kind, "timestamp": instant, "filter": text.encode(), "deleted": False})


def bloom_removal(partition: str, file_name: str, instant: str) -> pa.Table:
    """What says that a base file with a filter is gone."""
    return _bloom(partition, file_name, {"type": "", "timestamp": instant, "filter": b"", "deleted": True})


def located_entries(keys: pa.Array, places: pa.StructArray, numbers: pa.Array) -> pa.Table:
    """Where record keys (strings without nulls) are: row i at `places[numbers[i]]` of
    LOCATION_TYPE."""
    return _entries(keys, RECORD_INDEX, "location", places.take(numbers))


def locations(groups: Sequence[tuple[str, str, str]]) -> pa.StructArray:
    """LOCATION_TYPE values of (partition, file id, instant), one for each."""
    rows = [(partition, *split_file_id(file_id), instant_millis(time)) for partition, file_id, time in groups]
    order = ("partition", "file_id_high", "file_id_low", "file_index", "file_id", "encoding", "instant_millis")
    columns = dict(zip(order, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(order, ())
    arrays = [pa.array(columns[item.name], item.type) for item in LOCATION_TYPE]
    return pa.StructArray.from_arrays(arrays, fields=list(LOCATION_TYPE))


def record_index_entries(keys: pa.Array | pa.ChunkedArray, partition: str, file_id: str, instant: str) -> pa.Table:
    """Where these record keys (strings without nulls, in any order) are: a file group, into which
    `instant` wrote them."""
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    here = locations([(partition, file_id, instant)])
    return located_entries(whole, here, pa.array(np.zeros(len(whole), np.int32)))


def secondary_entries(keys: pa.Array) -> pa.Table:
    """Pairs of a value and a record key, by `keys.secondary_keys`."""
    there = pa.StructArray.from_arrays([pa.repeat(pa.scalar(False), len(keys))], fields=list(SECONDARY_TYPE))
    return _entries(keys, SECONDARY_INDEX, "secondary", there)


def split_file_id(file_id: str) -> tuple[int, int, int, str, int]:
    """(upper half, lower half, number, text, encoding) as a record of the record index holds a file
    id."""
    found = _UUID_ID.fullmatch(file_id)
    if found is None or str(int(found[6])) != found[6]:
        return -1, -1, -1, file_id, TEXT_ENCODING
    whole = int("".join(found.groups()[:5]), 16)
    return _signed(whole >> 64), _signed(whole & _HALF_MASK), int(found[6]), "", UUID_ENCODING


def joined_file_ids(locations: pa.StructArray) -> pa.Array:
    """The file ids of LOCATION_TYPE values. Each one is put together once."""
    parts = pa.table(
        {name: locations.field(name) for name in ("file_id_high", "file_id_low", "file_index", "file_id", "encoding")}
    )
    words = parts.group_by(parts.column_names).aggregate([])
    made = pa.array([_joined(**row) for row in words.to_pylist()], pa.string())
    known = words.append_column("joined", made).combine_chunks()
    numbered = parts.append_column("row", pa.array(np.arange(len(parts))))
    found = numbered.join(known, parts.column_names)
    return found.sort_by("row")["joined"].combine_chunks()


def instant_millis(instant: str) -> int:
    """An instant time as milliseconds since 1970, UTC."""
    moment = parse_instant_time(instant)
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def _joined(file_id_high: int, file_id_low: int, file_index: int, file_id: str | None, encoding: int) -> str:
    if encoding == TEXT_ENCODING:
        return file_id or ""
    digits = f"{file_id_high & _HALF_MASK:016x}{file_id_low & _HALF_MASK:016x}"
    cut = (0, 8, 12, 16, 20, 32)
    return "-".join([*(digits[a:b] for a, b in itertools.pairwise(cut)), str(file_index)])


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half


def _bloom(partition: str, file_name: str, record: dict[str, object]) -> pa.Table:
    keys = bloom_keys(pa.array([partition], pa.string()), pa.array([file_name], pa.string()))
    return _entries(keys, BLOOM_FILTERS, "bloom", pa.array([record], BLOOM_TYPE))


def _entries(keys: pa.Array, kind: int, column: str, values: pa.Array) -> pa.Table:
    """Sorted by the keys' bytes, as an HFile takes them."""
    types = pa.repeat(pa.scalar(kind, pa.int32()), len(keys))
    order = pc.sort_indices(keys)
    return pa.table({"key": keys, "type": types, column: values}).take(order)
