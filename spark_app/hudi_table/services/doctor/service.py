"""The doctor as a table service: what it finds, and on request files put aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Self

from hudi_table.model.given import checked_call
from hudi_table.model.options.known import boolean_option
from hudi_table.model.options.write_options import REPAIR_KEYS, REPAIR_QUARANTINE
from hudi_table.model.service.findings import Finding, Severity
from hudi_table.model.service.services import (
    DEFAULT_SERVICE_MEMORY,
    DETAILS_MAX,
    ServicePlan,
    ServiceRequest,
    ServiceResult,
    ServiceType,
)
from hudi_table.services.base import Unplanned
from hudi_table.services.doctor.metadata import switch_off
from hudi_table.services.doctor.quarantine import movable, quarantine
from hudi_table.services.doctor.run import examine
from hudi_table.table.store.ports import Engine


@dataclass(frozen=True)
class RepairService(Unplanned):
    """The table is examined, and on request what no reader uses is moved and a wrong metadata table
    switched off; see `services.base.Service`. No plan is stored."""

    type: ClassVar[ServiceType] = ServiceType.REPAIR

    @checked_call
    def __call__(
        self, *, quarantine: bool = False, keys: bool = False, plan: str = "", max_memory: int = DEFAULT_SERVICE_MEMORY
    ) -> Self:
        """The service that moves what it may (`quarantine`), or reports only, and reads every key
        (`keys`), or none. `plan`: digest of a dry run, which must still hold."""
        wishes = {REPAIR_QUARANTINE: quarantine, REPAIR_KEYS: keys}
        options = {key: "true" for key, wanted in wishes.items() if wanted}
        return self.with_request(ServiceRequest(options, plan=plan, max_memory=max_memory))

    def current_plan(self) -> ServicePlan | None:
        """What is found and would be put aside; None of a sound table."""
        findings = self._examined()
        if not findings:
            return None
        files = movable(self.ctx, findings)
        return ServicePlan(
            ServiceType.REPAIR,
            why=_summary(findings),
            files_before=len(files),
            bytes_read=sum(item.size for item in files),
            details=tuple(f"{f.check} {f.path}: {f.message}" for f in findings[:DETAILS_MAX]),
        )

    def work(self, engine: Engine) -> ServiceResult:
        """Examine, and put aside if the options say so."""
        del engine
        findings = self._examined()
        mends = boolean_option(self.request.options, REPAIR_QUARANTINE)
        made = quarantine(self.ctx, findings) if mends else None
        if mends:
            switch_off(self.ctx, findings)
        counts = Counter(finding.severity for finding in findings)
        figures = {
            "errors": float(counts[Severity.ERROR]),
            "warnings": float(counts[Severity.WARNING]),
            "filesQuarantined": float(len(made.files)) if made else 0.0,
            "bytesQuarantined": float(made.bytes) if made else 0.0,
        }
        message = _summary(findings) if findings else "nothing found"
        return ServiceResult(ServiceType.REPAIR, made.time if made else "", message, figures)

    def _examined(self) -> tuple[Finding, ...]:
        keys = boolean_option(self.request.options, REPAIR_KEYS)
        return examine(self.ctx, keys=keys, max_memory=self.request.max_memory)


def _summary(findings: tuple[Finding, ...]) -> str:
    counts = Counter(finding.check.value for finding in findings)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items()))
