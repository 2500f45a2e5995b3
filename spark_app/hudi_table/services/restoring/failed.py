"""Failed writes under a policy that leaves them to cleaning."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.options import FailedWrites, failed_writes
from hudi_table.table import recovery
from hudi_table.table.context import TableContext
from hudi_table.table.timeline import load_timeline


def recover_failed_writes(ctx: TableContext, options: Mapping[str, str]) -> tuple[str, ...]:
    """What cleaning does first: take back the writes without a sign of life, unless the policy is NEVER; returns their instants.

    Several at once come to one rollback of each. Raises InvalidOptionError.
    """
    policy = failed_writes(options) or ctx.settings.failed_writes
    return () if policy is FailedWrites.NEVER else recovery.recover(ctx, load_timeline(ctx))
