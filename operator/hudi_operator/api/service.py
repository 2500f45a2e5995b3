"""`TableService`: one piece of upkeep of one table, planned or run once, on a schedule or on need."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.schema import Rule, prop
from hudi_operator.api.table import COLUMN_LENGTH_MAX, NAME, QUANTITY


class ServiceType(StrEnum):
    """Which table service."""

    COMPACTION = "Compaction"
    LOG_COMPACTION = "LogCompaction"
    CLUSTERING = "Clustering"
    CLEANING = "Cleaning"
    ARCHIVING = "Archiving"
    SAVEPOINT = "Savepoint"
    RESTORE = "Restore"
    ROLLBACK = "Rollback"


class RunMode(StrEnum):
    """How far a run goes."""

    SCHEDULE_AND_EXECUTE = "ScheduleAndExecute"
    SCHEDULE = "Schedule"
    EXECUTE = "Execute"
    PLAN = "Plan"


class Layout(StrEnum):
    """Order of rows after clustering."""

    LINEAR = "Linear"
    Z_ORDER = "ZOrder"
    HILBERT = "Hilbert"


@dataclass(frozen=True, slots=True)
class TableRef:
    """A HudiTable of the same namespace."""

    name: str = prop("name of the HudiTable", pattern=NAME, max_length=253)


@dataclass(frozen=True, slots=True)
class Need:
    """Run when one of these holds."""

    small_file_ratio: str | None = prop(
        'share of base files below the limit, such as "> 0.5"', None, pattern=r"^> ?[01](\.[0-9]+)?$", max_length=16
    )
    log_bytes: str | None = prop(
        'bytes in log files, such as "> 2Gi"', None, pattern=r"^> ?[1-9][0-9]*(Ki|Mi|Gi|Ti)?$", max_length=16
    )


@dataclass(frozen=True, slots=True)
class ClusteringSpec:
    """What clustering writes."""

    sort_columns: tuple[str, ...] = prop("columns to sort by", (), max_items=8, item_max_length=COLUMN_LENGTH_MAX)
    layout: Layout = prop("order of rows", Layout.LINEAR)
    small_file_limit: str = prop("files below this size are rewritten", "200Mi", pattern=QUANTITY, max_length=16)
    target_file_size: str = prop("size of the files written", "300Mi", pattern=QUANTITY, max_length=16)


@dataclass(frozen=True, slots=True)
class InstantSpec:
    """The instant that a service is about."""

    instant: str = prop("an instant time, 17 digits", pattern="^[0-9]{17}$", max_length=17)


def _belongs(field: str, kind: ServiceType) -> Rule:
    return Rule(
        f"!has(self.{field}) || self.type == '{kind.value}'",
        f"{field} belongs to type {kind.value}",
        field,
        lambda s: getattr(s, field) is None or s.type is kind,
    )


@dataclass(frozen=True, slots=True)
class TableServiceSpec:
    """One piece of upkeep of a HudiTable."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("self.tableRef == oldSelf.tableRef", "tableRef cannot change: make a new TableService", "tableRef", None),
        Rule("self.type == oldSelf.type", "type cannot change: make a new TableService", "type", None),
        Rule(
            "!(has(self.schedule) && has(self.when))",
            "schedule and when exclude each other",
            "when",
            lambda s: s.schedule is None or s.when is None,
        ),
        Rule(
            "self.type != 'Restore' || has(self.restore)",
            "type Restore needs restore.instant",
            "restore",
            lambda s: s.type is not ServiceType.RESTORE or s.restore is not None,
        ),
        _belongs("clustering", ServiceType.CLUSTERING),
        _belongs("restore", ServiceType.RESTORE),
    )

    table_ref: TableRef = prop("the table")
    type: ServiceType = prop("which service")
    mode: RunMode = prop("how far a run goes; Plan changes nothing", RunMode.SCHEDULE_AND_EXECUTE)
    schedule: str | None = prop(
        "five cron fields, in UTC; absent: one run", None, pattern=r"^(\S+ ){4}\S+$", max_length=100
    )
    when: Need | None = prop("run on need", None)
    clustering: ClusteringSpec | None = prop("what clustering writes", None)
    restore: InstantSpec | None = prop("where a restore goes back to", None)
    suspend: bool = prop("start no new run", False)
