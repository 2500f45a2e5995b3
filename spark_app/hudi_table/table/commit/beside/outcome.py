"""What became of a decided commit that its writer could not publish at once: whether it may be
acknowledged.

For who publishes it in another's place an instant without a claim needs nothing more, however it
ended. Its writer has to tell whether it was published and archived, or taken back: Apache Hudi's
lazy cleaning rolls a write back that has shown no sign of life, and knows nothing of the decision
chain.
"""

from __future__ import annotations

from hudi_table.errors import WriteAbortedError
from hudi_table.model.timeline.chain import ChainEntry
from hudi_table.model.timeline.instants import WRITE_ACTIONS, parse_instant
from hudi_table.table.commit.beside.locking import under_lock
from hudi_table.table.commit.rollback import open_rollbacks
from hudi_table.table.store import retry
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import list_timeline
from hudi_table.table.timeline.archived import archived_entries, commit_of, instant_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_commit

ABORT_ATTEMPTS_MAX = 10


@under_lock
def counts(ctx: TableContext, entry: ChainEntry) -> bool:
    """Whether a decided commit stands, as a new listing and the archive tell.

    Of one that another engine takes back, or has taken back, the completed file goes, if it came
    late: its data files are gone.
    """
    timeline, made = list_timeline(ctx), parse_instant(entry.name)
    assert made is not None, "a commit is a completed instant"
    ended = timeline.ended(made)
    is_taken_back = entry.instant in open_rollbacks(ctx, timeline)
    if timeline.claim_names(entry.instant) and not is_taken_back:
        return ended is not None and not _is_nothing(ctx, ctx.layout.timeline_path(ended.file_name))
    # Archiving deletes the claim before the completed file, and writes to the archive before both.
    if not is_taken_back and _is_archived(ctx, entry.instant):
        return True
    if ended is not None:
        retry.delete(ctx.storage, ctx.layout.timeline_path(ended.file_name))
    if not is_taken_back:
        # A claim that comes late would be published for the decision's sake. What is being taken back is left to who does that.
        _abort(ctx, entry.instant)
    return False


def taken_back_meanwhile(ctx: TableContext, time: str) -> WriteAbortedError:
    """What its writer is told."""
    return WriteAbortedError(
        f"another engine took the instant {time} back before it was published, as it does with writes that show no sign of life; "
        "nothing of it is visible, write again",
        base_path=ctx.base_path,
        instant=time,
    )


def _is_nothing(ctx: TableContext, path: str) -> bool:
    return decode_commit(ctx.storage.get(path)).is_taken_back


def _is_archived(ctx: TableContext, time: str) -> bool:
    for entries in archived_entries(ctx):
        for found in entries:
            instant = instant_of(found) if found["commitTime"] == time else None
            if instant is not None and instant.completed and instant.action in WRITE_ACTIONS:
                return not commit_of(found).is_taken_back
    return False


def _abort(ctx: TableContext, time: str) -> None:
    """Best effort: nothing is lost where others are faster each time."""
    for _ in range(ABORT_ATTEMPTS_MAX):
        if chain.append_abort(ctx, chain.read_tail(ctx), time):
            return
