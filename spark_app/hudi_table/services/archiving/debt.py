"""How long the timeline is: the figure that an operator watches."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_table.table.timeline import Timeline

TIMELINE_FILES_MAX = 1_000
"""What stores list in one request; a longer timeline costs every reader and writer a second one."""
TIMELINE_FILES_WARN = 800


@dataclass(frozen=True, slots=True)
class TimelineDebt:
    """`files` directly under `.hoodie/`, `writes` completed ones on the active timeline. `warn`: archive soon."""

    files: int
    writes: int
    warn: bool


def timeline_debt(timeline: Timeline) -> TimelineDebt:
    """The figures of one listing, which costs no request of its own."""
    files = len(timeline.files)
    return TimelineDebt(files, len(timeline.commits), files >= TIMELINE_FILES_WARN)
