"""The status of a resource at which a reconcile has failed: what it said before, and why it is not
reconciled. Pure.

The resource itself may be what a reconcile fails at, so nothing of it is parsed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hudi_operator.api.status import CONDITION_LENGTH_MAX
from hudi_operator.api.words import one_line
from hudi_operator.plan.observed import Problem
from hudi_operator.plan.schedule.runs import rfc3339

_REPORTED = ("Ready", "Reconciling", "Stalled")


def failed_status(document: Mapping[str, Any], problem: Problem, wait_seconds: float, now: datetime) -> dict[str, Any]:
    """The stored status with Ready False and Stalled True for that reason, and Reconciling, since
    it is reconciled again."""
    stored = document.get("status")
    before = dict(stored) if isinstance(stored, Mapping) else {}
    listed = before.get("conditions")
    known = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list | tuple) else []
    since = {str(each.get("type")): each for each in known}
    generation = document["metadata"].get("generation", 0)

    def condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
        last = since.get(kind, {})
        moment = last.get("lastTransitionTime") if last.get("status") == status else None
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": one_line(message, CONDITION_LENGTH_MAX),
            "lastTransitionTime": moment or rfc3339(now),
            "observedGeneration": generation,
        }

    again = f"next try in {wait_seconds:.0f} s"
    reported = [
        condition("Ready", "False", problem.reason, problem.message),
        condition("Reconciling", "True", "Retrying", again),
        condition("Stalled", "True", problem.reason, problem.message),
    ]
    others = [dict(each) for each in known if each.get("type") not in _REPORTED]
    return {**before, "observedGeneration": generation, "conditions": [*reported, *others]}
