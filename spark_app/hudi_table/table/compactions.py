"""Pending compactions: which file groups a published plan holds.

Facts (table version 6, measured on Hudi 0.15.0): the plan is the Avro body of `T.compaction.requested`; from it on, new
logs of its groups carry T as their base instant.
"""

from __future__ import annotations

from typing import Any

from hudi_table.codec.avro_file import read_container
from hudi_table.errors import CorruptTableError
from hudi_table.model.instants import Action, Instant, State
from hudi_table.table.context import TableContext
from hudi_table.table.timeline import Timeline, body


def pending_compactions(ctx: TableContext, timeline: Timeline) -> dict[tuple[str, str], str]:
    """(partition, file id) of every group in a pending compaction plan, and the plan's instant."""
    found: dict[tuple[str, str], str] = {}
    for instant in timeline.pending:
        if instant.action is Action.COMPACTION:
            for operation in plan_operations(ctx, instant):
                found[(operation["partitionPath"] or "", operation["fileId"])] = instant.time
    return found


def plan_operations(ctx: TableContext, instant: Instant) -> list[dict[str, Any]]:
    """The operations of a compaction or log compaction plan. Raises CorruptTableError."""
    requested = instant.with_state(State.REQUESTED)
    try:
        (plan,) = read_container(body(ctx, requested))
        return list(plan["operations"] or ())
    except (ValueError, KeyError) as error:
        raise CorruptTableError(
            f"{requested.file_name} is no compaction plan: {error}", base_path=ctx.base_path, path=requested.file_name
        ) from error
