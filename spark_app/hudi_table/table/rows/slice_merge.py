"""How the logs of a table merge: what its properties and columns say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_table.model.names import IS_DELETED, RECORD_KEY
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.merging import PartialUpdates
from hudi_table.model.table.properties import table_payload
from hudi_table.table.rows.merge import MergeRule


@dataclass(frozen=True, slots=True)
class SliceMerge:
    """How a table merges on read: `ordering` is compared between log entries, and with base rows if `event_time`.

    `partial`: which values of the folded row leave the base row's; `combines`: entries are put together column by column too.
    """

    ordering: str | None = None
    event_time: bool = False
    partial: PartialUpdates | None = None
    combines: bool = False

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema) -> SliceMerge:
        """How the logs of a table with these columns merge. One ordering field on version 6; several are refused when a table is created."""
        ordering = config.ordering_fields[0] if config.ordering_fields else None
        if ordering not in schema.names:
            # Hudi tables may name an ordering column that was never written; then rows only follow each other.
            ordering = None
        payload = table_payload(config)
        return cls(ordering, payload.event_time and ordering is not None, payload.partial, payload.combines)

    @property
    def rule(self) -> MergeRule:
        """How the folded entries meet base rows."""
        return MergeRule(self.ordering if self.event_time else None, self.partial, self.combines)

    def needs(self, fields: Sequence[pa.Field]) -> list[str]:
        """Columns that merging reads, of those that the table has."""
        known = {field.name for field in fields}
        wanted = [RECORD_KEY, *([self.ordering] if self.ordering else []), IS_DELETED]
        return [name for name in wanted if name in known or name == RECORD_KEY]
