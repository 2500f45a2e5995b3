"""Time zones from 2037 on. Arrow's tables of changes end there (26.0), and it leaves summer time
out of later years, so that partitions would be an hour off from those that Java makes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

_FROM = 2_114_380_800_000
"""2037, in milliseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PERIOD = 146_097 * 86_400_000
"""400 years: days, weekdays and so the rules of a zone repeat."""
_REPEATS_FROM = 13_569_465_600_000
"""2400, in milliseconds."""
_STEP = 900_000
"""Offsets change at whole quarters of an hour."""


def later_offsets(millis: pa.Array, zone: str, *, local: bool = False) -> Iterator[tuple[int, pa.Array]]:
    """(minutes ahead of UTC, which values) for each offset that a zone has at the instants from
    2037 on; nothing for earlier ones. `local`: the values are times of its own clock, of which the
    first counts that shows one twice."""
    values = millis.fill_null(0).to_numpy(zero_copy_only=False)
    late = np.flatnonzero(values >= _FROM)
    if not len(late) or zone[0] in "+-" or zone == "UTC":
        return
    rules = ZoneInfo(zone)
    # Python is asked once for each quarter of an hour that occurs, whatever the number of rows.
    steps, places = np.unique(values[late] // _STEP, return_inverse=True)
    moments = steps * _STEP
    moments = np.where(moments < _REPEATS_FROM, moments, _REPEATS_FROM + (moments - _REPEATS_FROM) % _PERIOD)
    found = np.array([_minutes(moment, rules, local=local) for moment in moments.tolist()])
    offsets = np.zeros(len(values), np.int64)
    offsets[late] = found[places]
    is_late = values >= _FROM
    for minutes in np.unique(found).tolist():
        yield minutes, pa.array(is_late & (offsets == minutes))


def _minutes(moment: int, rules: ZoneInfo, *, local: bool) -> int:
    utc = _EPOCH + timedelta(milliseconds=moment)
    there = utc.replace(tzinfo=rules) if local else utc.astimezone(rules)
    return int((there.utcoffset() or timedelta()).total_seconds()) // 60


def fixed_zone(minutes: int) -> str:
    """A zone that is always so far ahead, as Arrow names it."""
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"
