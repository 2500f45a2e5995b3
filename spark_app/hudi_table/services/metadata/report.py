"""What the metadata table holds, in figures."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.metadata.table import MetadataTable
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition: `state` is `ready` or `inflight`; `logs` and `bytes` are those of its newest
    slices."""

    partition: str
    state: str
    file_groups: int
    logs: int
    bytes: int


def report(ctx: TableContext) -> list[PartitionReport]:
    """Its partitions, sorted; none without a metadata table. Raises CorruptTableError,
    UnsupportedTableError."""
    timeline = load_timeline(ctx)
    table = MetadataTable.load(ctx, timeline) if timeline.has_metadata else None
    if table is None:
        return []
    reports = []
    for partition in sorted(table.partitions.all):
        slices = [group.latest for group in table.groups.get(partition, ())]
        reports.append(
            PartitionReport(
                partition,
                "ready" if partition in table.partitions.ready else "inflight",
                len(slices),
                sum(len(item.logs) for item in slices),
                sum(item.size for item in slices),
            )
        )
    return reports
