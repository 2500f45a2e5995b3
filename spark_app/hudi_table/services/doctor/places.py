"""Checks of file groups and keys against the places of an index whose hash is all: numbered
buckets, or the nodes of hash rings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from hudi_table.codec.parquet import BaseFileFooter
from hudi_table.errors import CorruptTableError, InvalidRequestError, UnsupportedTableError
from hudi_table.index.base import Index, Keys, Slot
from hudi_table.model.counts import counted
from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.view.file_system_view import BaseFile
from hudi_table.table.view.hash_rings import RINGS
from hudi_table.write.checks.request import resolve_index

_KEPT = 16
"""Partitions whose slots are held: files come by partition, and one may have a hundred thousand
buckets."""
_OVERWRITE = "rewrite the partition with insert_overwrite"


class Places:
    """The slots of each partition, of an index that needs no snapshot."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._slots: dict[str, frozenset[Slot] | CorruptTableError] = {}

    @classmethod
    def of_table(cls, seen: Examined) -> Places | None:
        """Those of the index that the table stores; None if it stores none, or one that looks keys
        up."""
        try:
            index, _ = resolve_index(seen.ctx.config, {})
        except (InvalidRequestError, UnsupportedTableError):
            return None
        return None if index.reads_snapshot else cls(index.as_of(seen.ctx, seen.timeline))

    def of(self, partition: str) -> frozenset[Slot]:
        """The slots of a partition. Raises CorruptTableError."""
        if partition not in self._slots:
            while len(self._slots) >= _KEPT:
                del self._slots[next(iter(self._slots))]
            try:
                self._slots[partition] = frozenset(self.index.slots_in(partition))
            except CorruptTableError as error:
                self._slots[partition] = error
        slots = self._slots[partition]
        if isinstance(slots, CorruptTableError):
            raise slots
        return slots

    def numbered(self, partition: str) -> bool:
        """Whether the slots of a partition are numbered buckets. False where they cannot be
        read."""
        try:
            return any(slot.bucket is not None for slot in self.of(partition))
        except CorruptTableError:
            return False

    def named(self, partition: str, file_id: str) -> Slot | None:
        """The slot that a file id names, whether the partition has it or not; None if it names
        none."""
        if not self.numbered(partition):
            return Slot(partition, file_id=file_id)
        bucket = bucket_of_file_id(file_id)
        return None if bucket is None else Slot(partition, bucket=bucket)


def duplicate_buckets(seen: Examined) -> Iterator[Finding]:
    """Buckets with several file groups, and file groups that are no bucket's or no node's."""
    places = Places.of_table(seen)
    if places is not None:
        yield from _foreign_nodes(seen, places)
        yield from _bucket_groups(seen, places)


def misplaced_keys(places: Places, base: BaseFile, footer: BaseFileFooter) -> Iterator[Finding]:
    """The least and greatest key of a base file, where they belong to another file group."""
    own = places.named(base.partition, base.file_id)
    if own is None or footer.min_key is None or footer.max_key is None:
        return
    try:
        if own.bucket is None and own not in places.of(base.partition):
            return
    except CorruptTableError:
        return
    keys = [footer.min_key, footer.max_key]
    routed = places.index.route(Keys(pa.array(keys, pa.string()), (base.partition,), np.zeros(len(keys), np.int32)))
    for key, code in zip(keys, routed.codes.tolist(), strict=True):
        slot = routed.slots[code]
        if slot != own:
            numbered = own.bucket is not None
            there = f"bucket {slot.bucket}, and is of bucket {own.bucket}" if numbered else f"file group {slot.file_id}"
            other = "another number of buckets" if numbered else "another ring"
            yield Finding(
                Check.WRONG_BUCKET,
                Severity.ERROR,
                base.path,
                f"holds key {key!r} of {there}: updates of the key do not find it",
                f"another writer used other hash fields or {other}; {_OVERWRITE}",
            )
            return


def _bucket_groups(seen: Examined, places: Places) -> Iterator[Finding]:
    groups: dict[Slot, dict[str, str]] = {}
    for base in seen.bases():
        if (base.partition, base.file_id) in seen.hidden or not seen.visible(base.instant):
            continue
        if not places.numbered(base.partition):
            continue
        slot, slots = places.named(base.partition, base.file_id), places.of(base.partition)
        if slot is None or slot not in slots:
            yield Finding(
                Check.WRONG_BUCKET,
                Severity.ERROR,
                base.path,
                f"file group {base.file_id} belongs to none of the {counted(len(slots), 'bucket')} of its partition",
                f"another writer used another index or number of buckets; {_OVERWRITE}",
            )
        else:
            groups.setdefault(slot, {})[base.file_id] = base.path
    for slot, ids in groups.items():
        if len(ids) > 1:
            yield Finding(
                Check.DUPLICATE_BUCKET,
                Severity.ERROR,
                ids[max(ids)],
                f"bucket {slot.bucket} of partition {slot.partition!r} has {counted(len(ids), 'file group')}: {', '.join(sorted(ids))}",
                "writers refuse the partition; rewrite it with insert_overwrite from what a scan of it returns",
            )


def _foreign_nodes(seen: Examined, places: Places) -> Iterator[Finding]:
    """Rings that cannot be read, and file groups that are no node of their partition's ring: what
    is written to their keys goes elsewhere."""
    reported: set[tuple[str, str]] = set()
    unreadable: set[str] = set()
    files = [(b.partition, b.file_id, b.path) for b in seen.bases() if seen.visible(b.instant)]
    files += [(log.path.rpartition("/")[0], log.name.file_id, log.path) for log in seen.logs() if not log.name.cdc]
    for partition, file_id, path in files:
        group = (partition, file_id)
        if group in seen.hidden or group in reported or partition in unreadable:
            continue
        try:
            slots = places.of(partition)
        except CorruptTableError as error:
            unreadable.add(partition)
            yield Finding(
                Check.WRONG_BUCKET,
                Severity.ERROR,
                error.path or RINGS,
                f"the hash ring of partition {partition!r} cannot be read: {error.message}",
                "bring it back from a copy: without it nobody can write to the partition",
            )
            continue
        if not places.numbered(partition) and Slot(partition, file_id=file_id) not in slots and seen.is_used(path):
            reported.add(group)
            yield Finding(
                Check.WRONG_BUCKET,
                Severity.ERROR,
                path,
                f"file group {file_id} is no node of the hash ring of partition {partition!r}",
                f"another writer replaced rows without a new ring, or used another index; {_OVERWRITE}",
            )
