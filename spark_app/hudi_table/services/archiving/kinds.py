"""What takes instants into an archive, by the kind of archive that a layout has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from hudi_table.model.table.layouts import Archive
from hudi_table.model.timeline.instants import Instant
from hudi_table.services.archiving.logs import into_logs
from hudi_table.services.archiving.lsm import compact_levels, into_lsm
from hudi_table.services.archiving.merge import merge_archive
from hudi_table.services.archiving.policy import ArchivePolicy
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline

Keep = Callable[[TableContext, Timeline, Sequence[Instant], ArchivePolicy], Iterator[tuple[list[Instant], int]]]
"""Archives instants; yields those that are in the archive now, oldest first, and the bytes that
were put for them."""
Merge = Callable[[TableContext, ArchivePolicy], int]
"""Keeps the number of an archive's files bounded. Returns how many were merged."""
ARCHIVES: Final[Mapping[Archive, tuple[Keep, Merge]]] = MappingProxyType({
    Archive.LOGS: (into_logs, merge_archive),
    Archive.LSM: (into_lsm, compact_levels),
})  # fmt: skip
