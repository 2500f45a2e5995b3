"""The doctor as a table service: what it finds, and on request files put aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hudi_table.model.options.known import boolean_option
from hudi_table.model.options.write_options import REPAIR_KEYS, REPAIR_QUARANTINE
from hudi_table.model.service.findings import Finding, Severity
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.base import Unplanned
from hudi_table.services.doctor.metadata import switch_off
from hudi_table.services.doctor.quarantine import movable, quarantine
from hudi_table.services.doctor.run import examine
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext


@dataclass(frozen=True, slots=True)
class RepairService(Unplanned):
    """See `services.base.Service`. Nothing is planned on the timeline: a run examines the table, and with
    `hoodie.lakeops.repair.quarantine` moves what no reader uses, and switches a wrong metadata table off."""

    def preview(self, ctx: TableContext, request: ServiceRequest) -> ServicePlan | None:
        """What is found and would be put aside; None of a sound table."""
        findings = _examined(ctx, request)
        if not findings:
            return None
        files = movable(ctx, findings)
        return ServicePlan(
            ServiceType.REPAIR,
            why=_summary(findings),
            files_before=len(files),
            bytes_read=sum(item.size for item in files),
            details=tuple(f"{f.check} {f.path}: {f.message}" for f in findings[:DETAILS_MAX]),
        )

    def execute(self, ctx: TableContext, instant: str, request: ServiceRequest, engine: Engine) -> ServiceResult:
        """Examine, and put aside if the options say so."""
        del instant, engine
        findings = _examined(ctx, request)
        mends = _flag(request, REPAIR_QUARANTINE)
        made = quarantine(ctx, findings) if mends else None
        if mends:
            switch_off(ctx, findings)
        counts = Counter(finding.severity for finding in findings)
        figures = {
            "errors": float(counts[Severity.ERROR]),
            "warnings": float(counts[Severity.WARNING]),
            "filesQuarantined": float(len(made.files)) if made else 0.0,
            "bytesQuarantined": float(made.bytes) if made else 0.0,
        }
        message = _summary(findings) if findings else "nothing found"
        return ServiceResult(ServiceType.REPAIR, made.time if made else "", message, figures)


def _examined(ctx: TableContext, request: ServiceRequest) -> tuple[Finding, ...]:
    return examine(ctx, keys=_flag(request, REPAIR_KEYS), max_memory=request.max_memory)


def _flag(request: ServiceRequest, key: str) -> bool:
    return boolean_option(request.options, key)


def _summary(findings: tuple[Finding, ...]) -> str:
    counts = Counter(finding.check.value for finding in findings)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))


SERVICE = RepairService()
