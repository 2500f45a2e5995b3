"""Resizing as a table service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

from hudi_table.errors import InvalidOptionError
from hudi_table.model.counts import counted
from hudi_table.model.digits import whole
from hudi_table.model.given import checked_call
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.services import (
    DEFAULT_SERVICE_MEMORY,
    ServicePlan,
    ServiceRequest,
    ServiceResult,
    ServiceType,
)
from hudi_table.model.table.index_properties import BUCKETS
from hudi_table.model.timeline.instants import Action
from hudi_table.services.base import Planned, check_engine
from hudi_table.services.planning import Choose, preview
from hudi_table.services.resizing.execute import pending_instants, run_resize
from hudi_table.services.resizing.plan import approved_choice, resize_choice, wanted_buckets
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline


@dataclass(frozen=True)
class ResizeService(Planned):
    """A table with a bucket index gets another number of buckets; see
    `services.base.ScheduledService`. Until a plan is executed the table takes no writes."""

    type: ClassVar[ServiceType] = ServiceType.RESIZE
    action: ClassVar[Action] = Action.REPLACE_COMMIT

    @checked_call
    def __call__(
        self,
        buckets: int,
        options: Mapping[str, str] | None = None,
        *,
        plan: str = "",
        max_memory: int = DEFAULT_SERVICE_MEMORY,
    ) -> Self:
        """The service with so many buckets. `plan`: digest of a dry run, of which exactly the plan
        is done. Raises InvalidOptionError for options that name another number."""
        given = (options or {}).get(BUCKETS, "").strip()
        if given and whole(given) != buckets:
            raise InvalidOptionError(
                f"option {BUCKETS}={given} contradicts the {counted(buckets, 'bucket')} that are asked for: leave the option out"
            )
        return self.with_request(
            ServiceRequest({**(options or {}), BUCKETS: str(buckets)}, plan=plan, max_memory=max_memory)
        )

    def plan(self) -> ServicePlan | None:
        """See `Service`: also where just that plan waits."""
        return preview(self.ctx, self._choice(self.ctx, dry=True))

    def choice(self, ctx: TableContext, *, force: bool) -> Choose:
        """All groups, unless just that plan waits. There is no trigger: it is asked for, or not."""
        del force
        return self._choice(ctx, dry=False)

    def choices_again(self, ctx: TableContext) -> list[Choose]:
        """See `Planned`."""
        return [self._choice(ctx, dry=True)]

    def approved(self, data: bytes) -> Choose:
        """See `approved_choice`."""
        return approved_choice(self.ctx, data)

    def waiting(self, timeline: Timeline) -> list[str]:
        """Published plans: one at most."""
        return pending_instants(self.ctx, timeline)

    def carry_out(self, instant: str, engine: Engine) -> ServiceResult:
        """The number of buckets is the plan's, whatever is asked."""
        options = {key: value for key, value in self.request.options.items() if key != BUCKETS}
        return run_resize(self.ctx, instant, engine, options, max_memory=self.request.max_memory)

    def run(self, *, engine: Engine | None = None, progress: ProgressFunction | None = None) -> list[ServiceResult]:
        """See `Service`. A resize that waits is executed first, and is all if it is the same."""
        check_engine(engine, progress)
        work = partial(self.execute, engine=engine, progress=progress)
        done = [work(instant) for instant in self.pending()]
        index = self.ctx.config.index
        if done and index is not None and index.buckets == wanted_buckets(self.request.options):
            return done
        planned = self.schedule()
        # What was decided and not published appears only when somebody plans: then it waits now.
        instants = self.pending() if planned is None else [planned.instant]
        return [*done, *map(work, instants)]

    def _choice(self, ctx: TableContext, *, dry: bool) -> Choose:
        return resize_choice(ctx, wanted_buckets(self.request.options), dry=dry)
