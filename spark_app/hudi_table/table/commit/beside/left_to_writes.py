"""What planners leave to writes that have lost an attempt.

Section 2.10 of `docs/explanation/commit-protocol.md`. A plan of a group ends the attempt of each
write that began before it and touches the group. So a write that takes longer than it is from one
plan to the next would lose every attempt. As with writes, who comes later lets the earlier one go
first. A compaction's logs have their place by when they began to wait, so a group is planned no
more than once beside one turn, and waits no longer than the turns before it last. Nothing is
decided here: who leaves out nothing is as safe.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.timeline import conflict_keys
from hudi_table.model.timeline.instants import Action, parse_instant_time
from hudi_table.table.commit.beside.turns import Turn, live_turns
from hudi_table.table.commit.conflicts import group_conflict_keys
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

_LOG = logging.getLogger("hudi_table.planning")

LOGS_WAIT_SECONDS = 6 * 3600.0
"""Logs that had waited so long when a write began are compacted before it."""
TURN_SECONDS_MAX = 24 * 3600.0
"""How long after its first attempt a write is let go first: also one that hangs and yet shows signs
of life."""
_OF_LOGS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})
_REWRITES = _OF_LOGS | {Action.REPLACE_COMMIT}


def left_to_writes(ctx: TableContext, action: Action, listed: Timeline) -> Callable[[FileSlice], bool] | None:
    """Tells the slices that a plan of this action leaves out, by a listing of the timeline; None
    where it leaves out nothing. Where no write has a turn that costs no request."""
    if action not in _REWRITES:
        return None
    now, counted = local_now(ctx), []
    for turn in live_turns(ctx, listed):
        begun = _moment(turn.begun)
        # A compaction excludes nobody who only appends.
        beside = action is Action.COMPACTION and conflict_keys.appends_only(turn.touches)
        if begun is not None and not beside and now - begun < timedelta(seconds=TURN_SECONDS_MAX):
            counted.append(_Earlier(turn, begun, of_logs=action in _OF_LOGS))
    if not counted:
        return None
    _LOG.info(
        "%s: file groups of %s are left out, which began earlier and have lost an attempt",
        action.value, ", ".join(each.turn.begun for each in counted),
    )  # fmt: skip
    return lambda item: any(each.takes(item) for each in counted)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A write's turn, which began at the moment `begun`."""

    turn: Turn
    begun: datetime
    of_logs: bool

    def takes(self, item: FileSlice) -> bool:
        """Whether it goes before a plan of this slice."""
        return self._meets(item) and not (self.of_logs and self._is_behind(item))

    def _meets(self, item: FileSlice) -> bool:
        """As a plan of the slice would exclude the write. Of what the turn touches only what can
        meet one group is looked at: it may be much."""
        partition, bucket = item.partition, bucket_of_file_id(item.file_id)
        own = group_conflict_keys([(partition, item.file_id)])
        near = {conflict_keys.TABLE, conflict_keys.partition_conflict_key(partition), *own}
        if bucket is not None:
            near.add(conflict_keys.append_conflict_key(partition, bucket))
        return conflict_keys.meet(own, near & self.turn.touches)

    def _is_behind(self, item: FileSlice) -> bool:
        first = min((log.instant for log in item.logs if log.instant is not None), default=item.instant)
        moment = _moment(first)
        return moment is not None and self.begun - moment >= timedelta(seconds=LOGS_WAIT_SECONDS)


def _moment(time: str) -> datetime | None:
    try:
        return parse_instant_time(time)
    except ValueError:
        return None
