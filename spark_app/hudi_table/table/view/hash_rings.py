"""The hash rings of a table's partitions: which one a timeline shows, and how rings are stored.

Facts (measured on Hudi 0.15.0 and 1.1.1): rings lie in
`.hoodie/.bucket_index/consistent_hashing_metadata/<partition>/`, the one that a partition begins
with in `00000000000000.hashing_meta`, every later one in `<instant>.hashing_meta` of the
replacecommit that made it, written before it completes. Hudi takes the newest whose instant is
completed on the timeline; of an archived one it asks whether the partition has a base file of one
of its nodes, and puts an empty file `<instant>.commit` into the partition's folder, which it never
reads. So a ring whose commit is taken back has to go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from hudi_table.errors import CorruptTableError, ObjectExistsError, ObjectNotFoundError, OutcomeUnknownError
from hudi_table.model.names import HOODIE, join
from hudi_table.model.table.rings import INITIAL_INSTANT, Ring
from hudi_table.model.timeline.instants import Action, comparable_time
from hudi_table.table.store import retry, threads
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.timeline import Timeline
from hudi_table.table.view.file_system_view import FileSystemView

RINGS = f"{HOODIE}/.bucket_index/consistent_hashing_metadata"
_SUFFIX = ".hashing_meta"
_COMMITTED = ".commit"
_CREATE_ATTEMPTS_MAX = 5


class RingSource(Protocol):
    """Where an index finds the ring of a partition."""

    @property
    def buckets(self) -> int:
        """With how many nodes a partition begins."""
        ...

    def ring(self, partition: str) -> Ring:
        """The ring by which rows of the partition are placed."""
        ...

    def known(self) -> Mapping[str, Ring]:
        """The rings that were asked for, by partition."""
        ...


@dataclass(frozen=True, slots=True)
class FixedRings:
    """Rings that were looked up before, by partition; others begin with `buckets` nodes.
    Picklable."""

    buckets: int
    rings: Mapping[str, Ring] = field(default_factory=dict)

    def ring(self, partition: str) -> Ring:
        """The ring given, or the one that a partition begins with."""
        return self.rings.get(partition) or Ring.initial(partition, self.buckets)

    def known(self) -> Mapping[str, Ring]:
        """Those given."""
        return self.rings


class TableRings:
    """The rings that a timeline shows, read once each, by any number of threads."""

    def __init__(self, ctx: TableContext, timeline: Timeline, buckets: int) -> None:
        self._ctx, self._timeline, self.buckets = ctx, timeline, buckets
        self._rings: dict[str, Ring] = {}
        self._stored: set[str] = set()
        self._lock = threads.lock()
        self._view = FileSystemView(ctx, timeline)

    def ring(self, partition: str) -> Ring:
        """The stored ring, or the one that the partition begins with. Raises CorruptTableError."""
        ring = self._rings.get(partition)
        if ring is None:
            with self._lock:
                ring = self._rings.get(partition)
                if ring is None:
                    stored = stored_ring(self._ctx, self._timeline, partition, self._view)
                    if stored is not None:
                        self._stored.add(partition)
                    ring = self._rings[partition] = stored or Ring.initial(partition, self.buckets)
        return ring

    def known(self) -> Mapping[str, Ring]:
        """Those that were read."""
        return self._rings

    def is_stored(self, partition: str) -> bool:
        """Whether the ring of the partition has a file."""
        self.ring(partition)
        return partition in self._stored

    def as_of(self, timeline: Timeline) -> TableRings:
        """The same partitions' rings under another timeline: none is read again unless a
        replacecommit came or went."""
        other = TableRings(self._ctx, timeline, self.buckets)
        if _replacements(timeline) == _replacements(self._timeline):
            other._rings, other._stored = self._rings, self._stored
        return other


def stored_ring(
    ctx: TableContext, timeline: Timeline, partition: str, view: FileSystemView | None = None
) -> Ring | None:
    """The ring of a partition that the timeline shows, None if none is stored. Raises
    CorruptTableError for one that cannot be read."""
    completed = {instant.time for instant in timeline.commits}
    for instant in _instants(ctx.storage, partition):
        if instant == INITIAL_INSTANT or instant in completed:
            return read_ring(ctx, partition, instant)
        if timeline.start is None or comparable_time(instant) >= comparable_time(timeline.start):
            continue
        # Archived: committed, or left behind by a clustering of Hudi's that failed. A ring that counts has a node for every group.
        ring = read_ring(ctx, partition, instant)
        seen = view or FileSystemView(ctx, timeline)
        if all(ring.position(group.file_id) is not None for group in seen.groups(partition)):
            return ring
    return None


def read_ring(ctx: TableContext, partition: str, instant: str) -> Ring:
    """One stored ring. Raises CorruptTableError if it is gone or none."""
    path = ring_path(partition, instant)
    try:
        return Ring.from_json(ctx.storage.get(path))
    except (ValueError, ObjectNotFoundError) as error:
        raise CorruptTableError(
            f"{path} is no ring of a consistent hashing index: {error}; restore it from a copy",
            base_path=ctx.base_path,
            path=path,
        ) from error


def create_ring(ctx: TableContext, ring: Ring) -> Ring:
    """Store the ring that a partition begins with, exclusively; the one that counts, which another
    writer may have created.

    Raises CorruptTableError if that is none.
    """
    path = ring_path(ring.partition, INITIAL_INSTANT)
    for _ in range(_CREATE_ATTEMPTS_MAX):
        try:
            ctx.storage.put_if_absent(path, ring.to_json())
            return ring
        except ObjectExistsError:
            break
        except OutcomeUnknownError:
            with suppress(CorruptTableError):
                return read_ring(ctx, ring.partition, INITIAL_INSTANT)
    return read_ring(ctx, ring.partition, INITIAL_INSTANT)


def ring_path(partition: str, instant: str) -> str:
    """Where a ring is stored."""
    return join(RINGS, partition, f"{instant}{_SUFFIX}")


def drop_rings(ctx: TableContext, times: Iterable[str]) -> None:
    """Delete the rings of instants that are taken back, in all partitions; first the marks by which
    Hudi 1.1.1 knows them to be committed."""
    if ctx.config.index is not None and not ctx.config.index.type.has_rings:
        return
    names = {f"{time}{suffix}" for time in times for suffix in (_COMMITTED, _SUFFIX)}
    for info in ctx.storage.list(RINGS):
        if info.path.rpartition("/")[2] in names:
            retry.delete(ctx.storage, info.path)


def _instants(storage: Storage, partition: str) -> Iterator[str]:
    """The instants that made rings of a partition, newest first."""
    _, files = storage.list_dir(join(RINGS, partition))
    names = (info.path.rpartition("/")[2] for info in files)
    times = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX) and not name.startswith(".")]
    return iter(sorted(times, key=comparable_time, reverse=True))


def _replacements(timeline: Timeline) -> frozenset[str]:
    return frozenset(i.time for i in timeline.commits if i.action is Action.REPLACE_COMMIT)
