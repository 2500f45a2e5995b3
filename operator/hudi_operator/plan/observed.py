"""What was seen of a table, its sources and its runs at one moment. Plain values; nothing here reads anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from hudi_operator.api.status import RunStatus
from hudi_table.model.checkpoint import Checkpoint, SourceFile
from hudi_table.model.debt import CompactionDebt
from hudi_table.model.instants import Instant
from hudi_table.model.table_config import TableConfig


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something could not be seen: stable name, message, and whether the same look may succeed later."""

    reason: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class FileFact:
    """One latest file slice: its base file's size in bytes and rows (None if not known), and its log files' size."""

    partition: str
    size: int
    rows: int | None
    log_size: int = 0


@dataclass(frozen=True, slots=True)
class CommittedCheckpoint:
    """The newest checkpoint of an ingest and the instant that holds it."""

    checkpoint: Checkpoint
    instant: str


@dataclass(frozen=True, slots=True)
class TableObservation:
    """A table as its timeline shows it. `attempts` maps attempt names to the instants that they completed.

    `compaction`: what is owed, None where no compaction is asked for. `moments` of instants are in UTC. `colon_keys`: whether some record key holds ':' (None: not known).
    """

    config: TableConfig
    commits: tuple[Instant, ...] = ()
    pending: tuple[Instant, ...] = ()
    last_moment: datetime | None = None
    files: tuple[FileFact, ...] = ()
    checkpoints: dict[str, CommittedCheckpoint] = field(default_factory=dict)
    attempts: dict[str, str] = field(default_factory=dict)
    colon_keys: bool | None = None
    suspects: tuple[str, ...] = ()
    compaction: CompactionDebt | None = None


@dataclass(frozen=True, slots=True)
class SourceObservation:
    """Files of an ingest's source, or why they could not be listed."""

    ingest: str
    files: tuple[SourceFile, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a plan for one HudiTable looks at. `failures`: looks in a row that ended in a problem.

    `runs` are the launcher's, newest first; a run that vanished without a result has phase `Lost`.
    """

    table: TableObservation | None = None
    problem: Problem | None = None
    sources: tuple[SourceObservation, ...] = ()
    runs: tuple[RunStatus, ...] = ()
    failures: int = 0

    def source(self, ingest: str) -> SourceObservation | None:
        """What was seen of an ingest's source."""
        return next((s for s in self.sources if s.ingest == ingest), None)
