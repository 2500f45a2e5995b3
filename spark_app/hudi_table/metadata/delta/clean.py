"""The delta of a clean, which is no commit: its files' tombstones, in the chain before the clean
completes.

A compaction of the metadata table has to know of every delta that may count. It finds commits in
the chain; of a clean, whose completed file nobody decides, the chain gets a plan entry that creates
nothing: its file is the inflight one, which is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_table.errors import WriteAbortedError
from hudi_table.metadata.delta.commit import Delta
from hudi_table.metadata.delta.entries import entries_of_deletion
from hudi_table.model.timeline.chain import Kind
from hudi_table.model.timeline.conflict_keys import metadata_delta_conflict_key
from hudi_table.model.timeline.instants import Instant, State
from hudi_table.table.commit.beside.locking import under_lock
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.decision import Decider
from hudi_table.table.commit.publish import materialise_predecessors
from hudi_table.table.commit.write_permit import RightToWrite
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import body, load_timeline
from hudi_table.table.timeline.context import TableContext


@under_lock
def record_clean(
    ctx: TableContext, clean: Instant, deleted: Mapping[str, Iterable[str]], dropped: Iterable[str]
) -> None:
    """Record in the metadata table, if there is one, which files the clean has deleted (names by
    partition), and which partitions.

    Called once the files are gone, before the clean completes; again, and by several, it comes to
    the same.
    """
    tail = chain.read_tail(ctx)
    timeline = load_timeline(ctx)
    if not timeline.has_metadata:
        return
    # The walk begins at the tail: a plan up to there that would move the tombstones has to be on the timeline when they are placed.
    if materialise_predecessors(ctx, timeline, clean.time, tail.sequence):
        timeline = load_timeline(ctx)
    right = RightToWrite(
        ctx.storage.reopen(), clean.time, ctx.layout.timeline_path(clean.with_state(State.REQUESTED).file_name), tail.sequence,
        ctx.settings.renew_seconds, _storage=ctx.storage, _clock=ctx.clock,
    )  # fmt: skip
    delta = Delta(ctx, right, clean.time, entries_of_deletion(ctx, deleted, dropped), timeline)
    inflight = clean.with_state(State.INFLIGHT)
    try:
        written = delta.write()
        if not delta.wrote_logs:
            return
        decider = Decider(
            ctx, clean.time, f"clean-{clean.time}", "", tail, right, frozenset(), delta.write_again
        )  # fmt: skip
        claimed = Claimed((metadata_delta_conflict_key(clean.time),), metadata=written)
        decider.decide(Kind.PLAN, claimed, inflight.file_name, body(ctx, inflight))
        decider.publish_passed()
    except WriteAbortedError:
        # Its requested file is gone: the clean was completed and archived by another executor.
        return
