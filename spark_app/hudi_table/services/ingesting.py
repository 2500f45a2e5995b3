"""From rows of a source to a commit that also holds how far the ingest is: both or neither, once.

Of all who go on from one checkpoint one commits: the batch is named by the commit that holds it, a
name that excludes another decision of the same, and the write's own snapshot must still show that
commit as the newest with a checkpoint. So a driver that slept, or a second one, commits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Positions, commit_keys
from hudi_table.model.job.shards import ShardPositions
from hudi_table.model.job.shards import commit_keys as shard_keys
from hudi_table.read.reader import TableReader
from hudi_table.services.inline import check_inline, run_inline
from hudi_table.services.validating.asked import with_validators
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import Held, HeldPositions, positions_of
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.archived import Holds, under
from hudi_table.table.timeline.context import TableContext
from hudi_table.write.checks.follows import Follows
from hudi_table.write.operations import WriteRequest, write
from hudi_table.write.result import CommitResult

MISSING_IS_NULL = {"hoodie.write.set.null.for.missing.columns": "true"}
"""Messages of a topic lack what came later, or what their producer left out."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What a write of an ingest is given, so that it stands only behind the checkpoint that it goes
    on from."""

    batch: str
    follows: Follows


def behind(ingest: str, holds: Holds, instant: str | None, seen: frozenset[str] | None = None) -> Behind:
    """Of a write that goes on from the checkpoint of `instant`, None where there is none; `holds`
    finds checkpoints of the ingest; `seen`: see `Follows`."""
    return Behind(f"{ingest}@{instant or 'begin'}", Follows(holds, instant, seen))


def behind_held(ingest: str, held: Held[Any] | None) -> Behind:
    """Of a write that goes on from the checkpoint that was found, or begins; an ingest from Kafka
    has Hudi Streamer's, too."""
    return behind(ingest, under(key_of(ingest)), held.instant if held is not None else None)


def commit_behind(ctx: TableContext, batches: Any, request: WriteRequest, engine: Engine | None = None) -> CommitResult:
    """Write rows in this process, then do the services that the options ask for. Raises what
    `write_hudi` does: WriteConflictError where another commit moved the checkpoint."""
    check_inline(ctx, request.options)
    engine = engine or LocalEngine()
    result = write(ctx, batches, with_validators(request), engine)
    run_inline(ctx, result.instant, request.options, engine, max_memory=request.max_memory)
    return result


@dataclass(frozen=True, slots=True)
class Ingest:
    """One ingest of a table: its name, its only topic if it has one, or its stream, what it does
    with rows, and the options of its writes. `index`: those that name its index to a table that
    stores none. `shares`: its positions are told Hudi Streamer too. `seen`: the commits of the
    moment when the rows of a batch were made of those of the table."""

    name: str
    topic: str | None
    operation: str
    options: Mapping[str, str]
    index: Mapping[str, str] = field(default_factory=dict)
    shares: bool = True
    seen: Callable[[], frozenset[str] | None] = lambda: None

    def commit(
        self,
        ctx: TableContext,
        rows: Rows[Positions] | Rows[ShardPositions],
        held: HeldPositions | Held[ShardPositions] | None,
        *,
        engine: Engine | None = None,
        more: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Write rows that go on from `held`; a commit without rows holds the positions all the
        same. `more` goes into its extra metadata.

        Raises what `write_hudi` does: WriteConflictError where another commit moved the checkpoint.
        """
        return commit_behind(ctx, rows.batches, self.request(ctx, rows.checkpoint, held, more), engine)

    def without_older(self, ctx: TableContext, rows: Rows[Positions], held: HeldPositions | None) -> tuple[Ingest, int]:
        """Delete the rows of the table that are older than `rows.since`, as a commit of its own
        without a checkpoint, and say how many: an attempt that ends behind it finds none any more.
        The keys go by as a stream, however many there are. The ingest that commits the rows knows
        that commit.

        Raises what `commit` does.
        """
        if rows.since is None:
            return self, 0
        reader, column = TableReader(ctx), ctx.config.ordering_fields[0]
        schema = reader.schema()
        if schema is None or column not in schema.names:
            return self, 0
        seen = self.seen()
        place = self._behind(held, seen)
        older = reader.scan(columns=list(ctx.config.record_key), filter=pc.field(column) < rows.since)
        request = WriteRequest(
            operation="delete",
            options={**self._options(ctx), "hoodie.allow.empty.commit": "false"},
            batch=f"{place.batch}-older-than-{rows.since}",
            follows=place.follows,
        )
        batches = pa.RecordBatchReader.from_batches(older.schema, older.to_batches())
        done = commit_behind(ctx, batches, request)
        known = seen | {done.instant} if seen is not None else None
        return replace(self, seen=lambda: known), done.rows_deleted

    def request(
        self,
        ctx: TableContext,
        found: Positions | ShardPositions,
        held: HeldPositions | Held[ShardPositions] | None,
        more: Mapping[str, str] | None = None,
    ) -> WriteRequest:
        """What such a write is to do and to record, whoever does it."""
        options = {**MISSING_IS_NULL, **self._options(ctx), "hoodie.allow.empty.commit": "true"}
        place = self._behind(held, self.seen())
        key, theirs = key_of(self.name), ctx.layout.streamer_key
        held_keys = {key: found.to_text()}
        if self.shares and isinstance(found, ShardPositions):
            held_keys = shard_keys(key, found, theirs)
        elif self.shares and isinstance(found, Positions):
            held_keys = commit_keys(key, found, theirs)
        if theirs in held_keys and held is not None and held.streamer is not None:
            held_keys |= held.streamer.keys(theirs)
        return WriteRequest(
            operation=self.operation,
            options=options,
            extra_metadata={**(more or {}), **held_keys},
            batch=place.batch,
            follows=place.follows,
        )

    def _options(self, ctx: TableContext) -> dict[str, str]:
        """Of each of its writes to this table."""
        return {**(self.index if ctx.config.index is None else {}), **self.options}

    def _behind(self, held: HeldPositions | Held[ShardPositions] | None, seen: frozenset[str] | None) -> Behind:
        """The place of a write that goes on from `held`."""
        instant = held.instant if held is not None else None
        return behind(self.name, positions_of(self.name, self.topic), instant, seen)
