"""Ingests from Kafka whose topics delete messages: for how long the oldest one that waits is kept,
and whether what waits is read before it is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hudi_operator.plan.observed import SourceObservation, TableObservation
from hudi_table.model.job.positions import behind
from hudi_table.model.job.retention import Left, Retention, Unread, left_of

PART_MIN = 0.25
"""Of what a topic keeps. Where less than that is left it is high time, however fast rows are
read."""


@dataclass(frozen=True, slots=True)
class Risk:
    """A partition of which messages can be deleted unread."""

    waits: Unread
    left: Left


@dataclass(frozen=True, slots=True)
class Standing:
    """How an ingest stands to its topics: for how many seconds the oldest message of all is kept,
    None where nothing deletes it; how long reading what waits takes, None where that is not known,
    as where no commit was made while something waited; the partitions at risk, the most urgent
    first."""

    seconds: float | None = None
    catch_up: float | None = None
    risks: tuple[Risk, ...] = ()


def standing_of(source: SourceObservation | None, table: TableObservation | None, now: datetime) -> Standing | None:
    """Of an ingest from Kafka; None where it is not known what waits, or how long it is kept."""
    if source is None or source.extent is None or not isinstance(source.retention, Retention):
        return None
    kept, millis = source.retention, int(now.timestamp() * 1000)
    pace = table.paces.get(source.ingest) if table is not None else None
    waits = behind(source.extent, table.positions(source.ingest) if table is not None else None)
    oldest = min((each.oldest for each in source.unread), default=None)
    rate = pace.rate_behind(oldest) if pace is not None and oldest is not None else None
    catch_up = waits / rate if waits is not None and rate else None
    found = []
    for each in kept.unread:
        left = left_of(each, kept.limits[each.topic], millis)
        if left is not None:
            found.append(Risk(each, left))
    found.sort(key=lambda risk: (risk.left.seconds, risk.waits.topic, risk.waits.partition))
    risks = [r for r in found if r.left.part < PART_MIN or (catch_up is not None and r.left.seconds < catch_up)]
    return Standing(found[0].left.seconds if found else None, catch_up, tuple(risks))
