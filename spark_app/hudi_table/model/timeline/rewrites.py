"""Which commits change no row: they move all as they were into other files."""

from __future__ import annotations

from hudi_table.model.timeline.commits import CommitMetadata

REWRITES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE"})
"""Hudi's operation types of such commits, and ours of a resize."""


def is_rewrite(metadata: CommitMetadata) -> bool:
    """Whether a commit leaves every row as it was."""
    return metadata.compacted or metadata.operation_type in REWRITES
