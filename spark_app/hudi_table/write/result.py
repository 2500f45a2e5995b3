"""What a write returns."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.instants import Instant


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What a write did. Counts are rows; `instant` is "" only for an empty write that committed
    nothing.

    `rows_written` counts all rows of the files that were written, untouched ones included. A row
    that goes to a log counts in `rows_updated`, as Hudi counts it: a bucket index does not look
    whether its key is stored. `event_times`: the smallest and the largest of the rows, in
    milliseconds since 1970, where `hoodie.write.track.event.time.watermark` asks for them.
    `moment`: what `since` and `until` of changes take for this write: when it completed where the
    table version stores that (8 and 9), else its instant.
    `replayed`: the batch had been committed before, by `instant`; nothing was done now.
    """

    instant: str
    operation: str
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    files_written: int = 0
    groups_replaced: int = 0
    partitions: tuple[str, ...] = ()
    event_times: tuple[int, int] | None = None
    schema_changed: bool = False
    replayed: bool = False
    moment: str = ""


def replayed_by(instant: Instant, operation: str) -> CommitResult:
    """Of a batch that an instant had committed before."""
    return CommitResult(instant.time, operation, moment=instant.moment, replayed=True)


def result_of(instant: Instant, operation: str, metadata: CommitMetadata, *, schema_changed: bool) -> CommitResult:
    """The figures of a commit."""
    stats = metadata.stats
    return CommitResult(
        instant=instant.time,
        moment=instant.moment,
        operation=operation,
        rows_inserted=sum(stat.num_inserts for stat in stats),
        rows_updated=sum(stat.num_update_writes for stat in stats),
        rows_deleted=sum(stat.num_deletes for stat in stats),
        rows_written=sum(stat.num_writes for stat in stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        files_written=len(stats),
        groups_replaced=len(metadata.replaced_groups),
        event_times=metadata.event_times,
        partitions=tuple(sorted({stat.partition_path for stat in stats} | set(metadata.replaced or ()))),
        schema_changed=schema_changed,
    )
