"""Where in its schedule something is: which moments count, which one is due, which are left out.
The same for TableServices and for ingests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hudi_operator.api.status import RunStatus, ScheduleStatus
from hudi_operator.plan.schedule.cron import Cron
from hudi_operator.plan.schedule.runs import DONE, rfc3339

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
"""Runs that were begun for something else have other batches."""
MISSED = "Missed"
"""Reason of the event that tells of a moment that is left out."""


def followed(cron: Cron, known: ScheduleStatus | None, since: datetime) -> ScheduleStatus:
    """The schedule as it is followed. Moments of one that is not known count from `since` on."""
    if known is not None and (known.cron, known.time_zone) == (cron.expression, cron.zone.key):
        return known
    return ScheduleStatus(cron.expression, cron.zone.key, rfc3339(since))


def due_moment(cron: Cron, schedule: ScheduleStatus, now: datetime) -> datetime | None:
    """The newest moment that has come and was neither run nor left out."""
    return cron.latest(datetime.fromisoformat(schedule.last or schedule.since), now)


def left_out(moment: datetime, deadline: int | None, now: datetime) -> str:
    """Why a moment is left out that was missed by more than `deadline` seconds, "" if it is not."""
    if deadline is None or now - moment <= timedelta(seconds=deadline):
        return ""
    return f"{rfc3339(moment)} is {(now - moment).total_seconds():.0f} s ago, {deadline} s are allowed: left out"


def behind(schedule: ScheduleStatus, batches: Iterable[str | None]) -> ScheduleStatus:
    """The schedule once the moments that runs were begun for are behind it: texts in the order of
    their moments."""
    taken = [batch for batch in batches if batch is not None and _MOMENT.fullmatch(batch)]
    last = max([schedule.last or "", *(batch for batch in taken if batch > schedule.since)])
    return replace(schedule, last=last or None)


def appointed(cron: Cron, schedule: ScheduleStatus) -> ScheduleStatus:
    """The schedule with its next moment: one that has come stays it until a run for it begins, or
    it is left out. Else nobody could tell a run that waits from one that is not due."""
    moment = cron.next(datetime.fromisoformat(schedule.last or schedule.since))
    return replace(schedule, next=rfc3339(moment) if moment is not None else None)


def unfinished(last: str | None, runs: Iterable[RunStatus], generation: int) -> str | None:
    """The newest moment that was run for, if its run failed. `runs`: those of the one that has the
    schedule."""
    same = [run for run in runs if run.batch == last]
    failed = any(run.generation == generation for run in same)
    return last if last is not None and failed and not any(run.phase in DONE for run in same) else None
