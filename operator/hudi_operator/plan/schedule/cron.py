"""Moments of a cron schedule in a time zone, as Debian's cron has them.

Of a schedule with a fixed hour and minute, a moment that the clock leaps over comes right after the
leap, and one that comes twice is taken once; a schedule in steps of the hour (`*/15`, `*`) follows
real time. Pure but for the zone's own data.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from hudi_operator.api.parsing import FieldError

FIELDS = 5
_WINDOWS = (timedelta(hours=1), timedelta(days=1), timedelta(days=40), timedelta(days=400))


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields and the zone that they speak of. Moments are in UTC."""

    expression: str
    zone: ZoneInfo

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The newest moment that is later than `after` and not later than `until`."""
        for window in _WINDOWS:
            start = max(after, until - window)
            found = None
            for moment in self._from(start):
                if moment > until:
                    break
                if moment > start:
                    found = moment
            if found is not None or start == after:
                return found
        return None

    def next(self, after: datetime) -> datetime | None:
        """The first moment later than `after`, None if there is none for years."""
        return next((moment for moment in self._from(after) if moment > after), None)

    def _from(self, start: datetime) -> Iterator[datetime]:
        for moment in CronSim(self.expression, start.astimezone(self.zone)):
            yield moment.astimezone(UTC)


def parse_cron(expression: str, zone: str) -> Cron | FieldError:
    """The schedule, or the field that is wrong with it."""
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        close = difflib.get_close_matches(zone, sorted(available_timezones()), n=1)
        hint = f"did you mean {close[0]}?" if close else "names are such as UTC and Europe/Berlin"
        return FieldError("spec.timeZone", f"is {zone!r}, which is no time zone; {hint}")
    try:
        if len(expression.split()) != FIELDS:
            raise CronSimError("Wrong number of fields")
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return FieldError(
            "spec.schedule", f"is {expression!r}: {str(error).lower()}; give minute hour day month weekday"
        )
    return Cron(expression, info)
