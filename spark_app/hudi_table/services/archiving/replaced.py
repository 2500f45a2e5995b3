"""Whether a replacecommit may leave the timeline: what it replaced has to be gone first, or readers
would see it again."""

from __future__ import annotations

from hudi_table.model.names import parse_data_file
from hudi_table.model.timeline.instants import Instant
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext


class Replaced:
    """Whether the files that replacecommits replaced are deleted; each partition is listed once."""

    def __init__(self, ctx: TableContext) -> None:
        self._ctx = ctx
        self._groups: dict[str, frozenset[str]] = {}

    def gone(self, instant: Instant) -> bool:
        """Whether none of the file groups that a replacecommit replaced has a file."""
        replaced = commit_metadata(self._ctx, instant).replaced or {}
        return not any(self._in(partition).intersection(ids) for partition, ids in replaced.items() if ids)

    def _in(self, partition: str) -> frozenset[str]:
        if partition not in self._groups:
            _, infos = self._ctx.storage.list_dir(partition)
            names = (info.path.rpartition("/")[2] for info in infos)
            found = map(parse_data_file, names)
            self._groups[partition] = frozenset(name.file_id for name in found if name)
        return self._groups[partition]
