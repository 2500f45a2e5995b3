"""Checks of file groups against the hash rings of a consistent hashing index."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hudi_table.codec.parquet import BaseFileFooter
from hudi_table.errors import CorruptTableError
from hudi_table.index.hashing.consistent import ConsistentIndex
from hudi_table.model.service.findings import Check, Finding, Severity
from hudi_table.services.doctor.examined import Examined
from hudi_table.table.view.file_system_view import BaseFile
from hudi_table.table.view.hash_rings import RINGS


def foreign_nodes(seen: Examined, index: ConsistentIndex) -> Iterator[Finding]:
    """Rings that cannot be read, and file groups that are no node of their partition's ring: what is written to their keys goes elsewhere."""
    told: set[tuple[str, str]] = set()
    unreadable: set[str] = set()
    files = [(b.partition, b.file_id, b.path) for b in seen.bases() if seen.visible(b.instant)]
    files += [(log.path.rpartition("/")[0], log.name.file_id, log.path) for log in seen.logs() if not log.name.cdc]
    for partition, file_id, path in files:
        group = (partition, file_id)
        if group in seen.hidden or group in told or partition in unreadable:
            continue
        try:
            ring = index.rings.ring(partition)
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
        if ring.position(file_id) is None and _is_seen(seen, path):
            told.add(group)
            yield Finding(
                Check.WRONG_BUCKET,
                Severity.ERROR,
                path,
                f"file group {file_id} is no node of the hash ring of partition {partition!r}",
                "another writer replaced rows without a new ring, or used another index; rewrite the partition with insert_overwrite",
            )


def ring_finding(index: ConsistentIndex, base: BaseFile, footer: BaseFileFooter) -> Iterator[Finding]:
    """The least and greatest key of a base file, where they belong to another node."""
    try:
        ring = index.rings.ring(base.partition)
    except CorruptTableError:
        return
    if footer.min_key is None or footer.max_key is None or ring.position(base.file_id) is None:
        return
    keys = [footer.min_key, footer.max_key]
    for key, place in zip(keys, index.places_of(pa.array(keys, pa.string())).tolist(), strict=True):
        node = ring.node_at(place)
        if node.file_id != base.file_id:
            yield Finding(
                Check.WRONG_BUCKET,
                Severity.ERROR,
                base.path,
                f"holds key {key!r} of file group {node.file_id}: updates of the key do not find it",
                "another writer used other hash fields or another ring; rewrite the partition with insert_overwrite",
            )
            return


def _is_seen(seen: Examined, path: str) -> bool:
    """Whether a reader sees rows of a file: of a log, whether one of its blocks counts."""
    log = next((found for found in seen.logs() if found.path == path), None)
    if log is None:
        return True
    instants = seen.instants_of(log)
    return instants is None or any(seen.visible(instant) for instant in instants)
