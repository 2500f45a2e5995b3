"""Building and dropping the metadata table on request, while writers go on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hudi_table.errors import InvalidRequestError
from hudi_table.metadata.indexing import build_metadata, with_what_they_need
from hudi_table.metadata.lifecycle import kept
from hudi_table.model.metadata_table import PARTITIONED_RECORD_INDEX, AnyPartition, MetadataPartition
from hudi_table.model.options.known import admit
from hudi_table.model.options.write_options import shard_limits
from hudi_table.services.metadata.defined import asked_columns, check_defined, define, forget
from hudi_table.table.commit.beside.locking import locked
from hudi_table.table.metadata_dropping import drop_metadata_table
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.write.checks.request import refuse_unsupported


@relists
def build(ctx: TableContext, indexes: Iterable[str] = (), options: Mapping[str, str] | None = None) -> bool:
    """Build what is not there, with the partitions `indexes`, or finish what was begun. Whether
    there was anything to do.

    `options`: those of Hudi that say how many file groups a record index gets. Raises
    InvalidRequestError for another partition, InvalidOptionError, and as `build_metadata`.
    """
    refuse_unsupported(ctx.config)
    admit(options or {})
    ctx = locked(ctx, options or {})
    names = set(indexes)
    wanted = wanted_partitions(ctx, names)
    limits = shard_limits(options or {}, by_partition=PARTITIONED_RECORD_INDEX in names)
    new = define(ctx, check_defined(ctx, asked_columns(names)))
    try:
        return build_metadata(ctx, wanted, limits)
    finally:
        forget(ctx, new)


def wanted_partitions(ctx: TableContext, names: Collection[str], without: Collection[str] = ()) -> list[AnyPartition]:
    """The partitions that `names` ask for, `files` in any case, and `column_stats` with
    `partition_stats`; an index of a secondary key is `secondary_index_<name>=<column>`, one of an
    expression `expr_index_<name>=<function>(<column>)`. `without`: indexes that go before these are
    built.

    Raises InvalidRequestError for a name of none, for both kinds of a record index, and for an
    index that the table cannot have, as UnsupportedTableError too."""
    asked = asked_columns(names)
    indexes = check_defined(ctx, asked, without)
    known = sorted({*kept(ctx), PARTITIONED_RECORD_INDEX})
    for name in sorted(asked.keys() - indexes.keys() - set(known)):
        raise InvalidRequestError(f"the metadata table is not built with {name!r}; there are {', '.join(known)}")
    names = set(asked)
    by_partition = PARTITIONED_RECORD_INDEX in names
    if by_partition and MetadataPartition.RECORD_INDEX in names:
        raise InvalidRequestError(
            f"a record index is global or by partition: leave out {PARTITIONED_RECORD_INDEX} or record_index"
        )
    return with_what_they_need(ctx, {*names, *([MetadataPartition.RECORD_INDEX] if by_partition else [])})


@relists
def drop(ctx: TableContext) -> bool:
    """Switch it off and delete it. Whether there was one."""
    refuse_unsupported(ctx.config)
    return drop_metadata_table(ctx, "")
