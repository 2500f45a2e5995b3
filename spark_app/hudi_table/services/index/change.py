"""Another way to look keys up in a table that exists: a simple index becomes a bloom index, or the
other way round; a global one becomes a record index or a key state too, and one that is not global
a record index by partition, which the next write builds.

They find the same keys in the same files, so that nothing is rewritten, and writers that still have
the former index at hand do no harm. All other changes of an index move rows or change what a key
means. So it is of a record index whose keys stay where they are found: rows then contradict their
folders, and no index by which keys move may say that none does.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_table.errors import InvalidRequestError
from hudi_table.model.table.config import IndexSpec, IndexType
from hudi_table.model.table.index_changes import exchange_problem
from hudi_table.model.table.index_properties import INDEX_TYPE, KEY_STATE, RECORD_INDEX_MOVES, type_properties
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.properties import replace_properties
from hudi_table.table.timeline.relisting import relists
from hudi_table.write.checks.request import refuse_unsupported


@relists
def change_lookup(ctx: TableContext, wanted: IndexType) -> None:
    """Store another index that looks keys up. Raises InvalidRequestError if it is no other way of
    the same index, UnsupportedTableError if nobody could write the table then."""
    if ctx.config.index is None:
        raise InvalidRequestError(
            f"table {ctx.config.name!r} stores no index, so that every write names it: give {INDEX_TYPE}={wanted.hudi_name}"
        )
    stored = ctx.config.index.type
    if stored is wanted:
        return
    if not stored.can_become(wanted):
        raise InvalidRequestError(
            f"table {ctx.config.name!r} has index {stored.value}, which cannot become {wanted.value} without writing its rows "
            "anew; make a new table, or exchange Simple with Bloom or PartitionedRecordIndex, GlobalSimple with GlobalBloom, RecordIndex or KeyState"
        )
    problem = exchange_problem(ctx.config)
    if problem is not None:
        raise InvalidRequestError(f"table {ctx.config.name!r} {problem}")
    # Keys moved to the partition of their new row until now, and go on doing so.
    kept = {RECORD_INDEX_MOVES: "true"} if wanted.may_keep_partition else {}
    refuse_unsupported(replace(ctx.config, index=IndexSpec(wanted), extra={**ctx.config.extra, **kept}))
    replace_properties(ctx, {KEY_STATE: None} | type_properties(wanted) | kept)
