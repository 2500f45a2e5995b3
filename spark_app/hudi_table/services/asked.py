"""What a service is asked: the same gate as a write's, and the same comparison with the table."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_table.model.options.known import admit
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.table_options import refuse_contradictions


def check_asked(ctx: TableContext, options: Mapping[str, str] | None) -> None:
    """Refuse options that are unknown or refused, or that describe another table. Raises InvalidOptionError."""
    if options:
        admit(options)
        refuse_contradictions(ctx.config, options)
