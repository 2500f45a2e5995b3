"""Ingest from files, the part that operator and jobs share: what lies in the source, and what the table holds of it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from hudi_table.errors import CorruptTableError, ObjectExistsError, ObjectNotFoundError
from hudi_table.model.job.checkpoint import Checkpoint, SourceFile, digest_file_of, find, key_of, with_digest_file
from hudi_table.model.names import INGEST
from hudi_table.model.timeline.instants import comparable_time
from hudi_table.table.commit.publish import materialise_predecessors
from hudi_table.table.commit.recovery import store_now
from hudi_table.table.store.ports import Storage
from hudi_table.table.timeline import chain
from hudi_table.table.timeline.active import commit_metadata, load_timeline
from hudi_table.table.timeline.archived import archived_entries, commit_of
from hudi_table.table.timeline.context import TableContext
from hudi_table.table.timeline.relisting import relists

ORPHAN_AGE = timedelta(days=1)
"""A file of digests that no commit names may belong to an attempt that is at work."""


def list_source(storage: Storage) -> tuple[SourceFile, ...]:
    """Every object of a source. Its version is the store's etag, or the time of change where there is none."""
    found = storage.list()
    return tuple(SourceFile(f.path, f.size, f.etag or f.modified.isoformat(), f.modified) for f in found)


@relists
def current_checkpoint(ctx: TableContext, ingest: str) -> Checkpoint | None:
    """The newest checkpoint of an ingest, None before its first commit. The archive is read only if the timeline has none.

    A commit that was decided and not yet published counts, so it is published first: whoever wrote it is gone or
    would do the same. Raises CorruptTableError for a damaged checkpoint.
    """
    timeline = load_timeline(ctx)
    if timeline.pending and materialise_predecessors(ctx, timeline, "", chain.read_tail(ctx).sequence):
        timeline = load_timeline(ctx)
    key = key_of(ingest)
    for instant in reversed(timeline.commits):
        text = commit_metadata(ctx, instant).extra_metadata.get(key)
        if text is not None:
            return read_checkpoint(ctx, ingest, instant.time, text)
    archived = archived_checkpoints(ctx, [ingest]).get(ingest)
    return read_checkpoint(ctx, ingest, *archived) if archived is not None else None


def archived_checkpoints(ctx: TableContext, ingests: Collection[str]) -> dict[str, tuple[str, str]]:
    """The newest archived commit of each ingest and the text of its checkpoint; nothing of those that have none. Read from the newest
    file on, until all are found."""
    found: dict[str, tuple[str, str]] = {}
    for entries in archived_entries(ctx):
        for entry in sorted(entries, key=lambda entry: comparable_time(entry["commitTime"]), reverse=True):
            extra = commit_of(entry).extra_metadata
            for ingest in ingests:
                if ingest not in found and key_of(ingest) in extra:
                    found[ingest] = (str(entry["commitTime"]), extra[key_of(ingest)])
        if len(found) == len(ingests):
            break
    return found


def read_checkpoint(ctx: TableContext, ingest: str, time: str, text: str) -> Checkpoint:
    """The checkpoint of a commit's text, with those of its digest file. Raises CorruptTableError if it is damaged."""

    def load(path: str) -> bytes:
        try:
            return ctx.storage.get(path)
        except ObjectNotFoundError:
            raise ValueError(f"refers to {path}, which is gone: restore that file") from None

    try:
        found = find({key_of(ingest): text}, ingest, load)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTableError(
            f"the checkpoint of ingest {ingest!r} {error}", base_path=ctx.base_path, instant=time
        ) from error
    assert found is not None
    return found


def store_digests(ctx: TableContext, ingest: str, before: Checkpoint | None, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint as the next commit is to hold it: small, what is too much for a commit in a file that is there already.

    Files of digests that no commit of the timeline names any more, nor `before`, are swept then.
    """
    found = with_digest_file(checkpoint, ingest)
    if found is None:
        return checkpoint
    wanted, data = found
    assert wanted.digest_file is not None
    try:
        ctx.storage.put_if_absent(wanted.digest_file.path, data)
    except ObjectExistsError:
        # Its name says what it holds.
        ctx.storage.put(wanted.digest_file.path, data)
    _sweep(
        ctx, ingest, {s.path for each in (before, wanted) if each is not None and (s := each.digest_file) is not None}
    )
    return wanted


def _sweep(ctx: TableContext, ingest: str, kept: set[str]) -> None:
    """A commit that a restore may go back to stands on the timeline, so what it names stays."""
    others = [info for info in ctx.storage.list(f"{INGEST}/{ingest}") if info.path not in kept]
    # The store's present: this process's clock may be ahead of that of who made them.
    limit = store_now(ctx) - ORPHAN_AGE if others else None
    old = {info.path for info in others if limit is not None and info.modified < limit}
    if not old:
        return
    for instant in load_timeline(ctx).commits:
        text = commit_metadata(ctx, instant).extra_metadata.get(key_of(ingest))
        old.discard((digest_file_of(text) if text is not None else None) or "")
    for path in sorted(old):
        ctx.storage.delete(path)
