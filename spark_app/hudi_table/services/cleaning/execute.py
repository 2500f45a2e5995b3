"""Executing a published clean, ours or Hudi's: its files deleted, the clean recorded.

Facts (Hudi 0.15.0): `T.clean.inflight` repeats the plan; a file that is gone already counts as
deleted here, as one that could not be deleted there. Anybody may execute a plan, several at once,
and again after a crash: what it names stays outdated.

Beyond Hudi: a file that the table needs again, because commits were rolled back since the plan,
stays and is recorded as failed. The metadata file of an emptied partition is deleted first and put
back if a writer was at work: a writer that claimed before looked for the file before, and one that
claims later sees that it is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from hudi_table.errors import (
    AccessDeniedError,
    InvalidRequestError,
    ObjectExistsError,
    ObjectNotFoundError,
    UnavailableError,
)
from hudi_table.metadata.delta.clean import record_clean
from hudi_table.metadata.lifecycle import resolve_metadata_partitions
from hudi_table.model.counts import counted
from hudi_table.model.names import PARTITION_METADATA, join
from hudi_table.model.service.services import ServiceResult, ServiceType
from hudi_table.model.timeline.instants import Action, Instant, State, comparable_time
from hudi_table.read.output.human import number, size
from hudi_table.services.cleaning.plan import files_in, rule_of
from hudi_table.services.cleaning.stored import StoredGroup, StoredSlice, stored_groups
from hudi_table.table.commit import leftovers
from hudi_table.table.engine.local_engine import LocalEngine
from hudi_table.table.engine.operation_log import logged
from hudi_table.table.store import retry
from hudi_table.table.store.ports import Engine, ObjectInfo
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import body, load_timeline
from hudi_table.table.timeline.archived import archived_completions
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.clean_plans import CleanPlan, read_plan, read_record, record_body
from hudi_table.table.view.file_system_view import replaced_at
from hudi_table.write.attempt import partition_metadata
from hudi_table.write.checks.request import refuse_unsupported

_LOG = logging.getLogger("hudi_table.cleaning")

THREADS = 16
"""Deletes at once, where the engine is not this process's own: they wait for the store, not for
processors."""
_UNDOING = frozenset({Action.ROLLBACK, Action.RESTORE})
_File = tuple[str, str]
"""(partition, file name)."""


def pending_instants(timeline: Timeline) -> list[str]:
    """The instants of cleans that have not completed, oldest first."""
    return [found.time for found in timeline.pending if found.action is Action.CLEAN]


@relists
@logged("cleaning")
def run_clean(ctx: TableContext, instant: str, engine: Engine) -> ServiceResult:
    """Execute the plan of `instant`, or find it executed. Running it again, or by two at once, is
    safe.

    Raises InvalidRequestError if there is no such plan, CorruptTableError, UnsupportedTableError,
    and what the storage raises other than for single files: those are recorded as failed, and the
    next clean tries them again.
    """
    refuse_unsupported(ctx.config)
    began = ctx.clock.boot_seconds()
    timeline = load_timeline(ctx)
    clean = Instant(instant, Action.CLEAN, State.REQUESTED)
    if timeline.ended(clean) is not None:
        return _result(ctx, instant, 0, replayed=True)
    if clean.file_name not in timeline.files:
        if chain.find_decision(ctx, instant, chain.read_tail(ctx).sequence) is not None:
            return ServiceResult(ServiceType.CLEANING, instant, "executed and archived before", {}, replayed=True)
        raise InvalidRequestError(f"the timeline has no pending clean {instant}", base_path=ctx.base_path)
    plan = read_plan(ctx, clean)
    resolve_metadata_partitions(ctx)
    retry.put(ctx.storage, ctx.layout.timeline_path(clean.with_state(State.INFLIGHT).file_name), body(ctx, clean))
    files = files_in(ctx, plan.files)
    kept = _needed(ctx, timeline, instant, plan, files)
    wanted = [(p, name) for p, names in sorted(plan.files.items()) for name in names if (p, name) not in kept]
    _LOG.debug("%s: %d files to delete, %d kept for others", instant, len(wanted), len(kept))
    workers = engine if isinstance(engine, LocalEngine) else LocalEngine(THREADS)
    gone = workers.map(partial(_delete, ctx), wanted)
    failed = {*kept, *(file for file, done in zip(wanted, gone, strict=True) if not done)}
    deleted = [file for file in wanted if file not in failed]
    full = {p for p, _ in failed}
    dropped = [p for p in plan.partitions if p not in full and _drop_partition(ctx, p)]
    record_clean(ctx, clean, _per_partition(deleted), dropped)
    millis = int((ctx.clock.boot_seconds() - began) * 1000)
    done = replace(plan, partitions=tuple(dropped))
    data = record_body(done, instant, millis, _per_partition(deleted), _per_partition(failed))
    try:
        path = ctx.layout.timeline_path(ctx.layout.completed(clean).file_name)
        retry.until_confirmed(lambda: ctx.storage.put_if_absent(path, data))
    except ObjectExistsError:
        return _result(ctx, instant, 0, replayed=True)
    leftovers.sweep(ctx)
    sizes = {info.path: info.size for info in files}
    return _result(ctx, instant, sum(sizes.get(join(*file), 0) for file in deleted))


def _delete(ctx: TableContext, file: _File) -> bool:
    """Whether the file is gone. A store that fails for all of them fails again when the clean is
    recorded."""
    try:
        retry.delete(ctx.storage, join(*file))
    except (AccessDeniedError, UnavailableError):
        return False
    return True


def _needed(
    ctx: TableContext, timeline: Timeline, instant: str, plan: CleanPlan, files: list[ObjectInfo]
) -> set[_File]:
    """Files of the plan that savepoints, pending plans, or after a later rollback readers, need."""
    undone = any(i.action in _UNDOING and comparable_time(i.time) > comparable_time(instant) for i in timeline.instants)
    rule = rule_of(ctx, timeline, "", 1)
    needed: set[_File] = set()
    for group in stored_groups(files, timeline, replaced_at(ctx, timeline), partial(archived_completions, ctx)):
        for found in group.slices:
            if rule.needed(group, found) or (undone and _is_newest(group, found)):
                needed |= {(group.partition, name) for name in found.names}
    return needed & {(p, name) for p, names in plan.files.items() for name in names}


def _is_newest(group: StoredGroup, item: StoredSlice) -> bool:
    return not group.replaced and item == group.slices[0]


def _drop_partition(ctx: TableContext, partition: str) -> bool:
    """Delete the metadata file of an emptied partition, unless something is there or may come;
    whether it is gone."""
    path = join(partition, PARTITION_METADATA)
    if not _in_use(ctx, partition):
        retry.delete(ctx.storage, path)
        if not _in_use(ctx, partition):
            return True
    try:
        ctx.storage.head(path)
    except ObjectNotFoundError:
        retry.put(ctx.storage, path, partition_metadata(load_timeline(ctx).commits[0].time, partition))
    return False


def _in_use(ctx: TableContext, partition: str) -> bool:
    if any(i.is_write for i in load_timeline(ctx).pending):
        return True
    return any(not info.path.endswith(PARTITION_METADATA) for info in ctx.storage.list_dir(partition)[1])


def _per_partition(files: Iterable[_File]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for partition, name in sorted(files):
        found.setdefault(partition, []).append(name)
    return {partition: tuple(names) for partition, names in found.items()}


def _result(ctx: TableContext, instant: str, freed: int, *, replayed: bool = False) -> ServiceResult:
    """The figures of a recorded clean; bytes are known to who deleted them."""
    clean = Instant(instant, Action.CLEAN, State.REQUESTED)
    record = read_record(ctx, load_timeline(ctx).ended(clean) or ctx.layout.completed(clean))
    deleted, failed = (sum(map(len, files.values())) for files in (record.deleted, record.failed))
    message = (
        f"{counted(deleted, 'file')} deleted, {size(freed)} freed" if freed else f"{counted(deleted, 'file')} deleted"
    )
    if failed:
        first = next(join(p, names[0]) for p, names in record.failed.items() if names)
        message += f"; {number(failed)} could not be or are needed again, such as {first}: clean again"
    figures = {"filesDeleted": float(deleted), "filesFailed": float(failed), "bytesFreed": float(freed)}
    return ServiceResult(ServiceType.CLEANING, instant, message, figures, replayed)
