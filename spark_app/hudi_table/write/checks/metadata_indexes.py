"""Indexes of the metadata table that a write asks for: against the table's own, and against the
metadata table that would hold them."""

from __future__ import annotations

from hudi_table.errors import InvalidOptionError
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, MetadataPartition
from hudi_table.model.options.write_options import METADATA_ENABLE, METADATA_INDEXES, WriteOptions, other_record_index
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.layouts import layout_of


def check_metadata_indexes(config: TableConfig, options: WriteOptions) -> None:
    """Refuse an index that is asked for without the metadata table that would hold it, and is not
    there; and another record index than the table's. Raises InvalidOptionError."""
    refuse_other_record_index(config, options)
    if options.metadata:
        return
    own = None if config.index is None else config.index.type.metadata_partition
    there = {own, *config.metadata_partitions} if options.metadata is None else set()
    for key, name in METADATA_INDEXES.items():
        if name == MetadataPartition.PARTITION_STATS and not layout_of(config.version).partition_stats:
            # Hudi has none there either, and its default is true.
            continue
        partition = MetadataPartition.RECORD_INDEX if name == PARTITIONED_RECORD_INDEX else name
        if name in options.metadata_indexes and not {name, str(partition)} & there:
            raise InvalidOptionError(
                f"option {key}=true builds nothing unless the metadata table is asked for: give {METADATA_ENABLE}=true with it, or leave it out"
            )


def refuse_other_record_index(config: TableConfig, options: WriteOptions) -> None:
    """Raise InvalidOptionError if the options ask for another record index than the table finds its
    keys by."""
    own = None if config.index is None else config.index.type.metadata_partition
    key = other_record_index(own, options.metadata_indexes)
    if key is not None:
        raise InvalidOptionError(
            f"the options ask for a {METADATA_INDEXES[key]}, and table {config.name!r} finds keys by its {own}: remove {key}"
        )
