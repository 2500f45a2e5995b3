"""What a write goes on from: it stands only behind that."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.errors import WriteConflictError
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.rewrites import is_rewrite
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.archived import Holds, newest_with
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Follows:
    """What a write goes on from: `instant`, the newest commit with what `holds` looks for in its
    extra metadata, None for none at all. `seen`: where rows were made of what the table had, the
    commits of that moment: none that changed rows may come between."""

    holds: Holds
    instant: str | None
    seen: frozenset[str] | None = None


def check_follows(ctx: TableContext, timeline: Timeline, instant: str, follows: Follows | None) -> None:
    """Raise WriteConflictError if the snapshot of an attempt, `instant`, holds another checkpoint
    than the rows go on from. Whoever goes on from the same one at the same time is excluded by the
    batch's name."""
    if follows is None:
        return
    found = newest_with(ctx, timeline, follows.holds)
    newest = found[0] if found is not None else None
    if newest != follows.instant:
        raise WriteConflictError(
            f"the rows go on from the checkpoint of {follows.instant or 'no commit'}, and the newest is of {newest or 'no commit'}; "
            "read on from there",
            base_path=ctx.base_path,
            instant=instant,
        )
    since = [] if follows.seen is None else [each for each in timeline.commits if each.time not in follows.seen]
    changed = [each.time for each in since if _changes_rows(commit_metadata(ctx, each))]
    if changed:
        raise WriteConflictError(
            f"rows were made of what the table had, and {changed[0]} has changed rows since: read again",
            base_path=ctx.base_path,
            instant=instant,
        )


def _changes_rows(metadata: CommitMetadata) -> bool:
    """Not so of the commit that a table is founded by, and of one that holds a checkpoint alone."""
    return bool(metadata.stats or metadata.replaced) and not is_rewrite(metadata)
