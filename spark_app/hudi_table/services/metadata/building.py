"""Building and dropping the metadata table on request, while writers go on."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_table.errors import InvalidRequestError
from hudi_table.model.metadata_table import MetadataPartition
from hudi_table.table.context import TableContext
from hudi_table.table.metadata.building import build_metadata
from hudi_table.table.metadata.settling import BUILT
from hudi_table.table.properties import drop_metadata_table
from hudi_table.write.prepare import refuse_unsupported


def build(ctx: TableContext, indexes: Iterable[str] = ()) -> bool:
    """Build what is not there, with the partitions `indexes`, or finish what was begun. Whether there was anything to do.

    Raises InvalidRequestError for another partition, and as `build_metadata`.
    """
    refuse_unsupported(ctx.config)
    names = list(indexes)
    for name in names:
        if name not in BUILT:
            raise InvalidRequestError(
                f"the metadata table is not built with {name!r}; there are {', '.join(sorted(BUILT))}"
            )
    return build_metadata(ctx, [MetadataPartition(name) for name in names])


def drop(ctx: TableContext) -> bool:
    """Switch it off and delete it. Whether there was one."""
    refuse_unsupported(ctx.config)
    return drop_metadata_table(ctx)
