"""Building and dropping the metadata table on request, while writers go on."""

from __future__ import annotations

from hudi_table.table.context import TableContext
from hudi_table.table.metadata.building import build_metadata
from hudi_table.table.properties import drop_metadata_table
from hudi_table.write.prepare import refuse_unsupported


def build(ctx: TableContext) -> bool:
    """Build what is not there, or finish what was begun. Whether there was anything to do. Raises as `build_metadata`."""
    refuse_unsupported(ctx.config)
    return build_metadata(ctx)


def drop(ctx: TableContext) -> bool:
    """Switch it off and delete it. Whether there was one."""
    refuse_unsupported(ctx.config)
    return drop_metadata_table(ctx)
