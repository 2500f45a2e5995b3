"""`TableContext`: what every module needs to know of one table, and what one process may remember
of it.

With it the table is handed its metadata table, which lies in a layer above: `MetadataPort`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from hudi_table.errors import InvalidOptionError
from hudi_table.model.bounded import Bounded
from hudi_table.model.options.lock_settings import HeartbeatSettings
from hudi_table.model.options.values import number
from hudi_table.model.options.write_options import FailedWrites, failed_writes
from hudi_table.model.table.config import TableConfig
from hudi_table.model.table.layouts import Layout, layout_of
from hudi_table.model.timeline.chain import ChainEntry
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.settled import Settled
from hudi_table.table.store.ports import Clock, Storage
from hudi_table.table.timeline.timeline import Timeline

if TYPE_CHECKING:  # a program that takes no lock loads none
    from hudi_table.table.locks.shared import SharedLock

QUARANTINE_KEY = "hoodie.lakeops.txn.quarantine.seconds"
SUSPECT_KEY = "hoodie.lakeops.txn.suspect.seconds"
QUARANTINE_FLOOR_SECONDS = 60.0
SUSPECT_FLOOR_SECONDS = 30.0
TAIL_AGE_SECONDS_MAX = 24 * 3600.0
ENTRIES_MAX, BODIES_BYTES_MAX, FOLDER_FILES_MAX = 4_000, 64 << 20, 200_000


@dataclass(frozen=True, slots=True)
class TxnSettings:
    """Times of the commit protocol, in seconds.

    `quarantine`: H, the longest that a request may take effect after its process last proved its
    right to write. `suspect_after`: a pending instant without a sign of life for that long is taken
    for dead. Wrong suspicion is safe, it only costs the suspected writer its attempt.
    `failed_writes`: who takes dead instants back, where a writer's options do not say.
    """

    quarantine_seconds: float = 3600.0
    suspect_after_seconds: float = 900.0
    failed_writes: FailedWrites = FailedWrites.EAGER

    @property
    def renew_seconds(self) -> float:
        """A right to write older than this is proved again: H/4."""
        return self.quarantine_seconds / 4

    @property
    def fresh_seconds(self) -> float:
        """For so long after a listing one may act on what it showed: H/2, of the least H that a
        table may have too."""
        return max(self.quarantine_seconds, QUARANTINE_FLOOR_SECONDS) / 2

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TxnSettings:
        """The table's settings. Raises InvalidOptionError for a value below its floor or no
        number."""
        default = cls()
        return cls(
            _seconds(properties, QUARANTINE_KEY, default.quarantine_seconds, QUARANTINE_FLOOR_SECONDS),
            _seconds(properties, SUSPECT_KEY, default.suspect_after_seconds, SUSPECT_FLOOR_SECONDS),
            failed_writes(properties) or default.failed_writes,
        )


def _seconds(properties: Mapping[str, str], key: str, default: float, floor: float) -> float:
    text = properties.get(key)
    if text is None:
        return default
    value = number(key, text)
    if value < floor:
        raise InvalidOptionError(f"{key} is {text!r}: give seconds, at least {floor:g}")
    return value


@dataclass(frozen=True, slots=True)
class ChainTail:
    """The newest known chain entry: its number (0 if none), the chain's greatest instant, and when
    it was seen."""

    sequence: int
    max_instant: str
    seen_boot_seconds: float


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that is listed: `path` relative to the base path, `size` in bytes (1 of a log that a
    rollback of Hudi 0.15.0 lists)."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """What was asked for: `files`, sorted by path, and all `partitions`, sorted, if the whole
    listing was."""

    files: list[ListedFile]
    partitions: list[str]


class WritePermit(Protocol):
    """What a delta needs of the right to write of its instant."""

    def prove(self) -> None:
        """Raises WriteAbortedError if the right is gone."""

    def renew_if_due(self) -> None:
        """Prove again if the last proof is too old."""

    def put_file(self, path: str, data: bytes) -> None:
        """Put a small file of the instant that needs no marker."""


class CommitDelta(Protocol):
    """What one commit tells the metadata table."""

    def write(self) -> frozenset[str]:
        """Write it where it belongs now. Returns the conflict keys of the plans that would move
        it."""
        ...

    def write_again(self) -> frozenset[str]:
        """The same after a plan has moved a file group of the metadata table."""
        ...


class MetadataPort(Protocol):
    """What a table's view, commits and rollbacks need of its metadata table."""

    def files(
        self, ctx: TableContext, timeline: Timeline, partitions: Collection[str] | None = None
    ) -> ListedFiles | None:
        """The files of these data partitions, or of all, as of the whole `timeline`; None if the
        folders have to be listed."""
        ...

    def delta(
        self, ctx: TableContext, permit: WritePermit, commit: CommitMetadata, time: str, timeline: Timeline
    ) -> CommitDelta:
        """What the commit of the instant `time` has to tell; its snapshot is `timeline`, its files
        are there. Nothing is written yet."""
        ...

    def forget(self, ctx: TableContext, time: str) -> None:
        """Delete everything that the instant wrote to the metadata table; idempotent."""
        ...


@dataclass(slots=True)
class TableContext:
    """One table in one process. The caches hold immutable objects only, chain entries and completed
    bodies, and only so many."""

    storage: Storage
    config: TableConfig
    clock: Clock
    metadata: MetadataPort = field(repr=False)
    settings: TxnSettings = field(default_factory=TxnSettings)
    lock: SharedLock | None = None
    """What other engines take too where they decide."""
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    """How often other engines expect a sign of life, where they share the table under the lock."""
    tail: ChainTail | None = None
    newest_listed: str = ""
    """The greatest instant time that a listing of this process has shown, as they are compared; ''
    for none."""
    entries: MutableMapping[int, ChainEntry] = field(default_factory=lambda: Bounded(ENTRIES_MAX))
    bodies: MutableMapping[str, bytes] = field(default_factory=lambda: Bounded(BODIES_BYTES_MAX, len))
    folders: MutableMapping[str, Any] = field(
        default_factory=lambda: Bounded(FOLDER_FILES_MAX, lambda folder: len(folder.sizes)), repr=False
    )
    """What `view/known_folders.py` knows of partitions."""
    lost: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    """Properties that another engine has dropped or changed: what the table has kept of them, by
    which `config` goes, and what the file says."""
    kept: bool = True
    """Whether the table has a copy of what its properties say it is."""
    settled: Settled = field(default_factory=Settled, repr=False)
    """The part of the last listing that a next one need not look at again."""
    no_metadata_at: float | None = None
    """The boot-clock second before the last listing, if that showed no folder of a metadata
    table."""
    buckets_listed: float | None = None
    """The boot-clock second before the listing behind which the number of buckets was read that
    `config` has; None if nobody has yet."""
    changes_version: bool = False
    """Whether this process brings the table to another version: it alone works beside the note that
    says so."""
    metadata_deltas: int | None = None
    """Deltas of the metadata table since its last compaction as the last write of this process saw
    them, a planned one counting as many; None if it has seen none."""

    @property
    def layout(self) -> Layout:
        """What is particular to tables of this version."""
        return layout_of(self.config.version)

    @property
    def base_path(self) -> str:
        """The table's base path, for messages."""
        return self.storage.base_path
