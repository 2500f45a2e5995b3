"""The debts of a table as conditions: which one is due, why, and what keeps a service from working
it off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from hudi_operator.api.fields.maintenance import ServiceMode
from hudi_operator.api.status import RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.manifests.jobs import options_of
from hudi_operator.manifests.quantities import human_bytes
from hudi_operator.manifests.services import ServiceWork, maintenance_of, resize_wanted
from hudi_operator.plan.figures import SMALL_FILE_COUNT_MIN, SMALL_FILE_RATIO_MAX, small_files
from hudi_operator.plan.observed import Observed, TableObservation
from hudi_operator.plan.schedule import holds
from hudi_operator.plan.schedule.due import due_now
from hudi_operator.plan.status import predict
from hudi_operator.plan.status.conditions import Finding
from hudi_table.model.counts import counted
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import TableType

TIMELINE_FILES_WARN = 800
"""Every reconcile of a table lists its timeline, and stores answer with 1,000 names a page."""
DOING = {
    ServiceType.COMPACTION: "Compacting",
    ServiceType.CLUSTERING: "Clustering",
    ServiceType.CLEANING: "Cleaning",
    ServiceType.ARCHIVING: "Archiving",
}


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What keeps the whole table from being worked on: the reason of a standstill, and what is
    going on (reason, message)."""

    stalled: str | None = None
    busy: tuple[str, str] | None = None


def findings(
    spec: HudiTableSpec, observed: Observed, hindrance: Hindrance, runs: Sequence[RunStatus], now: datetime
) -> tuple[Finding, ...]:
    """Compacted, WellSized, Clean, Archived, and ResizeNeedsApproval where one is wanted."""
    table = observed.table
    debts = _Debts(spec, observed, hindrance, now)
    found = (
        _compacted(spec, table, debts),
        _well_sized(spec, table, debts),
        _clean(table, debts),
        _archived(table, debts),
    )
    return (*found, *_resize(spec, table, runs))


@dataclass(frozen=True, slots=True)
class _Debts:
    spec: HudiTableSpec
    observed: Observed
    hindrance: Hindrance
    now: datetime

    def why(self, kind: ServiceType) -> str | None:
        """Why a service is due, whether or not anything runs it."""
        table = self.observed.table
        works: dict[ServiceType, ServiceWork] = {w.type: w for w in maintenance_of(self.spec, disabled=True)}
        due = due_now(works[kind], table, options_of(self.spec)) if table is not None else None
        return due.why if due is not None else None

    def due_text(self, kind: ServiceType) -> str:
        """`; due: why; what it waits for`, as the end of a message."""
        why = self.why(kind)
        due = f"; {kind.value} is due: {why}" if why is not None else ""
        return (
            due
            + self.held_text(kind)
            + "".join(f"; {said}" for said in [self._keeper(kind, due=why is not None)] if said)
        )

    def held_text(self, kind: ServiceType) -> str:
        """`; what is kept for whom`, where another table holds what this service would take."""
        table = self.observed.table
        hold = holds.hold_of(kind, table, self.observed.followers, self.now) if table is not None else None
        return f"; {hold}" if hold is not None else ""

    def _keeper(self, kind: ServiceType, *, due: bool) -> str | None:
        name = self.observed.keepers.get(kind)
        maintenance = self.spec.maintenance
        mode = {
            ServiceType.COMPACTION: maintenance.compaction.mode,
            ServiceType.CLUSTERING: maintenance.clustering.mode,
            ServiceType.CLEANING: maintenance.cleaning.mode,
            ServiceType.ARCHIVING: maintenance.archiving.mode,
        }[kind]
        if name is None and mode is ServiceMode.DISABLED:
            return f"nothing does it: set maintenance.{kind.value.lower()}.mode to Auto, or make a TableService"
        if name is not None:
            return f"TableService {name} does it"
        if not due:
            return None
        if self.hindrance.stalled is not None:
            return f"it waits for the table, which is stalled: {self.hindrance.stalled}"
        if self.spec.suspend:
            return "it waits for the table, which is suspended"
        return f"it waits: {self.hindrance.busy[1]}" if self.hindrance.busy is not None else None


def _compacted(spec: HudiTableSpec, table: TableObservation | None, debts: _Debts) -> Finding:
    if spec.type is TableType.COPY_ON_WRITE:
        return Finding("Compacted", "True", "CopyOnWrite", "a copy-on-write table has no log files")
    logs = table.log_bytes if table is not None else 0
    if not logs:
        return Finding("Compacted", "True", "NoLogFiles", "no log files")
    message = f"{human_bytes(logs)} of log files wait to be compacted{debts.due_text(ServiceType.COMPACTION)}"
    return Finding("Compacted", "False", "LogFiles", message)


def _well_sized(spec: HudiTableSpec, table: TableObservation | None, debts: _Debts) -> Finding:
    if table is None or not table.files:
        return Finding("WellSized", "True", "Empty", "no base files")
    small, total = small_files(spec, table), len(table.files)
    size = human_bytes(table.base_bytes // total)
    message = f"{small} of {counted(total, 'base file')} below {spec.files.small_file_limit}, {size} on average"
    if total < SMALL_FILE_COUNT_MIN or small / total <= SMALL_FILE_RATIO_MAX:
        return Finding("WellSized", "True", "WellSized", message)
    if spec.index is not None and spec.index.type.has_fixed_buckets:
        return Finding("WellSized", "False", "SmallFiles", f"{message}; fewer index.buckets make larger files")
    return Finding("WellSized", "False", "SmallFiles", message + debts.due_text(ServiceType.CLUSTERING))


def _clean(table: TableObservation | None, debts: _Debts) -> Finding:
    if table is not None and table.suspects:
        names = ", ".join(table.suspects)
        message = f"failed writes wait to be rolled back by the next write: {names}"
        return Finding("Clean", "False", "FailedWrites", message)
    if debts.why(ServiceType.CLEANING) is not None:
        freed = table.bytes_to_clean if table is not None else None
        size = "file slices that nobody needs" if freed is None else f"{human_bytes(freed)} that nobody needs"
        return Finding("Clean", "False", "OldSlices", f"{size} may wait{debts.due_text(ServiceType.CLEANING)}")
    message = f"no failed write lies on the timeline{debts.held_text(ServiceType.CLEANING)}"
    return Finding("Clean", "True", "NoFailedWrites", message)


def _archived(table: TableObservation | None, debts: _Debts) -> Finding:
    if table is None:
        return Finding("Archived", "True", "Empty", "no timeline")
    message = f"{counted(len(table.commits), 'commit')} in {counted(table.timeline_files, 'timeline file')}"
    due_text = debts.due_text(ServiceType.ARCHIVING)
    if table.timeline_files >= TIMELINE_FILES_WARN:
        return Finding(
            "Archived", "False", "TimelineLong", f"{message}: past 1,000 every reconcile takes longer{due_text}"
        )
    if debts.why(ServiceType.ARCHIVING) is not None:
        return Finding("Archived", "False", "ArchivingDue", message + due_text)
    debt = table.archiving
    if debt is not None and debt.writes > debt.most and debt.held_by:
        return Finding("Archived", "False", "HeldBack", f"{message}, {debt.most} may be: {debt.held_by}")
    return Finding("Archived", "True", "TimelineShort", message)


def _resize(spec: HudiTableSpec, table: TableObservation | None, runs: Sequence[RunStatus]) -> tuple[Finding, ...]:
    """What another number of buckets costs. The table keeps the old one until a TableService of
    type Resize is approved."""
    wanted = resize_wanted(spec, table.config) if table is not None else None
    if table is None or wanted is None:
        return ()
    size = table.base_bytes + table.log_bytes
    seconds = predict.seconds_for(2 * size, predict.throughput(ServiceType.RESIZE, runs))
    partitions = len({f.partition for f in table.groups})
    message = (
        f"index.buckets is {wanted[1]}, the table has {wanted[0]} and is written with them: {counted(len(table.groups), 'file group')} of "
        f"{counted(partitions, 'partition')} would be rewritten into {partitions * wanted[1]}, {human_bytes(size)} read and "
        f"as much written, about {seconds:g} s; make a TableService of type Resize in mode Plan and approve its plan, or put "
        f"{wanted[0]} back"
    )
    return (Finding("ResizeNeedsApproval", "True", "BucketsChanged", message),)
