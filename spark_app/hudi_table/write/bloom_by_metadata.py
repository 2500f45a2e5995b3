"""A bloom index that asks the metadata table for its filters, where a write's options say so."""

from __future__ import annotations

from dataclasses import replace

from hudi_table.index.bloom import BloomIndex
from hudi_table.index.stored_filters import FiltersOfMetadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.write.checks.request import Prepared


def with_stored_filters(ctx: TableContext, prepared: Prepared, timeline: Timeline) -> Prepared:
    """The same write for the snapshot `timeline`. Without filters that are ready the index asks the footers."""
    asks = prepared.options.bloom_by_metadata and prepared.operation.merges
    if not asks or not isinstance(prepared.index, BloomIndex):
        return prepared
    filters = FiltersOfMetadata.of(ctx, timeline)
    return prepared if filters is None else replace(prepared, index=replace(prepared.index, filters=filters))
