"""Compaction that a writer does itself after its commit, as `hoodie.compact.inline`,
`hoodie.compact.schedule.inline` and `hoodie.log.compaction.inline` ask."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from hudi_table.errors import InvalidOptionError
from hudi_table.model.options.known import boolean_option, warn_of
from hudi_table.model.service.services import ServiceRequest
from hudi_table.model.table.config import TableType
from hudi_table.services.compaction.service import CompactionService, LogCompactionService
from hudi_table.services.compaction.strategy import strategy_of
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext

INLINE = "hoodie.compact.inline"
SCHEDULE_INLINE = "hoodie.compact.schedule.inline"
LOG_INLINE = "hoodie.log.compaction.inline"


def check_compaction(ctx: TableContext, options: Mapping[str, str]) -> None:
    """Refuse contradicting options before anything is written, as Hudi does, and what could never
    be planned; warn of what a table without logs has no use for. Raises InvalidOptionError."""
    if boolean_option(options, INLINE) and boolean_option(options, SCHEDULE_INLINE):
        raise InvalidOptionError(f"{INLINE} and {SCHEDULE_INLINE} exclude each other; set one of them to false")
    if boolean_option(options, INLINE) or boolean_option(options, SCHEDULE_INLINE):
        # Whatever the day is.
        strategy_of(options, date.min)
    if ctx.config.type is not TableType.MERGE_ON_READ:
        for key in (INLINE, SCHEDULE_INLINE, LOG_INLINE):
            if boolean_option(options, key):
                warn_of(f"option {key!r} does nothing here: table {ctx.config.name!r} is copy-on-write and has no logs")


def compact_inline(ctx: TableContext, options: Mapping[str, str], engine: Engine, *, max_memory: int) -> None:
    """What the options ask after a write."""
    if ctx.config.type is not TableType.MERGE_ON_READ:
        return

    def run(service: CompactionService) -> None:
        for instant in service.pending():
            service.execute(instant, engine=engine)

    request = ServiceRequest(options, max_memory=max_memory)
    compaction, of_logs = CompactionService(ctx, request), LogCompactionService(ctx, request)
    if boolean_option(options, INLINE) or boolean_option(options, SCHEDULE_INLINE):
        compaction.schedule()
    if boolean_option(options, INLINE):
        run(compaction)
    if boolean_option(options, LOG_INLINE):
        of_logs.schedule()
        run(of_logs)
