"""Instants as moments of UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from hudi_table.model.timeline.instants import comparable_time, parse_instant_time


def utc_of(time: str, timezone: str) -> datetime:
    """An instant's time, read in the zone of a timeline: `LOCAL` or `UTC`."""
    naive = parse_instant_time(comparable_time(time))
    return naive.astimezone(UTC) if timezone == "LOCAL" else naive.replace(tzinfo=UTC)
