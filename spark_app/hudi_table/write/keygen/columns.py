"""Partition paths of rows, column by column, as Apache Hudi's key generators make them.

Record keys are made in `table.keys.record_keys`.

| key generator | partition path |
|---|---|
| Simple, TimestampBased | one field |
| Complex | all fields, `/` between |
| Nonpartitioned | '' |
| Custom | all fields, each Simple or Timestamp |

Measured on Hudi 0.15.0: a null or empty partition value is `__HIVE_DEFAULT_PARTITION__` (of a
Timestamp field: the instant 0); escaping is applied to the formatted text, so `yyyy/MM` with
`url_encode` is one folder `2024%2F02`. Values that lead out of the table are written by Hudi where
they lead; here they are refused, as is `:` in the first folder, which Hudi's own writer fails on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.errors import InvalidDataError, InvalidRequestError, UnsupportedTableError
from hudi_table.model.counts import counted
from hudi_table.model.names import DEFAULT_PARTITION, HOODIE, escape_partition_value
from hudi_table.model.table.config import PartitionField, PartitionType, TableConfig
from hudi_table.model.table.properties import generator_class
from hudi_table.table.keys.java_text import column, java_text, refuse_type
from hudi_table.table.keys.record_keys import Rows, refuse_unknown_generator
from hudi_table.table.store.paths import MAX_SEGMENT_BYTES, check_path
from hudi_table.write.keygen.timestamp import check_settings, default_input, path_texts, refuse_strftime


def with_inputs(config: TableConfig, schema: pa.Schema) -> TableConfig:
    """The config whose Timestamp partition fields say how their column is to be read, inferred from
    its type.

    For a table that is being created. Raises InvalidOptionError if only the user can tell,
    InvalidSchemaError for a key or partition column of a type that has no text,
    UnsupportedTableError for settings that one table cannot hold.
    """
    for name in (*config.record_key, *config.partition_fields):
        if name in schema.names:
            refuse_type(schema.field(name).type, name)
    fields = tuple(
        default_input(schema.field(item.field).type, item)
        if item.type is PartitionType.TIMESTAMP and item.field in schema.names
        else item
        for item in config.partition_by
    )
    for item in fields:
        if item.type is PartitionType.TIMESTAMP:
            check_settings(item)
            refuse_strftime(item)
    settings = {replace(item, field="") for item in fields if item.type is PartitionType.TIMESTAMP}
    if len(settings) > 1:
        raise UnsupportedTableError(
            "Hudi has one set of timestamp settings per table: give all Timestamp partition fields the same format, input, "
            "unit and time zones"
        )
    return replace(config, partition_by=fields)


def partition_paths(rows: Rows, config: TableConfig) -> pa.DictionaryArray:
    """The partition path of every row: int32 indices into distinct strings ('' in a non-partitioned
    table).

    Raises InvalidSchemaError and InvalidDataError as `record_keys`, also for a value that no folder
    can be named by.
    """
    refuse_unknown_generator(config)
    if not config.partition_by or generator_class(config).endswith(".NonpartitionedKeyGenerator"):
        return _dictionary(np.zeros(rows.num_rows, dtype=np.int32), [""])
    codes, paths = _field_paths(rows, config.partition_by[0], config)
    for item in config.partition_by[1:]:
        more_codes, more_paths = _field_paths(rows, item, config)
        combined = pa.array(codes.astype(np.int64) * len(more_paths) + more_codes).dictionary_encode()
        codes, used = combined.indices.to_numpy(zero_copy_only=False), combined.dictionary.to_pylist()
        paths = [f"{paths[code // len(more_paths)]}/{more_paths[code % len(more_paths)]}" for code in used]
    for position, path in enumerate(paths):
        problem = path_problem(path)
        if problem:
            _refuse_path(path, problem, np.flatnonzero(codes == position), config)
    return _dictionary(codes.astype(np.int32), paths)


def path_problem(path: str) -> str | None:
    """Why a partition path cannot be a folder of a table, or None."""
    try:
        check_path(path)
    except InvalidRequestError as error:
        return str(error)
    first = path.partition("/")[0]
    if first == HOODIE:
        return f"it is Hudi's own folder {HOODIE}"
    if ":" in first:
        return "Hudi takes ':' in the first folder for the scheme of a URI (set url_encode on the table to have it escaped)"
    longest = max(len(segment.encode()) for segment in path.split("/"))
    if longest > MAX_SEGMENT_BYTES:
        return f"a folder's name has {longest} bytes, and file systems take {MAX_SEGMENT_BYTES}"
    return None


def _refuse_path(path: str, problem: str, rows: Any, config: TableConfig) -> None:
    shown = path if len(path) <= 100 else f"{path[:100]}…"
    raise InvalidDataError(
        f"partition path {shown!r} (from {', '.join(config.partition_fields)}) of {counted(len(rows), 'row')}, the first at row "
        f"{int(rows[0])}, cannot be written: {problem}"
    )


def _field_paths(rows: Rows, item: PartitionField, config: TableConfig) -> tuple[Any, list[str]]:
    """(positions per row, distinct path texts) of one partition field."""
    values = column(rows, item.field)
    refuse_type(values.type, item.field)
    if item.type is PartitionType.TIMESTAMP:
        encoded = path_texts(values, item)
        texts = encoded.dictionary.to_pylist()
    else:
        encoded = (
            values.dictionary_encode(null_encoding="encode") if not pa.types.is_dictionary(values.type) else values
        )
        texts = java_text(encoded.dictionary, item.field).to_pylist()
    codes = encoded.indices
    if codes.null_count:
        codes = pc.fill_null(codes, pa.scalar(len(texts), codes.type))
        texts.append(None)
    shown = [_folder(text, item.field, config) for text in texts]
    return _merge_equal(codes.to_numpy(zero_copy_only=False), shown)


def _folder(text: str | None, name: str, config: TableConfig) -> str:
    value = text or DEFAULT_PARTITION
    if config.url_encode:
        value = escape_partition_value(value)
    return f"{name}={value}" if config.hive_style else value


def _merge_equal(codes: Any, texts: list[str]) -> tuple[Any, list[str]]:
    """The same, with equal texts (null and empty, say) as one."""
    positions: dict[str, int] = {}
    mapping = np.array([positions.setdefault(text, len(positions)) for text in texts], dtype=np.int32)
    return (mapping[codes] if len(texts) else codes.astype(np.int32)), list(positions)


def _dictionary(codes: Any, paths: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(paths, pa.string()))
