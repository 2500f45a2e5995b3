"""Completed commits that the metadata table was not told of: a writer that does not keep it (Flink
with its defaults) says nothing there, nor does a job that began before it was built.

Deltas have the instants of their commits. What began the metadata table is the first on its own
timeline, and holds what had completed by then. Properties name what that rule does not tell, and
whoever builds writes them: an earlier instant that had not completed is awaited, and a later one
whose commit was decided before the building is held. No commit of ours is missing, for the chain
shows each writer the building.

Fact (Hudi 0.15.0, measured): a write that is to build a record index, beside a pending compaction,
builds none, and puts nothing into the metadata table, which stays as it was.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from hudi_table.model.metadata_table import (
    METADATA_AWAITS,
    METADATA_HOLDS,
    MetadataPartition,
    Partitions,
    is_secondary,
)
from hudi_table.model.timeline.instants import WRITE_ACTIONS, Instant, State, comparable_time
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


def untold(ctx: TableContext, timeline: Timeline, own: Timeline, named: Partitions) -> tuple[Instant, ...]:
    """The completed commits of `timeline` that a metadata table with the timeline `own` should hold
    and was not told of, oldest first. Both timelines are at hand, so as a rule nothing is asked of
    the store. Raises CorruptTableError, ObjectNotFoundError, and what the storage raises."""
    missing = _missing(ctx, timeline, own, named)
    return tuple(chain.unchained(ctx, missing, chain.read_tail(ctx).sequence)) if missing else ()


def _missing(ctx: TableContext, timeline: Timeline, own: Timeline, named: Partitions) -> list[Instant]:
    """Those that its timeline does not show, whoever has decided them."""
    told, awaits, holds = {i.time for i in own.commits}, set(named.awaits), set(named.holds)
    begun = min((comparable_time(i.moment) for i in own.commits), default="")
    behind = (i for i in timeline.commits if i.time in awaits or comparable_time(i.moment) > begun)
    keyed = any(name == MetadataPartition.RECORD_INDEX or is_secondary(name) for name in named.all)
    return [i for i in behind if i.time not in told | holds and _says_something(ctx, i, keyed=keyed)]


def _says_something(ctx: TableContext, commit: Instant, *, keyed: bool) -> bool:
    """Whether a metadata table, `keyed` if it tells where keys are, is another one behind the
    commit."""
    metadata = commit_metadata(ctx, commit)
    return bool(metadata.paths or (keyed and metadata.replaced_groups))


def open_writes(timeline: Timeline) -> set[str]:
    """The instants that may become completed commits."""
    return {i.time for i in timeline.pending if i.grouped_action in WRITE_ACTIONS}


def beside_building(
    ctx: TableContext, timeline: Timeline, own: Timeline, named: Partitions, building: Instant
) -> tuple[tuple[Instant, ...], dict[str, str | None]]:
    """The commits that what was built since the plan `building` may lack; if there are none, what
    the properties are to say of those beside it.

    `own` shows what was published of it. Several may build by one plan, each on a listing of its
    own, and the last file put there counts. So whatever completed behind the plan is taken for
    missing, unless it was told of.
    """
    planned = timeline.files.get(building.with_state(State.REQUESTED).file_name)
    since = {i.time for i in timeline.commits if planned is not None and timeline.files[i.file_name] >= planned}
    missing = _missing(ctx, timeline, own, replace(named, awaits=(*named.awaits, *since)))
    lacks = tuple(chain.unchained(ctx, missing, chain.read_tail(ctx).sequence)) if missing else ()
    awaits: Collection[str] = ()
    if not own.layout.tells_completions:
        # Where completions are told, those of them are behind its beginning.
        awaits = {*named.awaits, *(time for time in open_writes(timeline) if time < building.time)}
    holds = {*named.holds, *(i.time for i in missing)}
    return lacks, {METADATA_AWAITS: ",".join(sorted(awaits)) or None, METADATA_HOLDS: ",".join(sorted(holds)) or None}
