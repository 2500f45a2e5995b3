"""Plans of compaction and log compaction: what a published one holds, and which file groups that
binds.

Facts (table version 6, measured on Hudi 0.15.0): the plan is the Avro body of
`T.compaction.requested`, which names files without their folder; from it on, new logs of its groups
carry T as their base instant. A log compaction's plan, `T.logcompaction.requested`, has the same
schema and does not change where logs go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hudi_table.errors import CorruptTableError
from hudi_table.model.names import join
from hudi_table.model.timeline.instants import PLANNED_ACTIONS, Action, Instant, State
from hudi_table.table.timeline.active import body
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.layout import decode_records, encode_record
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSlice

_VERSION = 2


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """One operation of a plan: a slice, its base file's name (None without one) and the names of
    its logs, in their order."""

    partition: str
    file_id: str
    base_instant: str
    base: str | None
    logs: tuple[str, ...]
    metrics: Mapping[str, float]

    @classmethod
    def of(cls, item: FileSlice, metrics: Mapping[str, float] | None = None) -> PlannedSlice:
        """A slice as a plan names it."""
        return cls(
            partition=item.partition,
            file_id=item.file_id,
            base_instant=item.instant,
            base=item.base.name if item.base else None,
            logs=tuple(log.path.rpartition("/")[2] for log in item.logs),
            metrics=metrics or {},
        )

    @property
    def base_path(self) -> str | None:
        """Path of the base file, relative to the base path."""
        return None if self.base is None else join(self.partition, self.base)

    @property
    def files(self) -> tuple[str | None, ...]:
        """Names of the base file and the logs: by them a slice is known to be the planned one."""
        return (self.base, *self.logs)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the base file and the logs, relative to the base path."""
        return self.log_paths if self.base_path is None else (self.base_path, *self.log_paths)

    @property
    def log_paths(self) -> tuple[str, ...]:
        """Paths of the logs, relative to the base path."""
        return tuple(join(self.partition, name) for name in self.logs)


def plan_body(slices: Iterable[PlannedSlice], strategy: str | None = None) -> bytes:
    """The requested file of a plan; `strategy` names the class that executes it, if it is not a
    plain compaction."""
    operations = [
        {
            "baseInstantTime": item.base_instant,
            "deltaFilePaths": list(item.logs),
            "dataFilePath": item.base,
            "fileId": item.file_id,
            "partitionPath": item.partition,
            "metrics": dict(item.metrics),
            "bootstrapFilePath": None,
        }
        for item in slices
    ]
    how = None if strategy is None else {"compactorClassName": strategy, "strategyParams": {}, "version": 1}
    return encode_record(
        "HoodieCompactionPlan",
        {
            "operations": operations,
            "extraMetadata": {},
            "version": _VERSION,
            "strategy": how,
            "preserveHoodieMetadata": strategy is not None,
        },
    )


def planned_slices(ctx: TableContext, instant: Instant) -> list[PlannedSlice]:
    """The operations of a published plan. Raises CorruptTableError."""
    requested = instant.with_state(State.REQUESTED)
    return parse_plan(body(ctx, requested), requested.file_name)


def parse_plan(data: bytes, name: str = "a compaction plan") -> list[PlannedSlice]:
    """The operations in the bytes of a plan. Raises CorruptTableError that says `name`."""
    try:
        (plan,) = decode_records(data)
        return [_slice(operation) for operation in plan["operations"] or ()]
    except (ValueError, KeyError) as error:
        raise CorruptTableError(f"{name} is no compaction plan: {error}", path=name) from error


def pending_compactions(ctx: TableContext, timeline: Timeline) -> dict[tuple[str, str], str]:
    """(partition, file id) of every group in a pending compaction plan, and the plan's instant."""
    return groups_of({i: slices for i, slices in pending_plans(ctx, timeline).items() if i.action is Action.COMPACTION})


def pending_plans(ctx: TableContext, timeline: Timeline) -> dict[Instant, list[PlannedSlice]]:
    """Every pending compaction and log compaction, oldest first, with its operations. Raises
    CorruptTableError."""
    return {i: planned_slices(ctx, i) for i in timeline.pending if i.action in PLANNED_ACTIONS}


def groups_of(plans: Mapping[Instant, Iterable[PlannedSlice]]) -> dict[tuple[str, str], str]:
    """(partition, file id) of every group in plans, and the plan's instant."""
    return {(item.partition, item.file_id): instant.time for instant, slices in plans.items() for item in slices}


def _slice(operation: Mapping[str, Any]) -> PlannedSlice:
    # A path with folders is taken too: earlier releases of Hudi wrote some.
    name = (operation["dataFilePath"] or "").rpartition("/")[2]
    return PlannedSlice(
        partition=operation["partitionPath"] or "",
        file_id=operation["fileId"],
        base_instant=operation["baseInstantTime"],
        base=name or None,
        logs=tuple(path.rpartition("/")[2] for path in operation["deltaFilePaths"] or ()),
        metrics=operation["metrics"] or {},
    )
