"""No partition lies in another one.

Where paths are not encoded, a `/` in a value makes two folders, so that `x/y` lies in `x`. Readers
that look for partitions by their folders do not look below one that they have found (Hudi without
its metadata table), or lose the rows of the outer one (hudi-rs): ours alone read both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hudi_table.errors import InvalidDataError
from hudi_table.model.table.config import PartitionType, TableConfig
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.table.view.listing import partitions_in


def new_partitions(view: FileSystemView, filled: set[str]) -> list[str]:
    """Those of the partitions that a write fills which are not there yet, sorted. Raises
    InvalidDataError for one that lies in another partition, or around one.

    Partitions that are there already take rows, wherever they lie. The store is asked only where
    values hold a `/`: in the write, or in what is known of the table without asking.
    """
    new = sorted(filled - view.existing(filled))
    least = _least_depth(view.ctx.config)
    if not new or least is None:
        return new
    above = {path: list(_above(path, least)) for path in new}
    found = filled | view.existing({outer for outers in above.values() for outer in outers})
    for inner, outers in above.items():
        for outer in outers:
            if outer in found:
                raise _refused(inner, outer, view.ctx.config)
    if any(path.count("/") >= least for path in _known(view, filled)):
        for outer in new:
            below = partitions_in(view.ctx.storage.list(outer))
            within = next((path for path in [*below, *filled] if path.startswith(f"{outer}/")), None)
            if within is not None:
                raise _refused(outer, within, view.ctx.config)
    return new


def _least_depth(config: TableConfig) -> int | None:
    """How many folders a partition is deep whose values hold no `/`; None where all are as deep."""
    fields = config.partition_by
    if config.url_encode or all(item.type is PartitionType.TIMESTAMP for item in fields):
        return None
    return sum(1 + ((item.format or "").count("/") if item.type is PartitionType.TIMESTAMP else 0) for item in fields)


def _above(path: str, least: int) -> Iterator[str]:
    """The folders around a partition that may be partitions themselves."""
    segments = path.split("/")
    return ("/".join(segments[:depth]) for depth in range(least, len(segments)))


def _known(view: FileSystemView, filled: set[str]) -> Iterable[str]:
    """Partitions of which this process knows: of the write, of those before it here, and of the
    newest commit."""
    newest = view.timeline.last_commit
    written = [] if newest is None else commit_metadata(view.ctx, newest).stats
    return {*filled, *view.ctx.folders, *(stat.partition_path for stat in written)}


def _refused(new: str, other: str, config: TableConfig) -> InvalidDataError:
    lies = f"partition {new!r} would lie {'in' if new.startswith(other) else 'around'} partition {other!r}"
    return InvalidDataError(
        f"{lies} (from {', '.join(config.partition_fields)}), where other readers lose rows: change the values, or write to a "
        "table that is created with url_encode=True"
    )
