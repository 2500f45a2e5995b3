"""The Launcher port: start an attempt once, and say what became of the attempts of a resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Protocol

from hudi_operator.api.parsing import parse
from hudi_operator.api.resources import Identity
from hudi_operator.api.schema import camel
from hudi_operator.api.status import ADVICE_LENGTH_MAX, ADVICE_MAX, DETAILS_MAX, IndexStatus, PlanStatus, RunStatus
from hudi_operator.api.table import HudiTableSpec
from hudi_operator.plan.effects import Launch
from hudi_operator.plan.observed import Problem
from hudi_table.model.job.jobspec import JobResult

PHASE_OF_OUTCOME = {"Succeeded": "Succeeded", "NothingToDo": "NothingToDo", "Failed": "Failed"}
REASON_OF_EXIT_CODE = {
    64: "InvalidRequest",
    65: "CorruptTable",
    69: "UnsupportedTable",
    70: "Invariant",
    74: "DataLoss",
    75: "Unavailable",
    76: "CommitStateUnknown",
    77: "AccessDenied",
}
"""What an exit code says when a job could write no result; several classes share 64 and 75."""


class Launcher(Protocol):
    """Runs jobs. Attempts are named by the plan, so a second launch of a name adopts the first."""

    def launch(self, owner: Identity, wanted: Launch, secret: Mapping[str, str]) -> bool:
        """Start the attempt for a resource; False if one of its name exists already.

        `secret`, the values of the wanted Secret, become environment variables of the job and are
        written nowhere. Raises HudiError if it cannot start.
        """
        ...

    def objection(self, owner: Identity, spec: HudiTableSpec) -> Problem | None:
        """What of a table's manifest this launcher cannot do, before anything is observed or
        started."""
        ...

    def cancel(self, owner: Identity, name: str) -> None:
        """End an attempt that runs, with all its children; nothing happens if it has ended."""
        ...

    def heard(self, uid: str) -> None:
        """Something was heard of an attempt that works for the resource of this uid."""
        ...

    def runs(self, owner: Identity) -> tuple[RunStatus, ...]:
        """The attempts of a resource, newest first: Running, Succeeded, NothingToDo, Failed, or
        Lost without a result."""
        ...


def ended(run: RunStatus, result: JobResult, finished: str | None) -> RunStatus:
    """A run with its result."""
    return RunStatus(
        name=run.name,
        work=run.work,
        phase=PHASE_OF_OUTCOME.get(result.outcome, "Failed"),
        generation=run.generation,
        attempt=run.attempt,
        batch=run.batch,
        started=run.started,
        finished=finished,
        reason=result.error_class or None,
        message=result.message[:4096] or None,
        instants=result.instants,
        figures=dict(result.figures),
        plan=_plan(result.plan),
        index=_index(result.index, finished),
    )


def _plan(document: Mapping[str, Any]) -> PlanStatus | None:
    """The plan that a job tells, cut to what a status has room for."""
    if not document:
        return None
    names = {camel(f.name) for f in fields(PlanStatus)}
    details = [str(line) for line in document.get("details", ())][:DETAILS_MAX]
    found, _ = parse(PlanStatus, {k: v for k, v in document.items() if k in names} | {"details": details}, "plan")
    return found


def _index(document: Mapping[str, Any], finished: str | None) -> IndexStatus | None:
    """What a job has measured of the index, cut likewise."""
    if not document:
        return None
    names = ("type", "better", "instant")
    advice = [str(sentence)[:ADVICE_LENGTH_MAX] for sentence in document.get("advice", ())][:ADVICE_MAX]
    measured = {name: document.get(name) for name in names} | {"advice": advice, "observedAt": finished}
    found, _ = parse(IndexStatus, measured, "index")
    return found
