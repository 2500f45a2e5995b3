"""What a compaction or log compaction plans: the groups that are due, by trigger and strategy.

A plan takes no group that another plan holds, and of its logs only those that a reader sees:
whoever is still writing one has a snapshot older than the plan, and will fail on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hudi_table.errors import InvalidRequestError, WriteConflictError
from hudi_table.model.counts import counted
from hudi_table.model.options.known import check_options, whole_option
from hudi_table.model.service.services import DETAILS_MAX, ServicePlan, ServiceType
from hudi_table.model.table.config import TableType
from hudi_table.model.timeline.instants import Action
from hudi_table.services.compaction.debt import free_candidates
from hudi_table.services.compaction.strategy import Candidate, strategy_of
from hudi_table.services.compaction.trigger import Trigger
from hudi_table.services.planning import Choose, Draft
from hudi_table.table.commit.conflicts import group_conflict_keys
from hudi_table.table.timeline.active import commit_metadata
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.instants import local_now
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.compaction_plans import PlannedSlice, parse_plan, plan_body
from hudi_table.table.view.file_system_view import FileSystemView
from hudi_table.write.checks.request import refuse_unsupported
from hudi_table.write.checks.table_state import check_history, check_timeline

LOG_BLOCKS = "hoodie.log.compaction.blocks.threshold"
_LOG_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


@dataclass(frozen=True, slots=True)
class _Service:
    """What is planned: `due` says why it is, `chosen` which slices it takes, both of a snapshot."""

    type: ServiceType
    action: Action
    due: Callable[[Timeline], str | None]
    chosen: Callable[[FileSystemView], list[Candidate]]
    executor: str | None = None


def compaction_choice(ctx: TableContext, options: Mapping[str, str], *, force: bool) -> Choose:
    """What a compaction takes, of any snapshot: nothing unless it is due by the options' trigger,
    or in any case with `force`.

    Raises InvalidRequestError for a copy-on-write table, InvalidOptionError and
    UnsupportedTableError.
    """
    check_options(options)
    trigger, strategy = Trigger.parse(options), strategy_of(options, local_now(ctx).date())

    def due(timeline: Timeline) -> str | None:
        return "asked for" if force else trigger.due(timeline, local_now(ctx))

    def chosen(view: FileSystemView) -> list[Candidate]:
        return strategy(free_candidates(view, options))

    return _choice(ctx, _Service(ServiceType.COMPACTION, Action.COMPACTION, due, chosen))


def log_compaction_choice(ctx: TableContext, options: Mapping[str, str], *, force: bool) -> Choose:
    """What a log compaction takes, of any snapshot: the slices with at least
    `hoodie.log.compaction.blocks.threshold` logs (`force`: two). Raises as `compaction_choice`."""
    check_options(options)
    least = 2 if force else whole_option(options, LOG_BLOCKS, least=2)

    def chosen(view: FileSystemView) -> list[Candidate]:
        return [candidate for candidate in free_candidates(view, options) if len(candidate.slice.logs) >= least]

    def due(_: Timeline) -> str:
        return f"slices with at least {counted(least, 'log')}"

    return _choice(ctx, _Service(ServiceType.LOG_COMPACTION, Action.LOG_COMPACTION, due, chosen, _LOG_EXECUTOR))


def deletes_choice(ctx: TableContext, options: Mapping[str, str]) -> Choose:
    """The slices whose logs hold deletes, of any snapshot. Raises as `compaction_choice`."""
    check_options(options)

    def chosen(view: FileSystemView) -> list[Candidate]:
        found = free_candidates(view, options)
        commits = view.timeline.commits if found else ()
        stats = (stat for each in commits for stat in commit_metadata(ctx, each).stats)
        deleting = {stat.path for stat in stats if stat.num_deletes}
        return [each for each in found if any(log.path in deleting for log in each.slice.logs)]

    def due(_: Timeline) -> str:
        return "deletes in logs"

    return _choice(ctx, _Service(ServiceType.COMPACTION, Action.COMPACTION, due, chosen))


def approved_choice(ctx: TableContext, service: ServiceType, data: bytes) -> Choose:
    """Exactly the plan of these bytes, if every slice of it is still as it was. Raises
    WriteConflictError that names one that is not."""

    def choose(view: FileSystemView) -> Draft:
        planned = parse_plan(data)
        free = {(c.slice.partition, c.slice.file_id): c for c in free_candidates(view, {})}
        chosen = []
        for item in planned:
            candidate = free.get((item.partition, item.file_id))
            if candidate is None or PlannedSlice.of(candidate.slice).files != item.files:
                raise WriteConflictError(
                    f"file group {item.file_id} of partition {item.partition!r} has changed since the plan was made; make "
                    "a new plan and approve that",
                    base_path=ctx.base_path,
                )
            chosen.append(candidate)
        return Draft(
            data, group_conflict_keys((i.partition, i.file_id) for i in planned), _said(service, "approved", chosen)
        )

    return choose


def _choice(ctx: TableContext, service: _Service) -> Choose:
    refuse_unsupported(ctx.config)
    if ctx.config.type is not TableType.MERGE_ON_READ:
        raise InvalidRequestError(
            f"table {ctx.config.name!r} is copy-on-write: it has no logs to compact", base_path=ctx.base_path
        )

    def choose(view: FileSystemView) -> Draft | None:
        check_timeline(ctx, view.timeline)
        why = service.due(view.timeline)
        if why is None:
            return None
        check_history(ctx, view.timeline)
        chosen = service.chosen(view)
        if not chosen:
            return None
        slices = [PlannedSlice.of(candidate.slice, candidate.metrics()) for candidate in chosen]
        conflict_keys = group_conflict_keys((item.partition, item.file_id) for item in slices)
        return Draft(plan_body(slices, service.executor), conflict_keys, _said(service.type, why, chosen))

    return choose


def _said(service: ServiceType, why: str, chosen: list[Candidate]) -> ServicePlan:
    return ServicePlan(
        service,
        why,
        file_groups=len(chosen),
        files_before=sum((c.slice.base is not None) + len(c.slice.logs) for c in chosen),
        files_after=len(chosen),
        log_files=sum(len(c.slice.logs) for c in chosen),
        bytes_read=sum(c.read_bytes for c in chosen),
        bytes_written=sum(c.write_bytes for c in chosen),
        details=tuple(_line(c) for c in chosen[:DETAILS_MAX]),
    )


def _line(candidate: Candidate) -> str:
    found = candidate.slice
    return f"{found.partition or '.'} {found.file_id}: {counted(len(found.logs), 'log')}, {candidate.log_bytes:,} bytes"
