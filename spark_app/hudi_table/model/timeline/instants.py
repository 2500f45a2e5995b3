"""Instants: an action, in a state, at a time, and the timeline file names that hold them.

Facts (table version 6, measured on Hudi 0.15.0): an instant time has 17 digits `yyyyMMddHHmmssSSS`
in the timeline's zone and is compared as a string; 14-digit legacy times read as if `999` followed.
Of a `commit`, the inflight file is `T.inflight` with no action word. A compaction completes as
`commit`, a log compaction as `deltacommit`. A savepoint has no requested state. From version 8 on
(measured on 1.0.2 and 1.1.1) a completed file also tells when its instant completed,
`T_C.<action>`, and a clustering, pending under its own word, completes as `replacecommit`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from hudi_table.model.digits import is_digits


class Action(StrEnum):
    """What an instant does."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"
    SCHEMA_COMMIT = "schemacommit"


class State(StrEnum):
    """How far an instant is."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Completed actions that carry commit metadata and change what a reader sees."""

PLANNED_ACTIONS = frozenset({Action.COMPACTION, Action.LOG_COMPACTION})
"""Pending actions whose requested file is a plan of the groups that it holds."""

_COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
_STATE_ORDER = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}
_NAME = re.compile(r"^(?P<time>\d{14}|\d{17,})(?:_(?P<completion>\d{17}))?\.(?P<rest>[a-z.]+)$", re.ASCII)
_PLANNER_CLAIM = ".claim"
_TIME_FORMAT = "%Y%m%d%H%M%S"
_NO_MOMENTS = frozenset({"00000000000001999", "00000000000002999"})
"""Instants of a bootstrap, before all others. Hudi takes their number for milliseconds since
1970."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One timeline file: `time` (17 digits, when it was requested), `action` as named in the file,
    `state`.

    `completion`: when it completed, of 17 digits, where the name of the completed file tells it.
    """

    time: str
    action: Action
    state: State
    completion: str = ""

    @property
    def completed(self) -> bool:
        """Whether this is the completed state."""
        return self.state is State.COMPLETED

    @property
    def grouped_action(self) -> Action:
        """The action that all states of this instant share when they are grouped (compaction →
        commit)."""
        return _COMPLETES_AS.get(self.action, self.action)

    @property
    def is_write(self) -> bool:
        """Whether it changes files by a claim of its own or by the plan of a clustering: no
        compaction, whose groups take rows meanwhile."""
        return self.grouped_action in WRITE_ACTIONS and self.action not in PLANNED_ACTIONS

    @property
    def sort_key(self) -> tuple[str, str, int]:
        """Order on the timeline: time, then action, then state."""
        return (comparable_time(self.time), self.grouped_action.value, _STATE_ORDER[self.state])

    @property
    def moment(self) -> str:
        """When readers began to see it, as far as its name tells: its completion, else its own
        time."""
        return self.completion or self.time

    @property
    def file_name(self) -> str:
        """Name of the file in the timeline's folder."""
        if self.state is State.COMPLETED:
            completion = f"_{self.completion}" if self.completion else ""
            return f"{self.time}{completion}.{self.grouped_action.value}"
        if self.state is State.INFLIGHT and self.action is Action.COMMIT:
            return f"{self.time}.inflight"
        return f"{self.time}.{self.action.value}.{self.state.value}"

    def with_state(self, state: State) -> Instant:
        """The same instant in another state, of which no completion is known."""
        return self if state is self.state else Instant(self.time, self.action, state)


@functools.lru_cache(maxsize=8192)
def parse_instant(file_name: str) -> Instant | None:
    """The instant that a file name in the timeline's folder stands for, or None if it is not a
    timeline file."""
    match = _NAME.match(file_name)
    if match is None:
        return None
    time, completion, rest = match["time"], match["completion"] or "", match["rest"]
    if rest == "inflight":
        return None if completion else Instant(time, Action.COMMIT, State.INFLIGHT)
    word, _, suffix = rest.partition(".")
    state = {"": State.COMPLETED, "requested": State.REQUESTED, "inflight": State.INFLIGHT}.get(suffix)
    try:
        action = Action(word)
    except ValueError:
        return None
    if state is None or (completion and state is not State.COMPLETED):
        return None
    return Instant(time, action, state, completion)


@functools.lru_cache(maxsize=8192)
def placed_instant(file_name: str) -> tuple[tuple[str, Action], tuple[str, str, int], Instant] | None:
    """`parse_instant`, behind what groups the states of one instant, and behind its place on the
    timeline: a timeline has thousands of files, and is listed for each step of a write."""
    instant = parse_instant(file_name)
    return None if instant is None else ((instant.time, instant.grouped_action), instant.sort_key, instant)


def planner_claim(time: str) -> str:
    """Name of the file by which a planner of a table service claims its instant; Hudi passes over
    it (measured)."""
    return f"{time}{_PLANNER_CLAIM}"


def planner_claim_time(file_name: str) -> str | None:
    """The instant time that a planner's claim holds, None for another file."""
    if not file_name.endswith(_PLANNER_CLAIM):
        return None
    time = file_name.removesuffix(_PLANNER_CLAIM)
    return time if is_digits(time) else None


def comparable_time(time: str) -> str:
    """The instant time as Hudi compares it: a 14-digit time reads as its second's last
    millisecond."""
    return time + "999" if len(time) == 14 else time


def format_instant_time(moment: datetime) -> str:
    """17 digits for a moment that is already in the timeline's zone."""
    return f"{moment.strftime(_TIME_FORMAT)}{moment.microsecond // 1000:03d}"


def parse_instant_time(time: str) -> datetime:
    """The naive moment of an instant time, in the timeline's zone. Raises ValueError for anything
    else."""
    full = comparable_time(time)
    if full in _NO_MOMENTS:
        return datetime.strptime("19700101", "%Y%m%d") + timedelta(milliseconds=int(full[:14]))
    if len(full) != 17 or not is_digits(full):
        raise ValueError(f"{time!r} is not an instant time: expected 17 digits yyyyMMddHHmmssSSS")
    return datetime.strptime(full[:14], _TIME_FORMAT) + timedelta(milliseconds=int(full[14:]))


def earlier(moment: datetime, unit: timedelta, count: int) -> datetime:
    """The moment so many units earlier, but none before any table was: options may name any
    number."""
    first = datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return moment - unit * count if count <= (moment - first) // unit else first


def next_instant_time(time: str) -> str:
    """The instant time one millisecond later. Raises ValueError if there is none: years have four
    digits."""
    try:
        return format_instant_time(parse_instant_time(time) + timedelta(milliseconds=1))
    except OverflowError as error:
        raise ValueError(f"no instant can come after {time}") from error
