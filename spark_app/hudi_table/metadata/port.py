"""The metadata table as a table is handed it, and the one way to open a table with it.

What reads and writes the metadata table is imported when it is first asked: many a table has none,
and opening one asks nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from hudi_table.model.table.version_properties import BOOTSTRAP_BASE
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.context import ListedFiles, TableContext, TxnSettings, WritePermit
from hudi_table.table.timeline.properties import load_context
from hudi_table.table.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_table.metadata.delta.commit import Delta


class HudiMetadata:
    """`MetadataPort`, by Hudi's metadata table under `.hoodie/metadata`, where the table has
    one."""

    def files(
        self, ctx: TableContext, timeline: Timeline, partitions: Collection[str] | None = None
    ) -> ListedFiles | None:
        """As `MetadataPort.files`. Raises what the storage raises."""
        if not timeline.has_metadata:
            return None
        from hudi_table.metadata.files_listing import metadata_files

        return metadata_files(ctx, timeline, partitions)

    def delta(
        self, ctx: TableContext, permit: WritePermit, commit: CommitMetadata, time: str, timeline: Timeline
    ) -> Delta:
        """As `MetadataPort.delta`."""
        from hudi_table.metadata.delta.commit import Delta
        from hudi_table.metadata.delta.entries import entries_of

        return Delta(ctx, permit, time, entries_of(ctx, commit, time, timeline), timeline)

    def forget(self, ctx: TableContext, time: str) -> None:
        """As `MetadataPort.forget`. Raises what the storage raises."""
        from hudi_table.metadata.delta.rollback import forget_delta

        forget_delta(ctx, time)


def open_context(storage: Storage, clock: Clock | None = None, settings: TxnSettings | None = None) -> TableContext:
    """Load the table at the storage's base path.

    Raises TableNotFoundError, CorruptTableError, UnsupportedTableError, and what the storage
    raises.
    """
    ctx = load_context(storage, HudiMetadata(), clock, settings)
    if ctx.config.extra.get(BOOTSTRAP_BASE):
        from hudi_table.table.bootstrap.skeletons import with_skeletons

        return with_skeletons(ctx)
    return ctx
