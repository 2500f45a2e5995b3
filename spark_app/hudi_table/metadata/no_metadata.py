"""The metadata table of a metadata table: there is none."""

from __future__ import annotations

from collections.abc import Collection

from hudi_table.errors import InvariantError
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.timeline.context import CommitDelta, TableContext, WritePermit
from hudi_table.table.timeline.timeline import Timeline


class NoMetadata:
    """The metadata table has none of its own: its folders are listed, and nothing is committed to
    it by a transaction."""

    def files(self, ctx: TableContext, timeline: Timeline, partitions: Collection[str] | None = None) -> None:
        """The folders are listed."""

    def delta(
        self, ctx: TableContext, permit: WritePermit, commit: CommitMetadata, time: str, timeline: Timeline
    ) -> CommitDelta:
        """Raises InvariantError."""
        del permit, commit, timeline
        raise InvariantError("the metadata table has no transactions of its own", base_path=ctx.base_path, instant=time)

    def forget(self, ctx: TableContext, time: str) -> None:
        """Raises InvariantError."""
        raise InvariantError("the metadata table has no rollbacks of its own", base_path=ctx.base_path, instant=time)
