"""Trimming the decision chain: its lowest entries, once their instants have left the timeline and
nobody can need them.

See `docs/explanation/commit-protocol.md` sections 2.3 and 2.7: whoever works from an older tail
finds the gap.
"""

from __future__ import annotations

from datetime import datetime

from hudi_table.model.names import CHAIN
from hudi_table.model.timeline.chain import sequence_of
from hudi_table.model.timeline.instants import Action
from hudi_table.services.planning import SAVED
from hudi_table.table.store import retry
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.chain import get_entry, known_tail, write_hint
from hudi_table.table.timeline.context import TableContext

TRIM_AGE_SECONDS = 7 * 24 * 3600.0
TRIMMED_MAX = 1_000
"""Entries of one run; the next one goes on."""

_STAYING = (Action.INDEXING, Action.RESTORE)
"""Of version 6 these stay on the timeline for good. Once one has ended, nobody asks for its plan in
the chain any more."""


def trim_chain(ctx: TableContext, now: datetime) -> int:
    """Delete the lowest entries older than seven days (at least 4 H) of instants that left the
    timeline, keeping the last one; and plans of dry runs as old. `now`: the store's present.
    Returns how many entries went."""
    least_age = max(TRIM_AGE_SECONDS, 4 * ctx.settings.quarantine_seconds)
    timeline = load_timeline(ctx)
    needed = (i for i in timeline.instants if not (i.action in _STAYING and i.completed))
    present = {instant.time for instant in needed}.union(timeline.planner_claims)
    # The chain keeps days of entries, and this runs after every few commits: only those that may go are listed, and one more.
    infos = ctx.storage.list(CHAIN, limit=TRIMMED_MAX + 1)
    entries = sorted((n, info) for info in infos if (n := sequence_of(info.path)) is not None)
    done = 0
    for number, info in entries[:-1]:
        if (now - info.modified).total_seconds() < least_age:
            break
        entry = get_entry(ctx, number)
        if entry is None or entry.instant in present:
            break
        retry.delete(ctx.storage, info.path)
        ctx.entries.pop(number, None)
        done += 1
    for info in ctx.storage.list(SAVED):
        if (now - info.modified).total_seconds() >= least_age:
            retry.delete(ctx.storage, info.path)
    if entries:
        write_hint(ctx, known_tail(ctx).sequence)
    return done
