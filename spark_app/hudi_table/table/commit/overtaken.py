"""Decisions that were not published under the lock under which they were made.

Who dies or sleeps between his decision and its file loses the lock, and another engine that takes
it then sees nothing of the decision. So whoever publishes it later, under the lock again, looks for
what other engines did since, and gives the decision up where one of the two would be lost: nobody
was told that it counts. Section 2.6 of `docs/explanation/commit-protocol.md`.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_table.errors import WriteAbortedError, WriteConflictError
from hudi_table.model.timeline.chain import ChainEntry, Kind, entry_path
from hudi_table.table.commit.conflicts import Claimed
from hudi_table.table.commit.foreign_writers import Neighbours
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_commit
from hudi_table.table.timeline.timeline import Timeline


def is_overtaken(ctx: TableContext, entry: ChainEntry, sequence: int, timeline: Timeline, upto: int) -> bool:
    """Whether another engine has, since entry number `sequence` was made, completed or planned what
    excludes it; `timeline` is a listing behind a reading of the chain up to number `upto`.

    What is older than the entry was looked at before that was made. Ages are the store's own; what
    is of the entry's very second, where a store counts seconds, is taken for later.
    """
    decided = ctx.storage.head(entry_path(sequence)).modified
    before = {name: age for name, age in timeline.files.items() if age < decided}
    instants = tuple(i for i in timeline.instants if not i.completed or i.file_name in before)
    known = replace(timeline, files=before, instants=instants)
    claimed = Claimed(entry.conflict_keys)
    if entry.kind is Kind.COMMIT:
        claimed = Claimed.of_commit(entry.conflict_keys, decode_commit(entry.data))
    claim = next(iter(timeline.claim_names(entry.instant)))
    try:
        Neighbours(ctx, entry.instant, claim, known).check(timeline, claimed, upto)
    except (WriteConflictError, WriteAbortedError):
        return True
    return False


def overtaken(ctx: TableContext, time: str) -> WriteConflictError:
    """What its writer is told, if it lives."""
    return WriteConflictError(
        f"the lock was lost before {time} was published, and another engine has changed the same file groups since; nothing of "
        "this write is visible, write again on the new state",
        base_path=ctx.base_path,
        instant=time,
    )
