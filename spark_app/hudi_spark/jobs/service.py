"""A table service's job: plan, dry run or execution of any service of the registry.

Executing a plan again is safe, so an attempt that runs twice, or late, finds nothing left to do. No JVM is started unless
the job says Spark and there is something to execute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import find_table
from hudi_table.errors import InvalidRequestError, TableNotFoundError, WriteConflictError
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.names import HOODIE, join
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.asked import check_asked
from hudi_table.services.base import Service, Unplanned
from hudi_table.services.planning import digest_of
from hudi_table.services.registry import SERVICES
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.context import TableContext

MODES = ("Plan", "Schedule", "Execute", "ScheduleAndExecute")
_OWN_APPROVAL = frozenset({ServiceType.RESTORE, ServiceType.ROLLBACK})
"""Services without a plan on the timeline that keep what they have planned, and check an approval themselves."""


@dataclass(frozen=True, slots=True)
class _Work:
    kind: ServiceType
    mode: str
    request: ServiceRequest
    instant: str


def run_service(spec: JobSpec, progress: Progress) -> JobResult:
    """Do one attempt. Raises HudiError; published plans stay, and another attempt executes them."""
    clock = SystemClock()
    start = clock.boot_seconds()
    work = _work(spec)
    service = SERVICES.get(work.kind)
    if service is None:
        known = ", ".join(kind.value for kind in SERVICES)
        raise InvalidRequestError(f"{work.kind.value} is not done by this release; it does {known}")
    table = find_table(spec)
    if table is None:
        raise TableNotFoundError(f"there is no table for {work.kind.value}", base_path=str(spec.table["location"]))
    ctx = table.context
    check_asked(ctx, work.request.options)
    if work.mode == "Plan":
        plan = service.preview(ctx, work.request)
        return _nothing(spec, work) if plan is None else _planned(spec, plan, clock.boot_seconds() - start)
    instants, plan = _instants(ctx, service, work)
    if work.mode == "Schedule" and plan is not None:
        return _planned(spec, plan, clock.boot_seconds() - start)
    if not instants:
        return _nothing(spec, work)
    named = ", ".join(instant for instant in instants if instant)
    progress.say(f"{work.kind.value}: executing {named}" if named else f"{work.kind.value} is at work")
    found = _on_engine(spec, work, progress, lambda engine: _execute(ctx, service, work, instants, engine))
    done = [result for result in found if not result.replayed and (result.instant or any(result.figures.values()))]
    if not done:
        return _nothing(spec, work, found[-1].message)
    return _done(spec, plan, done, clock.boot_seconds() - start)


def _work(spec: JobSpec) -> _Work:
    raw = spec.work
    mode = str(raw.get("mode", "ScheduleAndExecute"))
    if mode not in MODES:
        raise InvalidRequestError(f"mode {mode!r} is none of {', '.join(MODES)}")
    options: dict[str, str] = {**spec.table.get("options", {}), **raw.get("options", {})}
    instant = str(raw.get("instant", ""))
    request = ServiceRequest(
        options=options,
        force=bool(raw.get("force", False)),
        plan=str(raw.get("plan", "")),
        instant=instant,
        comment=str(raw.get("comment", "")),
    )
    return _Work(ServiceType(str(raw["type"])), mode, request, instant)


def _instants(ctx: TableContext, service: Service, work: _Work) -> tuple[list[str], ServicePlan | None]:
    """(what is to be executed, the plan that was made for it). An approved plan is executed alone."""
    if isinstance(service, Unplanned):
        plan = _unmoved(ctx, service, work) if work.request.plan and work.kind not in _OWN_APPROVAL else None
        return [""], plan
    if work.mode == "Execute":
        return ([work.instant] if work.instant else service.pending(ctx)), None
    if work.request.plan:
        return _approved(ctx, service, work)
    waiting = [] if work.mode == "Schedule" else service.pending(ctx)
    plan = service.schedule(ctx, work.request)
    return ([*waiting, plan.instant] if plan is not None else waiting), plan


def _approved(ctx: TableContext, service: Service, work: _Work) -> tuple[list[str], ServicePlan | None]:
    """The approved plan as an instant. An attempt that was lost may have published it."""
    published = _published(ctx, work.request.plan)
    if published is not None:
        return [published], None
    plan = service.schedule(ctx, work.request)
    return ([plan.instant] if plan is not None else []), plan


def _published(ctx: TableContext, digest: str) -> str | None:
    """The instant, pending or completed, whose plan has a digest; newest first."""
    names = sorted((name for name in load_timeline(ctx).files if name.endswith(".requested")), reverse=True)
    for name in names:
        if digest_of(ctx.storage.get(join(HOODIE, name))) == digest:
            return name.partition(".")[0]
    return None


def _execute(
    ctx: TableContext, service: Service, work: _Work, instants: list[str], engine: Engine
) -> list[ServiceResult]:
    return [service.execute(ctx, instant, work.request, engine) for instant in instants]


def _unmoved(ctx: TableContext, service: Service, work: _Work) -> ServicePlan:
    """What a service without a stored plan would do now, if that is still what was approved. Raises WriteConflictError."""
    plan = service.preview(ctx, work.request)
    now = _digest(plan) if plan is not None else "none"
    if plan is None or now != work.request.plan:
        raise WriteConflictError(
            f"the table has moved since {work.request.plan} was planned: the plan now is {now}; approve that one",
            base_path=ctx.base_path,
        )
    return plan


def _on_engine(
    spec: JobSpec, work: _Work, progress: Progress, each: Callable[[Engine], list[ServiceResult]]
) -> list[ServiceResult]:
    if spec.engine == "Local" or isinstance(SERVICES[work.kind], Unplanned) or work.kind is ServiceType.CLEANING:
        return each(LocalEngine())
    # Spark is started only by jobs that need it; deleting files is not among them.
    from hudi_spark.engine import SparkEngine
    from hudi_spark.errors import as_hudi_errors
    from hudi_spark.jobs.session import session

    progress.say("starting Spark")
    with as_hudi_errors():
        return each(SparkEngine(session(spec)))


def _nothing(spec: JobSpec, work: _Work, said: str = "") -> JobResult:
    reason = "no plan waits for its execution" if work.mode == "Execute" else "there is nothing to do"
    return JobResult(spec.attempt, "NothingToDo", message=said or f"{work.kind.value}: {reason}")


def _planned(spec: JobSpec, plan: ServicePlan, seconds: float) -> JobResult:
    """A plan that was made, and is not executed by this job."""
    verb = f"planned as {plan.instant}" if plan.instant else f"would be done ({_digest(plan)})"
    return JobResult(
        spec.attempt,
        "Succeeded",
        message=f"{plan.service.value} {verb}: {plan.file_groups} file groups, {plan.why}",
        instants=(plan.instant,) if plan.instant else (),
        figures={"fileGroups": float(plan.file_groups), "seconds": round(seconds, 3)},
        plan=document_of(plan),
    )


def _done(spec: JobSpec, plan: ServicePlan | None, done: list[ServiceResult], seconds: float) -> JobResult:
    figures: dict[str, float] = {}
    for result in done:
        for name, value in result.figures.items():
            figures[name] = figures.get(name, 0.0) + value
    if plan is not None:
        # What the plan says of the files that it read is no guess: they are named in it.
        told = {"bytesRead": plan.bytes_read, "filesBefore": plan.files_before}
        figures = {**{name: float(value) for name, value in told.items() if value}, **figures}
    figures["seconds"] = round(seconds, 3)
    message = "; ".join(result.message for result in done if result.message)
    return JobResult(
        spec.attempt,
        "Succeeded",
        message=f"{message} in {seconds:.1f} s",
        instants=tuple(result.instant for result in done if result.instant),
        figures=figures,
        plan=document_of(plan) if plan is not None else {},
    )


def document_of(plan: ServicePlan) -> dict[str, Any]:
    """A plan as a JobResult tells it."""
    return {
        "service": plan.service.value,
        "instant": plan.instant,
        "digest": _digest(plan),
        "why": plan.why,
        "fileGroups": plan.file_groups,
        "filesBefore": plan.files_before,
        "filesAfter": plan.files_after,
        "bytesRead": plan.bytes_read,
        "bytesWritten": plan.bytes_written,
        "bytesFreed": plan.bytes_freed,
        "details": list(plan.details),
    }


def _digest(plan: ServicePlan) -> str:
    """By which a plan is approved: its own, or of what it says."""
    if plan.digest:
        return plan.digest
    said = (plan.file_groups, plan.files_before, plan.files_after, plan.bytes_read, plan.bytes_freed, plan.details)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]
