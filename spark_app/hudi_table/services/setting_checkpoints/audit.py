"""What every checkpoint that somebody sets has alike: who set it in place of what, on a table that
has columns, and no row taken twice unless that is wanted."""

from __future__ import annotations

import pyarrow as pa

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint_set import SET_KEY
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import Holds
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema

UPSERT = "UPSERT"


def schema_of(ctx: TableContext) -> pa.Schema:
    """Of the commit without rows. Raises InvalidRequestError for a table that has no schema yet."""
    schema = table_schema(ctx, load_timeline(ctx))
    if schema is None:
        raise InvalidRequestError(
            "the table has no schema yet: it takes a checkpoint once a first write has given it one"
        )
    return schema


def check_back(ctx: TableContext, holds: Holds, back: str, *, again: bool) -> None:
    """Raise InvalidRequestError for a step back (`back` says which, \"\" for none) of an ingest
    that inserts, unless rows may be taken `again`."""
    operation = _operation_of(ctx, holds) if back and not again else UPSERT
    if operation != UPSERT:
        raise InvalidRequestError(
            f"{back}: the ingest's last commit is of operation {operation}, which does not look for keys, "
            "so rows that come again would be in the table twice; give --yes (again=True) if that is wanted"
        )


def _operation_of(ctx: TableContext, holds: Holds) -> str:
    """Hudi's name of what the ingest's newest commit did that took rows; of an archived one it is
    not known."""
    for instant in reversed(load_timeline(ctx).commits):
        found = commit_metadata(ctx, instant)
        if holds(found.extra_metadata) is not None and SET_KEY not in found.extra_metadata:
            return found.operation_type
    return "unknown"
