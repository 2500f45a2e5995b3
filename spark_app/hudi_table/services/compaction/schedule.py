"""Scheduling a compaction or log compaction: its plan as an entry of the decision chain, published as its requested file.

Nothing is claimed if nothing is due. A plan takes no group that another plan holds, and of its logs only those that a
reader sees: whoever is still writing one has a snapshot older than the plan, and will fail on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudi_table.errors import CommitStateUnknownError, HudiError, InvalidRequestError, WriteConflictError
from hudi_table.model.instants import Action
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.table_config import TableType
from hudi_table.model.touches import bucket_touch, file_touch
from hudi_table.services.compaction.debt import free_candidates
from hudi_table.services.compaction.strategy import Candidate, strategy_of, whole_number
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.table.compactions import PlannedSlice, plan_body
from hudi_table.table.context import TableContext
from hudi_table.table.instants import local_now
from hudi_table.table.timeline import Timeline, load_timeline
from hudi_table.table.transaction import Transaction, begin_plan
from hudi_table.table.view import FileSystemView
from hudi_table.write.guards import check_renames, check_timeline
from hudi_table.write.prepare import refuse_unsupported

ATTEMPTS_MAX = 10
LOG_BLOCKS = "hoodie.log.compaction.blocks.threshold"
_LOG_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A published plan. `why` it was due; what executing it reads, and writes by Hudi's estimate, in bytes."""

    instant: str
    why: str
    file_groups: int
    log_files: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True, slots=True)
class _Service:
    """What is planned: `due` says why it is, `chosen` which slices it takes, both of a timeline."""

    action: Action
    due: Callable[[Timeline], str | None]
    chosen: Callable[[Timeline], list[Candidate]]
    executor: str | None = None


def schedule_compaction(
    ctx: TableContext, options: Mapping[str, str] | None = None, *, force: bool = False
) -> CompactionPlan | None:
    """Publish a plan if one is due by the options' trigger, or in any case with `force`; None if there is nothing to do.

    Raises InvalidRequestError for a copy-on-write table, InvalidOptionError, UnsupportedTableError, WriteConflictError
    if writers kept moving the chosen groups, and what the storage raises.
    """
    given = options or {}
    trigger, strategy = Trigger.parse(given), strategy_of(given)

    def due(timeline: Timeline) -> str | None:
        return "asked for" if force else trigger.due(timeline, local_now(ctx))

    def chosen(timeline: Timeline) -> list[Candidate]:
        return strategy(free_candidates(FileSystemView(ctx, timeline), given))

    return _schedule(ctx, _Service(Action.COMPACTION, due, chosen))


def schedule_log_compaction(
    ctx: TableContext, options: Mapping[str, str] | None = None, *, force: bool = False
) -> CompactionPlan | None:
    """Publish a plan for the slices with at least `hoodie.log.compaction.blocks.threshold` logs (`force`: two); else as
    `schedule_compaction`."""
    given = options or {}
    least = 2 if force else whole_number(given, LOG_BLOCKS, 5, least=2)

    def chosen(timeline: Timeline) -> list[Candidate]:
        found = free_candidates(FileSystemView(ctx, timeline), given)
        return [candidate for candidate in found if len(candidate.slice.logs) >= least]

    return _schedule(
        ctx, _Service(Action.LOG_COMPACTION, lambda _: f"slices with at least {least} logs", chosen, _LOG_EXECUTOR)
    )


def _schedule(ctx: TableContext, service: _Service) -> CompactionPlan | None:
    refuse_unsupported(ctx.config)
    if ctx.config.type is not TableType.MERGE_ON_READ:
        raise InvalidRequestError(
            f"table {ctx.config.name!r} is copy-on-write: it has no logs to compact", base_path=ctx.base_path
        )
    timeline = load_timeline(ctx)
    check_timeline(ctx, timeline)
    check_renames(ctx, timeline)
    for left in range(ATTEMPTS_MAX, 0, -1):
        why = service.due(timeline)
        if why is None or not service.chosen(timeline):
            return None
        try:
            return _attempt(ctx, service, why)
        except WriteConflictError:
            # A writer decided first: it may have added to the chosen groups.
            if left == 1:
                raise
            timeline = load_timeline(ctx)
    raise AssertionError("unreachable")


def _attempt(ctx: TableContext, service: _Service, why: str) -> CompactionPlan | None:
    txn = begin_plan(ctx, service.action)
    try:
        chosen = service.chosen(txn.timeline)
        if not chosen:
            txn.withdraw()
            return None
        _publish(txn, chosen, service.executor)
    except CommitStateUnknownError:
        raise
    except HudiError:
        with contextlib.suppress(HudiError):
            txn.withdraw()
        raise
    return CompactionPlan(
        txn.time,
        why,
        len(chosen),
        sum(len(c.slice.logs) for c in chosen),
        sum(c.read_bytes for c in chosen),
        sum(c.write_bytes for c in chosen),
    )


def _publish(txn: Transaction, chosen: list[Candidate], executor: str | None) -> None:
    slices = [_planned(candidate) for candidate in chosen]
    touches = {f"instant:{txn.time}"}
    for item in slices:
        touches.add(file_touch(item.partition, item.file_id))
        bucket = bucket_of_file_id(item.file_id)
        if bucket is not None:
            touches.add(bucket_touch(item.partition, bucket))
    txn.plan(plan_body(slices, executor), touches)


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
