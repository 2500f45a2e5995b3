"""Table services, as everybody sees them: what one is asked, what it plans, what it did."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hudi_table.model.options.known import admit

DETAILS_MAX = 100
"""Lines of a plan's details; more are counted, not listed."""
DEFAULT_SERVICE_MEMORY = 1 << 30


class ServiceType(StrEnum):
    """Which table service; the values are those of the resource."""

    COMPACTION = "Compaction"
    LOG_COMPACTION = "LogCompaction"
    CLUSTERING = "Clustering"
    CLEANING = "Cleaning"
    ARCHIVING = "Archiving"
    SAVEPOINT = "Savepoint"
    RESTORE = "Restore"
    ROLLBACK = "Rollback"
    REPAIR = "Repair"
    PARTITION_TTL = "PartitionTTL"
    RESIZE = "Resize"
    INDEXING = "Indexing"
    UPGRADE = "Upgrade"

    @property
    def noun(self) -> str:
        """Its name in Python: `table.services.<noun>`."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What a service would do, or has published to be done. Sizes are bytes.

    `instant` is "" for a dry run; `digest` names the plan's content, by which it can be approved.
    `why` it is due. `details`: one line for each file group, at most `DETAILS_MAX`.
    """

    service: ServiceType
    why: str
    instant: str = ""
    digest: str = ""
    file_groups: int = 0
    files_before: int = 0
    files_after: int = 0
    log_files: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_freed: int = 0
    details: tuple[str, ...] = ()

    @property
    def said_digest(self) -> str:
        """Names a plan that has no content beyond what it says of itself."""
        said = (self.file_groups, self.files_before, self.files_after, self.bytes_read, self.bytes_freed, self.details)
        return hashlib.sha256(repr(said).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """What a service did. `figures` are numbers, the unit in the name (fileGroups, filesBefore,
    filesAfter, rowsWritten, bytesRead, bytesWritten, filesDeleted). `replayed`: it had been done
    before; nothing was done now. `plan`: the approved one that it did, of a service that keeps none
    on the timeline."""

    service: ServiceType
    instant: str
    message: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    replayed: bool = False
    plan: ServicePlan | None = None


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """What a service is asked.

    `force`: whether or not its trigger says that it is due. `plan`: digest of an approved dry run,
    of which exactly the plan is carried out. `instant`: what a restore, rollback or savepoint is
    about. `lost`: files of a pending compaction that a rollback gives up.
    """

    options: Mapping[str, str] = field(default_factory=dict)
    force: bool = False
    plan: str = ""
    instant: str = ""
    comment: str = ""
    lost: tuple[str, ...] = ()
    max_memory: int = DEFAULT_SERVICE_MEMORY

    def __post_init__(self) -> None:
        """Raises InvalidOptionError."""
        admit(self.options)
