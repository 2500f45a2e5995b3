"""Scheduling a compaction: its plan as an entry of the decision chain, published as `T.compaction.requested`.

Nothing is claimed if nothing is due. A plan takes no group that another plan holds, and of its logs only those that a
reader sees: whoever is still writing one has a snapshot older than the plan, and will fail on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from hudi_table.errors import CommitStateUnknownError, HudiError, InvalidRequestError, WriteConflictError
from hudi_table.model.instants import Action
from hudi_table.model.names import bucket_of_file_id, instant_of_token
from hudi_table.model.options import WriteOptions
from hudi_table.model.table_config import TableType
from hudi_table.model.touches import bucket_touch, file_touch
from hudi_table.services.compaction.strategy import Candidate, candidates, strategy_of
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.table.compactions import PlannedSlice, plan_body, planned_groups
from hudi_table.table.context import TableContext
from hudi_table.table.instants import local_now
from hudi_table.table.log_scan import VisibleInstants
from hudi_table.table.timeline import Timeline, load_timeline
from hudi_table.table.transaction import Transaction, begin_plan
from hudi_table.table.view import FileSlice, FileSystemView
from hudi_table.write.guards import check_renames, check_timeline
from hudi_table.write.prepare import refuse_unsupported

ATTEMPTS_MAX = 10


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A published plan. `why` it was due; what executing it reads, and writes by Hudi's estimate, in bytes."""

    instant: str
    why: str
    file_groups: int
    log_files: int
    bytes_read: int
    bytes_written: int


def schedule_compaction(
    ctx: TableContext, options: Mapping[str, str] | None = None, *, force: bool = False
) -> CompactionPlan | None:
    """Publish a plan if one is due by the options' trigger, or in any case with `force`; None if there is nothing to do.

    Raises InvalidRequestError for a copy-on-write table, InvalidOptionError, UnsupportedTableError, WriteConflictError
    if writers kept moving the chosen groups, and what the storage raises.
    """
    settings = _Settings.parse(options or {})
    refuse_unsupported(ctx.config)
    if ctx.config.type is not TableType.MERGE_ON_READ:
        raise InvalidRequestError(
            f"table {ctx.config.name!r} is copy-on-write: it has no logs to compact", base_path=ctx.base_path
        )
    timeline = load_timeline(ctx)
    check_timeline(ctx, timeline)
    check_renames(ctx, timeline)
    for left in range(ATTEMPTS_MAX, 0, -1):
        why = "asked for" if force else settings.trigger.due(timeline, local_now(ctx))
        if why is None or not settings.choose(ctx, timeline):
            return None
        txn = begin_plan(ctx, Action.COMPACTION)
        try:
            chosen = settings.choose(ctx, txn.timeline)
            if not chosen:
                txn.withdraw()
                return None
            _publish(txn, chosen)
        except WriteConflictError:
            # A writer decided first: it may have added to the chosen groups.
            txn.withdraw()
            if left == 1:
                raise
            timeline = load_timeline(ctx)
        except CommitStateUnknownError:
            raise
        except HudiError:
            with contextlib.suppress(HudiError):
                txn.withdraw()
            raise
        else:
            return CompactionPlan(
                txn.time,
                why,
                len(chosen),
                sum(len(c.slice.logs) for c in chosen),
                sum(c.read_bytes for c in chosen),
                sum(c.write_bytes for c in chosen),
            )
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class _Settings:
    trigger: Trigger
    options: Mapping[str, str]
    file_size: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> _Settings:
        strategy_of(options)
        return cls(Trigger.parse(options), options, WriteOptions.parse(options).target_file_size)

    def choose(self, ctx: TableContext, timeline: Timeline) -> list[Candidate]:
        """The slices that the strategy takes, of those that no plan holds."""
        slices = FileSystemView(ctx, timeline).latest_slices()
        held = planned_groups(ctx, timeline) if slices else {}
        visible = VisibleInstants.of(timeline)
        free = [_with_visible_logs(item, visible) for item in slices if (item.partition, item.file_id) not in held]
        return strategy_of(self.options)(candidates(free, self.file_size))


def _with_visible_logs(item: FileSlice, visible: VisibleInstants) -> FileSlice:
    logs = tuple(log for log in item.logs if _counts(instant_of_token(log.name.token), visible))
    return FileSlice(item.partition, item.file_id, item.instant, item.base, logs)


def _counts(instant: str | None, visible: VisibleInstants) -> bool:
    return instant is None or instant in visible


def _publish(txn: Transaction, chosen: list[Candidate]) -> None:
    slices = [_planned(candidate) for candidate in chosen]
    touches = {f"instant:{txn.time}"}
    for item in slices:
        touches.add(file_touch(item.partition, item.file_id))
        bucket = bucket_of_file_id(item.file_id)
        if bucket is not None:
            touches.add(bucket_touch(item.partition, bucket))
    txn.plan(plan_body(slices), touches)


def _planned(candidate: Candidate) -> PlannedSlice:
    found = candidate.slice
    return PlannedSlice(
        partition=found.partition,
        file_id=found.file_id,
        base_instant=found.instant,
        base=found.base.name if found.base else None,
        logs=tuple(log.path.rpartition("/")[2] for log in found.logs),
        metrics=candidate.metrics(),
    )
