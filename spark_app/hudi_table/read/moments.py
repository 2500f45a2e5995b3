"""Which moment or range of the timeline a reader means. Nothing is read here.

Facts (Hudi 0.15.0): a time of 17 digits counts as it is, one of 14 reads to the end of its second
(`999` follows); a date means its midnight.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from hudi_table.errors import InvalidOptionError
from hudi_table.model.digits import is_digits
from hudi_table.model.timeline.instants import comparable_time, format_instant_time, parse_instant_time

Moment = str | date | datetime
EARLIEST = "earliest"
"""As `since`: from the first commit on."""


@dataclass(frozen=True, slots=True)
class Span:
    """After `since` and up to `until`, instant times; '' is open. `full_scan`: read every file
    where the timeline cannot tell."""

    since: str = ""
    until: str = ""
    full_scan: bool = False

    def __post_init__(self) -> None:
        if self.since and self.until and comparable_time(self.since) > comparable_time(self.until):
            raise InvalidOptionError(f"since {self.since} is after until {self.until}: swap them")

    def __contains__(self, instant: str) -> bool:
        time = comparable_time(instant)
        after = not self.since or time > comparable_time(self.since)
        return after and (not self.until or time <= comparable_time(self.until))


_LENGTHS = (8, 10, 12, 14, 17)


def instant_of(value: str | date | datetime, timezone: str) -> str:
    """The 17-digit instant time that `value` names in a table whose timeline zone is `timezone`
    (`UTC` or `LOCAL`).

    Digits `yyyyMMdd[HH[mm[ss[SSS]]]]`, an ISO date or time, a date or a datetime. A moment without
    a zone is in the table's zone. Raises InvalidOptionError for anything else.
    """
    if isinstance(value, str) and is_digits(text := value.strip()):
        return _from_digits(text)
    moment = _moment(value)
    if moment.tzinfo is not None:
        moment = moment.astimezone(None if timezone == "LOCAL" else UTC).replace(tzinfo=None)
    return format_instant_time(moment)


def _from_digits(text: str) -> str:
    padded = comparable_time(text) if len(text) == 14 else text.ljust(17, "0")
    try:
        if len(text) not in _LENGTHS:
            raise ValueError
        parse_instant_time(padded)
    except ValueError:
        raise _unreadable(text) from None
    return padded


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            pass
    raise _unreadable(value)


def _unreadable(value: object) -> InvalidOptionError:
    return InvalidOptionError(
        f"as_of {value!r} is no moment: give 17 digits yyyyMMddHHmmssSSS or a shorter prefix (at least the day), "
        "an ISO date or time such as 2026-11-21T09:44:55Z, or a datetime"
    )
