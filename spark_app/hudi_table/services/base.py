"""The shape of a table service: its noun, called, says what is asked; its verbs do it.

`plan`, `execute` and `run` are of every service. `schedule` and `pending` are of those alone that
keep a plan on the timeline, which another process, or Hudi, may execute: compaction, log
compaction, clustering, cleaning and resize. Archiving, savepoint, restore, rollback, repair,
partition TTL, indexing and upgrade keep none for others: they list again when they run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Protocol, Self, runtime_checkable

from hudi_table.errors import InvalidOptionError, InvalidRequestError, WriteConflictError
from hudi_table.model.given import check_given, checked_call
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.services import (
    DEFAULT_SERVICE_MEMORY,
    ServicePlan,
    ServiceRequest,
    ServiceResult,
    ServiceType,
)
from hudi_table.model.timeline.instants import Action
from hudi_table.services.planning import Choose, Look, looked, preview, publish, publish_approved, published_as
from hudi_table.table.commit.beside.left_to_writes import left_to_writes
from hudi_table.table.commit.beside.locking import locked
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.progress import reporting
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import confirm, load_timeline, unconfirmed_timeline
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import with_relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice
from hudi_table.write.checks.table_options import refuse_contradictions


def check_engine(engine: object, progress: object) -> None:
    """Refuse what a verb cannot work with, before anything is looked at. Raises
    InvalidOptionError."""
    check_given("engine", engine, None)
    check_given("progress", progress, None)


def _check_plan(plan: object, also: str = "") -> None:
    if isinstance(plan, ServicePlan) or (also and isinstance(plan, str)):
        return
    raise InvalidOptionError(f"plan is {plan!r:.100}: give what plan() returned{also}")


class Service(Protocol):
    """One table service of one table. Every verb raises HudiError."""

    @property
    def type(self) -> ServiceType:
        """Which one."""
        ...

    def plan(self) -> ServicePlan | None:
        """A dry run: what it would do now, None if nothing. The table does not change; the digest
        names the plan for an approval."""
        ...

    def execute(
        self, plan: ServicePlan, *, engine: Engine | None = None, progress: ProgressFunction | None = None
    ) -> ServiceResult:
        """Do exactly `plan`. Raises WriteConflictError if the table has moved since a dry run made
        it."""
        ...

    def run(self, *, engine: Engine | None = None, progress: ProgressFunction | None = None) -> list[ServiceResult]:
        """Do what waits, oldest first, then what is asked. Nothing to do: an empty list."""
        ...


@runtime_checkable
class ScheduledService(Service, Protocol):
    """A service whose plan stands on the timeline until somebody executes it."""

    def schedule(self) -> ServicePlan | None:
        """Publish a plan if it is due, or exactly the approved one of `request.plan`; None if there
        is nothing to do."""
        ...

    def pending(self) -> list[str]:
        """Instants of published plans that wait for their execution, oldest first."""
        ...

    def execute(
        self, plan: ServicePlan | str, *, engine: Engine | None = None, progress: ProgressFunction | None = None
    ) -> ServiceResult:
        """Carry out a published plan, also by its instant and also one of Hudi's; running it again,
        or by two at once, is safe. Of a dry run exactly that plan is published first. Raises
        WriteConflictError if what it names has moved."""
        ...


_EMPTY_REQUEST = ServiceRequest()


@dataclass(frozen=True)
class RequestedService:
    """A service of one table, with its request."""

    ctx: TableContext = field(repr=False)
    request: ServiceRequest = _EMPTY_REQUEST
    type: ClassVar[ServiceType]

    def __post_init__(self) -> None:
        """Raises InvalidOptionError for options that describe another table, or another lock than
        its own."""
        refuse_contradictions(self.ctx.config, self.request.options)
        object.__setattr__(self, "ctx", locked(self.ctx, self.request.options))

    def with_request(self, request: ServiceRequest) -> Self:
        """The same service with another request."""
        return replace(self, request=request)

    def _reporting_engine(self, engine: Engine | None, progress: ProgressFunction | None) -> Engine:
        return reporting(engine or LocalEngine(), self.type.noun.replace("_", " "), progress)


class Planned(RequestedService, ABC):
    """A `ScheduledService`: what differs by service are its choices and how a plan is carried
    out."""

    action: ClassVar[Action]
    yields: ClassVar[bool] = True
    """Whether it leaves the file groups of writes that have lost an attempt to these."""

    @abstractmethod
    def choice(self, ctx: TableContext, *, force: bool) -> Choose:
        """What is chosen of any snapshot; with `force` whether or not it is due."""

    def choices_again(self, ctx: TableContext) -> list[Choose]:
        """The choices of which one made an approved plan."""
        return [self.choice(ctx, force=True)]

    @abstractmethod
    def approved(self, data: bytes) -> Choose:
        """Exactly the plan of these bytes, if what it names is as it was."""

    @abstractmethod
    def waiting(self, timeline: Timeline) -> list[str]:
        """Instants of the published plans on a timeline that wait for their execution, oldest
        first."""

    def pending(self) -> list[str]:
        """See `ScheduledService`."""
        return with_relists(self.ctx, lambda: self.waiting(load_timeline(self.ctx)))

    @abstractmethod
    def carry_out(self, instant: str, engine: Engine) -> ServiceResult:
        """Execute the plan of an instant."""

    def plan(self) -> ServicePlan | None:
        """See `Service`."""
        return preview(self.ctx, self.choice(self.ctx, force=self.request.force))

    def schedule(self) -> ServicePlan | None:
        """See `ScheduledService`."""
        if self.request.plan:
            return publish_approved(self.ctx, self.action, self.request.plan, self.choices_again, self.approved)
        return self._publish(None)

    def _publish(self, first: Look | None) -> ServicePlan | None:
        choose = self.choice(self.ctx, force=self.request.force)
        return publish(self.ctx, self.action, choose, first, self._leaves)

    def _leaves(self, timeline: Timeline) -> Callable[[FileSlice], bool] | None:
        return left_to_writes(self.ctx, self.action, timeline) if self.yields else None

    def _look(self) -> tuple[list[str], Look | None]:
        """What waits; and of the same listing a first look for a new plan, if nothing does."""

        def look() -> tuple[list[str], Look | None]:
            timeline = unconfirmed_timeline(self.ctx)
            waiting = self.waiting(timeline)
            if waiting:
                confirm(self.ctx, timeline)
                return waiting, None
            choose = self.choice(self.ctx, force=self.request.force)
            return waiting, looked(self.ctx, timeline, choose, self._leaves)

        return with_relists(self.ctx, look)

    def execute(
        self, plan: ServicePlan | str, *, engine: Engine | None = None, progress: ProgressFunction | None = None
    ) -> ServiceResult:
        """See `ScheduledService`."""
        check_engine(engine, progress)
        _check_plan(plan, ", what schedule() returned, or the instant of a plan")
        instant = plan if isinstance(plan, str) else plan.instant or self._published(plan.digest)
        return self.carry_out(instant, self._reporting_engine(engine, progress))

    def run(self, *, engine: Engine | None = None, progress: ProgressFunction | None = None) -> list[ServiceResult]:
        """See `Service`. An approved plan is executed alone."""
        check_engine(engine, progress)
        work = partial(self.execute, engine=engine, progress=progress)
        if self.request.plan:
            return [work(self._published(self.request.plan))]
        waiting, first = self._look()
        done = [work(instant) for instant in waiting]
        planned = self.schedule() if first is None else self._publish(first)
        return [*done, *([work(planned)] if planned else [])]

    def _published(self, digest: str) -> str:
        """The instant of an approved plan, which an attempt that was lost may have published."""
        if not digest:
            raise InvalidRequestError("the plan has neither an instant nor a digest", base_path=self.ctx.base_path)
        found = published_as(self.ctx, digest)
        if found is None:
            planned = self.with_request(replace(self.request, plan=digest)).schedule()
            assert planned is not None, "an approved plan is published, or refused"
            found = planned.instant
        return found


class WhenDue(Planned, ABC):
    """A service that options ask, and whose trigger says when it is due."""

    @checked_call
    def __call__(
        self,
        options: Mapping[str, str] | None = None,
        *,
        force: bool = False,
        plan: str = "",
        max_memory: int = DEFAULT_SERVICE_MEMORY,
    ) -> Self:
        """The service with these options. `force`: due or not; `plan`: digest of a dry run, of
        which exactly the plan is done."""
        return self.with_request(ServiceRequest(options or {}, force, plan, max_memory=max_memory))


class Unplanned(RequestedService, ABC):
    """A `Service` that keeps no plan on the timeline: it has neither `schedule` nor `pending`, and
    lists again when it runs."""

    nothing: ClassVar[str] = "there is nothing to do"
    """What to say where nothing was done."""

    @abstractmethod
    def current_plan(self) -> ServicePlan | None:
        """What would be done now, None if nothing."""

    @abstractmethod
    def work(self, engine: Engine) -> ServiceResult | None:
        """Do it; None if nothing was to be done."""

    def plan(self) -> ServicePlan | None:
        """See `Service`."""
        plan = self.current_plan()
        return None if plan is None else replace(plan, digest=plan.digest or plan.said_digest)

    def execute(
        self, plan: ServicePlan, *, engine: Engine | None = None, progress: ProgressFunction | None = None
    ) -> ServiceResult:
        """See `Service`."""
        check_engine(engine, progress)
        _check_plan(plan)
        done = self.with_request(replace(self.request, plan=plan.digest)).run(engine=engine, progress=progress)
        return done[0] if done else ServiceResult(self.type, "", self.nothing)

    def run(self, *, engine: Engine | None = None, progress: ProgressFunction | None = None) -> list[ServiceResult]:
        """See `Service`."""
        check_engine(engine, progress)
        plan = self.unmoved() if self.request.plan else None
        done = self.work(self._reporting_engine(engine, progress))
        return [] if done is None else [replace(done, plan=plan)]

    def unmoved(self) -> ServicePlan | None:
        """What it would do now, if that is still what was approved. Raises WriteConflictError."""
        plan = self.plan()
        now = "none" if plan is None else plan.digest
        if plan is None or now != self.request.plan:
            raise WriteConflictError(
                f"the table has moved since {self.request.plan} was planned: the plan now is {now}; approve that one",
                base_path=self.ctx.base_path,
            )
        return plan
