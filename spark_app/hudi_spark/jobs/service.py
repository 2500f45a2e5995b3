"""A table service's job: plan, dry run or execution of any service of the registry.

Executing a plan again is safe, so an attempt that runs twice, or late, finds nothing left to do. No
JVM is started unless the job says Spark and there is something to execute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_spark.jobs.progress import Progress
from hudi_spark.jobs.target import find_table
from hudi_table.errors import InvalidRequestError, TableNotFoundError
from hudi_table.model.counts import counted
from hudi_table.model.job.jobspec import JobResult, JobSpec
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.services.base import ScheduledService, Service, Unplanned
from hudi_table.services.planning import published_as
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.store.clock import SystemClock
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext

MODES = ("Plan", "Schedule", "Execute", "ScheduleAndExecute")


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
    table = find_table(spec)
    if table is None:
        raise TableNotFoundError(f"there is no table for {work.kind.value}", base_path=str(spec.table["location"]))
    service = table.services.of_type(work.kind, work.request)
    if work.mode == "Plan":
        plan = service.plan()
        return _nothing(spec, work) if plan is None else _planned(spec, plan, clock.boot_seconds() - start)
    if isinstance(service, ScheduledService):
        instants, plan = _instants(table.context, service, work)
        if work.mode == "Schedule" and plan is not None:
            return _planned(spec, plan, clock.boot_seconds() - start)
        if not instants:
            return _nothing(spec, work)
        progress.say(f"{work.kind.value}: executing {', '.join(instants)}")
        found = _on_engine(spec, work, progress, lambda engine: _execute(service, instants, engine))
    else:
        progress.say(f"{work.kind.value} is at work")
        found = service.run()
        plan = found[-1].plan if found else None
    done = [result for result in found if not result.replayed and (result.instant or any(result.figures.values()))]
    if not done:
        return _nothing(spec, work, found[-1].message if found else _idle(service))
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


def _instants(ctx: TableContext, service: ScheduledService, work: _Work) -> tuple[list[str], ServicePlan | None]:
    """(what is to be executed, the plan that was made for it). An approved plan is executed
    alone."""
    if work.mode == "Execute":
        return ([work.instant] if work.instant else service.pending()), None
    if work.request.plan:
        # An attempt that was lost may have published it.
        published = published_as(ctx, work.request.plan)
        if published is not None:
            return [published], None
    waiting = [] if work.mode == "Schedule" or work.request.plan else service.pending()
    plan = service.schedule()
    return ([*waiting, plan.instant] if plan is not None else waiting), plan


def _execute(service: ScheduledService, instants: list[str], engine: Engine) -> list[ServiceResult]:
    return [service.execute(instant, engine=engine) for instant in instants]


def _on_engine(
    spec: JobSpec, work: _Work, progress: Progress, each: Callable[[Engine], list[ServiceResult]]
) -> list[ServiceResult]:
    if spec.engine == "Local" or work.kind is ServiceType.CLEANING:
        return each(LocalEngine())
    # Spark is started only by jobs that need it; deleting files is not among them.
    from hudi_spark.engine import SparkEngine
    from hudi_spark.errors import as_hudi_errors
    from hudi_spark.jobs.session import session

    progress.say("starting Spark")
    with as_hudi_errors():
        return each(SparkEngine(session(spec)))


def _idle(service: Service) -> str:
    return service.nothing if isinstance(service, Unplanned) else ""


def _nothing(spec: JobSpec, work: _Work, said: str = "") -> JobResult:
    reason = "no plan waits for its execution" if work.mode == "Execute" else "there is nothing to do"
    return JobResult(spec.attempt, "NothingToDo", message=said or reason)


def _planned(spec: JobSpec, plan: ServicePlan, seconds: float) -> JobResult:
    """A plan that was made, and is not executed by this job."""
    verb = f"planned as {plan.instant}" if plan.instant else f"would be done ({plan.digest})"
    return JobResult(
        spec.attempt,
        "Succeeded",
        message=f"{plan.service.value} {verb}: {counted(plan.file_groups, 'file group')}, {plan.why}",
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
        sizes = {"bytesRead": plan.bytes_read, "filesBefore": plan.files_before}
        figures = {**{name: float(value) for name, value in sizes.items() if value}, **figures}
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
        "digest": plan.digest,
        "why": plan.why,
        "fileGroups": plan.file_groups,
        "filesBefore": plan.files_before,
        "filesAfter": plan.files_after,
        "bytesRead": plan.bytes_read,
        "bytesWritten": plan.bytes_written,
        "bytesFreed": plan.bytes_freed,
        "details": list(plan.details),
    }
