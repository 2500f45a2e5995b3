"""`plan_service`: what is to be done about one TableService. This release runs none; each is refused by name."""

from __future__ import annotations

from datetime import datetime

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import DesiredService
from hudi_operator.api.schema import to_document
from hudi_operator.api.status import TableServiceStatus
from hudi_operator.errors import InvalidSpecError, UnsupportedSpecError
from hudi_operator.plan.conditions import Finding, settle
from hudi_operator.plan.effects import Effect, Emit, EventType, SetStatus


def plan_service(desired: DesiredService, now: datetime) -> list[Effect]:
    """Effects in order: an event if something new is to be told, and the status."""
    before, _ = parse(TableServiceStatus, desired.status, "status")
    previous = before.conditions if before is not None else ()
    if desired.errors or desired.spec is None:
        reason, message = InvalidSpecError.name(), "; ".join(str(error) for error in desired.errors)
    else:
        reason = UnsupportedSpecError.name()
        message = f"spec.type: {desired.spec.type.value} is not run by this release; remove this TableService"
    findings = [Finding("Ready", "False", reason, message), Finding("Stalled", "True", reason, message)]
    generation = desired.identity.generation
    status = TableServiceStatus(generation, settle(findings, previous, generation, now))
    told = any(c.type == "Stalled" and c.message == message for c in previous)
    events = [] if told else [Emit(EventType.WARNING, reason, message)]
    return [*events, SetStatus(to_document(status))]
