"""From rows of a source to a commit that also holds how far the ingest is: both or neither, once.

Of all who go on from one checkpoint one commits: the batch is named by the commit that holds it, a name that excludes another decision of the same, and the
write's own snapshot must still show that commit as the newest with a checkpoint. So a driver that slept, or a second one, commits nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Positions, commit_keys
from hudi_table.services.inline import check_inline, run_inline
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import HeldPositions, positions_of
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.operations import Follows, WriteRequest, write
from hudi_table.write.result import CommitResult


@dataclass(frozen=True, slots=True)
class Ingest:
    """One ingest of a table: its name, its only topic if it has one, what it does with rows, and the options of its writes."""

    name: str
    topic: str | None
    operation: str
    options: Mapping[str, str]

    def commit(
        self, ctx: TableContext, rows: Rows[Positions], held: HeldPositions | None, engine: Engine | None = None
    ) -> CommitResult:
        """Write rows that go on from `held`; a commit without rows holds the positions all the same.

        Raises what `write_hudi` does: WriteConflictError where another commit moved the checkpoint.
        """
        options = {**self.options, "hoodie.allow.empty.commit": "true"}
        instant = held.instant if held is not None else None
        request = WriteRequest(
            operation=self.operation,
            options=options,
            extra_metadata=commit_keys(key_of(self.name), rows.checkpoint, ctx.config.version),
            batch=f"{self.name}@{instant or 'begin'}",
            follows=Follows(positions_of(self.name, self.topic), instant),
        )
        check_inline(ctx, options)
        engine = engine or LocalEngine()
        result = write(ctx, rows.batches, request, engine)
        run_inline(ctx, result.instant, options, engine, max_memory=request.max_memory)
        return result
