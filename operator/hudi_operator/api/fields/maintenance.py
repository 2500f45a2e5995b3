"""`maintenance` of a HudiTable: the services that keep it by default."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from hudi_operator.api.fields.sections import ArchivingSpec
from hudi_operator.api.schema import Rule, prop


class ServiceMode(StrEnum):
    """Whether a table service runs by itself."""

    AUTO = "Auto"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class ServicePolicy:
    """Whether a table service runs by itself."""

    mode: ServiceMode = prop("Auto runs it when the table needs it", ServiceMode.DISABLED)


@dataclass(frozen=True, slots=True)
class CleaningPolicy:
    """Retention of file slices."""

    mode: ServiceMode = prop("Auto cleans every few commits", ServiceMode.AUTO)
    keep_commits: int = prop("commits whose file slices stay readable", 10, minimum=1, maximum=100_000)


@dataclass(frozen=True, slots=True)
class ArchivingPolicy(ArchivingSpec):
    """Length of the active timeline."""

    mode: ServiceMode = prop("Auto archives when the timeline has more than maxCommits", ServiceMode.AUTO)


@dataclass(frozen=True, slots=True)
class MaintenanceSpec:
    """The default upkeep of this table."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.archiving.minCommits > self.cleaning.keepCommits",
            "archiving.minCommits must be more than cleaning.keepCommits, or commits leave before their files",
            "archiving",
            lambda m: m.archiving.min_commits > m.cleaning.keep_commits,
        ),
    )

    compaction: ServicePolicy = prop("merging of log files", ServicePolicy)
    clustering: ServicePolicy = prop("rewriting of small files", ServicePolicy)
    cleaning: CleaningPolicy = prop("retention of file slices", CleaningPolicy)
    archiving: ArchivingPolicy = prop("length of the active timeline", ArchivingPolicy)
