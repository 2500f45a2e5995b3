"""The table services that a writer runs itself after its commit, where the options of its write ask
for them."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.errors import InvalidRequestError
from hudi_table.model.options.known import boolean_option
from hudi_table.services.archiving.inline import archive_inline, check_archiving
from hudi_table.services.cleaning.inline import clean_inline, cleans_itself
from hudi_table.services.cleaning.ttl import TTL_INLINE, TtlOptions, drop_expired_inline
from hudi_table.services.clustering.inline import check_clustering, cluster_inline
from hudi_table.services.compaction.inline import check_compaction, compact_inline
from hudi_table.services.metadata.upkeep import check_metadata, keep_metadata_inline
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.index_learn import remember

ENABLED = "hoodie.table.services.enabled"
"""False: none of them runs, whatever else the options say. The metadata table and the index are no
services."""


def check_inline(ctx: TableContext, options: Mapping[str, str]) -> None:
    """Refuse contradicting options before anything is written, as Hudi does. Raises
    InvalidRequestError and its kinds."""
    boolean_option(options, ENABLED)
    if boolean_option(options, TTL_INLINE):
        TtlOptions.parse(options)
        if not ctx.config.partition_by:
            raise InvalidRequestError(
                f"table {ctx.config.name!r} is not partitioned, so that no partition expires: leave {TTL_INLINE} out",
                base_path=ctx.base_path,
            )
    check_compaction(ctx, options)
    check_clustering(ctx, options)
    cleans_itself(options)
    check_archiving(options)
    check_metadata(options)


def run_inline(
    ctx: TableContext, committed: str, options: Mapping[str, str], engine: Engine, *, max_memory: int
) -> None:
    """What the options ask after the write of instant `committed`: merge, rewrite, drop what has
    expired, clean, archive, in this order, for each leaves work to the next; then the index learns
    what came of it. An error says that the write itself stands."""
    keep_metadata_inline(ctx, options)
    if boolean_option(options, ENABLED):
        compact_inline(ctx, committed, options, engine, max_memory=max_memory)
        cluster_inline(ctx, committed, options, engine, max_memory=max_memory)
        drop_expired_inline(ctx, committed, options, engine)
        clean_inline(ctx, committed, options, engine)
        archive_inline(ctx, committed, options)
    remember(ctx, committed, options)
