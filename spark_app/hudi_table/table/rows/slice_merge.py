"""How the logs of a table merge: what its properties and columns say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_table.model.names import IS_DELETED, RECORD_KEY
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.merge_settings import LaterMerge, PartialUpdates
from hudi_table.model.table.properties import table_payload
from hudi_table.table.keys.record_keys import FieldKeys, keys_of_stored
from hudi_table.table.rows.merge import MergeRule
from hudi_table.table.timeline.column_history import ColumnHistory


@dataclass(frozen=True, slots=True)
class SliceMerge:
    """How a table merges on read: `ordering` is compared between log entries, and with base rows if
    `event_time`.

    `partial`: which values of the folded row leave the base row's; `combines`: entries are put
    together column by column too. `later`: entries and base rows merge by the one rule of table
    versions 8 and 9, and `then_by` are further ordering columns, which are compared where those
    before are equal. `marker`: column and text that flag a delete. `keys`: how record keys are
    made of the rows of a table that stores none. `history`: which columns older log blocks hold
    under another name.
    """

    ordering: str | None = None
    event_time: bool = False
    partial: PartialUpdates | None = None
    combines: bool = False
    later: bool = False
    then_by: tuple[str, ...] = ()
    marker: tuple[str, str] | None = None
    keys: FieldKeys | None = None
    history: ColumnHistory | None = None

    @classmethod
    def of(cls, config: TableConfig, schema: pa.Schema, history: ColumnHistory | None = None) -> SliceMerge:
        """How the logs of a table with these columns merge. One ordering field on version 6;
        several are refused when a table is created."""
        keys = keys_of_stored(config)
        if config.later_merge is not None:
            return replace(cls._later(config.later_merge, schema), keys=keys, history=history)
        ordering = config.ordering_fields[0] if config.ordering_fields else None
        if ordering not in schema.names:
            # Hudi tables may name an ordering column that was never written; then rows only follow each other.
            ordering = None
        payload = table_payload(config)
        by_time = payload.event_time and ordering is not None
        return cls(ordering, by_time, payload.partial, payload.combines, keys=keys, history=history)

    @classmethod
    def _later(cls, found: LaterMerge, schema: pa.Schema) -> SliceMerge:
        fields = [name for name in found.ordering if name in schema.names]
        ordering = fields[0] if fields else None
        marker = found.marker if found.marker is not None and found.marker[0] in schema.names else None
        fills = found.partial is not None
        return cls(ordering, bool(fields), found.partial, fills, True, tuple(fields[1:]), marker)

    @property
    def orderings(self) -> list[str]:
        """The columns whose values are compared, in turn."""
        return [] if self.ordering is None else [self.ordering, *self.then_by]

    @property
    def rule(self) -> MergeRule:
        """How the folded entries meet base rows."""
        if self.later:
            return MergeRule(self.ordering, self.partial, self.combines, then_by=self.then_by, later=True)
        return MergeRule(self.ordering if self.event_time else None, self.partial, self.combines)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that record keys are made of, none where they are stored."""
        return () if self.keys is None else self.keys.columns

    def needs(self, schema: pa.Schema) -> list[pa.Field]:
        """Columns that merging reads, of those that the table has. Of a table that stores no record
        keys the schema need not name their column."""
        known = {field.name: field for field in (pa.field(RECORD_KEY, pa.string()), *schema)}
        wanted = [RECORD_KEY, *self.key_columns, *self.orderings, IS_DELETED]
        wanted += [self.marker[0]] if self.marker else []
        return [known[name] for name in dict.fromkeys(wanted) if name in known]
