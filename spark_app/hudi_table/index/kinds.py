"""Which class finds the keys of a table: one line for each index that a table can store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from hudi_table.index.base import Index
from hudi_table.index.bloom import BloomIndex
from hudi_table.index.custom import CustomIndex
from hudi_table.index.hashing.bucket import BucketIndex
from hudi_table.index.hashing.consistent import ConsistentIndex
from hudi_table.index.keystate.index import KeyStateIndex
from hudi_table.index.record_index import RecordIndex
from hudi_table.index.simple import SimpleIndex
from hudi_table.model.table.config import IndexSpec, IndexType, TableConfig

Make = Callable[[TableConfig, IndexSpec, Mapping[str, str]], Index]

KINDS: Final[dict[IndexType, Make]] = {
    IndexType.BUCKET: BucketIndex.of,
    IndexType.CONSISTENT_BUCKET: ConsistentIndex.of,
    IndexType.SIMPLE: SimpleIndex.of,
    IndexType.GLOBAL_SIMPLE: SimpleIndex.of,
    IndexType.BLOOM: BloomIndex.of,
    IndexType.GLOBAL_BLOOM: BloomIndex.of,
    IndexType.RECORD_INDEX: RecordIndex.of,
    IndexType.PARTITIONED_RECORD_INDEX: RecordIndex.of,
    IndexType.KEY_STATE: KeyStateIndex.of,
    IndexType.CUSTOM: CustomIndex.of,
}


def index_for(config: TableConfig, spec: IndexSpec, options: Mapping[str, str]) -> Index:
    """The index that a spec describes, for a table that is written with these options.

    Raises InvalidOptionError for options that contradict it, and what `custom_index` raises for one
    of another package.
    """
    return KINDS[spec.type](config, spec, options)
