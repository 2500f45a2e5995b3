"""The table services that a writer runs itself after its commit, where the options of its write ask
for them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hudi_table.errors import HudiError, InvalidRequestError, UnavailableError, WriteConflictError
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

_LOG = logging.getLogger("hudi_table")
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
    what came of it.

    Of what passes by itself a later write does it, and it is logged alone: whoever is told to try
    again would write the rows again. Any other error says that the write itself stands.
    """
    keep_metadata_inline(ctx, options)
    if boolean_option(options, ENABLED):
        with _behind(committed, "compaction"):
            compact_inline(ctx, options, engine, max_memory=max_memory)
        with _behind(committed, "clustering"):
            cluster_inline(ctx, options, engine, max_memory=max_memory)
        with _behind(committed, "dropping of partitions that have expired"):
            drop_expired_inline(ctx, options, engine)
        with _behind(committed, "clean"):
            clean_inline(ctx, options, engine)
        with _behind(committed, "archiving"):
            archive_inline(ctx, options)
    remember(ctx, committed, options)


@contextmanager
def _behind(committed: str, what: str) -> Iterator[None]:
    stands = f"the write of {committed} is committed; only the {what} after it failed"
    try:
        yield
    except (UnavailableError, WriteConflictError) as error:
        _LOG.warning("%s, which a later write does: %s", stands, error)
    except HudiError as error:
        error.add_note(f"{stands}, run it again")
        raise
