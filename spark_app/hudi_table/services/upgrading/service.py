"""Another table version as a table service: a dry run, its approval, a savepoint, and the change
itself.

A run that was cut short leaves a note, which keeps writers away until another run goes on. Whose
note it is stands in it: the next attempt at the same plan goes on by itself, since its caller lets
one begin only when the one before has ended. What any other process has begun is gone on with only
where the plan that was approved says so.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from hudi_table.errors import InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.model.digits import whole
from hudi_table.model.given import checked_call
from hudi_table.model.options.known import renamed
from hudi_table.model.options.write_options import READERS, UPGRADE_VERSION
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceRequest, ServiceResult, ServiceType
from hudi_table.model.table.index_properties import names_in
from hudi_table.model.table.layouts import VERSIONS
from hudi_table.model.table.readers import Reader, readers_of
from hudi_table.services.base import Unplanned
from hudi_table.services.upgrading.plan import VersionPlan
from hudi_table.services.upgrading.run import bring_to, plan_version
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline, refuse_other_version
from hudi_table.table.version_change import VersionChange, noted_change
from hudi_table.table.view.file_system_view import FileSystemView


@dataclass(frozen=True)
class UpgradeService(Unplanned):
    """The table gets another table version, later or earlier, after a savepoint of its newest
    write; see `services.base.Service`. Until it has ended the table takes no writes."""

    type: ClassVar[ServiceType] = ServiceType.UPGRADE
    nothing: ClassVar[str] = "the table has that version"

    @checked_call
    def __call__(self, to: int, *, readers: Iterable[str] = (), plan: str = "") -> Self:
        """The service with the version `to`. `readers`: who reads the table, as `engine:version`: a
        version that one of them is known not to read is refused. `plan`: digest of a dry run, of
        which exactly the plan is done."""
        options = {UPGRADE_VERSION: str(to)}
        named = ",".join(readers)
        return self.with_request(ServiceRequest(options | ({READERS: named} if named else {}), plan=plan))

    def current_plan(self) -> ServicePlan | None:
        """What is rewritten, and who could read the table no more; None if it has that version."""
        ctx, target = self.ctx, self._target
        refuse_other_version(ctx)
        begun = noted_change(ctx.storage)
        if begun is None and ctx.config.version == target:
            return None
        if ctx.config.version == target:
            found = VersionPlan(target, target, 0, 0, (), (), {})
        else:
            found = plan_version(ctx, target, self._readers)
        merged = [s for s in FileSystemView(ctx, load_timeline(ctx)).latest_slices() if s.logs] if found.slices else []
        read = sum((s.base.size if s.base is not None else 0) + sum(log.size for log in s.logs) for s in merged)
        details = tuple(_details(found, begun))
        return ServicePlan(
            self.type,
            why=f"the table has version {ctx.config.version}, {target} is asked for",
            digest=_digest(found, begun),
            file_groups=found.slices,
            files_before=found.timeline_files,
            files_after=found.timeline_files,
            bytes_read=read,
            bytes_written=read,
            details=details[:DETAILS_MAX],
        )

    def unmoved(self) -> ServicePlan | None:
        """An approval is held against the plan as it is now, unless an attempt at it has begun, or
        has ended."""
        begun = noted_change(self.ctx.storage)
        ended = begun is None and self.ctx.config.version == self._target
        return None if ended or (begun is not None and self._is_own(begun)) else super().unmoved()

    def work(self, engine: Engine) -> ServiceResult:
        """Bring it there, or go on."""
        del engine
        plan = self.request.plan
        begun = noted_change(self.ctx.storage)
        if begun is None and self.ctx.config.version == self._target:
            return ServiceResult(self.type, "", f"the table has version {self._target}", replayed=True)
        done = bring_to(
            self.ctx,
            self._target,
            # With a plan, what has begun is its own, or is named by it.
            resume=begun is not None and bool(plan),
            readers=self._readers,
            savepoint=True,
            attempt=f"{_attempts_at(plan)}{uuid.uuid4()}" if plan else "",
        )
        figures = {"version": done.target, "timelineFiles": done.timeline_files, "archivedInstants": done.archived}
        return ServiceResult(self.type, "", done.message, {name: float(value) for name, value in figures.items()})

    def _is_own(self, begun: VersionChange) -> bool:
        return begun.target == self._target and begun.attempt.startswith(_attempts_at(self.request.plan))

    @property
    def _target(self) -> int:
        text = renamed(self.request.options).get(UPGRADE_VERSION, "")
        found = whole(text)
        if found is None:
            raise InvalidOptionError(
                f"an upgrade needs the version, one of {', '.join(map(str, VERSIONS))}, in {UPGRADE_VERSION}; it is {text!r}"
            )
        return found

    @property
    def _readers(self) -> tuple[Reader, ...]:
        return readers_of(names_in(renamed(self.request.options).get(READERS, "")))


def _attempts_at(plan: str) -> str:
    return f"{plan}/"


def _details(plan: VersionPlan, begun: VersionChange | None) -> Iterator[str]:
    if begun is not None:
        yield (
            f"a change from version {begun.source} to {begun.target} has begun (attempt {begun.attempt}) and is ended: approve this only once the process that "
            "began it has ended"
        )
    yield from (f"could no longer read it: {line}" for line in plan.no_longer)
    yield from (f"not known: {line}" for line in plan.unproven)
    if plan.timeline_files:
        yield f"{counted(plan.timeline_files, 'timeline file')} and the archive are written anew"
    if plan.slices:
        yield f"{counted(plan.slices, 'slice')} with logs merged first"
    yield from (f"executed, or ended, first: {name}" for name in plan.waiting)
    yield from (f"goes: {name}" for name in (*plan.dropped, *plan.savepoints))
    yield from (f"goes: {key}" if value is None else f"{key}={value}" for key, value in sorted(plan.properties.items()))


def _digest(plan: VersionPlan, begun: VersionChange | None) -> str:
    """Names what is decided, and not how much there is: writes that come before the approval do not
    change it, and neither does an attempt that was given up, which leaves other savepoints."""
    decided = (plan.source, plan.target, plan.dropped, sorted(plan.properties.items()), plan.no_longer, plan.unproven)
    return hashlib.sha256(repr((decided, begun)).encode()).hexdigest()[:16]
