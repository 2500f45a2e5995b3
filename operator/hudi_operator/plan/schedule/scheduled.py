"""Ingests in mode Scheduled: for which moment of its schedule one is to run, and what its status
says of that. A run takes what is there when it begins; `batch` of a run is its moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hudi_operator.api.ingests.ingest import IngestMode, IngestSpec
from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.status import IngestStatus, RunStatus, ScheduleStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.errors import InvalidSpecError
from hudi_operator.plan.effects import Emit, EventType, RequeueAfter
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule import moments
from hudi_operator.plan.schedule.cron import Cron, parse_cron
from hudi_operator.plan.schedule.runs import rfc3339


@dataclass(frozen=True, slots=True)
class Followed:
    """A schedule, the moment to run for (None: none has come), how soon the next one comes, and
    which moment is left out, in words (\"\": none)."""

    cron: Cron
    status: ScheduleStatus
    due: str | None
    next_seconds: float | None
    left_out: str = ""

    def told(self, work: str, begun: Iterable[RunStatus]) -> ScheduleStatus:
        """As the status tells it, once the runs of `work` are begun that are so."""
        own = (run.batch for run in begun if run.work == work)
        return moments.appointed(self.cron, moments.behind(self.status, own))


def schedules_of(desired: DesiredTable, runs: tuple[RunStatus, ...], now: datetime) -> dict[str, Followed | Problem]:
    """Of each ingest that has a schedule, by its name; a Problem where that is none."""
    found: dict[str, Followed | Problem] = {}
    for number, ingest in enumerate(desired.spec.ingest if desired.spec is not None else ()):
        if ingest.mode is not IngestMode.SCHEDULED or ingest.schedule is None:
            continue
        cron = parse_cron(ingest.schedule, ingest.time_zone or "UTC")
        if isinstance(cron, Cron):
            found[ingest.name] = _followed(ingest, cron, desired, runs, now)
        else:
            field = cron.path.removeprefix("spec.")
            found[ingest.name] = Problem(InvalidSpecError.name(), f"spec.ingest[{number}].{field}: {cron.message}")
    return found


def _followed(
    ingest: IngestSpec, cron: Cron, desired: DesiredTable, runs: tuple[RunStatus, ...], now: datetime
) -> Followed:
    status = desired.status
    known = next((each.schedule for each in status.ingest if each.name == ingest.name), None)
    # Of what comes into a manifest that stood before, no moment was missed.
    is_new = not status.observed_generation and desired.identity.created
    begin = datetime.fromisoformat(desired.identity.created) if is_new else now
    own = [run for run in runs if run.work == f"Ingest/{ingest.name}"]
    schedule = moments.behind(moments.followed(cron, known, begin), (run.batch for run in own))
    moment = moments.due_moment(cron, schedule, now)
    said = moments.left_out(moment, ingest.starting_deadline_seconds, now) if moment is not None else ""
    if said and moment is not None:
        schedule, moment = replace(schedule, last=rfc3339(moment)), None
    due = rfc3339(moment) if moment is not None else None
    due = due or moments.unfinished(schedule.last, own, desired.identity.generation)
    coming = cron.next(now)
    seconds = max(1.0, (coming - now).total_seconds()) if coming is not None else None
    return Followed(cron, schedule, due, seconds, said)


def appointments(schedules: Mapping[str, Followed | Problem]) -> list[RequeueAfter]:
    """The next moment of each."""
    coming = ((name, each.next_seconds) for name, each in schedules.items() if isinstance(each, Followed))
    return [RequeueAfter(wait, f"Ingest/{name}", appointment=True) for name, wait in coming if wait is not None]


def coming(schedules: Mapping[str, Followed | Problem], begun: Sequence[RunStatus]) -> dict[str, str]:
    """The next moment of each, as the status tells it."""
    followed = {name: each for name, each in schedules.items() if isinstance(each, Followed)}
    found = ((name, each.told(f"Ingest/{name}", begun).next) for name, each in followed.items())
    return {name: moment for name, moment in found if moment is not None}


def news(schedules: Mapping[str, Followed | Problem]) -> list[Emit]:
    """An event of each moment that is left out."""
    missed = ((name, found.left_out) for name, found in schedules.items() if isinstance(found, Followed))
    return [Emit(EventType.WARNING, moments.MISSED, f"Ingest/{name}: {said}") for name, said in missed if said]


def told(
    spec: HudiTableSpec,
    statuses: tuple[IngestStatus, ...],
    schedules: Mapping[str, Followed | Problem],
    before: tuple[IngestStatus, ...],
    begun: Sequence[RunStatus],
) -> tuple[IngestStatus, ...]:
    """Statuses of ingests with where their schedules are, once the runs are begun that are so. What
    is not followed now stays as it was."""
    known = {each.name: each.schedule for each in before}
    asked = {each.name for each in spec.ingest if each.mode is IngestMode.SCHEDULED}

    def schedule_of(name: str) -> ScheduleStatus | None:
        followed = schedules.get(name)
        if not isinstance(followed, Followed):
            return known.get(name) if name in asked else None
        return followed.told(f"Ingest/{name}", begun)

    return tuple(replace(each, schedule=schedule_of(each.name)) for each in statuses)
