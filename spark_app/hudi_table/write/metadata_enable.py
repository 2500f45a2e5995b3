"""What a write asks of the metadata table before it begins: that it is there, with these
partitions, or that it is not.

A table that stores a record index as its index has it built by the write that does not find it,
unless the write's options say otherwise: without it every key is looked up in the files.
"""

from __future__ import annotations

import warnings

from hudi_table.errors import InvalidDataError, UnsupportedTableError
from hudi_table.index.record_index import RecordIndexWarning
from hudi_table.metadata.indexing import prepare_metadata
from hudi_table.metadata.lifecycle import drop_partitions
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, MetadataPartition, is_secondary
from hudi_table.model.options.write_options import WriteOptions
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.metadata_indexes import refuse_other_record_index
from hudi_table.write.checks.request import Prepared

_RECORD_INDEX = MetadataPartition.RECORD_INDEX
_RECORD_INDEXES = {str(_RECORD_INDEX), PARTITIONED_RECORD_INDEX}


def keep_metadata_for(ctx: TableContext, prepared: Prepared) -> None:
    """Build, drop or keep the metadata table as the table's index and the write's options say.
    Raises as `build_metadata`, and InvalidOptionError if the options ask for another record index
    than the table does.

    A record index that nobody but the table asks for, and that cannot be, is left out with a
    warning.
    """
    options = prepared.options
    wanted, indexes = options.metadata, options.metadata_indexes
    stored = None if ctx.config.index is None else ctx.config.index.type.metadata_partition
    record_indexes = _RECORD_INDEXES.intersection(indexes)
    refuse_other_record_index(ctx.config, options)
    if stored is not None and not record_indexes and stored not in options.metadata_refused and wanted is not False:
        try:
            _prepare(ctx, options, True, (*indexes, stored))
        except (InvalidDataError, UnsupportedTableError) as error:
            warnings.warn(f"no record index is built: {error.message}", RecordIndexWarning, stacklevel=2)
        else:
            return
    _prepare(ctx, options, wanted, indexes)


def _prepare(ctx: TableContext, options: WriteOptions, wanted: bool | None, indexes: tuple[str, ...]) -> None:
    by_partition = PARTITIONED_RECORD_INDEX in indexes
    names = [_RECORD_INDEX if name == PARTITIONED_RECORD_INDEX else name for name in indexes]
    prepare_metadata(ctx, wanted, names, options.partition_shards if by_partition else options.shards)
    secondary = set(filter(is_secondary, ctx.config.metadata_partitions))
    if options.non_blocking and secondary:
        # Each of them compares with the rows before both.
        drop_partitions(ctx, secondary, "writers that do not wait for each other cannot keep it")
