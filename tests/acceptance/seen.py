"""What a table looks like after a step: its files and what they hold, its plans, and a checksum of
its keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_table.api import HudiTable
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.view.file_system_view import BaseFile, FileSystemView

COLUMN = "review_date"


@dataclass(frozen=True)
class Seen:
    """`sizes`: bytes of the files that a reader reads, by path; `made`: those of every completed
    commit, by instant.

    `overlap`: in how many files a day lies, on average over the days of the table; 1 is the best.
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    made: Mapping[str, tuple[bool, tuple[int, ...]]] = field(default_factory=dict)
    plans: int = 0
    rows: int = 0
    checksum: str = ""
    overlap: float = 0.0

    def new_sizes(self, before: Seen) -> list[int]:
        """Of all files that were made since, written ones first."""
        return [*self.written(before), *(size for one, sizes in self._new(before) if one for size in sizes)]

    def written(self, before: Seen) -> list[int]:
        """Of the files that writers made since."""
        return [size for clustered, sizes in self._new(before) if not clustered for size in sizes]

    def clustered_sizes(self) -> list[int]:
        """Of the files of the newest clustering."""
        newest = max((instant for instant, (clustered, _) in self.made.items() if clustered), default="")
        return list(self.made[newest][1]) if newest else []

    def growth(self, before: Seen) -> str:
        """What was made since, in words."""
        written = len(self.written(before))
        clustered = len(self.new_sizes(before)) - written
        parts = [f"+{written} written"] if written else []
        parts += [f"+{clustered} clustered"] if clustered else []
        parts += ["a plan waits"] if self.plans else []
        return ", ".join(parts) or "nothing"

    def _new(self, before: Seen) -> list[tuple[bool, tuple[int, ...]]]:
        return [found for instant, found in sorted(self.made.items()) if instant not in before.made]


def look(table: HudiTable, partition: str) -> Seen:
    """The table now."""
    ctx = table.context
    timeline = load_timeline(ctx)
    files = [item.base for item in FileSystemView(ctx, timeline).latest_slices([partition]) if item.base is not None]
    made = {}
    for instant in timeline.commits:
        metadata = commit_metadata(ctx, instant)
        if metadata.stats:
            sizes = tuple(stat.file_size_in_bytes for stat in metadata.stats)
            made[instant.time] = (metadata.operation_type == "CLUSTER", sizes)
    rows, checksum = _keys(table)
    pending = [i for i in timeline.pending if i.action is ctx.layout.clustering]
    return Seen({item.path: item.size for item in files}, made, len(pending), rows, checksum, _overlap(table, files))


def _keys(table: HudiTable) -> tuple[int, str]:
    """Rows, and a checksum of their keys that does not depend on their order."""
    connection = duckdb.connect()
    connection.register("keys", pa.RecordBatchReader.from_stream(table.scan(["review_id"])))
    query = "select count(*), count(distinct review_id), bit_xor(hash(review_id)) from keys"
    ((rows, keys, checksum),) = connection.execute(query).fetchall()
    assert rows == keys, "a key lies in the table twice"
    return rows, f"{checksum:016x}"


def _overlap(table: HudiTable, files: list[BaseFile]) -> float:
    """Days that the files span, over the days that the table spans."""
    spans = []
    for file in files:
        with table.context.storage.open_read(file.path) as source:
            metadata = pq.ParquetFile(source).metadata
        index = metadata.schema.names.index(COLUMN)
        found = [metadata.row_group(number).column(index).statistics for number in range(metadata.num_row_groups)]
        spans.append((min(s.min for s in found), max(s.max for s in found)))
    if not spans:
        return 0.0
    total = (max(high for _, high in spans) - min(low for low, _ in spans)).days + 1
    return sum((high - low).days + 1 for low, high in spans) / total
