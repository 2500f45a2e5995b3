"""Keys and partition paths of small tables, for the tests of key generators."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hudi_table.model.table.config import PartitionField, PartitionType, TableConfig, TableType
from hudi_table.table.keys.record_keys import record_keys
from hudi_table.write.keygen.columns import partition_paths


def config(key: str = "k", *partitions: PartitionField | str, **changes: Any) -> TableConfig:
    fields = tuple(PartitionField(item) if isinstance(item, str) else item for item in partitions)
    return TableConfig("t", TableType.COPY_ON_WRITE, tuple(key.split(",")), fields, **changes)


def keys_of(columns: dict[str, Any], key: str = "k", **changes: Any) -> list[str]:
    return record_keys(pa.table(columns), config(key, **changes)).to_pylist()


def paths_of(columns: dict[str, Any], *partitions: PartitionField | str, **changes: Any) -> list[str]:
    found = partition_paths(pa.table(columns), config("k", *partitions, **changes))
    assert found.type == pa.dictionary(pa.int32(), pa.string())
    assert found.null_count == 0
    assert len(set(found.dictionary.to_pylist())) == len(found.dictionary)
    return found.to_pylist()


def instants(**settings: Any) -> PartitionField:
    return PartitionField("p", PartitionType.TIMESTAMP, **settings)
