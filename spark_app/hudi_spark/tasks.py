"""What crosses to task processes: a handle of the table, opened anew there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hudi_table.metadata.port import HudiMetadata
from hudi_table.model.table.config import TableConfig
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext, TxnSettings


@dataclass(frozen=True, slots=True)
class TableHandle:
    """A table as another process opens it; picklable."""

    open_storage: Callable[[], Storage] = field(repr=False)
    config: TableConfig
    settings: TxnSettings

    @classmethod
    def of(cls, ctx: TableContext) -> TableHandle:
        """The handle of a loaded table."""
        return cls(ctx.storage.reopen(), ctx.config, ctx.settings)

    def open(self) -> TableContext:
        """The table in this process."""
        return TableContext(self.open_storage(), self.config, SystemClock(), HudiMetadata(), self.settings)
