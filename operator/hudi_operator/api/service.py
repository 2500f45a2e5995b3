"""`TableService`: one piece of upkeep of one table, planned or run once, on a schedule or on
need."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields import patterns
from hudi_operator.api.fields.patterns import DURATION, OBJECT_NAME
from hudi_operator.api.fields.sections import (
    ArchivingSpec,
    CleaningSpec,
    ClusteringSpec,
    IndexingSpec,
    InstantSpec,
    Need,
    PartitionTTLSpec,
    RepairSpec,
    SavepointSpec,
    UpgradeSpec,
)
from hudi_operator.api.schema import Rule, camel, prop
from hudi_table.model.service.services import ServiceType

HISTORY_MAX = 10
PLANNED = (ServiceType.COMPACTION, ServiceType.LOG_COMPACTION, ServiceType.CLUSTERING, ServiceType.CLEANING)
"""Services whose plan stands on the timeline, so that one process may make it and another carry it
out."""
APPROVED = (ServiceType.RESIZE, ServiceType.UPGRADE)
"""Services that change the whole table, and only by a plan that was approved."""
ONCE = (ServiceType.RESTORE, ServiceType.ROLLBACK, *APPROVED)
"""Services that answer to one event: repeating them makes no sense."""
_COMPACTIONS = (ServiceType.COMPACTION, ServiceType.LOG_COMPACTION)


class RunMode(StrEnum):
    """How far a run goes."""

    SCHEDULE_AND_EXECUTE = "ScheduleAndExecute"
    SCHEDULE = "Schedule"
    EXECUTE = "Execute"
    PLAN = "Plan"


class ConcurrencyPolicy(StrEnum):
    """What a scheduled run does that finds the one before it at work. Several at once have no
    meaning on one table."""

    FORBID = "Forbid"
    REPLACE = "Replace"


@dataclass(frozen=True, slots=True)
class TableRef:
    """A HudiTable of the same namespace."""

    name: str = prop("name of the HudiTable", pattern=OBJECT_NAME, max_length=253)


def _one_of(kinds: tuple[ServiceType, ...]) -> str:
    return "[" + ", ".join(f"'{kind.value}'" for kind in kinds) + "]"


def _names(kinds: tuple[ServiceType, ...]) -> str:
    return ", ".join(kind.value for kind in kinds)


def _belongs(field: str, kind: ServiceType) -> Rule:
    name = camel(field)
    return Rule(
        f"!has(self.{name}) || self.type == '{kind.value}'",
        f"{name} belongs to type {kind.value}",
        name,
        lambda s: getattr(s, field) is None or s.type is kind,
    )


def _needs(kind: ServiceType, field: str, what: str) -> Rule:
    name = camel(field)
    return Rule(
        f"self.type != '{kind.value}' || has(self.{name})",
        f"type {kind.value} needs {name}.{what}",
        name,
        lambda s: s.type is not kind or getattr(s, field) is not None,
    )


def _measures(field: str, kinds: tuple[ServiceType, ...]) -> Rule:
    name = camel(field)
    return Rule(
        f"!has(self.when) || !has(self.when.{name}) || self.type in {_one_of(kinds)}",
        f"when.{name} is about {_names(kinds)}",
        "when",
        lambda s: s.when is None or getattr(s.when, field) is None or s.type in kinds,
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
            f"!(self.type in {_one_of(ONCE)}) || (!has(self.schedule) && !has(self.when))",
            f"types {_names(ONCE)} run once: they take neither schedule nor when",
            "type",
            lambda s: s.type not in ONCE or (s.schedule is None and s.when is None),
        ),
        Rule(
            "self.type != 'Indexing' || !has(self.when)",
            "type Indexing builds what is not there: it takes no when; give a schedule, or neither for one run",
            "when",
            lambda s: s.type is not ServiceType.INDEXING or s.when is None,
        ),
        Rule(
            f"self.mode in ['ScheduleAndExecute', 'Plan'] || self.type in {_one_of(PLANNED)}",
            f"modes Schedule and Execute are for services with a plan on the timeline: {_names(PLANNED)}",
            "mode",
            lambda s: s.mode in (RunMode.SCHEDULE_AND_EXECUTE, RunMode.PLAN) or s.type in PLANNED,
        ),
        Rule(
            f"!(self.type in {_one_of(APPROVED)}) || self.mode == 'Plan'",
            f"types {_names(APPROVED)} change the whole table: use mode Plan, and approve its plan",
            "mode",
            lambda s: s.type not in APPROVED or s.mode is RunMode.PLAN,
        ),
        Rule(
            "self.type != 'Upgrade' || !has(self.activeDeadline)",
            "type Upgrade takes no activeDeadline: one that is stopped half-way leaves the table closed to writes",
            "activeDeadline",
            lambda s: s.type is not ServiceType.UPGRADE or s.active_deadline is None,
        ),
        Rule(
            "!has(self.approve) || self.mode == 'Plan'",
            "approve belongs to mode Plan",
            "approve",
            lambda s: s.approve is None or s.mode is RunMode.PLAN,
        ),
        patterns.of_schedule("time_zone"),
        patterns.of_schedule("starting_deadline_seconds"),
        Rule(
            "self.concurrencyPolicy != 'Replace' || has(self.schedule)",
            "concurrencyPolicy Replace belongs to a schedule",
            "concurrencyPolicy",
            lambda s: s.concurrency_policy is not ConcurrencyPolicy.REPLACE or s.schedule is not None,
        ),
        Rule(
            "!has(self.savepoint) || !has(self.savepoint.instant) || (!has(self.schedule) && !has(self.when))",
            "savepoint.instant names one write: with it take neither schedule nor when",
            "savepoint",
            lambda s: s.savepoint is None or s.savepoint.instant is None or (s.schedule is None and s.when is None),
        ),
        _measures("small_file_ratio", (ServiceType.CLUSTERING,)),
        _measures("log_bytes_ratio", _COMPACTIONS),
        _measures("log_bytes", _COMPACTIONS),
        _measures("bytes_to_clean", (ServiceType.CLEANING,)),
        _needs(ServiceType.RESTORE, "restore", "instant"),
        _needs(ServiceType.ROLLBACK, "rollback", "instant"),
        _needs(ServiceType.PARTITION_TTL, "partition_ttl", "days"),
        _needs(ServiceType.UPGRADE, "upgrade", "to"),
        _belongs("clustering", ServiceType.CLUSTERING),
        _belongs("cleaning", ServiceType.CLEANING),
        _belongs("archiving", ServiceType.ARCHIVING),
        _belongs("savepoint", ServiceType.SAVEPOINT),
        _belongs("restore", ServiceType.RESTORE),
        _belongs("rollback", ServiceType.ROLLBACK),
        _belongs("repair", ServiceType.REPAIR),
        _belongs("partition_ttl", ServiceType.PARTITION_TTL),
        _belongs("indexing", ServiceType.INDEXING),
        _belongs("upgrade", ServiceType.UPGRADE),
    )

    table_ref: TableRef = prop("the table")
    type: ServiceType = prop("which service")
    mode: RunMode = prop("how far a run goes; Plan changes nothing until its plan is approved",
                         RunMode.SCHEDULE_AND_EXECUTE)  # fmt: skip
    approve: str | None = prop(
        "digest of status.plan: exactly that plan is run", None, pattern="^[0-9a-f]{8,64}$", max_length=64
    )
    schedule: str | None = patterns.schedule("five cron fields; with neither schedule nor when there is one run")
    time_zone: str | None = patterns.time_zone()
    starting_deadline_seconds: int | None = patterns.starting_deadline_seconds()
    concurrency_policy: ConcurrencyPolicy = prop(
        "what happens to a run of the schedule that is still at work when the next is due: Forbid lets it end, Replace stops it",
        ConcurrencyPolicy.FORBID,
    )
    when: Need | None = prop("run on need", None)
    active_deadline: str | None = prop(
        "a run that takes longer is stopped and failed, such as 30m", None, pattern=DURATION, max_length=32
    )
    successful_runs_history_limit: int = prop(
        "runs that did well that status.runs keeps", 3, minimum=0, maximum=HISTORY_MAX
    )
    failed_runs_history_limit: int = prop("runs that failed that status.runs keeps", 3, minimum=0, maximum=HISTORY_MAX)
    clustering: ClusteringSpec | None = prop("what clustering takes and writes", None)
    cleaning: CleaningSpec | None = prop("what cleaning keeps; absent: maintenance.cleaning of the table", None)
    archiving: ArchivingSpec | None = prop("what archiving leaves; absent: maintenance.archiving of the table", None)
    savepoint: SavepointSpec | None = prop("what a savepoint keeps", None)
    restore: InstantSpec | None = prop("the savepoint that a restore goes back to", None)
    rollback: InstantSpec | None = prop("the write that a rollback undoes", None)
    repair: RepairSpec | None = prop("how far a repair goes", None)
    partition_ttl: PartitionTTLSpec | None = prop("how long partitions live", None)
    indexing: IndexingSpec | None = prop("what of the metadata table is built; absent: files alone", None)
    upgrade: UpgradeSpec | None = prop("the table version that an upgrade, or a downgrade, brings the table to", None)
    options: dict[str, str] = prop(
        "known hoodie.* options of this service; they win over its section, and over the table's",
        dict,
        max_items=256,
        item_max_length=4096,
    )
    suspend: bool = prop("start no new run", False)
