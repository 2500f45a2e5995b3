"""What the processes asked and were told, in the order of its beginning."""

from __future__ import annotations

import math
import traceback
from dataclasses import dataclass, field


@dataclass
class Event:
    """One operation. `ended` is infinite for one whose process died. `rows`: (key, writer, commit
    time) of each row that was read: of the key `sought` alone if there is one, of those that the
    write `of` has written, or of what changed after the instant `since`, by the order of instants
    or of completions (`by_completion`). `changes`: (operation, key, writer before, writer after) of
    each change since then. `ts`: of a write, the ordering value of its
    rows. `met`: faults that its requests met."""

    process: str
    kind: str
    begun: float
    ended: float = math.inf
    outcome: str = "unknown"
    write: str = ""
    keys: list[str] = field(default_factory=list)
    instant: str = ""
    pin: str | None = None
    since: str | None = None
    by_completion: bool = False
    of: str | None = None
    sought: str | None = None
    rows: list[tuple[str, str, str]] | None = None
    count: int | None = None
    changes: list[tuple[str, str, str, str]] | None = None
    ts: int = 0
    met: int = 0
    message: str = ""

    def shown(self) -> str:
        """What it read, in one order."""
        if self.changes is not None:
            return " ".join("/".join(change) for change in sorted(self.changes))
        if self.rows is not None:
            return " ".join(f"{key}={by}@{time}" for key, by, time in sorted(self.rows))
        return self.instant if self.count is None else str(self.count)


@dataclass
class History:
    """All operations of a run, and what ended a process that no fault has ended."""

    events: list[Event] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def begin(self, process: str, kind: str, now: float) -> Event:
        """A new operation."""
        event = Event(process, kind, now)
        self.events.append(event)
        return event

    def broke(self, process: str, error: Exception) -> None:
        """A process ended by an error that is none of an operation's."""
        self.broken.append(f"{process}: {''.join(traceback.format_exception(error))}")
