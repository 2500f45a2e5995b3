"""When a compaction is due: by deltacommits, by time, by both or either.

Facts (`hoodie.compact.inline.trigger.strategy` of Hudi 0.15.0): NUM_COMMITS counts deltacommits
since the last completed compaction, NUM_COMMITS_AFTER_LAST_REQUEST since the last one that was
requested; TIME_ELAPSED measures from the last completed compaction, or without one from the first
deltacommit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hudi_table.model.options.known import choice_option, whole_option
from hudi_table.model.timeline.instants import Action, parse_instant_time
from hudi_table.table.timeline.timeline import Timeline

STRATEGY = "hoodie.compact.inline.trigger.strategy"
COMMITS = "hoodie.compact.inline.max.delta.commits"
SECONDS = "hoodie.compact.inline.max.delta.seconds"


class TriggerStrategy(StrEnum):
    """Hudi's names."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Defaults are Hudi's: five deltacommits."""

    strategy: TriggerStrategy = TriggerStrategy.NUM_COMMITS
    commits: int = 5
    seconds: int = 3600

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Trigger:
        """From Hudi's keys. Raises InvalidOptionError that names the key."""
        return cls(
            TriggerStrategy(choice_option(options, STRATEGY)),
            whole_option(options, COMMITS, least=1),
            whole_option(options, SECONDS, least=1),
        )

    def due(self, timeline: Timeline, now: datetime) -> str | None:
        """Why a compaction is due now, in words; None if it is not. `now` is naive, in the
        timeline's zone."""
        last = _last(timeline, requested=self.strategy is TriggerStrategy.NUM_COMMITS_AFTER_LAST_REQUEST)
        deltas = [i for i in timeline.commits if i.action is Action.DELTA_COMMIT and i.time > last]
        if not deltas:
            return None
        waited = int((now - parse_instant_time(last or deltas[0].time)).total_seconds())
        enough, long = len(deltas) >= self.commits, waited >= self.seconds
        by_number = f"{len(deltas)} deltacommits since {last or 'the first'}"
        by_time = f"{waited} s since {last or deltas[0].time}"
        match self.strategy:
            case TriggerStrategy.TIME_ELAPSED:
                return by_time if long else None
            case TriggerStrategy.NUM_AND_TIME:
                return f"{by_number} and {by_time}" if enough and long else None
            case TriggerStrategy.NUM_OR_TIME:
                return by_number if enough else by_time if long else None
            case _:
                return by_number if enough else None


def _last(timeline: Timeline, *, requested: bool) -> str:
    """Time of the last compaction that completed, which a merge-on-read table's `commit` is, or
    that was requested too."""
    done = [i.time for i in timeline.commits if i.action is Action.COMMIT]
    waiting = [i.time for i in timeline.pending if i.action is Action.COMPACTION] if requested else []
    return max([*done, *waiting], default="")
