"""Ingest from files, the part that operator and jobs share: what lies in the source, and what the table holds of it."""

from __future__ import annotations

from hudi_table.errors import CorruptTableError
from hudi_table.model.checkpoint import Checkpoint, SourceFile, find
from hudi_table.model.commits import CommitMetadata
from hudi_table.model.instants import comparable_time
from hudi_table.table import chain
from hudi_table.table.archive import archived_entries, commit_of
from hudi_table.table.context import TableContext
from hudi_table.table.materialise import materialise_predecessors
from hudi_table.table.ports import Storage
from hudi_table.table.timeline import commit_metadata, load_timeline


def list_source(storage: Storage) -> tuple[SourceFile, ...]:
    """Every object of a source. Its version is the store's etag, or the time of change where there is none."""
    found = storage.list()
    return tuple(SourceFile(f.path, f.size, f.etag or f.modified.isoformat(), f.modified) for f in found)


def current_checkpoint(ctx: TableContext, ingest: str) -> Checkpoint | None:
    """The newest checkpoint of an ingest, None before its first commit. The archive is read only if the timeline has none.

    A commit that was decided and not yet published counts, so it is published first: whoever wrote it is gone or
    would do the same. Raises CorruptTableError for a damaged checkpoint.
    """
    timeline = load_timeline(ctx)
    if timeline.pending and materialise_predecessors(ctx, timeline, "", chain.read_tail(ctx).sequence):
        timeline = load_timeline(ctx)
    for instant in reversed(timeline.commits):
        checkpoint = _checkpoint(ctx, instant.time, commit_metadata(ctx, instant), ingest)
        if checkpoint is not None:
            return checkpoint
    for entries in archived_entries(ctx):
        for entry in sorted(entries, key=lambda entry: comparable_time(entry["commitTime"]), reverse=True):
            checkpoint = _checkpoint(ctx, entry["commitTime"], commit_of(entry), ingest)
            if checkpoint is not None:
                return checkpoint
    return None


def _checkpoint(ctx: TableContext, time: str, metadata: CommitMetadata, ingest: str) -> Checkpoint | None:
    try:
        return find(metadata.extra_metadata, ingest)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"the checkpoint of ingest {ingest!r} {error}", base_path=ctx.base_path, instant=time
        ) from error
