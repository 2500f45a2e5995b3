"""Which later decision of another excludes one's own: by conflict keys, and beside clusterings by
the file groups.

A large insert touches its whole partition, since it names no keys, and yet writes to none of the
groups that are there: a clustering, which changes no row, stands beside it. Of a commit its body
tells the groups, of a clustering's plan its conflict keys.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from hudi_table.model.names import bucket_of_file_id
from hudi_table.model.timeline.chain import ChainEntry, Kind
from hudi_table.model.timeline.commits import CommitMetadata
from hudi_table.model.timeline.conflict_keys import (
    TABLE,
    append_conflict_key,
    appends_only,
    bucket_conflict_key,
    file_conflict_key,
    meet,
    moves_metadata,
)
from hudi_table.model.timeline.instants import Action, parse_instant
from hudi_table.table.timeline.layout import decode_commit

CLUSTER = "CLUSTER"
"""Hudi's name of the operation of a clustering's commit."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one is about to decide: the conflict keys, and of a commit the keys of the groups that
    it writes to or replaces.

    `metadata`: conflict keys of what it wrote to the metadata table, or None if it writes nothing
    there. `compacts_metadata`: it plans a compaction of that table, whose logs are those of all
    commits before it.
    """

    conflict_keys: tuple[str, ...]
    groups: frozenset[str] | None = None
    clusters: bool = False
    metadata: frozenset[str] | None = None
    compacts_metadata: bool = False

    @classmethod
    def of_commit(cls, conflict_keys: tuple[str, ...], metadata: CommitMetadata) -> Claimed:
        """Those of a commit of ours."""
        return cls(conflict_keys, groups_of(metadata), metadata.operation_type == CLUSTER)

    def excluded_by(self, entry: ChainEntry, seen: Container[str]) -> bool:
        """Whether a decision of another that is not in the snapshot, whose files are `seen`, makes
        this one void."""
        if entry.kind is Kind.ABORT or entry.name in seen:
            return False
        if entry.kind is Kind.PLAN and TABLE in entry.conflict_keys:
            # Taking instants back excludes even those who touch nothing that others change, such as who executes a plan.
            return True
        if _plans_compaction(entry) and appends_only(self.conflict_keys):
            # It takes the logs that completed before it, whatever is written beside it.
            return False
        if self.compacts_metadata and (entry.kind is Kind.COMMIT or moves_metadata(entry.conflict_keys)):
            return True
        if self.groups is None or TABLE in self.conflict_keys or TABLE in entry.conflict_keys:
            return meet(self.conflict_keys, entry.conflict_keys)
        if self.clusters and entry.kind is Kind.COMMIT:
            return bool(self.groups & groups_of(decode_commit(entry.data)))
        clustered = _clustered(entry)
        return meet(self.conflict_keys, entry.conflict_keys) if clustered is None else bool(self.groups & clustered)

    def moved_by(self, entry: ChainEntry) -> bool:
        """Whether a plan of another moved what this one wrote to the metadata table: it is written
        again, and nothing else."""
        return (
            self.metadata is not None
            and entry.kind is Kind.PLAN
            and bool(self.metadata.intersection(entry.conflict_keys))
        )


def groups_of(metadata: CommitMetadata) -> frozenset[str]:
    """The conflict keys of the groups that a commit wrote to or replaced."""
    return frozenset(
        {file_conflict_key(stat.partition_path, stat.file_id) for stat in metadata.stats}
        | {file_conflict_key(partition, file_id) for partition, file_id in metadata.replaced_groups}
    )


def group_conflict_keys(groups: Iterable[tuple[str, str]], *, appended: bool = False) -> frozenset[str]:
    """Conflict keys of (partition, file id) groups: the group, and its bucket if it is one's.
    `appended`: nothing but logs was written to them, which do not meet others of the bucket."""
    keys = set()
    for partition, file_id in groups:
        keys.add(file_conflict_key(partition, file_id))
        bucket = bucket_of_file_id(file_id)
        if bucket is not None:
            keys.add((append_conflict_key if appended else bucket_conflict_key)(partition, bucket))
    return frozenset(keys)


def _plans_compaction(entry: ChainEntry) -> bool:
    instant = parse_instant(entry.name) if entry.kind is Kind.PLAN else None
    return instant is not None and instant.action is Action.COMPACTION


def _clustered(entry: ChainEntry) -> frozenset[str] | None:
    """The groups of a clustering's plan or commit; None for another decision."""
    instant = parse_instant(entry.name)
    if instant is None or instant.grouped_action is not Action.REPLACE_COMMIT:
        return None
    if entry.kind is Kind.PLAN:
        return frozenset(entry.conflict_keys)
    metadata = decode_commit(entry.data)
    return groups_of(metadata) if metadata.operation_type == CLUSTER else None
