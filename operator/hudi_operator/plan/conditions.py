"""Conditions of a HudiTable, computed from what was observed.

They follow kstatus: `Ready` is always there; `Reconciling` and `Stalled` are there only while they are True. The others
say how the table is kept and are never the cause of an unready table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from hudi_operator.api.status import Condition
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.quantities import bytes_of
from hudi_operator.plan.observed import SourceObservation, TableObservation
from hudi_table.model.checkpoint import SourceFile, waiting
from hudi_table.model.table_config import IndexType, TableType

SMALL_FILE_RATIO_MAX = 0.5
SMALL_FILE_COUNT_MIN = 8
"""Fewer files than this are no burden, however small they are."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition before it is compared with the last one."""

    type: str
    status: str
    reason: str
    message: str


def rfc3339(moment: datetime) -> str:
    """Seconds precision, `Z`."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def settle(
    findings: Iterable[Finding], previous: tuple[Condition, ...], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """Conditions of findings; the transition time moves only with the status."""
    known = {condition.type: condition for condition in previous}
    found = []
    for finding in findings:
        condition = Condition(finding.type, finding.status, finding.reason, finding.message, rfc3339(now), generation)
        before = known.get(finding.type)
        if before is not None and before.status == condition.status:
            condition = replace(condition, last_transition_time=before.last_transition_time)
        found.append(condition)
    return tuple(found)


def upkeep(
    spec: HudiTableSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...]
) -> tuple[Finding, ...]:
    """Fresh, Compacted, WellSized, Clean."""
    return (_fresh(spec, table, sources), _compacted(spec, table), _well_sized(spec, table), _clean(table))


def _fresh(spec: HudiTableSpec, table: TableObservation | None, sources: tuple[SourceObservation, ...]) -> Finding:
    if not spec.ingest:
        return Finding("Fresh", "True", "NoIngest", "nothing is ingested here; other writers bring the rows")
    unseen = [s for s in sources if s.problem is not None]
    if unseen or len(sources) < len(spec.ingest):
        message = unseen[0].problem.message if unseen and unseen[0].problem else "the sources were not listed"
        return Finding("Fresh", "Unknown", "SourceNotSeen", message)
    left = {s.ingest: waiting_of(s, table) for s in sources}
    total = sum(len(files) for files in left.values())
    if total:
        names = ", ".join(name for name, files in left.items() if files)
        return Finding("Fresh", "False", "FilesWaiting", f"{_count(total, 'file')} of {names} not in the table yet")
    return Finding("Fresh", "True", "AllConsumed", "every file of the sources is in the table")


def waiting_of(source: SourceObservation, table: TableObservation | None) -> tuple[SourceFile, ...]:
    """Files of a source that the table does not hold yet."""
    held = table.checkpoints.get(source.ingest) if table is not None else None
    return waiting(source.files, held.checkpoint if held is not None else None)


def _compacted(spec: HudiTableSpec, table: TableObservation | None) -> Finding:
    if spec.type is TableType.COPY_ON_WRITE:
        return Finding("Compacted", "True", "CopyOnWrite", "a copy-on-write table has no log files")
    logs = sum(f.log_size for f in table.files) if table is not None else 0
    if logs:
        return Finding("Compacted", "False", "LogFiles", f"{human_bytes(logs)} of log files wait to be compacted")
    return Finding("Compacted", "True", "NoLogFiles", "no log files")


def small_files(spec: HudiTableSpec, table: TableObservation) -> int:
    """Base files below `files.smallFileLimit`."""
    limit = bytes_of(spec.files.small_file_limit)
    return sum(f.size < limit for f in table.files)


def _well_sized(spec: HudiTableSpec, table: TableObservation | None) -> Finding:
    if table is None or not table.files:
        return Finding("WellSized", "True", "Empty", "no base files")
    small, total = small_files(spec, table), len(table.files)
    size = human_bytes(sum(f.size for f in table.files) // total)
    message = f"{small} of {_count(total, 'base file')} below {spec.files.small_file_limit}, {size} on average"
    if total < SMALL_FILE_COUNT_MIN or small / total <= SMALL_FILE_RATIO_MAX:
        return Finding("WellSized", "True", "WellSized", message)
    bucketed = spec.index is not None and spec.index.type is IndexType.BUCKET
    hint = "; fewer buckets make larger files, in a new table" if bucketed else "; clustering merges them"
    return Finding("WellSized", "False", "SmallFiles", message + hint)


def _clean(table: TableObservation | None) -> Finding:
    if table is None or not table.suspects:
        return Finding("Clean", "True", "NoFailedWrites", "no failed write lies on the timeline")
    names = ", ".join(table.suspects)
    return Finding("Clean", "False", "FailedWrites", f"failed writes wait to be rolled back by the next write: {names}")


def human_bytes(size: int) -> str:
    """`1.2 MiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
