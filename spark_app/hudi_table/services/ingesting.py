"""From rows of a source to a commit that also holds how far the ingest is: both or neither, once.

Of all who go on from one checkpoint one commits: the batch is named by the commit that holds it, a name that excludes another decision of the same, and the
write's own snapshot must still show that commit as the newest with a checkpoint. So a driver that slept, or a second one, commits nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hudi_table.errors import InvalidRequestError
from hudi_table.model.job.checkpoint import key_of
from hudi_table.model.job.positions import Positions, TopicPositions, commit_keys, parse_streamer
from hudi_table.services.inline import ENABLED as SERVICES
from hudi_table.services.inline import check_inline, run_inline
from hudi_table.sources.base import Rows
from hudi_table.sources.checkpoints import HeldPositions, current_positions, positions_of
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.schemas import table_schema
from hudi_table.write.operations import Follows, WriteRequest, write
from hudi_table.write.result import CommitResult

MISSING_IS_NULL = {"hoodie.write.set.null.for.missing.columns": "true"}
"""Messages of a topic lack what came later, or what their producer left out."""
SET_KEY = "lakeops.checkpoint.set"
"""Of a commit that sets a checkpoint: who did so, and what it was before."""


@dataclass(frozen=True, slots=True)
class Ingest:
    """One ingest of a table: its name, its only topic if it has one, what it does with rows, and the options of its writes."""

    name: str
    topic: str | None
    operation: str
    options: Mapping[str, str]

    def commit(
        self,
        ctx: TableContext,
        rows: Rows[Positions],
        held: HeldPositions | None,
        *,
        engine: Engine | None = None,
        more: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Write rows that go on from `held`; a commit without rows holds the positions all the same. `more` goes into its extra metadata.

        Raises what `write_hudi` does: WriteConflictError where another commit moved the checkpoint.
        """
        options = {**MISSING_IS_NULL, **self.options, "hoodie.allow.empty.commit": "true"}
        instant = held.instant if held is not None else None
        request = WriteRequest(
            operation=self.operation,
            options=options,
            extra_metadata={**(more or {}), **commit_keys(key_of(self.name), rows.checkpoint, ctx.config.version)},
            batch=f"{self.name}@{instant or 'begin'}",
            follows=Follows(positions_of(self.name, self.topic), instant),
        )
        check_inline(ctx, options)
        engine = engine or LocalEngine()
        result = write(ctx, rows.batches, request, engine)
        run_inline(ctx, result.instant, options, engine, max_memory=request.max_memory)
        return result


def set_positions(ctx: TableContext, ingest: str, text: str, *, by: str) -> CommitResult:
    """Make an ingest from Kafka go on at other offsets: a commit without rows holds them, and who set them in place of what.

    `text`: one topic's, as Hudi Streamer writes them. A topic that the checkpoint knows keeps its id, and partitions that the text does not name their
    offsets. Raises InvalidRequestError for a text that is none, CorruptTableError where the ingest's checkpoint is of another source.
    """
    try:
        topic, offsets = parse_streamer(text)
    except ValueError as error:
        raise InvalidRequestError(f"the checkpoint {error}") from error
    held = current_positions(ctx, ingest, topic)
    before = held.positions if held is not None else Positions("", {})
    known = before.topics.get(topic, TopicPositions("", {}))
    topics = {**before.topics, topic: TopicPositions(known.id, {**known.offsets, **offsets})}
    positions = replace(before, topics=topics, attempt="", newest=-1)
    schema = table_schema(ctx, load_timeline(ctx))
    if schema is None:
        raise InvalidRequestError(
            "the table has no schema yet: it takes a checkpoint once a first write has given it one"
        )
    audit = {
        SET_KEY: json.dumps({"ingest": ingest, "by": by, "before": before.to_text() if held is not None else None})
    }
    kept = Ingest(ingest, topic if len(topics) == 1 else None, "upsert", {SERVICES: "false"})
    return kept.commit(ctx, Rows(schema, schema.empty_table().to_reader(), positions, 0), held, more=audit)
