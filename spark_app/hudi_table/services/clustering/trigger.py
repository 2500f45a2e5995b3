"""When a clustering is planned: Hudi 0.15.0's three modes.

Facts (0.15.0): commits are completed writes, compactions and replacements included, after the
newest instant that has a clustering plan, executed or not. A writer that clusters inline waits for
`hoodie.clustering.inline.max.commits`, a planner beside the writers for
`hoodie.clustering.async.max.commits`; one that only schedules inline tries after every commit, but
not while a plan waits for its execution. An empty founding commit of ours is no commit here: Hudi
has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hudi_table.model.counts import counted
from hudi_table.model.options.known import whole_option
from hudi_table.model.timeline.instants import Action, Instant
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clustering_plans import pending_clusterings

INLINE_COMMITS = "hoodie.clustering.inline.max.commits"
ASYNC_COMMITS = "hoodie.clustering.async.max.commits"


class Cadence(StrEnum):
    """Who plans: a writer that also executes, somebody beside the writers, or a writer that leaves
    execution to others."""

    INLINE = "inline"
    ASYNC = "async"
    EVERY_COMMIT = "every commit"


@dataclass(frozen=True, slots=True)
class Trigger:
    """`commits` since the last plan make it due; `one_plan`: never while one waits."""

    commits: int = 4
    one_plan: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], cadence: Cadence = Cadence.ASYNC) -> Trigger:
        """From Hudi's keys. Raises InvalidOptionError that names the key."""
        inline = whole_option(options, INLINE_COMMITS)
        beside = whole_option(options, ASYNC_COMMITS)
        if cadence is Cadence.EVERY_COMMIT:
            return cls(0, one_plan=True)
        return cls(inline if cadence is Cadence.INLINE else beside)

    def due(self, ctx: TableContext, timeline: Timeline) -> str | None:
        """Why a clustering is due now, in words; None if it is not."""
        pending = [instant.time for instant in pending_clusterings(ctx, timeline)]
        if self.one_plan and pending:
            return None
        done = (i.time for i in reversed(timeline.commits) if is_clustering(ctx, i))
        last = max([*pending[-1:], next(done, "")])
        since = [instant for instant in timeline.commits if instant.time > last]
        count = len(since) - (not last and bool(since) and _is_first_empty_commit(ctx, since[0]))
        if count < self.commits:
            return None
        return (
            f"{counted(count, 'commit')} since {last or 'the first'}" if self.commits else "a commit, and no plan waits"
        )


def is_clustering(ctx: TableContext, instant: Instant) -> bool:
    """Whether a completed write was a clustering."""
    return instant.action is Action.REPLACE_COMMIT and commit_metadata(ctx, instant).operation_type == "CLUSTER"


def _is_first_empty_commit(ctx: TableContext, instant: Instant) -> bool:
    """Whether it is the empty commit that a table begins with."""
    return not commit_metadata(ctx, instant).stats and instant.action is not Action.REPLACE_COMMIT
