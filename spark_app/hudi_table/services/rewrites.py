"""What an opened table offers to rewrite its files: compaction, log compaction, clustering and resizing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_table.errors import InvalidRequestError
from hudi_table.model.progress import ProgressFunction
from hudi_table.model.service.services import ServicePlan, ServiceRequest, ServiceResult
from hudi_table.model.table.index_properties import BUCKETS
from hudi_table.model.timeline.instants import Action
from hudi_table.read.reader import TableReader
from hudi_table.services.asked import check_asked
from hudi_table.services.clustering.execute import pending_instants as pending_clusterings
from hudi_table.services.clustering.execute import run_clustering
from hudi_table.services.clustering.schedule import clustering_preview, schedule_clustering
from hudi_table.services.compaction.execute import CompactionResult, pending_instants, run_compaction
from hudi_table.services.compaction.schedule import schedule_compaction, schedule_log_compaction
from hudi_table.services.resizing.service import SERVICE as RESIZING
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.progress import reporting
from hudi_table.table.store.ports import Engine
from hudi_table.table.timeline.active import load_timeline
from hudi_table.table.timeline.relisting import looking
from hudi_table.write.operations import DEFAULT_MEMORY


class Rewrites(TableReader):
    """A table whose files can be rewritten without a change of a row; `api.HudiTable` is one."""

    def schedule_compaction(
        self, options: Mapping[str, str] | None = None, *, force: bool = False
    ) -> ServicePlan | None:
        """Publish the plan of a compaction if one is due by the options' trigger (`force`: in any case); None if there is
        nothing to do. Writers go on; whoever executes it, `run_compaction` here or Hudi, may do so at any time."""
        self._check_writable()
        check_asked(self.context, options)
        return schedule_compaction(self.context, options, force=force)

    def run_compaction(
        self,
        instant: str,
        *,
        options: Mapping[str, str] | None = None,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> CompactionResult:
        """Execute the plan of an instant, also one of Hudi's. Running it again, or by two at once, is safe."""
        self._check_writable()
        check_asked(self.context, options)
        engine = reporting(engine or LocalEngine(), "compaction", progress)
        return run_compaction(self.context, instant, engine, options, max_memory=max_memory)

    def compact_logs(
        self,
        options: Mapping[str, str] | None = None,
        *,
        force: bool = False,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> list[CompactionResult]:
        """Log compaction: slices with many logs get one log that stands for them, a fraction of what rewriting the base file
        costs. Executes what is pending, oldest first, and then a new plan where `hoodie.log.compaction.blocks.threshold`
        logs lie (`force`: two)."""
        self._check_writable()
        check_asked(self.context, options)
        action, engine = Action.LOG_COMPACTION, reporting(engine or LocalEngine(), "log compaction", progress)
        pending = pending_instants(self.context, load_timeline(self.context), action)
        planned = schedule_log_compaction(self.context, options, force=force)
        return [
            run_compaction(self.context, instant, engine, options, max_memory=max_memory, action=action)
            for instant in [*pending, *([planned.instant] if planned else [])]
        ]

    def compact(
        self, options: Mapping[str, str] | None = None, *, force: bool = False, **more: Any
    ) -> list[CompactionResult]:
        """Execute what is pending, oldest first, and then a new plan if one is due (`force`: in any case)."""
        check_asked(self.context, options)
        pending = pending_instants(self.context, load_timeline(self.context))
        done = [self.run_compaction(instant, options=options, **more) for instant in pending]
        planned = self.schedule_compaction(options, force=force)
        return [*done, *([self.run_compaction(planned.instant, options=options, **more)] if planned else [])]

    def schedule_clustering(
        self, options: Mapping[str, str] | None = None, *, force: bool = False
    ) -> ServicePlan | None:
        """Publish the plan of a clustering if `hoodie.clustering.async.max.commits` are there since the last one (`force`: in
        any case); None if there is nothing to do. Until it is executed, here or by Hudi, writes to its file groups are refused."""
        self._check_writable()
        check_asked(self.context, options)
        return schedule_clustering(self.context, options, force=force)

    def preview_clustering(
        self, options: Mapping[str, str] | None = None, *, force: bool = False
    ) -> ServicePlan | None:
        """What `schedule_clustering` would plan now; nothing is written."""
        self._check_writable()
        check_asked(self.context, options)
        return clustering_preview(self.context, options or {}, force=force)

    def pending_clusterings(self) -> list[str]:
        """Instants of the plans that wait for their execution, oldest first."""
        ctx = self.context
        return looking(ctx, lambda: pending_clusterings(ctx, load_timeline(ctx)))

    def run_clustering(
        self,
        instant: str,
        *,
        options: Mapping[str, str] | None = None,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
        progress: ProgressFunction | None = None,
    ) -> ServiceResult:
        """Execute the plan of an instant, also one of Hudi's. Running it again, or by two at once, is safe."""
        self._check_writable()
        check_asked(self.context, options)
        engine = reporting(engine or LocalEngine(), "clustering", progress)
        return run_clustering(self.context, instant, engine, options, max_memory=max_memory)

    def cluster(
        self, options: Mapping[str, str] | None = None, *, force: bool = False, **more: Any
    ) -> list[ServiceResult]:
        """Execute what is pending, oldest first, and then a new plan if one is due (`force`: in any case)."""
        check_asked(self.context, options)
        done = [self.run_clustering(instant, options=options, **more) for instant in self.pending_clusterings()]
        planned = self.schedule_clustering(options, force=force)
        return [*done, *([self.run_clustering(planned.instant, options=options, **more)] if planned else [])]

    def plan_resize(self, buckets: int) -> ServicePlan:
        """A dry run of `resize_buckets`: file groups and bytes, by partition. Its digest approves exactly that plan. Raises
        InvalidRequestError for a table without a bucket index, the number that it has already, and beside another pending plan."""
        self._check_writable()
        planned = RESIZING.preview(self.context, ServiceRequest({BUCKETS: str(buckets)}))
        if planned is None:
            raise self._resized(buckets)
        return planned

    def resize_buckets(
        self,
        buckets: int,
        *,
        plan: str = "",
        options: Mapping[str, str] | None = None,
        max_memory: int = DEFAULT_MEMORY,
        engine: Engine | None = None,
    ) -> ServiceResult:
        """Rewrite a table with a bucket index into so many buckets, by one commit; `plan`: the approved one of that digest. A
        resize that was planned and not executed is executed first, and is all if it is the same. Until it commits, writes are refused."""
        self._check_writable()
        check_asked(self.context, options)
        request = ServiceRequest({**(options or {}), BUCKETS: str(buckets)}, plan=plan, max_memory=max_memory)
        ctx, engine, done = self.context, engine or LocalEngine(), None
        for instant in RESIZING.pending(ctx):
            done = RESIZING.execute(ctx, instant, request, engine)
        if done is not None and ctx.config.index is not None and ctx.config.index.buckets == buckets:
            return done
        planned = RESIZING.schedule(ctx, request)
        # What was decided and not published appears only when somebody plans: then it waits now.
        instants = RESIZING.pending(ctx) if planned is None else [planned.instant]
        if not instants:
            raise self._resized(buckets)
        return RESIZING.execute(ctx, instants[0], request, engine)

    def _resized(self, buckets: int) -> InvalidRequestError:
        return InvalidRequestError(
            f"table {self.context.config.name!r} has {buckets} buckets already; give another number",
            base_path=self.context.base_path,
        )

    def pending_resize(self) -> str | None:
        """The instant of a resize that was planned and waits for its execution."""
        return next(iter(RESIZING.pending(self.context)), None)
