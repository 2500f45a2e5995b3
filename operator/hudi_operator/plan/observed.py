"""What was seen of a table, its sources and its runs at one moment. Plain values; nothing here
reads anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from hudi_operator.api.resources import DesiredTable
from hudi_operator.api.status import IndexStatus, RunStatus
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile
from hudi_table.model.job.custom import CustomMark
from hudi_table.model.job.marks import Mark
from hudi_table.model.job.positions import Extent, Positions
from hudi_table.model.job.query_mark import QueryMark
from hudi_table.model.job.retention import Retention, Unread
from hudi_table.model.job.shards import ShardPositions, StreamLag
from hudi_table.model.job.upstream import Upstream, UpstreamExtent
from hudi_table.model.service.debt import ArchivingDebt, CompactionDebt
from hudi_table.model.service.services import ServiceType
from hudi_table.model.table.config import TableConfig
from hudi_table.model.timeline.instants import Instant


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something could not be seen: stable name, message, and whether the same reconcile may
    succeed later."""

    reason: str
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class FileFact:
    """One latest file slice: its base file's size in bytes (0 without one) and rows (None if not
    known), and its log files' size."""

    partition: str
    size: int
    rows: int | None
    log_size: int = 0


@dataclass(frozen=True, slots=True)
class CommittedCheckpoint:
    """The newest checkpoint of an ingest and the instant that holds it."""

    checkpoint: Checkpoint | Positions | ShardPositions | Mark | Upstream | QueryMark | CustomMark
    instant: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What a service has left on the timeline: plans that wait, oldest first, its newest completed
    instant, and how many writes came after that (all that the timeline shows, if it never ran)."""

    pending: tuple[str, ...] = ()
    last: str | None = None
    commits_since: int = 0


@dataclass(frozen=True, slots=True)
class Took:
    """What one commit of an ingest took: since the one before, in how many seconds, and how many
    messages of Kafka, else rows."""

    since: datetime
    seconds: float
    count: float


@dataclass(frozen=True, slots=True)
class Pace:
    """How an ingest goes on, as its newest commits tell: what they took, oldest first; the largest
    event time of the newest commit that records any, and of all of them, in milliseconds since
    1970."""

    took: tuple[Took, ...] = ()
    newest: int | None = None
    most: int | None = None

    @property
    def rate(self) -> float | None:
        """What they took in a second; None where there are none."""
        return _rate(self.took)

    def rate_behind(self, oldest: int) -> float | None:
        """What commits took in a second while a message of this timestamp, in milliseconds since
        1970, had come and was not taken: how fast the ingest is. What others took is only how fast
        messages came. None where there are none."""
        return _rate(each for each in self.took if each.since.timestamp() * 1000 >= oldest)


def _rate(took: Iterable[Took]) -> float | None:
    found = list(took)
    seconds = sum(each.seconds for each in found)
    return round(sum(each.count for each in found) / seconds, 3) if seconds > 0 else None


@dataclass(frozen=True, slots=True)
class TableObservation:
    """A table as its timeline shows it. `attempts` maps attempt names to the instants that they
    completed.

    `compaction`: what is due by the compaction's own trigger; `archiving`: what
    `maintenance.archiving` would find. `moments` of instants are in UTC. `colon_keys`: whether some
    record key holds ':' (None: not known). `last_write`: the newest write that no service made.
    `bytes_to_clean`: None where nobody asks, or it is not known. `timeline_files`: all files of the
    active timeline's folder. `unknown_checkpoints`: why the checkpoint of an ingest cannot be read.
    `foreign`: those of the newest commits that other engines made; `lost`: properties that one of
    them dropped or changed. `changing`: from which version to which a change of the table has begun
    that has not ended. `event_times`: the smallest of the newest commit that records any and the
    largest of the newest commits, in milliseconds since 1970. `paces`: of each ingest. `columns`:
    the types of Hudi 1.2's own that columns have. `logs_alone`: file groups without a base file.
    """

    config: TableConfig
    commits: tuple[Instant, ...] = ()
    pending: tuple[Instant, ...] = ()
    oldest_pending: datetime | None = None
    last_moment: datetime | None = None
    files: tuple[FileFact, ...] = ()
    logs_alone: tuple[FileFact, ...] = ()
    checkpoints: dict[str, CommittedCheckpoint] = field(default_factory=dict)
    unknown_checkpoints: Mapping[str, Problem] = field(default_factory=dict)
    attempts: dict[str, str] = field(default_factory=dict)
    colon_keys: bool | None = None
    suspects: tuple[str, ...] = ()
    compaction: CompactionDebt | None = None
    archiving: ArchivingDebt | None = None
    traces: Mapping[ServiceType, Trace] = field(default_factory=dict)
    last_write: str | None = None
    bytes_to_clean: int | None = None
    timeline_files: int = 0
    foreign: tuple[Instant, ...] = ()
    lost: tuple[str, ...] = ()
    event_times: tuple[int, int] | None = None
    paces: Mapping[str, Pace] = field(default_factory=dict)
    changing: tuple[int, int] | None = None
    columns: tuple[str, ...] = ()

    def files_held(self, ingest: str) -> Checkpoint | None:
        """The checkpoint of an ingest from files; None also where it is of another source, which
        its job refuses."""
        held = self.checkpoints.get(ingest)
        return held.checkpoint if held is not None and isinstance(held.checkpoint, Checkpoint) else None

    def positions(self, ingest: str) -> Positions | None:
        """The same of an ingest from Kafka."""
        held = self.checkpoints.get(ingest)
        return held.checkpoint if held is not None and isinstance(held.checkpoint, Positions) else None

    def shards(self, ingest: str) -> ShardPositions | None:
        """The same of an ingest from Kinesis."""
        held = self.checkpoints.get(ingest)
        return held.checkpoint if held is not None and isinstance(held.checkpoint, ShardPositions) else None

    def upstream(self, ingest: str) -> Upstream | None:
        """The same of an ingest from another table."""
        held = self.checkpoints.get(ingest)
        return held.checkpoint if held is not None and isinstance(held.checkpoint, Upstream) else None

    def trace(self, kind: ServiceType) -> Trace:
        """What a service has left; of one that leaves nothing, every write of the timeline came
        since."""
        return self.traces.get(kind, Trace(commits_since=len(self.commits)))

    @property
    def state(self) -> str:
        """Names what the table holds: while it is the same, a service that has ended finds nothing
        new to do."""
        return self.last_write or (self.commits[-1].time if self.commits else "")

    @property
    def base_bytes(self) -> int:
        """Size of the base files."""
        return sum(f.size for f in self.files)

    @property
    def log_bytes(self) -> int:
        """Size of the log files."""
        return sum(f.log_size for f in self.groups)

    @property
    def groups(self) -> tuple[FileFact, ...]:
        """All file groups: those with a base file first."""
        return self.files + self.logs_alone


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """About how many messages wait, and how many a run has received, or set aside."""

    waiting: int
    in_flight: int


@dataclass(frozen=True, slots=True)
class SourceObservation:
    """Files of an ingest's source, or how far its topics go, or what another table holds behind its
    checkpoint (None where there is no table), or how many messages a queue has that tells of files;
    or why that could not be seen. `lag`: since when records of a stream wait, or why that is not
    known, which keeps no job from being started; None where nobody looks. `retention`: how long the
    brokers keep what waits, in the same way; `unread`: what waits in those partitions that told;
    `told`: these, and those in which nothing waits but markers, by topic and number."""

    ingest: str
    files: tuple[SourceFile, ...] = ()
    problem: Problem | None = None
    extent: Extent | None = None
    upstream: UpstreamExtent | None = None
    queue: QueueDepth | None = None
    lag: StreamLag | Problem | None = None
    retention: Retention | Problem | None = None
    unread: tuple[Unread, ...] = ()
    told: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class CallbackObservation:
    """How far a callback is, as its courier knows. `position`: None until it is known where it
    begins. `oldest`: when the oldest commit completed that was not delivered."""

    name: str
    position: str | None = None
    last_delivered: str | None = None
    last_time: datetime | None = None
    oldest: datetime | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Follower:
    """Another HudiTable of the namespace that takes in what changes in this one. `position`: the
    newest instant that it has taken, '' if none; `deletes`: whether it takes deletes, too."""

    table: str
    ingest: str
    position: str
    max_hold: str
    deletes: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a plan for one HudiTable goes by. `failures`: reconciles in a row that ended
    in a problem.

    `runs` are the launcher's, newest first; a run that vanished without a result has phase `Lost`.
    `others`: the attempts of other resources that run on this table now. `keepers`: the
    TableService of each type that keeps the table. `unlaunchable`: why an attempt could not be
    started just now, by its work. `measured`: what the newest of all these attempts that measured
    the index has found. `holdable`: we could let go of the resource whatever becomes of its
    namespace. `upgrade`: the TableService for whose upgrade nothing else is done to the table.
    `refused`: what nobody could do of the manifest. `callbacks`: None where nobody delivers.
    `sharers`: the other HudiTables that lie where this one does, above or below it; `followers`:
    those that take in what changes here. `holding`: the ingests for which another HudiTable keeps
    what they have not taken.
    """

    table: TableObservation | None = None
    problem: Problem | None = None
    sources: tuple[SourceObservation, ...] = ()
    runs: tuple[RunStatus, ...] = ()
    failures: int = 0
    others: tuple[RunStatus, ...] = ()
    keepers: Mapping[ServiceType, str] = field(default_factory=dict)
    unlaunchable: Mapping[str, Problem] = field(default_factory=dict)
    measured: IndexStatus | None = None
    holdable: bool = True
    refused: Problem | None = None
    sharers: tuple[str, ...] = ()
    followers: tuple[Follower, ...] = ()
    holding: frozenset[str] = frozenset()
    upgrade: str = ""
    callbacks: tuple[CallbackObservation, ...] | None = None

    def source(self, ingest: str) -> SourceObservation | None:
        """What was seen of an ingest's source."""
        return next((s for s in self.sources if s.ingest == ingest), None)


@dataclass(frozen=True, slots=True)
class ObservedService:
    """Everything that a plan for one TableService goes by. `owner`: its HudiTable, None if there is
    none; `unlaunchable`: why its attempt could not be started just now, by its work; `refused`:
    what nobody could do of its manifest; `streams`: continuous drivers that are at work on the
    table; `followers`: the tables that take in what changes there."""

    owner: DesiredTable | None = None
    table: TableObservation | None = None
    problem: Problem | None = None
    runs: tuple[RunStatus, ...] = ()
    others: tuple[RunStatus, ...] = ()
    failures: int = 0
    unlaunchable: Mapping[str, Problem] = field(default_factory=dict)
    refused: Problem | None = None
    streams: tuple[RunStatus, ...] = ()
    followers: tuple[Follower, ...] = ()
