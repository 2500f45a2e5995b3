"""What jobs have measured of a table's index: when a job measures, what the status keeps of it, and
what conditions report.

Only jobs open footers; the operator, which watches many tables, carries their words. A measurement
reads at most 16 footers and ten commits. A job is asked for one where the last is a day old, or ten
writes are, which is as many as it looks at, or where it gives the table other buckets; and never
about a table so small that no index could spare what would be worth a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hudi_operator.api.status import IndexStatus, RunStatus
from hudi_operator.plan.effects import Emit, EventType
from hudi_operator.plan.observed import TableObservation
from hudi_table.model.job.jobspec import MEASURE_INDEX, JobSpec
from hudi_table.model.service.services import ServiceType
from hudi_table.services.index.advice import JUDGED, SAVING_LEAST

MEASURED_COMMITS = 10
MEASURED_AGE = timedelta(days=1)
REASON = "IndexAdvice"
_FIGURE = re.compile(r"\d[\d.,]*( ?(B|[KMGTP]iB|%))?")


def measuring(job: JobSpec, last: IndexStatus | None, table: TableObservation | None, now: datetime) -> JobSpec:
    """The job, which is also to measure the index if that is due. An earlier release of it does not
    know the word, and does not."""
    resizes = _judged(table) is not None and job.work["type"] == ServiceType.RESIZE.value
    return replace(job, work={**job.work, MEASURE_INDEX: True}) if resizes or _is_due(last, table, now) else job


def newest(runs: Iterable[RunStatus]) -> IndexStatus | None:
    """What was measured last. Times of runs are whole seconds, and of two runs of one second the
    later saw the later write."""
    found = [run for run in runs if run.index is not None]
    return max(found, key=_measured_at).index if found else None


def known(last: IndexStatus | None, measured: IndexStatus | None, table: TableObservation | None) -> IndexStatus | None:
    """The newer of two measurements, if it is about the index that the table has now."""
    kind = _judged(table)
    found = [each for each in (measured, last) if each is not None and each.type == kind]
    return max(found, key=lambda each: each.observed_at or "", default=None)


def news(before: IndexStatus | None, after: IndexStatus | None) -> list[Emit]:
    """An event where other things are advised than before. Figures alone, which move with every
    write, are no news."""
    if after is None or not after.advice or (before is not None and _gist(before) == _gist(after)):
        return []
    return [Emit(EventType.NORMAL, REASON, "; ".join(after.advice))]


def _is_due(last: IndexStatus | None, table: TableObservation | None, now: datetime) -> bool:
    kind = _judged(table)
    if table is None or kind is None:
        return False
    if last is None or last.type != kind or last.observed_at is None:
        return True
    writes = sum(commit.time > last.instant for commit in table.commits)
    return writes >= MEASURED_COMMITS or now - datetime.fromisoformat(last.observed_at) >= MEASURED_AGE


def _judged(table: TableObservation | None) -> str | None:
    """The type of the table's index, if there may be something to say about it."""
    if table is None or table.config.index is None or table.base_bytes + table.log_bytes < SAVING_LEAST:
        return None
    kind = table.config.index.type
    return kind.value if kind in JUDGED else None


def _measured_at(run: RunStatus) -> tuple[str, str, str]:
    return run.finished or "", run.started or "", run.index.instant if run.index is not None else ""


def _gist(index: IndexStatus) -> tuple[str | None, list[str]]:
    return index.better, [_FIGURE.sub("#", sentence) for sentence in index.advice]
